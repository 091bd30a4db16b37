"""Predictions on a page: a table that a slider decides anew, row by row.

Missing one label, the positive one, costs ``c``; every other wrong decision costs 1. The page
decides as `bayes_lcs.core.decisions.decide` does, down to ties, which go to the label that
stands first. It gets probabilities and costs from here to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.decisions import decide, zero_one_loss

__all__ = ["missing_costs", "missing_loss", "prediction_table"]

FloatArray = NDArray[np.float64]

MOST_PREDICTIONS = 5000
"""Rows that a page can bear; the CSV file has all."""
MOST_LABELS = 12
"""With more labels the table shows the decision and its probability alone."""
LARGEST_EXPONENT, STEP = 8.0, 0.25


def missing_costs() -> list[float]:
    """The costs that the slider offers: powers of two, a quarter apart.

    Examples
    --------
    >>> costs = missing_costs()
    >>> costs[0], costs[len(costs) // 2], costs[-1]
    (0.00390625, 1.0, 256.0)
    """
    exponents = np.arange(-LARGEST_EXPONENT, LARGEST_EXPONENT + STEP / 2, STEP)
    return [float(2.0**n) for n in exponents]


def missing_loss(num_labels: int, positive: int, cost: float) -> FloatArray:
    """Loss ``(L, L)`` where missing one label costs ``cost`` and every other error 1.

    Examples
    --------
    >>> missing_loss(2, 1, 4.0).tolist()
    [[0.0, 1.0], [4.0, 0.0]]
    """
    loss = zero_one_loss(num_labels)
    loss[positive] *= cost
    return loss


def prediction_table(
    chances: ArrayLike,
    labels: Sequence[str],
    groups: Sequence[str] | None = None,
    group_name: str = "",
    *,
    decisions: Sequence[str] | None = None,
) -> dict[str, Any]:
    """What the template ``predictions.html.j2`` shows.

    Parameters
    ----------
    chances : (N, L)
        Probability of each label for each row.
    labels
        Names of the labels.
    groups, group_name
        Whose rows they are, if rows are somebody's.
    decisions
        Made under other losses than the slider's, which is then not there.
    """
    p = np.asarray(chances, dtype=np.float64)[:MOST_PREDICTIONS]
    chosen = decide(p)
    decided = [labels[d] for d in chosen] if decisions is None else list(decisions)
    is_narrow = len(labels) <= MOST_LABELS
    rows = []
    for number in range(len(p)):
        shown = p[number] if is_narrow else [p[number, chosen[number]]]
        rows.append(
            {
                "number": number + 1,
                "group": None if groups is None else groups[number],
                "shown": [f"{chance:.3f}" for chance in shown],
                "decision": decided[number],
            }
        )
    return {
        "rows": rows,
        "total": len(np.asarray(chances)),
        "labels": list(labels),
        "headings": list(labels) if is_narrow else None,
        "group_name": group_name,
        "slider": is_narrow and len(labels) > 1 and decisions is None and len(rows) > 0,
        "given_loss": decisions is not None,
        "positive": len(labels) - 1,
        "chances": p.tolist() if is_narrow else [],
        "costs": missing_costs(),
        "reach": LARGEST_EXPONENT,
        "step": STEP,
    }
