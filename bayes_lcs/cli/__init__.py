"""The ``bayes-lcs`` command: parse, call, print. One file a command, `manners` for all."""

from bayes_lcs.cli.app import app, main

__all__ = ["app", "main"]
