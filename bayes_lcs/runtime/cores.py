"""How many cores this process may use."""

from __future__ import annotations

import os

__all__ = ["num_cores"]


def num_cores() -> int:
    """Cores that the system lets this process use, where it tells; else those that there are.

    Examples
    --------
    >>> num_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):  # neither on macOS nor on Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
