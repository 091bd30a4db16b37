"""Benchmarks against peers, in one run: absolute times mean little on a shared machine.

    python -m experiments.benchmarks [--smoke | --full] [--out FOLDER] [NAME ...]

Every module of this package with a function ``run(scale) -> list[Table]`` is a benchmark; ``scale``
is one of `Scale`. Tables are printed, and written to ``--out`` as Markdown and JSON; a function
``figure(tables)``, where a module has one, draws them there too.
"""
