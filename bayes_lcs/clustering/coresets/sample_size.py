"""Number of points that a coreset needs for an error, with all constants.

For one set of centres ``Q``, chosen without looking at the coreset, let ``f(x) = d(x, Q)^2`` and
``phi(Q)`` its weighted mean. With ``Z = f(x) / (s(x) g)`` for points drawn in proportion to ``s``,
whose mean is ``S``, Bernstein's inequality gives, if ``S Z <= b`` and ``E[S Z] <= e``,

    P(|estimate - phi(Q)| > eps g) <= 2 exp(-m eps^2 / (2 b e + 2 b eps / 3)).

``"sensitivity"``
    ``g = (phi(Q) + phi(B)) / 2``, ``e = 2``, ``b = 8 S``, with ``B`` the rough solution that the
    scores come from. For a point ``x`` in cluster ``j`` of ``B``, with costs ``C_j`` on ``B`` and
    ``F_j`` on ``Q``, by the triangle inequality twice and the mean over the cluster, ``f(x) <= 2
    d(x, b_j)^2 + 4 C_j / W_j + 4 F_j / W_j <= 4 s(x) (C_j + F_j) <= 8 s(x) W g``; the scores of all
    points add up to twice the number of clusters of ``B``. Nothing is assumed about the quality of
    ``B``: its cost is in the bound, and the result states it.
``"lightweight"``
    ``g = (phi(Q) + phi(mean)) / 2``, ``e = 2``, ``b = 16``. By the triangle inequality twice,
    ``f(x) <= 2 d(x, mean)^2 + 4 phi(mean) + 4 phi(Q) <= 16 s(x) g``, and ``S = 1``. The error is
    relative to the cost and the variance together.
``"uniform"``
    ``|estimate - phi(Q)| <= eps D^2`` for ``Q`` among the points, ``D`` their diameter, by
    Hoeffding's inequality. An additive error.

Draws are independent, one in each of ``m`` stretches of equal importance. The sum of their
variances is at most that of draws from all points, so the inequality holds.

Bounds of all centres at once multiply the logarithm by some multiple of ``d k log k``, whose
constant nobody has; optimised centres are better checked (`Coreset.distortion`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Bound", "size_for"]


@dataclass(frozen=True)
class Bound:
    """Number of points for an error, and what it promises.

    ``reference_cost`` is the cost on the data of the rough solution of ``method="sensitivity"``.
    """

    size: int
    epsilon: float
    delta: float
    statement: str
    reference_cost: float | None = None


def size_for(
    method: str,
    epsilon: float,
    delta: float,
    total_sensitivity: float | None = None,
    reference_cost: float | None = None,
) -> Bound:
    """Size at which the error of one set of centres is within ``epsilon``.

    Examples
    --------
    >>> size_for("uniform", 0.05, 0.1).size
    600
    >>> size_for("lightweight", 0.2, 0.1).size
    4953
    """
    if not 0.0 < epsilon < 1.0 or not 0.0 < delta < 1.0:
        raise ValueError(f"epsilon and delta must lie in (0, 1), got {epsilon} and {delta}")
    sure = f"with probability {1.0 - delta:g}, for any one set of centres chosen beforehand"
    if method == "uniform":
        size = np.log(2.0 / delta) / (2.0 * epsilon**2)
        error = f"mean cost within {epsilon:g} of the squared diameter of the points"
    elif method == "lightweight":
        size = _bernstein(16.0, 2.0, epsilon, delta)
        error = f"cost within {epsilon:g} of the mean of the cost and the points' variance"
    elif method == "sensitivity":
        if total_sensitivity is None:
            raise ValueError("the bound of method='sensitivity' needs the total sensitivity")
        size = _bernstein(8.0 * total_sensitivity, 2.0, epsilon, delta)
        cost = "" if reference_cost is None else f", which is {reference_cost:.6g}"
        error = (
            f"cost within {epsilon:g} of the mean of the cost and that of the rough centres "
            f"from which sensitivities were computed{cost}"
        )
    else:
        raise ValueError(
            f"no bound is known for method={method!r}; use sensitivity, lightweight or uniform"
        )
    return Bound(int(np.ceil(size)), epsilon, delta, f"{error}; {sure}", reference_cost)


def _bernstein(largest: float, mean: float, epsilon: float, delta: float) -> float:
    return float(
        (2.0 * largest * mean + 2.0 * largest * epsilon / 3.0) * np.log(2.0 / delta) / epsilon**2
    )
