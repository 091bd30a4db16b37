"""The errors that tell a user what is wrong with a data file, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bayes_lcs.core.visible import visible

__all__ = ["DataError", "DatasetNotFound", "naming", "one_line"]

_LONGEST = 300


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
    r"""What another library's error says, on one line and not without end.

    Examples
    --------
    >>> one_line(OSError("Couldn't deserialize:\nInvalid data\n"))
    "Couldn't deserialize: Invalid data"
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return visible(text, _LONGEST)


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Work on the rows of a file: what a learner says about them gets the file's name."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(str(error), file=file) from error
