"""The command and its sub-commands."""

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
from bayes_lcs.cli.errors import polite
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


def _open_missing_streams() -> None:
    """Let standard streams that are not there lead nowhere.

    They are missing in programs with windows, in services, and where a shell has closed them. In
    their order, so that none of their numbers is left to the next file that is opened: libraries
    write to these numbers.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def main() -> None:
    """Entry point of the command."""
    _open_missing_streams()
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
        if "multiprocessing" in sys.modules:  # else there are none, and the import takes a while
            from bayes_lcs.runtime.interrupts import kill_children

            kill_children()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)
