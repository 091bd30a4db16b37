"""Row layouts on disk, for passes over data larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.em.row_layout import Chunk, RowLayout
from bayes_lcs.runtime.array_store import open_arrays, save_arrays

__all__ = ["load_layout", "save_layout"]


def save_layout(layout: RowLayout, path: Path) -> None:
    """Write a layout without the original order of the rows, which EM does not need."""
    chunks = layout.chunks
    arrays = {
        "slots": np.stack([chunk.slots for chunk in chunks]),
        "starts": np.stack([chunk.starts for chunk in chunks]),
        "weights": _to_smallest_dtype(np.stack([chunk.weights for chunk in chunks])),
        "places": np.array([(chunk.num_blocks, chunk.first_row) for chunk in chunks]),
        "entry_pattern": layout.entry_pattern,
        "entry_cell": layout.entry_cell,
        "entry_sign": layout.entry_sign,
        "common_cells": layout.common_cells,
        "num_values": np.array(layout.schema.num_values, np.int64),
        "numbers": np.array([layout.num_rows, layout.num_distinct, layout.num_slots]),
        "total_weight": np.array(layout.total_weight),
    }
    save_arrays(path, arrays)


def load_layout(path: Path) -> RowLayout:
    """Load a layout, for statistics only; raise `DataError` if its file is damaged."""
    try:
        arrays = open_arrays(path)
    except DataError as error:
        raise DataError(
            f"the row layout in this file {error.message}; fit again", file=error.file
        ) from None
    rows = (arrays["slots"], arrays["starts"], arrays["weights"].astype(np.float64))
    chunks = [
        Chunk(slots, starts, weights, num_blocks, first_row)
        for slots, starts, weights, (num_blocks, first_row) in zip(
            *rows, arrays["places"].tolist(), strict=True
        )
    ]
    num_rows, num_distinct, num_slots = arrays["numbers"].tolist()
    return RowLayout(
        schema=Schema(1, arrays["num_values"].tolist()),
        num_rows=num_rows,
        num_distinct=num_distinct,
        groups=(),
        num_patterns=(),
        chunks=chunks,
        entry_pattern=arrays["entry_pattern"],
        entry_cell=arrays["entry_cell"],
        entry_sign=arrays["entry_sign"],
        common_cells=arrays["common_cells"],
        num_slots=num_slots,
        slots_per_row=float("nan"),
        order=np.empty(0, np.int64),
        distinct=None,
        total_weight=float(arrays["total_weight"]),
    )


def _to_smallest_dtype(weights: NDArray[np.float64]) -> NDArray[Any]:
    """Convert weights to the smallest type that holds them exactly: most are small counts."""
    for kind in (np.uint8, np.uint16, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = weights.astype(kind)
        if np.array_equal(smaller, weights):
            return smaller
    return weights
