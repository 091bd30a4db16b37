"""The ``bayes-lcs`` application and its entry point."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from bayes_lcs.cli.cluster import cluster
from bayes_lcs.cli.compare import compare
from bayes_lcs.cli.coreset import coreset
from bayes_lcs.cli.demo import demo
from bayes_lcs.cli.errors import with_error_handling
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
    """Bayesian modelling of grouped and bulk categorical data.

    Every command reads a CSV or Parquet file, and writes tables and a report.

    For example:

      bayes-lcs compare meetings.csv --group user --label decision
      bayes-lcs cluster visits.parquet -k 25 --alpha "1% per 10 minutes"
      bayes-lcs scan transactions.csv --label kind
      bayes-lcs coreset points.parquet -k 10 --size 1000 --out small.parquet

    Exit codes:

        0  success
        1  failure, for example not enough memory or disk space
        2  invalid input: the message says where, and what to do
      130  interrupted by Ctrl-C: the message says what was saved; use --resume
    """


for _command in (compare, cluster, scan, coreset, demo):
    app.command()(with_error_handling(_command))


def _open_missing_streams() -> None:
    """Open the null device for standard streams that are missing.

    They are missing in GUI programs, in services, and if a shell has closed them. They are opened
    in order, so that no other file gets their descriptors: libraries write to descriptors 1 and 2.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def main() -> None:
    """Run the command line interface."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # do not fail on names that cannot be encoded
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as end:
        if not end.code or not isinstance(end.code, int):
            raise
        # After an interruption, threads may still run compiled code. Python would wait for them,
        # and some libraries abort during shutdown with another exit code.
        if "multiprocessing" in sys.modules:  # otherwise there are no children; the import is slow
            from bayes_lcs.runtime.interrupts import kill_children

            kill_children()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)
