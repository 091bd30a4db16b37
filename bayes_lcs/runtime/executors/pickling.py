"""Pickle functions and results that travel to and from workers, and count their bytes.

Pickles run code when they are read. These travel through the connections of a Dask cluster that the
user trusts, or between the processes of a JAX mesh, and are never read from a file.
"""

from __future__ import annotations

import traceback
from multiprocessing.reduction import ForkingPickler
from typing import Any

from bayes_lcs.core.errors import ExecutorError

__all__ = ["opened", "packed", "packed_error", "packed_function"]


def packed(value: Any) -> bytes:
    """A value as bytes."""
    return bytes(ForkingPickler.dumps(value))


def opened(parcel: bytes) -> Any:
    """The value that was packed."""
    return ForkingPickler.loads(parcel)


def packed_function(function: Any, *more: Any) -> bytes:
    """A function, and what goes with it; one that cannot be imported elsewhere is refused.

    Examples
    --------
    >>> packed_function(lambda task: task)
    Traceback (most recent call last):
    ...
    TypeError: <lambda> cannot be sent to workers: give a function that can be imported by name...
    """
    try:
        head = packed(function)
    except Exception as error:  # pickle raises three kinds, and what is pickled any
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"{name} cannot be sent to workers: give a function that can be imported by name, or "
            f"functools.partial of one ({type(error).__name__}: {error})"
        ) from None
    return packed((head, *more))


def packed_error(error: BaseException) -> bytes:
    """An error with its story; one that cannot be packed is told in words."""
    error.add_note(f"In a worker:\n{''.join(traceback.format_exception(error))}")
    try:
        parcel = packed(error)
        opened(parcel)
    except Exception:  # whatever the error's own class does wrong
        return packed(ExecutorError(f"{type(error).__name__} in a worker: {error}"))
    return parcel
