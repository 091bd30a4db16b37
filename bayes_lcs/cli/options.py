"""Options that several commands share, and the headings under which the help shows them."""

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

LARGEST_SEED = 2**32 - 1
DATA, METHOD, RUN = "The data", "The method", "The run and its results"

Ignore = Annotated[
    list[str] | None,
    typer.Option(help="A column to leave out; may be given again.", rich_help_panel=DATA),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        help="A column whose numbers are categories; may be given again.", rich_help_panel=DATA
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="Columns have no names: column_1, column_2, …",
        rich_help_panel=DATA,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="A cell that means missing, in place of the empty cell, NA, N/A, NaN, NULL and ?; may "
        "be given again.",
        rich_help_panel=DATA,
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, max=LARGEST_SEED, help="Seed of all that is random.", rich_help_panel=RUN),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with a run that was interrupted, at the same --out.",
        rich_help_panel=RUN,
    ),
]
Folder = Annotated[
    Path,
    typer.Option(help="Folder for the results, new or empty.", rich_help_panel=RUN),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace results at --out (a link, not what it leads to); never the input.",
        rich_help_panel=RUN,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.", rich_help_panel=RUN)]
ExecutorKind = Annotated[
    str | None,
    typer.Option("--executor", help="serial, processes, dask or devices.", rich_help_panel=RUN),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Of Dask, such as tcp://scheduler:8786.", rich_help_panel=RUN),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers of the executor.", rich_help_panel=RUN)
]


NOT_SHOWN = frozenset(
    {"file", "seed", "out", "force", "as_json", "resume", "executor", "scheduler", "workers"}
)
"""Shown elsewhere in the report, or without influence on what it says."""


def report_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A command's parameters, as ``locals()`` has them in its first line.

    Examples
    --------
    >>> report_options({"file": "a.csv", "clusters": 3, "seed": 0})
    {'clusters': 3}
    """
    return {name: value for name, value in parameters.items() if name not in NOT_SHOWN}
