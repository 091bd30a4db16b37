"""Processes that run one program together and share a mesh of devices (`jax.distributed`).

Each runs the same calls in the same order, and a call that all take part in waits for all. So two
things must not happen in silence: that one of them is lost, and that they have gone apart (other
data, other seeds) while their sums are still added up. What is exchanged here says both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bayes_lcs.core.errors import ExecutorError

__all__ = [
    "all_parcels",
    "check_agreement",
    "disagreement",
    "naming_lost_processes",
    "spans_processes",
]


def spans_processes(mesh: Any) -> bool:
    """Whether devices of a mesh belong to several processes; all of them must take part."""
    import jax

    owners = {device.process_index for device in mesh.devices.flat}
    if owners != set(range(jax.process_count())):
        raise ValueError(
            f"the mesh has devices of processes {sorted(owners)}, but {jax.process_count()} run "
            "together, and those without a device would wait for ever: take devices of each"
        )
    return len(owners) > 1


@contextmanager
def naming_lost_processes() -> Iterator[None]:
    """Say what a failed collective means to the user."""
    import jax

    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # jaxlib raises either
        raise ExecutorError(
            f"process {jax.process_index()} of {jax.process_count()} could not reach all others: "
            f"one of them has ended or hangs, and its own messages say why ({error})"
        ) from error


def all_parcels(parcel: bytes) -> list[bytes]:
    """What each process has to say, in their order; every process gets all of it."""
    sizes = [int(size.view(np.int64)[0]) for size in _gathered(np.array([len(parcel)], np.int64))]
    padded = np.zeros(max(sizes), np.uint8)
    padded[: len(parcel)] = np.frombuffer(parcel, np.uint8)
    return [row[:size].tobytes() for row, size in zip(_gathered(padded), sizes, strict=True)]


def check_agreement(digest: str, what: str) -> None:
    """Raise in every process if their digests of something differ."""
    found = all_parcels(f"{what}: {digest}".encode())
    if len(set(found)) > 1:
        raise disagreement([parcel.decode(errors="replace") for parcel in found])


def disagreement(said: list[str]) -> ExecutorError:
    """The error of processes that have gone apart."""
    return ExecutorError(
        "the processes of the mesh have gone apart; all must run the same program on the same "
        f"rows with the same random_state ({'; '.join(sorted(set(said)))})"
    )


def _gathered(array: Any) -> Any:
    """The bytes of every process's array, ``(processes, bytes)``."""
    from jax.experimental.multihost_utils import process_allgather

    with naming_lost_processes():  # as bytes, which JAX leaves alone whatever its precision
        return np.ascontiguousarray(process_allgather(array.view(np.uint8)))
