"""Communication of processes that share a mesh of JAX devices (`jax.distributed`).

All processes make the same calls in the same order, and a collective operation waits for all of
them. Two faults must be reported: a lost process, and processes that have diverged (other data,
other seeds) although their sums can still be added. The messages exchanged here detect both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bayes_lcs.core.errors import ExecutorError

__all__ = [
    "allgather_bytes",
    "check_agreement",
    "divergence_error",
    "explain_lost_host",
    "spans_processes",
]


def spans_processes(mesh: Any) -> bool:
    """Return whether a mesh has devices of several processes; all must have one."""
    import jax

    owners = {device.process_index for device in mesh.devices.flat}
    if owners != set(range(jax.process_count())):
        raise ValueError(
            f"the mesh has devices of processes {sorted(owners)}, but {jax.process_count()} are "
            "running, and those without a device would wait for ever: use devices of each process"
        )
    return len(owners) > 1


@contextmanager
def explain_lost_host() -> Iterator[None]:
    """Turn the error of a failed collective operation into an `ExecutorError`."""
    import jax

    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # jaxlib raises either
        raise ExecutorError(
            f"process {jax.process_index()} of {jax.process_count()} could not reach all others: "
            f"one of them has ended or hangs; see its output for the reason ({error})"
        ) from error


def allgather_bytes(parcel: bytes) -> list[bytes]:
    """Return the bytes that each process passed, in order of the processes."""
    sizes = [int(size.view(np.int64)[0]) for size in _allgather(np.array([len(parcel)], np.int64))]
    padded = np.zeros(max(sizes), np.uint8)
    padded[: len(parcel)] = np.frombuffer(parcel, np.uint8)
    return [row[:size].tobytes() for row, size in zip(_allgather(padded), sizes, strict=True)]


def check_agreement(digest: str, what: str) -> None:
    """Raise an `ExecutorError` in every process if their digests differ."""
    found = allgather_bytes(f"{what}: {digest}".encode())
    if len(set(found)) > 1:
        raise divergence_error([parcel.decode(errors="replace") for parcel in found])


def divergence_error(messages: list[str]) -> ExecutorError:
    """Return the error for processes that have diverged."""
    return ExecutorError(
        "the processes of the mesh have diverged; all must run the same program on the same "
        f"rows with the same random_state ({'; '.join(sorted(set(messages)))})"
    )


def _allgather(array: Any) -> Any:
    """Return the bytes of the arrays of all processes, ``(processes, bytes)``."""
    from jax.experimental.multihost_utils import process_allgather

    with explain_lost_host():  # as bytes, which JAX never converts to 32 bits
        return np.ascontiguousarray(process_allgather(array.view(np.uint8)))
