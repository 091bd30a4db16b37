"""The tables and figures of Kalton, Langley, Wagstaff and Yoo (KDD 2001), made again.

    python -m experiments.generalized_clustering NAME [--smoke] [--out DIR]

Every module of this package with a function ``run(setting) -> Outcome`` is an experiment; its first
line says what it shows. What each one finds is held against ``expected.toml``.
"""
