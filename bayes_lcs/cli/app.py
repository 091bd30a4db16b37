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
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Learning from categorical data that comes in groups or in bulk.

    Every command reads a CSV or Parquet file, and writes tables and a report.

    For example:

      bayes-lcs compare meetings.csv --group user --label decision
      bayes-lcs cluster visits.parquet -k 25 --alpha "1% per 10 minutes"
      bayes-lcs scan transactions.csv --label kind
      bayes-lcs coreset points.parquet -k 10 --size 1000 --out small.parquet

    Exit codes:

        0  done
        1  it failed: no memory, a full disk
        2  bad input: the message says where, and what to do
      130  Ctrl-C: the message says what was kept; --resume goes on from there
    """


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
