"""Errors and warnings that tell a user what is wrong, where, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from bayes_lcs.core.escape import visible

__all__ = [
    "CheckpointWarning",
    "DataError",
    "DataNote",
    "DataWarning",
    "DatasetNotFound",
    "ExecutorError",
    "InterruptedWarning",
    "NotExactError",
    "naming",
    "one_line",
    "plural",
    "warn_user",
]

_MAX_LENGTH = 300


class NotExactError(ValueError):
    """Exact inference is not available for this model, data or size; the message says why."""


class ExecutorError(RuntimeError):
    """Workers were lost or cannot be reached; the message names them and the number of attempts."""


class InterruptedWarning(UserWarning):
    """A computation was interrupted; the partial result is kept and marked as interrupted."""


class CheckpointWarning(UserWarning):
    """A checkpoint cannot be written; the computation continues but cannot be resumed from here."""


class DataWarning(UserWarning):
    """Some cells or rows are not used; the message says which and how many."""


class DataNote(UserWarning):
    """An assumption was made about the data; the message names the option that changes it."""


class DataError(ValueError):
    """Invalid data; the message says where the error is and how to fix it.

    Parameters
    ----------
    message
        Description of the error and its fix.
    file
        Name of the file that contains the error.
    line
        Line of a text file, counted from 1 (the header is line 1).
    row
        Row of a table that was not read from a text file, counted from 0.
    column
        Name of the column.

    Examples
    --------
    >>> print(DataError("'abc' is not a number", file="people.csv", line=7, column="age"))
    people.csv, line 7, column 'age': 'abc' is not a number
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.row = row
        self.column = column
        where = [] if file is None else [file]
        if line is not None:
            where.append(f"line {line}")
        if row is not None:
            where.append(f"row {row}")
        if column is not None:
            where.append(f"column {column!r}")
        super().__init__(f"{', '.join(where)}: {message}" if where else message)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the location, so that the error survives a process pool."""
        return (_rebuild, (type(self), self.message, self.file, self.line, self.row, self.column))


def _rebuild(
    kind: type[DataError],
    message: str,
    file: str | None,
    line: int | None,
    row: int | None,
    column: str | None,
) -> DataError:
    return kind(message, file=file, line=line, row=row, column=column)


class DatasetNotFound(DataError, FileNotFoundError):
    """A data set is not on this machine; the message says which path to set or file to fetch."""


def one_line(error: BaseException) -> str:
    r"""Return the message of another library's error on one line, truncated.

    Examples
    --------
    >>> one_line(OSError("Couldn't deserialize:\nInvalid data\n"))
    "Couldn't deserialize: Invalid data"
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return visible(text, _MAX_LENGTH)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural.

    Examples
    --------
    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}" + "s" * (number != 1)


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Convert a `ValueError` raised inside into a `DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(str(error), file=file) from error


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of user code that called the package, at any call depth."""
    frame = sys._getframe()
    depth = outermost = 1
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").startswith("bayes_lcs."):
            outermost = depth  # frames of contextlib and scikit-learn may lie between ours
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=outermost + 1)
