"""Coresets: a few weighted points on which any clustering costs about what it costs on all.

A weighted set ``C`` is a coreset of ``D`` if ``(1 - eps) L(mu; D) <= L(mu; C) <= (1 + eps) L(mu;
D)`` for centres ``mu``, ``L`` being the weighted sum of squared distances to the nearest. Points
are drawn by importance (see the module `sampling_scores`), which makes the cost of any
centres unbiased, also where the points came with weights: a coreset of a coreset is one of the
data. The result is checked on the data (`bayes_lcs.clustering.coresets.checks`).

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

from bayes_lcs.clustering.coresets.checks import (
    FOUND,
    QUERIES,
    CheckRows,
    allow_for_starts,
    centers_to_check,
    check_costs,
    warn_of_large_errors,
)
from bayes_lcs.clustering.coresets.sample_size import Bound, size_for
from bayes_lcs.clustering.coresets.sampling_scores import check_method, draw_rows, importance
from bayes_lcs.clustering.kmeans.brute_force import exhaustive_kmeans
from bayes_lcs.clustering.kmeans.estimator import KMeans
from bayes_lcs.clustering.kmeans.init import nearest
from bayes_lcs.data.rows.ordinal_encoding import encode_columns, learn_categories
from bayes_lcs.io.frames import as_frame, numeric_rows
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task

__all__ = ["Coreset", "coreset"]

FloatArray = NDArray[np.float64]

OBJECTIVES = ("kmeans", "gaussian", "categorical")
LONG = 1 << 31
"""Numbers times centres from which results are checkpointed: they take about ten seconds."""


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
        Errors of the costs of some sets of centres: first of sets drawn from the data, then of four
        sets found on the coreset by k-means. Each is the larger of the costs on coreset and data
        over the smaller, less one; it is negative if the coreset's cost is the smaller. Those of
        found centres are moved away from zero by three standard deviations between the four, which
        allows for other starts. Of streams and trees, whose cost on the data is estimated, the end
        of a 95 % interval farther from zero is taken.
    feature_names
        Names of the columns of the points, if the data had names.
    checked_on
        Rows on which the costs of the data were computed for ``distortions``; empty without checks.
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
    checked_on: str = ""

    @property
    def largest_error(self) -> float:
        """Largest of the absolute ``distortions``; NaN without checks.

        The error of centres found on the coreset later, from other starts, exceeds it in at most
        one case of ten, as measured over eight data sets and seven seeds (`experiments/coresets`).
        """
        return max(map(abs, self.distortions), default=np.nan)

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.weights)

    def __str__(self) -> str:
        checked = (
            f"; costs off by at most {self.largest_error:.1%} in {len(self.distortions)} checks on "
            f"{self.checked_on}"
        )
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
        """Relative error of a cost: that on the coreset over that on the data, less one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        centers : array-like of shape (n_clusters, n_features)
            Centres, such as those of :meth:`kmeans`.
        sample_weight : array-like of shape (n_samples,)
            Weights of the data.
        """
        centers = np.asarray(centers)
        data = check_array(numeric_rows(X), dtype=[np.float64, np.float32])
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64)
        mine = self.weights @ nearest(np.asarray(self.points), centers)[1]
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
    """Draw a few weighted rows on which clusterings cost about what they cost on all rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Points; or, with ``objective="categorical"``, rows of categories.
    k
        Number of clusters for which it is made.
    size
        Points to draw; those drawn twice become one with their weights added. As many as there are
        rows, or more, gives all rows.
    method : {"sensitivity", "lightweight", "uniform"}
        What decides which points are drawn; see `bayes_lcs.clustering.coresets.sampling_scores`.
    objective : {"kmeans", "gaussian", "categorical"}
        For what the points are used.
    sample_weight : array-like of shape (n_samples,)
        Weights of the rows, such as those of another coreset.
    epsilon, delta
        In place of ``size``: an error, and the probability of exceeding it. Which error, is said by
        the result's ``bound``. Bounds with all their constants are large.
    queries
        Sets of ``k`` centres, drawn from the data as k-means++ does, by which the result is
        checked; four sets found on the coreset by k-means are checked too. A warning says if those
        cost more than 1.5 times as much on the data as on the coreset, or the reverse. 0 leaves out
        all checks.
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
    key = (positive, own, k, size, method, queries, state.get_state()) if is_long else ()
    with checkpointed_task("coreset", *key) if is_long else CheckpointedTask(None) as written:
        if written.state is not None:
            chosen, drawn, checks = _from_state(written.state, state)
        else:
            found = importance(method, positive, own, k, rng)
            if epsilon is not None:
                summed = float(own @ found.scores) if method == "sensitivity" else None
                bound = size_for(method, epsilon, delta, summed, found.cost)
            wanted = bound.size if bound is not None else int(size or 0)
            chosen, drawn = draw_rows(found, own, wanted, rng)
            checks = []
            written.update(partial(_state, chosen, drawn, (), state.get_state()))
        if len(chosen) == len(own):
            checks = [0.0] * (queries + FOUND if queries else 0)
        else:
            points, data = positive[chosen], CheckRows(positive, own)
            skip = len(checks)
            for centers in centers_to_check(data, points, drawn, k, queries, state, skip):
                checks.append(check_costs(data, points, drawn, centers).reported)
                written.update(partial(_state, chosen, drawn, tuple(checks), state.get_state()))
        written.finish(partial(_state, chosen, drawn, tuple(checks), state.get_state()))
    warn_of_large_errors(checks, queries, len(drawn), method)
    errors = tuple(allow_for_starts(checks, checks, queries))
    indices = kept[chosen]
    points = rows.iloc[indices] if isinstance(rows, pd.DataFrame) else np.asarray(rows)[indices]
    total, of = float(own.sum()), (method, objective, len(weights))
    checked_on = "all rows" if checks else ""
    return Coreset(points, drawn, indices, *of, total, bound, errors, names, checked_on)


def _state(
    chosen: NDArray[np.int64], drawn: FloatArray, checks: tuple[float, ...], state: Any
) -> Arrays:
    """Return the draw, the checks so far, and the state of the random numbers."""
    _, keys, *numbers = state
    return {
        "chosen": chosen,
        "drawn": drawn,
        "checks": np.array(checks),
        "keys": keys,
        "numbers": np.array(numbers),
    }


def _from_state(
    written: Arrays, state: np.random.RandomState
) -> tuple[NDArray[np.int64], FloatArray, list[float]]:
    place, has_gauss, gauss = written["numbers"].tolist()
    state.set_state(("MT19937", written["keys"], int(place), int(has_gauss), gauss))
    return written["chosen"], written["drawn"], written["checks"].tolist()


def _check(k: int, size: int | None, method: str, objective: str, epsilon: float | None) -> None:
    check_method(method)
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if (size is None) == (epsilon is None):
        raise ValueError("give either a size or an epsilon")
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1, got {size}")


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
