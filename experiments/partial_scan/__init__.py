"""The tables and figures of the paper behind the partial scan, on real and on made data.

    python -m experiments.partial_scan NAME [--smoke] [--out DIR]

Every module of this package with a function ``run(setting) -> Outcome`` is an experiment; its first
line says what it shows.
"""
