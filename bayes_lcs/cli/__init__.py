"""Command line interface ``bayes-lcs``: one module for each command, and common modules."""

from bayes_lcs.cli.app import app, main

__all__ = ["app", "main"]
