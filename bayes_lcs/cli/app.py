"""The command and its sub-commands."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from bayes_lcs.cli.cluster import cluster
from bayes_lcs.cli.compare import compare
from bayes_lcs.cli.coreset import coreset
from bayes_lcs.cli.demo import demo
from bayes_lcs.cli.manners import polite
from bayes_lcs.cli.scan import scan

__all__ = ["app", "main"]

app = typer.Typer(
    name="bayes-lcs",
    help="Learning from categorical data that comes in groups or in bulk.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from bayes_lcs._version import __version__

        typer.echo(f"bayes-lcs {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say so.")
    ] = False,
) -> None:
    """Learning from categorical data that comes in groups or in bulk."""


for _command in (compare, cluster, scan, coreset, demo):
    app.command()(polite(_command))


def main() -> None:
    """Entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name is no reason to fail after long work
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as end:
        if not end.code or not isinstance(end.code, int):
            raise
        # Work that was given up may have left threads in compiled code: Python would wait for them,
        # and some libraries abort when they are taken down meanwhile, with an exit code of theirs.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)
