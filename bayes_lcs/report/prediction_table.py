"""Interactive table of predictions: a slider sets the loss, and the page updates the decisions.

Missing the positive label costs ``c``; every other wrong decision costs 1. The page makes the same
decisions as `bayes_lcs.core.decisions.decide`, including ties, which go to the first label: it gets
the probabilities and costs in full precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.decisions import decide, zero_one_loss

__all__ = ["missing_costs", "missing_loss", "prediction_table"]

FloatArray = NDArray[np.float64]

MAX_ROWS = 5000
"""Maximum number of rows on a page; the CSV file has all."""
MAX_LABELS = 12
"""With more labels the table shows only the decision and its probability."""
MAX_EXPONENT, STEP = 8.0, 0.25


def missing_costs() -> list[float]:
    """Return the costs on the slider: powers of two, with exponents a quarter apart.

    Examples
    --------
    >>> costs = missing_costs()
    >>> costs[0], costs[len(costs) // 2], costs[-1]
    (0.00390625, 1.0, 256.0)
    """
    exponents = np.arange(-MAX_EXPONENT, MAX_EXPONENT + STEP / 2, STEP)
    return [float(2.0**n) for n in exponents]


def missing_loss(num_labels: int, positive: int, cost: float) -> FloatArray:
    """Return the loss ``(L, L)`` where missing one label costs ``cost`` and other errors cost 1.

    Examples
    --------
    >>> missing_loss(2, 1, 4.0).tolist()
    [[0.0, 1.0], [4.0, 0.0]]
    """
    loss = zero_one_loss(num_labels)
    loss[positive] *= cost
    return loss


def prediction_table(
    probabilities: ArrayLike,
    labels: Sequence[str],
    groups: Sequence[str] | None = None,
    group_name: str = "",
    *,
    decisions: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the variables of the template ``predictions.html.j2``.

    Parameters
    ----------
    probabilities : (N, L)
        Probability of each label for each row.
    labels
        Names of the labels.
    groups, group_name
        Group of each row and name of the group column; None if rows have no groups.
    decisions
        Decisions under another loss; the page then has no slider.
    """
    p = np.asarray(probabilities, dtype=np.float64)[:MAX_ROWS]
    chosen = decide(p)
    decided = [labels[d] for d in chosen] if decisions is None else list(decisions)
    is_narrow = len(labels) <= MAX_LABELS
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
        "total": len(np.asarray(probabilities)),
        "labels": list(labels),
        "headings": list(labels) if is_narrow else None,
        "group_name": group_name,
        "slider": is_narrow and len(labels) > 1 and decisions is None and len(rows) > 0,
        "given_loss": decisions is not None,
        "positive": len(labels) - 1,
        "probabilities": p.tolist() if is_narrow else [],
        "costs": missing_costs(),
        "reach": MAX_EXPONENT,
        "step": STEP,
    }
