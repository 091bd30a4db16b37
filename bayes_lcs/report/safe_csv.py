"""Write frames as CSV files that are safe to open in a spreadsheet.

Cells that a spreadsheet would evaluate as a formula get a leading quote, except numbers. Cells that
begin with quotes before a formula sign get one more, so that different names stay different, and
removing one quote restores every name.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.runtime.atomic_files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["free_name", "safe_cells", "safe_text", "write_csv"]

# Some spreadsheets treat full-width signs like the ASCII ones.
_FORMULA = "^'*[=+\\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    r"""Write a frame atomically; names that look like formulas get a leading quote.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame = pd.DataFrame({"who": ["=1+1", "ann"], "x": [-1.5, 2.0]})
    ...     write_csv(frame, Path(folder, "a.csv")).read_text()
    "who,x\n'=1+1,-1.5\nann,2.0\n"
    """
    safe = frame.copy()
    safe.columns = [safe_text(str(name)) for name in frame.columns]
    has_return = any("\r" in name for name in safe.columns)
    for place in range(safe.shape[1]):
        if safe.dtypes.iloc[place].kind not in "biuf":
            cells = [_safe(cell) for cell in safe.iloc[:, place]]
            has_return = has_return or any("\r" in cell for cell in cells if isinstance(cell, str))
            safe.isetitem(place, cells)
    # By default the csv module does not quote a carriage return, which would end the row.
    quoting: Any = csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL

    def write(part: Path) -> None:
        safe.to_csv(part, index=False, lineterminator="\n", quoting=quoting)

    return write_atomically(path, write)


def _safe(cell: Any) -> Any:
    return safe_text(cell) if isinstance(cell, str) else cell


def safe_text(text: str) -> str:
    """Return a text with a leading quote if a spreadsheet would evaluate it as a formula.

    Examples
    --------
    >>> [safe_text(text) for text in ("=1+1", "'=1+1", "-1.5", "-1+1", "ann")]
    ["'=1+1", "''=1+1", '-1.5', "'-1+1", 'ann']
    """
    is_formula = re.match(_FORMULA, text) and not re.match(_NUMBER, text)
    return f"'{text}" if is_formula else text


def safe_cells(cells: Any) -> Any:
    """Apply `safe_text` to an Arrow column if it is a text column."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if not (types.is_string(cells.type) or types.is_large_string(cells.type)):
        return cells
    is_formula = pc.and_not(
        pc.match_substring_regex(cells, _FORMULA), pc.match_substring_regex(cells, _NUMBER)
    )
    quote = pa.scalar("'", cells.type)
    empty = pa.scalar("", cells.type)
    return pc.if_else(is_formula, pc.binary_join_element_wise(quote, cells, empty), cells)


def free_name(wanted: str, taken: Container[str]) -> str:
    """Return a name for a new column that is not taken.

    Examples
    --------
    >>> free_name("cluster", ["age"]), free_name("cluster", ["cluster", "cluster_2"])
    ('cluster', 'cluster_3')
    """
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
