"""Evaluation of fitted models: losses, leave-one-out, cross-validation and learning curves."""
