"""The real data sets, as categories: web logs as sparse matrices, records as small integers."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from bayes_lcs.data.datasets import dataset_path

MOST_VALUES = 20
"""Columns of more numbers than this are cut into ten quantiles."""


def msnbc() -> sparse.csr_array:
    """989,818 visitors of msnbc.com by 17 kinds of pages: seen or not."""
    with gzip.open(dataset_path("msnbc"), "rt", encoding="ascii") as lines:
        rows = [set(line.split()) for line in lines if line[:1].isdigit()]
    return _visits([[int(page) - 1 for page in row] for row in rows], 17)


def msweb() -> sparse.csr_array:
    """37,711 visitors of microsoft.com by 294 areas: the training and the test file."""
    rows: list[list[int]] = []
    areas: dict[str, int] = {}
    for file in ("anonymous-msweb.data", "anonymous-msweb.test"):
        text = dataset_path("msweb", file).read_text(encoding="latin-1")
        for line in text.splitlines():
            cells = line.split(",")
            if cells[0] == "C":
                rows.append([])
            elif cells[0] == "V":
                rows[-1].append(areas.setdefault(cells[1], len(areas)))
    return _visits(rows, len(areas))


def _visits(rows: list[list[int]], num_items: int) -> sparse.csr_array:
    lengths = [len(row) for row in rows]
    items = np.fromiter((item for row in rows for item in row), np.int32, sum(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ones = np.ones(items.size, np.int8)
    seen = sparse.csr_array((ones, items, starts), shape=(len(rows), num_items))
    seen.sum_duplicates()
    seen.data[:] = 1
    return seen


def census_income_kdd() -> NDArray[np.int8]:
    """299,285 people of two surveys by 40 columns; the survey's weight is left out."""
    files = ("census-income.data.gz", "census-income.test.gz")
    frames = [_text(dataset_path("census_income_kdd", file)) for file in files]
    return _codes(pd.concat(frames, ignore_index=True).drop(columns=24))


def acs_ma_employment() -> NDArray[np.int8]:
    """277,677 people of Massachusetts by 18 columns."""
    return _codes(pd.read_parquet(dataset_path("acs_ma_employment")).drop(columns="id"))


def kddcup99_10pct() -> NDArray[np.int8]:
    """494,021 connections by 42 columns."""
    return _codes(_text(dataset_path("kddcup99_10pct")))


def _text(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, header=None, skipinitialspace=True, keep_default_na=False)


def _codes(frame: pd.DataFrame) -> NDArray[np.int8]:
    """Small integers: names by order, many numbers by quantile."""
    columns = []
    for name in frame:
        column = frame[name]
        values: Any = column
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > MOST_VALUES:
            values = pd.qcut(column, 10, duplicates="drop").cat.codes
        codes, uniques = pd.factorize(values, sort=True)
        if len(uniques) > 1:
            columns.append(codes.astype(np.int8))
    return np.asfortranarray(np.stack(columns, axis=1))


LOADERS = {
    loader.__name__: loader
    for loader in (msnbc, msweb, census_income_kdd, acs_ma_employment, kddcup99_10pct)
}
