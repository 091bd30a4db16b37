"""What kind of values columns hold, and that it is the same in all files."""

from __future__ import annotations

from typing import Any

from bayes_lcs.data.arrow_columns import is_text
from bayes_lcs.data.columns import Source

__all__ = ["ColumnTypes"]


class ColumnTypes:
    """The kind of each column where it was first met.

    Names of values come from their type: 1 is ``1`` where it is an integer and ``1.0`` where it is
    a float. A column whose type changes from file to file would be taken for one with twice the
    values. Cells of text files are text and nothing else, so these can only agree.

    Examples
    --------
    >>> import pyarrow as pa
    >>> types = ColumnTypes()
    >>> types.check("age", pa.int32(), Source("a.parquet"))
    >>> types.check("age", pa.int64(), Source("b.parquet"))
    >>> types.check("age", pa.float64(), Source("c.parquet"))
    Traceback (most recent call last):
    ...
    bayes_lcs.data.errors.DataError: c.parquet, column 'age': holds floating numbers (double)...
    """

    def __init__(self) -> None:
        self.met: dict[str, tuple[str, str, str | None]] = {}
        """For each column the kind of its values, its type, and the file where it was met."""

    def check(self, name: str, kind: Any, source: Source) -> None:
        """Refuse a column of another kind than where it was met first."""
        if source.line_of is not None:
            return
        kind = _value_type(kind)
        family = _family(kind)
        if family is None:
            return
        known, before, where = self.met.setdefault(name, (family, str(kind), source.file))
        if family != known:
            raise source.error(
                f"holds {family} ({kind}), but {known} ({before}) in {where}; store the "
                "column alike in all files, or leave it out with ignore=",
                column=name,
            )


def _value_type(kind: Any) -> Any:
    import pyarrow.types as types

    return kind.value_type if types.is_dictionary(kind) else kind


def _family(kind: Any) -> str | None:
    """Types whose values have the same names; None of a column without any value."""
    import pyarrow.types as types

    if types.is_null(kind):
        return None
    if types.is_integer(kind):
        return "integers"
    if types.is_floating(kind):
        return "floating numbers"
    if types.is_boolean(kind):
        return "booleans"
    if is_text(kind):
        return "text"
    return str(kind)
