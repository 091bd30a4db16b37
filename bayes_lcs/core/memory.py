"""How much memory is left, so that work which would not fit is refused before it starts."""

from __future__ import annotations

from pathlib import Path

__all__ = ["available_memory", "human_bytes"]

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
    """Bytes that can still be used, or None where the system does not tell.

    The smaller of what the kernel calls available and what a control group leaves.
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
    """A size for people.

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
