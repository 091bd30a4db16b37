"""Laid-out rows on disk, for passes over more of them than memory holds."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from bayes_lcs.core.schema import Schema
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.storage import write_atomically
from bayes_lcs.inference.pattern_plan import Chunk, PatternPlan

__all__ = ["open_plan", "save_plan"]


def save_plan(plan: PatternPlan, path: Path) -> None:
    """Write what EM needs of a plan; which row came from where is left out."""
    chunks = plan.chunks

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            np.savez(
                stream,
                slots=np.stack([chunk.slots for chunk in chunks]),
                starts=np.stack([chunk.starts for chunk in chunks]),
                weights=np.stack([chunk.weights for chunk in chunks]),
                places=np.array([(chunk.num_blocks, chunk.first_row) for chunk in chunks]),
                entry_pattern=plan.entry_pattern,
                entry_cell=plan.entry_cell,
                entry_sign=plan.entry_sign,
                common_cells=plan.common_cells,
                num_values=np.array(plan.schema.num_values, np.int64),
                numbers=np.array([plan.num_rows, plan.num_distinct, plan.num_slots]),
                total_weight=np.array(plan.total_weight),
            )

    write_atomically(path, write)


def open_plan(path: Path) -> PatternPlan:
    """The plan that was written, for statistics only; a damaged file is refused."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as written:
            arrays = {name: written[name] for name in written.files}
        rows = (arrays["slots"], arrays["starts"], arrays["weights"])
        chunks = [
            Chunk(slots, starts, weights, int(num_blocks), int(first_row))
            for slots, starts, weights, (num_blocks, first_row) in zip(
                *rows, arrays["places"], strict=True
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
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"a block of rows that was laid out here cannot be read ({error}); fit again",
            file=str(path),
        ) from None
