"""Frames as CSV files that do no harm in a spreadsheet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.data.storage import write_atomically

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_csv"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    r"""Write a frame, atomically; names that a spreadsheet would take for a formula get a quote.

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
    safe.columns = [_safe(str(name)) for name in frame.columns]
    for place in range(safe.shape[1]):
        if safe.dtypes.iloc[place].kind not in "biuf":
            safe.isetitem(place, list(safe.iloc[:, place].map(_safe)))
    return write_atomically(path, lambda part: safe.to_csv(part, index=False, lineterminator="\n"))


def _safe(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
