"""k-means of weighted points, as a scikit-learn estimator.

The objective is ``sum_i w_i min_j |mu_j - x_i|^2``. Lloyd's iterations are scikit-learn's, or
those of `bayes_lcs.clustering.kmeans.lloyd` where an executor has the points; starts, weights of
coresets and the bookkeeping of several starts are here.
"""

from __future__ import annotations

from contextlib import closing
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bayes_lcs.clustering.kmeans.init import STARTS, draw_centers, nearest, thread_pools
from bayes_lcs.clustering.kmeans.lloyd import KMeansResult, LloydOnBlocks
from bayes_lcs.clustering.kmeans.out_of_core import ClustersFiles
from bayes_lcs.io.frames import numeric_rows
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["KMeans"]

FloatArray = NDArray[Any]


class KMeans(
    ClustersFiles,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Clusters of weighted points around their means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"k-means++", "farthest", "k-means||"} or array of shape (n_clusters, n_features)
        Where to begin; see `bayes_lcs.clustering.kmeans.init`.
    n_init : int, default=1
        Number of starts. All results are kept in ``results_``, and the cheapest is taken. Given
        centres are one start.
    max_iter : int, default=300
        Most iterations of a start.
    tol : float, default=1e-4
        A start ends when its centres move by less than this, relative to the variance of the
        points, or when no point changes its cluster.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int, default=-1
        Starts that run side by side; as many as there are processors by default. The result does
        not depend on it.
    executor : Executor or None, default=None
        Where blocks of points are looked at, from `bayes_lcs.executor`; starts then run one after
        the other. None is this process. Results are the same but for rounding.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre.
    n_iter_ : int
        Iterations of the start that was taken.
    results_ : list of KMeansResult
        Of all starts.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if all are strings.

    Notes
    -----
    Distances are Euclidean. For cosine similarity divide every row by its norm first
    (`sklearn.preprocessing.normalize`): the squared distance of two rows is then two less twice
    their cosine. For sets and Jaccard similarity, hash them with `bayes_lcs.min_hash`.

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lcs as bl
    >>> X = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> kmeans = bl.KMeans(2, random_state=0).fit(X, sample_weight=[1, 3, 1, 1])
    >>> sorted(kmeans.cluster_centers_.ravel().tolist())
    [0.75, 11.0]
    >>> kmeans.anomaly_score([[11.0], [21.0]]).tolist()
    [0.0, 10.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(STARTS)), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "executor": [HasMethods(["run", "place", "each"]), None],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
        executor: Executor | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:
        """Find clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the points, such as those of a coreset.

        Returns
        -------
        self : KMeans
            The fitted clusterer.
        """
        del y
        self._validate_params()
        X = numeric_rows(X)
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        weights = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        if self.n_clusters > len(X):
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}.")
        self.results_ = self._from_all_starts(X, weights)
        best = min(self.results_, key=lambda result: result.inertia)
        self.cluster_centers_, self.inertia_, self.n_iter_ = best
        self._n_features_out = self.n_clusters
        self.labels_ = nearest(X, self.cluster_centers_)[0]
        return self

    def _from_all_starts(self, X: FloatArray, weights: FloatArray) -> list[KMeansResult]:
        """Starts run side by side, a thread each: one start is too little work to share out."""
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        if self.executor is not None:
            return self._on_blocks(self.executor, X, weights, seeds)
        if not isinstance(self.init, str):
            return [self._lloyd(X, weights, self._given(X))]
        threads = min(self.n_init, effective_n_jobs(self.n_jobs))
        if threads == 1:
            return [self._from_drawn(X, weights, seed) for seed in seeds]

        def alone(seed: int) -> KMeansResult:
            with thread_pools().limit(limits=1, user_api="openmp"):
                return self._from_drawn(X, weights, seed)

        with thread_pools().limit(limits=1, user_api="blas"):
            return list(Parallel(threads, prefer="threads")(delayed(alone)(s) for s in seeds))

    def _on_blocks(
        self, executor: Executor, X: FloatArray, weights: FloatArray, seeds: Any
    ) -> list[KMeansResult]:
        """Starts one after the other, each on all workers."""
        starts = [self._given(X)] if not isinstance(self.init, str) else None
        if starts is None:
            starts = [
                draw_centers(X, self.n_clusters, self.init, np.random.RandomState(seed), weights)
                for seed in seeds
            ]
        with closing(LloydOnBlocks.of_array(executor, X, weights)) as lloyd:
            return [lloyd.run(start, self.max_iter, self.tol) for start in starts]

    def _given(self, X: FloatArray) -> FloatArray:
        centers = np.array(self.init, dtype=X.dtype)
        if centers.shape != (self.n_clusters, X.shape[1]):
            raise ValueError(
                f"init must have the shape {(self.n_clusters, X.shape[1])}, got {centers.shape}"
            )
        return centers

    def _from_drawn(self, X: FloatArray, weights: FloatArray, seed: int) -> KMeansResult:
        rng = np.random.RandomState(seed)
        start = draw_centers(X, self.n_clusters, self.init, rng, weights)
        return self._lloyd(X, weights, start)

    def _lloyd(self, X: FloatArray, weights: FloatArray, start: FloatArray) -> KMeansResult:
        from sklearn.cluster import KMeans as Lloyd

        run = Lloyd(self.n_clusters, init=start, n_init=1, max_iter=self.max_iter, tol=self.tol)
        run.fit(X, sample_weight=weights)
        return KMeansResult(run.cluster_centers_, float(run.inertia_), int(run.n_iter_))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The nearest cluster of each point."""
        return nearest(self._checked(X), self.cluster_centers_)[0]

    def transform(self, X: Any) -> FloatArray:
        """Distances to all centres, ``(n_samples, n_clusters)``."""
        from scipy.spatial.distance import cdist

        # Products of numbers, as in scikit-learn, lose the digits of distances that are small
        # beside an offset or beside the distance of one far centre.
        X = self._checked(X)
        return np.asarray(cdist(X, self.cluster_centers_)).astype(X.dtype, copy=False)

    def anomaly_score(self, X: Any) -> FloatArray:
        """Distance of each point to the nearest centre; more is stranger."""
        return np.asarray(np.sqrt(nearest(self._checked(X), self.cluster_centers_)[1]))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances to the nearest centre."""
        del y
        X = self._checked(X)
        weights = _check_sample_weight(sample_weight, X, dtype=X.dtype)
        return -float(weights @ nearest(X, self.cluster_centers_)[1])

    def _checked(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        dtype = [np.float64, np.float32]
        X = numeric_rows(X, getattr(self, "feature_names_in_", ()))
        return np.asarray(validate_data(self, X, dtype=dtype, order="C", reset=False))
