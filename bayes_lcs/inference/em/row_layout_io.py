"""Laid-out rows on disk, for passes over more of them than memory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.em.row_layout import Chunk, PatternPlan
from bayes_lcs.runtime.array_store import open_arrays, save_arrays

__all__ = ["open_plan", "save_plan"]


def save_plan(plan: PatternPlan, path: Path) -> None:
    """Write what EM needs of a plan; which row came from where is left out."""
    chunks = plan.chunks
    arrays = {
        "slots": np.stack([chunk.slots for chunk in chunks]),
        "starts": np.stack([chunk.starts for chunk in chunks]),
        "weights": _compact(np.stack([chunk.weights for chunk in chunks])),
        "places": np.array([(chunk.num_blocks, chunk.first_row) for chunk in chunks]),
        "entry_pattern": plan.entry_pattern,
        "entry_cell": plan.entry_cell,
        "entry_sign": plan.entry_sign,
        "common_cells": plan.common_cells,
        "num_values": np.array(plan.schema.num_values, np.int64),
        "numbers": np.array([plan.num_rows, plan.num_distinct, plan.num_slots]),
        "total_weight": np.array(plan.total_weight),
    }
    save_arrays(path, arrays)


def open_plan(path: Path) -> PatternPlan:
    """The plan that was written, for statistics only; a damaged file is refused."""
    try:
        arrays = open_arrays(path)
    except DataError as error:
        raise DataError(
            f"a block of rows that was laid out here {error.message}; fit again", file=error.file
        ) from None
    rows = (arrays["slots"], arrays["starts"], arrays["weights"].astype(np.float64))
    chunks = [
        Chunk(slots, starts, weights, num_blocks, first_row)
        for slots, starts, weights, (num_blocks, first_row) in zip(
            *rows, arrays["places"].tolist(), strict=True
        )
    ]
    num_rows, num_distinct, num_slots = arrays["numbers"].tolist()
    return PatternPlan(
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


def _compact(weights: NDArray[np.float64]) -> NDArray[Any]:
    """The same weights in as few bytes as hold them exactly: most are numbers of equal rows."""
    for kind in (np.uint8, np.uint16, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = weights.astype(kind)
        if np.array_equal(smaller, weights):
            return smaller
    return weights
