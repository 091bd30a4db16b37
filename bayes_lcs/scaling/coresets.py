"""Coresets: a few weighted points on which any clustering costs about what it costs on all.

A weighted set ``C`` is a coreset of ``D`` if ``(1 - eps) L(mu; D) <= L(mu; C) <= (1 + eps) L(mu;
D)`` for centres ``mu``, ``L`` being the weighted sum of squared distances to the nearest. Points
are drawn with replacement by importance (`bayes_lcs.scaling.coreset_importance`), which makes the
cost of any centres unbiased, also where the points came with weights: a coreset of a coreset is one
of the data.

The same points serve Gaussian mixtures, whose densities are ruled by squared distances (Lucic et
al. 2018), and mixtures of categorical rows, between which a squared distance is the number of cells
in which they differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight

from bayes_lcs.clustering.exhaustive_kmeans import exhaustive_kmeans
from bayes_lcs.clustering.kmeans import KMeans
from bayes_lcs.clustering.kmeans_starts import draw_centers, nearest
from bayes_lcs.data.checkpoints import Arrays, Work, work
from bayes_lcs.data.ordinal_encoding import encode_columns, learn_categories
from bayes_lcs.io.frames import as_frame, numeric_rows
from bayes_lcs.scaling.coreset_bounds import Bound, num_first_draws, size_for
from bayes_lcs.scaling.coreset_importance import METHODS, Importance, draw_places, importance

__all__ = ["Coreset", "coreset"]

FloatArray = NDArray[np.float64]

OBJECTIVES = ("kmeans", "gaussian", "categorical")
QUERIES = 4
LONG = 1 << 31
"""Numbers times centres that take some ten seconds: what is done of these is kept."""


@dataclass(frozen=True)
class Coreset:
    """Weighted points that stand for many; made by :func:`coreset`.

    Attributes
    ----------
    points
        Rows of the data, in the kind that they came in.
    weights : (m,)
        Their weights: ``fit(points, sample_weight=weights)``.
    indices : (m,), or None
        Which rows they were; None of a stream.
    method, objective
        How they were drawn, and for what.
    num_rows, total_weight
        Of the data.
    bound
        What the size promises, if it was asked for through ``epsilon``.
    distortions
        Costs on the coreset over those on the data, less one, of a few sets of centres that were
        drawn from the data: a check, not a promise.
    feature_names
        Names of the columns of the points, if the data had names.
    """

    points: Any
    weights: FloatArray
    indices: NDArray[np.int64] | None = field(repr=False)
    method: str
    objective: str
    num_rows: int
    total_weight: float
    bound: Bound | None = None
    distortions: tuple[float, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of points."""
        return len(self.weights)

    def __str__(self) -> str:
        worst = max(map(abs, self.distortions), default=np.nan)
        checked = f"; cost off by at most {worst:.1%} in {len(self.distortions)} checks"
        return (
            f"{len(self):,} weighted points for {self.num_rows:,} rows ({self.method})"
            f"{checked if self.distortions else ''}"
        )

    def kmeans(
        self,
        n_clusters: int,
        *,
        n_init: int = 20,
        exhaustive: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> KMeans:
        """k-means of the coreset: many starts cost little here.

        Parameters
        ----------
        n_clusters
            Number of clusters.
        n_init
            Number of starts.
        exhaustive
            Look at all clusterings in place of starts; for at most fourteen points.
        random_state
            Seed of the starts.

        Returns
        -------
        KMeans
            Fitted to the coreset; it predicts for any rows.
        """
        if exhaustive:
            centers, _ = exhaustive_kmeans(self.points, self.weights, n_clusters)
            clusterer = KMeans(n_clusters, init=centers)
        else:
            clusterer = KMeans(n_clusters, n_init=n_init, random_state=random_state)
        points = self.points
        if self.feature_names:
            points = pd.DataFrame(np.asarray(points), columns=list(self.feature_names))
        return clusterer.fit(points, sample_weight=self.weights)

    def distortion(self, X: Any, centers: Any, sample_weight: Any = None) -> float:
        """Cost of some centres on the coreset over that on the data, less one."""
        data = check_array(numeric_rows(X), dtype=[np.float64, np.float32])
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64)
        mine = self.weights @ nearest(np.asarray(self.points, data.dtype), centers)[1]
        return float(mine / (weights @ nearest(data, centers)[1]) - 1.0)


