"""The tables and figures of D. Roy, *Clustered Naive Bayes* (MIT, 2006), chapter 4.

    python -m experiments.clustered_naive_bayes NAME [--smoke] [--data DATASET] [--out DIR]

Every module of this package with a function ``run(setting) -> Outcome`` is an experiment; its first
line says what it shows. What each one finds is held against ``expected.toml``.
"""
