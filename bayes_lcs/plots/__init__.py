"""Matplotlib plots."""
