"""What a command was asked, for the end of its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["as_asked"]

NOT_SHOWN = frozenset(
    {"file", "seed", "out", "force", "as_json", "resume", "executor", "scheduler", "workers"}
)
"""Shown elsewhere in the report, or without influence on what it says."""


def as_asked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A command's parameters, as ``locals()`` has them in its first line.

    Examples
    --------
    >>> as_asked({"file": "a.csv", "clusters": 3, "seed": 0})
    {'clusters': 3}
    """
    return {name: value for name, value in parameters.items() if name not in NOT_SHOWN}
