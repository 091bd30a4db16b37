"""Options that several commands share, and their headings in the help."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "DATA",
    "METHOD",
    "RUN",
    "AsJson",
    "Categorical",
    "ExecutorKind",
    "Folder",
    "Force",
    "Ignore",
    "Missing",
    "NoHeader",
    "Resume",
    "Scheduler",
    "Seed",
    "Workers",
    "report_options",
]

MAX_SEED = 2**32 - 1
DATA, METHOD, RUN = "The data", "The method", "The run and its results"

Ignore = Annotated[
    list[str] | None,
    typer.Option(help="A column to ignore; can be repeated.", rich_help_panel=DATA),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        help="A numeric column to treat as categorical; can be repeated.", rich_help_panel=DATA
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The file has no header; columns are named column_1, column_2, …",
        rich_help_panel=DATA,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="A value that means missing, instead of the empty cell, NA, N/A, NaN, NULL and ?; can "
        "be repeated.",
        rich_help_panel=DATA,
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, max=MAX_SEED, help="Seed of the random numbers.", rich_help_panel=RUN),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Resume an interrupted run with the same --out.",
        rich_help_panel=RUN,
    ),
]
Folder = Annotated[
    Path,
    typer.Option(help="Folder for the results; it must be new or empty.", rich_help_panel=RUN),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace existing results at --out (a link, not its target); never the input.",
        rich_help_panel=RUN,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the results as JSON.", rich_help_panel=RUN)
]
ExecutorKind = Annotated[
    str | None,
    typer.Option(
        "--executor", help="Where to run: serial, processes, dask or devices.", rich_help_panel=RUN
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, such as tcp://scheduler:8786.", rich_help_panel=RUN
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of workers of the executor.", rich_help_panel=RUN)
]


NOT_IN_REPORT = frozenset(
    {"file", "seed", "out", "force", "as_json", "resume", "executor", "scheduler", "workers"}
)
"""Parameters that the report shows elsewhere, or that do not affect its content."""


def report_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a command that its report shows.

    Parameters
    ----------
    parameters
        The command's parameters: ``locals()`` in its first line.

    Examples
    --------
    >>> report_options({"file": "a.csv", "clusters": 3, "seed": 0})
    {'clusters': 3}
    """
    return {name: value for name, value in parameters.items() if name not in NOT_IN_REPORT}
