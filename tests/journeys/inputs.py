"""Write one table in every form that users have it in, and read the reports they open."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from scipy import sparse


def in_all_forms(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The rows of a frame by kind of input; the names are those of the table in docs/input.md."""
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet", index=False)
    half = len(frame) // 2
    for name, rows in (("part-0", frame.iloc[:half]), ("part-1", frame.iloc[half:])):
        (folder / "parts").mkdir(exist_ok=True)
        rows.to_parquet(folder / "parts" / f"{name}.parquet", index=False)
    forms = {
        "CSV": folder / "rows.csv",
        "Parquet": folder / "rows.parquet",
        "folder": folder / "parts",
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "Arrow table": pa.Table.from_pandas(frame, preserve_index=False),
        "Arrow data set": ds.dataset(folder / "rows.parquet"),
        "Dask": dd.from_pandas(frame, npartitions=2),
        "NumPy": frame.to_numpy(),
    }
    if all(kind.kind in "biuf" for kind in frame.dtypes):
        forms["sparse"] = sparse.csr_matrix(frame.to_numpy(np.float64))
    return forms


def named_forms(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The forms that have column names: all but arrays and sparse matrices."""
    forms = in_all_forms(frame, folder)
    return {name: rows for name, rows in forms.items() if name not in ("NumPy", "sparse")}


def assert_all_equal(found: dict[str, Any], check: Callable[..., None] | None = None) -> None:
    """Fail if the results of two forms differ; the message names the form."""
    (first, expected), *others = found.items()
    for name, value in others:
        if check is None:
            np.testing.assert_array_equal(value, expected, err_msg=f"{name} is not {first}")
        else:
            check(value, expected, err_msg=f"{name} is not {first}")


class Page(HTMLParser):
    """Title, headlines and text of a report."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.title, self.headlines, self.text = "", [], ""
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headlines.append("")
        self.links += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:  # void elements have no end
            pass

    def handle_data(self, data: str) -> None:
        if "title" in self._open and "svg" not in self._open:
            self.title += data
        elif self._open and self._open[-1] in ("h1", "h2", "h3"):
            self.headlines[-1] += data
        if not {"style", "script"} & set(self._open):
            self.text += data


def open_report(path: Path) -> Page:
    """Read a report and check what every reader of one expects."""
    page = Page(path)
    assert page.title.strip(), f"{path.name} has no title"
    assert page.headlines, f"{path.name} has no headline"
    for headline in (page.title, *page.headlines):
        words = headline.lower().replace(":", " ").split()
        assert not {"nan", "none", "null"} & set(words), f"{path.name}: {headline!r}"
    assert len(page.text.split()) > 50, f"{path.name} is nearly empty"
    assert not [link for link in page.links if link.startswith(("http:", "https:", "//"))]
    return page
