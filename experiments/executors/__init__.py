"""What executors cost: measured by ``python -m experiments.benchmarks executor_scaling``.

``jobs.py`` has passes of EM and k-means, timed; ``cells.py`` runs them in processes of their own,
with as many workers or devices as asked for; ``disk.py`` fits a file in a tenth of its size; and
``cost_model.py`` says what a pass takes, and what it would take elsewhere.
"""
