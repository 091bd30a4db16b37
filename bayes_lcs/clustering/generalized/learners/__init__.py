"""Supervised learners for generalized clustering."""
