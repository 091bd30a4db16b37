"""Mixture clustering of categorical rows."""
