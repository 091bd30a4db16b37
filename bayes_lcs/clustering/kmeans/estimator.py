"""k-means of weighted points, as a scikit-learn estimator.

The objective is ``sum_i w_i min_j |mu_j - x_i|^2``. Lloyd's iterations are those of scikit-learn,
or of `bayes_lcs.clustering.kmeans.lloyd` if an executor or files are given. This module draws the
initial centres and compares several starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from numbers import Integral, Real
from os import PathLike
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
from bayes_lcs.clustering.kmeans.lloyd import DistributedLloyd, KMeansResult
from bayes_lcs.clustering.kmeans.out_of_core import place_files
from bayes_lcs.io.frames import numeric_rows
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["KMeans"]

FloatArray = NDArray[Any]

START_ROWS = 100_000
"""Default number of random rows of files from which initial centres are drawn."""


class KMeans(
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
        Initialisation method (see `bayes_lcs.clustering.kmeans.init`), or the initial centres.
    n_init : int, default=1
        Number of starts. ``results_`` holds the results of all, and the one with the smallest
        ``inertia_`` is used. Initial centres given as an array are one start.
    max_iter : int, default=300
        Maximum number of iterations of a start.
    tol : float, default=1e-4
        A start ends when its centres move by less than this, relative to the variance of the
        points, or when no point changes its cluster.
    random_state : int, RandomState instance or None, default=None
        Seed of the initialisation.
    n_jobs : int, default=-1
        Number of starts that run in parallel; -1 means the number of processors. The result does
        not depend on it.
    executor : Executor or None, default=None
        Executor from `bayes_lcs.executor` that holds the points in batches; starts then run one
        after the other. None means this process. Results are equal up to rounding.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre.
    n_iter_ : int
        Number of iterations of the best start.
    results_ : list of KMeansResult
        Results of all starts.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if all are strings.

    Notes
    -----
    Distances are Euclidean. For cosine similarity divide every row by its norm first
    (`sklearn.preprocessing.normalize`): the squared distance of two rows is then ``2 - 2 cos``.
    For sets and Jaccard similarity, hash the sets with `bayes_lcs.min_hash`.

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
        self.results_ = self._run_starts(X, weights)
        self._set_best()
        self.labels_ = nearest(X, self.cluster_centers_)[0]
        return self

    def fit_file(
        self,
        path: Any,
        *,
        features: Iterable[Any] | None = None,
        ignore: Iterable[Any] = (),
        start_rows: int = START_ROWS,
        memory: int = 1 << 28,
        folder: str | PathLike[str] | None = None,
    ) -> KMeans:
        r"""Find clusters of the numbers of files that need not fit into memory.

        Workers read Parquet files in batches; this process reads other formats. If the points
        take more than ``memory``, batches of them are stored on disk and read at each pass.

        Parameters
        ----------
        path
            A file or folder that `bayes_lcs.row_source` reads in batches, or a source of numbers
            that it returned.
        features, ignore
            Columns to use (by default all numeric ones), or columns to leave out.
        start_rows
            Number of random rows from which initial centres are drawn.
        memory
            Bytes that points may take in the memory of all workers together: 8 for each number.
            One batch, the labels, the rows for starts, and Python with its libraries come on top.
        folder
            Folder for points beyond that. They are written to a new folder inside it, which is
            removed at the end. By default the system's folder for temporary files. Workers on
            other machines must have access to it.

        Returns
        -------
        self : KMeans
            The fitted clusterer.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bayes_lcs as bl
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "points.csv")
        ...     _ = path.write_text("x,y\n" + "0,0\n9,8\n" * 50)
        ...     found = bl.KMeans(2, random_state=0).fit_file(path, memory=1000, folder=folder)
        >>> sorted(found.cluster_centers_.round(6).tolist())
        [[0.0, 0.0], [9.0, 8.0]]
        """
        source = path
        if not isinstance(source, FileSampler):
            source = FileSampler(path, features=features, ignore=ignore, kind="numbers")
        self._validate_params()
        with place_files(source, memory, folder, self.executor) as lloyd:
            if self.n_clusters > lloyd.num_rows:
                raise ValueError(
                    f"n_samples={lloyd.num_rows} should be >= n_clusters={self.n_clusters}."
                )
            self.results_ = self._run_distributed(
                lloyd, self._file_starts(source, min(start_rows, lloyd.num_rows))
            )
            self._set_best()
            self.labels_ = lloyd.labels(self.cluster_centers_)
        self.feature_names_in_ = np.array(source.features, dtype=object)
        self.n_features_in_ = len(source.features)
        return self

    def _set_best(self) -> None:
        best = min(self.results_, key=lambda result: result.inertia)
        self.cluster_centers_, self.inertia_, self.n_iter_ = best
        self._n_features_out = self.n_clusters

    def _seeds(self) -> NDArray[Any]:
        rng = check_random_state(self.random_state)
        return np.asarray(rng.randint(np.iinfo(np.int32).max, size=self.n_init))

    def _run_starts(self, X: FloatArray, weights: FloatArray) -> list[KMeansResult]:
        """Run one start per thread: a single start is too little work to split."""
        seeds = self._seeds()
        if self.executor is not None:
            starts = self._initial_centers(X, weights, seeds)
            with closing(DistributedLloyd.from_array(self.executor, X, weights)) as lloyd:
                return self._run_distributed(lloyd, starts)
        if not isinstance(self.init, str):
            return [self._run_lloyd(X, weights, self._check_init(X.shape[1], X.dtype))]
        threads = min(self.n_init, effective_n_jobs(self.n_jobs))
        if threads == 1:
            return [self._run_seed(X, weights, seed) for seed in seeds]

        def alone(seed: int) -> KMeansResult:
            with thread_pools().limit(limits=1, user_api="openmp"):
                return self._run_seed(X, weights, seed)

        with thread_pools().limit(limits=1, user_api="blas"):
            return list(Parallel(threads, prefer="threads")(delayed(alone)(s) for s in seeds))

    def _run_distributed(
        self, lloyd: DistributedLloyd, starts: Sequence[FloatArray]
    ) -> list[KMeansResult]:
        """Run starts one after the other, each on all workers."""
        return [lloyd.run(start, self.max_iter, self.tol) for start in starts]

    def _file_starts(self, source: FileSampler, num_rows: int) -> list[FloatArray]:
        """Draw initial centres from a random sample of the rows of files."""
        if not isinstance(self.init, str):
            return [self._check_init(len(source.features), np.dtype(np.float64))]
        rows = source.take(0, num_rows).X
        return self._initial_centers(rows, np.ones(len(rows)), self._seeds())

    def _initial_centers(self, X: FloatArray, weights: FloatArray, seeds: Any) -> list[FloatArray]:
        if not isinstance(self.init, str):
            return [self._check_init(X.shape[1], X.dtype)]
        return [self._draw_centers(X, weights, seed) for seed in seeds]

    def _draw_centers(self, X: FloatArray, weights: FloatArray, seed: int) -> FloatArray:
        rng = np.random.RandomState(seed)
        return draw_centers(X, self.n_clusters, self.init, rng, weights)

    def _check_init(self, num_features: int, dtype: np.dtype[Any]) -> FloatArray:
        centers = np.array(self.init, dtype=dtype)
        if centers.shape != (self.n_clusters, num_features):
            raise ValueError(
                f"init must have the shape {(self.n_clusters, num_features)}, got {centers.shape}"
            )
        return centers

    def _run_seed(self, X: FloatArray, weights: FloatArray, seed: int) -> KMeansResult:
        return self._run_lloyd(X, weights, self._draw_centers(X, weights, seed))

    def _run_lloyd(self, X: FloatArray, weights: FloatArray, start: FloatArray) -> KMeansResult:
        from sklearn.cluster import KMeans as Lloyd

        run = Lloyd(self.n_clusters, init=start, n_init=1, max_iter=self.max_iter, tol=self.tol)
        run.fit(X, sample_weight=weights)
        return KMeansResult(run.cluster_centers_, float(run.inertia_), int(run.n_iter_))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest cluster of each point."""
        return nearest(self._validate(X), self.cluster_centers_)[0]

    def transform(self, X: Any) -> FloatArray:
        """Return distances to all centres, ``(n_samples, n_clusters)``."""
        from scipy.spatial.distance import cdist

        # scikit-learn expands the square into products, which loses the digits of distances that
        # are small compared with an offset or with the distance of one far centre.
        X = self._validate(X)
        return np.asarray(cdist(X, self.cluster_centers_)).astype(X.dtype, copy=False)

    def anomaly_score(self, X: Any) -> FloatArray:
        """Return the distance of each point to the nearest centre; higher is more anomalous."""
        return np.asarray(np.sqrt(nearest(self._validate(X), self.cluster_centers_)[1]))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the weighted sum of squared distances to the nearest centre."""
        del y
        X = self._validate(X)
        weights = _check_sample_weight(sample_weight, X, dtype=X.dtype)
        return -float(weights @ nearest(X, self.cluster_centers_)[1])

    def _validate(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        dtype = [np.float64, np.float32]
        X = numeric_rows(X, getattr(self, "feature_names_in_", ()))
        return np.asarray(validate_data(self, X, dtype=dtype, order="C", reset=False))
