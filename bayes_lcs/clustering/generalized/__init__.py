"""Clustering with any supervised learner inside."""
