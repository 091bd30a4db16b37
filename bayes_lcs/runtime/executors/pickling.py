"""Pickle functions and results that are sent to and from workers.

Pickles run code when they are read. They are sent over the connections of a Dask cluster that the
user trusts, or between the processes of a JAX mesh, and are never read from a file.
"""

from __future__ import annotations

import traceback
from multiprocessing.reduction import ForkingPickler
from typing import Any

from bayes_lcs.core.errors import ExecutorError

__all__ = ["pack", "pack_error", "pack_function", "unpack"]


def pack(value: Any) -> bytes:
    """Pickle a value."""
    return bytes(ForkingPickler.dumps(value))


def unpack(parcel: bytes) -> Any:
    """Unpickle a value."""
    return ForkingPickler.loads(parcel)


def pack_function(function: Any, *more: Any) -> bytes:
    """Pickle a function and its parameters; raise a `TypeError` if it is not importable.

    Examples
    --------
    >>> pack_function(lambda task: task)
    Traceback (most recent call last):
    ...
    TypeError: <lambda> cannot be sent to workers: give a function that can be imported by name...
    """
    try:
        head = pack(function)
    except Exception as error:  # pickle raises three types of errors, and __reduce__ any
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"{name} cannot be sent to workers: give a function that can be imported by name, or "
            f"functools.partial of one ({type(error).__name__}: {error})"
        ) from None
    return pack((head, *more))


def pack_error(error: BaseException) -> bytes:
    """Pickle an error with its traceback as a note, or its message if it cannot be pickled."""
    error.add_note(f"In a worker:\n{''.join(traceback.format_exception(error))}")
    try:
        parcel = pack(error)
        unpack(parcel)
    except Exception:  # a custom exception class may raise any error
        return pack(ExecutorError(f"{type(error).__name__} in a worker: {error}"))
    return parcel
