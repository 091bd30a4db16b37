"""Predictions for many rows, some at a time; what is done is kept."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.runtime.checkpoints import work
from bayes_lcs.runtime.progress import progress_bar, says_lines

__all__ = ["predict_in_pieces"]

FloatArray = NDArray[np.float64]

ROWS_AT_ONCE = 1 << 14


def predict_in_pieces(
    posterior: Any, rows: Any, unseen: Literal["missing", "error"] = "missing"
) -> FloatArray:
    """``posterior.predict_proba(rows)``, where a long table is predicted piece by piece.

    Parameters
    ----------
    posterior
        Of any model.
    rows
        A frame or table. A row's prediction does not depend on the other rows.
    unseen
        As for ``predict_proba``.
    """
    if not isinstance(rows, GroupedTable) or rows.num_rows <= ROWS_AT_ONCE:
        found: FloatArray = posterior.predict_proba(rows, unseen=unseen)
        return found
    table = (rows.features, rows.groups, rows.new_groups, rows.group_names)
    bar = progress_bar("predicting", rows.num_rows, None if says_lines() else False)
    with work("predictions", posterior.model, unseen, *table) as kept, bar as tick:
        pieces = [piece["chances"] for piece in kept.each_piece()]
        tick(len(pieces) * ROWS_AT_ONCE)
        for start in range(len(pieces) * ROWS_AT_ONCE, rows.num_rows, ROWS_AT_ONCE):
            some = rows.take(slice(start, start + ROWS_AT_ONCE))
            pieces.append(posterior.predict_proba(some, unseen=unseen))
            kept.keep(dict, {"chances": pieces[-1]})
            tick(some.num_rows)
        kept.end()
    return np.concatenate(pieces)
