"""Coresets on real data and on streams, and how the lecture's construction goes.

    python -m experiments.coresets NAME [--smoke] [--out DIR]

Every module of this package with a function ``run(setting) -> Outcome`` is an experiment; its first
line says what it shows.
"""
