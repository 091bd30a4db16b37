"""Online k-means: one pass over a stream of rows, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bayes_lcs.clustering.kmeans.init import STARTS, draw_centers, nearest
from bayes_lcs.io.frames import numeric_rows
from bayes_lcs.io.sampler import number_blocks

__all__ = ["OnlineKMeans"]

FloatArray = NDArray[np.float64]


class OnlineKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Online k-means: centres are updated with every row; several restarts share one pass.

    Rows are shuffled within a buffer. Initial centres are drawn from the first buffer. A random
    sample of all rows so far is the hold-out; the restart with the lowest cost on it is used.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_init : int, default=8
        Number of restarts, in the same pass.
    init : {"k-means++", "farthest", "k-means||"}, default="k-means++"
        Method that draws initial centres from the first buffer.
    decay : float, default=1.0
        Step size of a centre with rows of weight n: 1 / n if ``decay`` is 1, otherwise
        ``(n + 1) ** -decay``. It must exceed a half, so that steps shrink fast enough.
    buffer_size : int, default=10000
        Number of rows that are shuffled together.
    holdout_size : int, default=1000
        Number of hold-out rows for choosing among restarts; at most a tenth of the rows so far.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the best restart.
    all_centers_ : ndarray of shape (n_init, n_clusters, n_features)
        Centres of all restarts.
    holdout_costs_ : ndarray of shape (n_init,)
        Mean squared distance of the hold-out rows, for each restart.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; after `fit` only.
    n_samples_seen_ : int
        Number of rows so far.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lcs as bl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1)) + 20 * rng.integers(2, size=(5000, 1))
    >>> online = bl.OnlineKMeans(2, random_state=0)
    >>> for start in range(0, 5000, 500):
    ...     online = online.partial_fit(X[start : start + 500])
    >>> sorted(abs(online.cluster_centers_.round()).ravel().tolist())
    [0.0, 20.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(STARTS))],
        "decay": [Interval(Real, 0.5, 1.0, closed="right")],
        "buffer_size": [Interval(Integral, 1, None, closed="left")],
        "holdout_size": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 8,
        init: str = "k-means++",
        decay: float = 1.0,
        buffer_size: int = 10_000,
        holdout_size: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.init = init
        self.decay = decay
        self.buffer_size = buffer_size
        self.holdout_size = holdout_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineKMeans:
        """Fit in one pass over all rows, in random order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : OnlineKMeans
            The fitted clusterer.
        """
        del y
        self._validate_params()
        for name in ("_state", "n_samples_seen_"):
            self.__dict__.pop(name, None)
        rows, weights = self._validate(X, sample_weight, reset=True)
        self._reset()
        order = self._rng.permutation(len(rows))
        self._update(rows[order], weights[order])
        self.labels_ = self.predict(X)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineKMeans:
        """Update the centres with more rows; the first batch needs a row for each cluster."""
        del y
        self._validate_params()
        first = not hasattr(self, "n_samples_seen_")
        rows, weights = self._validate(X, sample_weight, reset=first)
        if first:
            self._reset()
        self._update(rows, weights)
        return self

    def fit_stream(self, batches: Iterable[Any] | str | PathLike[str]) -> OnlineKMeans:
        """Call `partial_fit` on every batch of a stream or file.

        Parameters
        ----------
        batches
            Batches in order: arrays, frames or record batches of pyarrow. Or the path of a CSV or
            Parquet file of numbers, or of a folder of them, which is read once
            (:func:`bayes_lcs.number_blocks`).

        Returns
        -------
        self : OnlineKMeans
            The clusterer.
        """
        batch: Any
        for batch in number_blocks(batches) if isinstance(batches, str | PathLike) else batches:
            self.partial_fit(batch.to_pandas() if hasattr(batch, "to_pandas") else batch)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest cluster of each row."""
        check_is_fitted(self)
        return nearest(self._validate(X, None, reset=False)[0], self.cluster_centers_)[0]

    def anomaly_score(self, X: Any) -> FloatArray:
        """Return the distance of each row to the nearest centre; higher is more anomalous."""
        check_is_fitted(self)
        rows = self._validate(X, None, reset=False)[0]
        return np.asarray(np.sqrt(nearest(rows, self.cluster_centers_)[1]))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared distances to the nearest centre."""
        del y
        check_is_fitted(self)
        rows, weights = self._validate(X, sample_weight, reset=False)
        return -float(weights @ nearest(rows, self.cluster_centers_)[1])

    def _validate(
        self, X: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[FloatArray, FloatArray]:
        names = None if reset else getattr(self, "feature_names_in_", ())
        X = numeric_rows(X, names)
        rows = validate_data(self, X, dtype=np.float64, order="C", reset=reset)
        weights = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        return rows, weights

    def _reset(self) -> None:
        self._rng = np.random.RandomState(
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        )
        self.n_samples_seen_ = 0
        self._state: Any = None
        self._kept_keys = np.empty(0)
        self._kept_rows = np.empty((0, self.n_features_in_))
        self._kept_weights = np.empty(0)

    def _update(self, rows: FloatArray, weights: FloatArray) -> None:
        for first in range(0, len(rows), self.buffer_size):
            part = slice(first, first + self.buffer_size)
            self._update_buffer(rows[part], weights[part])
        if self._kept_weights.any():
            rows, weights = self._kept_rows, self._kept_weights
        # Without hold-out rows, compare restarts on the last batch.
        costs = [
            float(np.average(nearest(rows, centers)[1], weights=weights))
            for centers in self._state.centers
        ]
        self.holdout_costs_ = np.array(costs)
        self.all_centers_ = self._state.centers
        self.cluster_centers_ = self._state.centers[int(np.argmin(costs))]

    def _update_buffer(self, rows: FloatArray, weights: FloatArray) -> None:
        from bayes_lcs.clustering.kmeans import online_kernel

        order = self._rng.permutation(len(rows))
        rows, weights = rows[order], weights[order]
        if self._state is None:
            if self.n_clusters > len(rows):
                raise ValueError(
                    f"n_samples={len(rows)} should be >= n_clusters={self.n_clusters}."
                )
            starts = [
                draw_centers(rows, self.n_clusters, self.init, self._rng, weights)
                for _ in range(self.n_init)
            ]
            self._state = online_kernel.init(np.stack(starts))
        self.n_samples_seen_ += len(rows)
        rows, weights = self._update_holdout(rows, weights)
        self._state = online_kernel.online_pass(self._state, rows, weights, float(self.decay))

    def _update_holdout(
        self, rows: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Keep the rows with the highest random keys as hold-out; return the others."""
        keys = np.concatenate([self._kept_keys, self._rng.random_sample(len(rows))])
        rows = np.concatenate([self._kept_rows, rows])
        weights = np.concatenate([self._kept_weights, weights])
        size = min(self.holdout_size, self.n_samples_seen_ // 10)
        in_holdout = np.zeros(len(keys), bool)
        if size:
            in_holdout[np.argpartition(keys, len(keys) - size)[-size:]] = True
        self._kept_keys, self._kept_rows = keys[in_holdout], rows[in_holdout]
        self._kept_weights = weights[in_holdout]
        return rows[~in_holdout], weights[~in_holdout]
