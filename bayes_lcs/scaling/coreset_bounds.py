"""How many points a coreset needs for an error, with all constants.

For one set of centres ``Q``, chosen without looking at the coreset, let ``f(x) = d(x, Q)^2`` and
``phi(Q)`` its weighted mean. With ``Z = f(x) / (s(x) g)`` for points drawn in proportion to ``s``,
whose mean is ``S``, Bernstein's inequality gives, if ``S Z <= b`` and ``E[S Z] <= e``,

    P(|estimate - phi(Q)| > eps g) <= 2 exp(-m eps^2 / (2 b e + 2 b eps / 3)).

``"sensitivity"``
    ``g = phi(Q)``, ``e = 1``, ``b = S``. For a point ``x`` in the cell of ``b``, by the triangle
    inequality twice, ``f(x) <= 2 d(x, b)^2 + 2 d(b, Q)^2 <= 2 d(x, b)^2 + 4 c_j + 4 phi(Q) W /
    W_j``; so the scores bound ``f(x) / phi(Q)`` if the points drawn first cost at most ``a = 16 (ln
    k + 2)`` times the least possible. That is twice the bound of the mean (Arthur and Vassilvitskii
    2007, Theorem 1.1): it holds with probability 1/2 by Markov's inequality, and for the best of
    ``log2(2 / delta)`` draws with ``1 - delta / 2``.
``"lightweight"``
    ``g = (phi(Q) + phi(mean)) / 2``, ``e = 2``, ``b = 16``. By the triangle inequality twice,
    ``f(x) <= 2 d(x, mean)^2 + 4 phi(mean) + 4 phi(Q) <= 16 s(x) g``, and ``S = 1``. The error is
    relative to the cost and the variance together.
``"uniform"``
    ``|estimate - phi(Q)| <= eps D^2`` for ``Q`` among the points, ``D`` their diameter, by
    Hoeffding's inequality. An additive error.

Bounds of all centres at once multiply the logarithm by some multiple of ``d k log k``, whose
constant nobody has; optimised centres are better checked (`Coreset.distortion`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Bound", "num_first_draws", "size_for"]


@dataclass(frozen=True)
class Bound:
    """A number of points, and what it promises."""

    size: int
    epsilon: float
    delta: float
    statement: str


def num_first_draws(delta: float) -> int:
    """Draws of first points of which the best is good enough with probability 1 - delta / 2."""
    return int(np.ceil(np.log2(2.0 / delta)))


def size_for(
    method: str, epsilon: float, delta: float, total_sensitivity: float | None = None
) -> Bound:
    """The size at which the error of one set of centres is within ``epsilon``.

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
        size = _bernstein(total_sensitivity, 1.0, epsilon, delta / 2.0)
        error = f"cost within a factor of 1 ± {epsilon:g}"
    else:
        raise ValueError(
            f"no bound with known constants is at hand for method={method!r}: give a size, or use "
            "'sensitivity', 'lightweight' or 'uniform'"
        )
    return Bound(int(np.ceil(size)), epsilon, delta, f"{error}, {sure}")


def _bernstein(largest: float, mean: float, epsilon: float, delta: float) -> float:
    return float(
        (2.0 * largest * mean + 2.0 * largest * epsilon / 3.0) * np.log(2.0 / delta) / epsilon**2
    )
