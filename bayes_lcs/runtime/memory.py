"""Count cores and free memory, and refuse computations that do not fit."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory", "fits", "human_bytes", "num_cores", "require_memory"]

_CGROUP_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except OSError:
        return None


def available_memory() -> int | None:
    """Return the number of free bytes, or None if the system does not report it.

    It is the minimum of what the kernel reports as available and what control groups leave.
    """
    limits = []
    for line in (_read("/proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            limits.append(int(line.split()[1]) * 1024)
    for limit_path, usage_path in _CGROUP_LIMITS:
        limit, usage = _read(limit_path), _read(usage_path)
        if limit and usage and limit.strip().isdigit():
            limits.append(max(int(limit) - int(usage), 0))
    return min(limits) if limits else None


def human_bytes(size: float) -> str:
    """Return a size in a readable unit.

    Examples
    --------
    >>> human_bytes(3 * 2**30)
    '3.0 GiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def require_memory(need: float, what: str, instead: str) -> None:
    """Raise a `MemoryError` if a computation would not fit into memory.

    Parameters
    ----------
    need
        Estimated number of bytes.
    what
        The computation, as the subject of a sentence.
    instead
        Advice to the user, as a sentence.

    Raises
    ------
    MemoryError
        With the memory needed, the memory available, and the advice.

    Examples
    --------
    >>> require_memory(2**60, "the sum over all partitions", "Take fewer groups")
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    MemoryError: the sum over all partitions needs about 1048576.0 TiB of memory, and only ...
    """
    free = available_memory()
    if free is not None and need > free:
        raise MemoryError(
            f"{what} needs about {human_bytes(need)} of memory, and only {human_bytes(free)} are "
            f"free. {instead}"
        )


def fits(need: float) -> bool:
    """Return whether so many bytes are free, or True if the system does not report it."""
    free = available_memory()
    return free is None or need <= free


def num_cores() -> int:
    """Return the number of cores that this process may use, if known, else that of the machine.

    Examples
    --------
    >>> num_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):  # missing on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
