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

_LONGEST = 300


class NotExactError(ValueError):
    """An exact answer is not available for this model, data or size; the message says why."""


class ExecutorError(RuntimeError):
    """Workers were lost, or cannot be reached; the message says which and how often."""


class InterruptedWarning(UserWarning):
    """Work was stopped from outside; what was done is kept, and the result says so."""


class CheckpointWarning(UserWarning):
    """Work cannot be written down; it goes on, but cannot be resumed from here."""


class DataWarning(UserWarning):
    """Some cells or rows are not used; the message says which and how many."""


class DataNote(UserWarning):
    """An assumption about the data, and the option that changes it."""


class DataError(ValueError):
    """Something in the data is wrong; the message says where and what to do about it.

    Parameters
    ----------
    message
        What is wrong and what to do.
    file
        The file in which it was found.
    line
        The line of a text file, counted from 1 (the header is line 1).
    row
        The row of a table that did not come from a text file, counted from 0.
    column
        The name of the column.

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
        """Pickle with the place, so that the error survives a process pool."""
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
    """A named data set is not on this machine; the message says what to set or fetch."""


def one_line(error: BaseException) -> str:
    r"""Return the message of another library's error on one line, shortened.

    Examples
    --------
    >>> one_line(OSError("Couldn't deserialize:\nInvalid data\n"))
    "Couldn't deserialize: Invalid data"
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return visible(text, _LONGEST)


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
    """Work on the rows of a file: what a learner says about them gets the file's name."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(str(error), file=file) from error


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called the package, however deep the caller is."""
    frame = sys._getframe()
    depth = outermost = 1
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").startswith("bayes_lcs."):
            outermost = depth  # frames of contextlib and scikit-learn may lie between ours
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=outermost + 1)