def coreset(
    X: Any,
    k: int,
    size: int | None = None,
    *,
    method: str = "sensitivity",
    objective: str = "kmeans",
    sample_weight: Any = None,
    epsilon: float | None = None,
    delta: float = 0.05,
    queries: int = QUERIES,
    random_state: int | np.random.RandomState | None = None,
) -> Coreset:
    """A few weighted rows on which clusterings cost about what they cost on all rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Points; or, with ``objective="categorical"``, rows of categories.
    k
        Number of clusters for which it is made.
    size
        Points to draw; those drawn twice become one with their weights added. As many as there are
        rows, or more, gives all rows.
    method : {"sensitivity", "adaptive", "lightweight", "uniform"}
        What decides which points are drawn; see `bayes_lcs.scaling.coreset_importance`.
    objective : {"kmeans", "gaussian", "categorical"}
        For what the points are used.
    sample_weight : array-like of shape (n_samples,)
        Weights of the rows, such as those of another coreset.
    epsilon, delta
        In place of ``size``: an error, and the probability of exceeding it. Which error, is said by
        the result's ``bound``. Bounds with all their constants are large.
    queries
        Sets of ``k`` centres, drawn from the data as k-means++ does, by which the result is
        checked.
    random_state
        Seed.

    Returns
    -------
    Coreset
        Points, weights, and how far off their costs are.

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lcs as bl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(10_000, 2)) + 10 * rng.integers(3, size=(10_000, 1))
    >>> small = bl.coreset(X, 3, 1000, random_state=0)
    >>> clusters = small.kmeans(3, random_state=0)
    >>> bool(-clusters.score(X) < 1.02 * bl.KMeans(3, n_init=10, random_state=0).fit(X).inertia_)
    True
    """
    _check(k, size, method, objective, epsilon)
    names: tuple[str, ...] = ()
    if objective == "categorical":
        rows = as_frame(X)
    else:
        X = numeric_rows(X)
        if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            names = tuple(X.columns)
        rows = check_array(X, dtype=[np.float64, np.float32])
    space = _cells(rows) if objective == "categorical" else rows
    weights = _check_sample_weight(sample_weight, space, dtype=np.float64, ensure_non_negative=True)
    kept = np.flatnonzero(weights > 0)
    state = check_random_state(random_state)
    rng = np.random.default_rng(state.randint(np.iinfo(np.int32).max))
    whole = len(kept) == len(weights)
    positive, own = (space, weights) if whole else (space[kept], weights[kept])
    k = min(k, len(kept))
    bound: Bound | None = None
    is_long = epsilon is None and positive.size * k >= LONG
    decisive = (positive, own, k, size, method, queries, state.get_state()) if is_long else ()
    with work("coreset", *decisive) if is_long else Work(None) as written:
        if written.state is not None:
            chosen, drawn, checks = _recalled(written.state, state)
        else:
            found, bound = _importance(method, positive, own, k, epsilon, delta, rng)
            wanted = bound.size if bound is not None else int(size or 0)
            chosen, drawn = _draw(found.scores, own, wanted, rng)
            checks = []
            written.keep(partial(_reached, chosen, drawn, (), state.get_state()))
        while len(checks) < queries:
            checks.append(_distortion(positive, own, positive[chosen], drawn, k, state))
            written.keep(partial(_reached, chosen, drawn, tuple(checks), state.get_state()))
        written.end(partial(_reached, chosen, drawn, tuple(checks), state.get_state()))
    indices = kept[chosen]
    points = rows.iloc[indices] if isinstance(rows, pd.DataFrame) else np.asarray(rows)[indices]
    total, of = float(own.sum()), (method, objective, len(weights))
    return Coreset(points, drawn, indices, *of, total, bound, tuple(checks), names)


def _reached(
    chosen: NDArray[np.int64], drawn: FloatArray, checks: tuple[float, ...], state: Any
) -> Arrays:
    """The draw, the checks so far, and where random numbers are."""
    _, keys, *numbers = state
    return {
        "chosen": chosen,
        "drawn": drawn,
        "checks": np.array(checks),
        "keys": keys,
        "numbers": np.array(numbers),
    }


def _recalled(
    written: Arrays, state: np.random.RandomState
) -> tuple[NDArray[np.int64], FloatArray, list[float]]:
    place, has_gauss, gauss = written["numbers"].tolist()
    state.set_state(("MT19937", written["keys"], int(place), int(has_gauss), gauss))
    return written["chosen"], written["drawn"], written["checks"].tolist()


def _check(k: int, size: int | None, method: str, objective: str, epsilon: float | None) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if (size is None) == (epsilon is None):
        raise ValueError("give either a size or an epsilon")
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1, got {size}")


def _importance(
    method: str,
    X: NDArray[Any],
    weights: FloatArray,
    k: int,
    epsilon: float | None,
    delta: float,
    rng: np.random.Generator,
) -> tuple[Importance, Bound | None]:
    if epsilon is None:
        return importance(method, X, weights, k, rng), None
    draws = num_first_draws(delta) if method == "sensitivity" else 1
    tried = [importance(method, X, weights, k, rng) for _ in range(draws)]
    # The cheapest first points are those with the least total sensitivity.
    found = min(tried, key=lambda one: one.total_sensitivity or 0.0)
    return found, size_for(method, epsilon, delta, found.total_sensitivity)


def _draw(
    scores: FloatArray, weights: FloatArray, size: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], FloatArray]:
    """Rows in proportion to weight times score, and weights that make sums unbiased."""
    if size >= len(weights):
        return np.arange(len(weights)), weights.copy()
    bounds = np.cumsum(weights * scores)
    chosen, times = np.unique(draw_places(bounds, size, rng), return_counts=True)
    return chosen, times * bounds[-1] / (size * scores[chosen])


def _distortion(
    X: NDArray[Any],
    weights: FloatArray,
    points: NDArray[Any],
    drawn: FloatArray,
    k: int,
    state: np.random.RandomState,
) -> float:
    few = state.randint(len(X), size=min(len(X), 1000 * k))
    centers = draw_centers(X[few], k, "k-means++", state, weights[few].astype(X.dtype))
    cost = float(weights @ nearest(X, centers)[1])
    own = float(drawn @ nearest(points, centers)[1])
    return own / cost - 1.0 if cost > 0.0 else 0.0 if own == 0.0 else np.inf


def _cells(rows: Any) -> NDArray[np.float32]:
    """One column a value: the squared distance of two rows is the number of cells that differ."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows))
    columns = [frame.iloc[:, f] for f in range(frame.shape[1])]
    known = [learn_categories(column, None, str(name)) for name, column in frame.items()]
    table = encode_columns(columns, known, names=list(map(str, frame.columns)))
    blocks = []
    for f, values in enumerate(known):
        # A missing cell is near to none, and half as far from all values as they are apart.
        codes = table.column(f)
        blocks.append((codes[:, None] == np.arange(len(values))).astype(np.float32))
    return np.hstack(blocks) * np.float32(np.sqrt(0.5))
