"""The tables and figures of Meek, Thiesson and Heckerman (JMLR 2002), made again.

    python -m experiments.learning_curve NAME [--smoke] [--data DATASET] [--scale SHARE] [--out DIR]

Every module of this package with a function ``run(setting) -> Outcome`` is an experiment; its first
line says what it shows. What each one finds is held against ``expected.toml``.
"""
