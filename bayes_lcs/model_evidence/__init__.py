"""Log evidence with its error, Bayes factors, and model comparison."""
