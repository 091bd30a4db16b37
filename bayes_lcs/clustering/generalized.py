"""Clustering with any supervised learner inside (Kalton, Langley, Wagstaff and Yoo, KDD 2001).

Iterative optimisation: (1) a learner is fitted to the rows with the clusters that they are in, (2)
the rows are put into the clusters that it says, until nothing changes. With prototypes and strict
assignment that is k-means, with naive Bayes and weighted assignment EM. Other learners promise no
ascent: a run may go in circles, and this one sees it and stops.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bayes_lcs.clustering.learners.classifier import ClassifierLearner
from bayes_lcs.clustering.learners.naive_bayes import NaiveBayesLearner
from bayes_lcs.clustering.learners.perceptron_list import PerceptronListLearner
from bayes_lcs.clustering.learners.protocol import FittedLearner, Learner
from bayes_lcs.clustering.learners.prototype import PrototypeLearner
from bayes_lcs.clustering.learners.stump import StumpLearner
from bayes_lcs.clustering.mixed_input import ColumnKinds, MixedRows, learn_kinds, mixed_rows

__all__ = ["GeneralizedClusterer"]

FloatArray = NDArray[np.float64]

LEARNERS: dict[str, Learner] = {
    "prototype": PrototypeLearner(),
    "naive_bayes": NaiveBayesLearner(),
    "perceptron_list": PerceptronListLearner(),
    "stump": StumpLearner(),
}

MOST_REFILLS = 10
"""Times that a run gives rows to clusters that have lost all of theirs."""
MOST_RESTARTS = 10
"""Other starts that are tried with a learner that fails on the first."""


class Step(NamedTuple):
    """One iteration: share of the rows that changed, clusters with rows, clusters refilled."""

    changed: float
    num_clusters: int
    refilled: int


class GeneralizedClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters found by a supervised learner that learns its own guesses.

    Parameters
    ----------
    learner : {"prototype", "naive_bayes", "perceptron_list", "stump"}, learner or classifier
        What is learned in every iteration: a learner of `bayes_lcs.clustering.learners`, or any
        scikit-learn classifier. Classifiers get names as columns of zeros and ones.
    n_clusters : int, default=8
        Number of clusters.
    assignment : {"strict", "weighted"}, default="strict"
        Whether a row is in one cluster, or in all of them by shares that add up to one.
    nominal : "auto" or list, default="auto"
        Columns that hold names and not numbers. ``"auto"`` takes those that are not numbers.
    max_iter : int, default=100
        Most iterations.
    tol : float, default=1e-6
        With weighted assignment, a run ends when no share changes by more than this.
    init : {"random", "rows"} or array of shape (n_samples, n_clusters), default="rows"
        ``"random"`` puts rows into clusters at random; ``"rows"`` draws a row for each cluster and
        puts others where the nearest is; or shares to begin with.
    random_state : int, RandomState instance or None, default=None
        Seed of the start, and of learners that draw.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    shares_ : ndarray of shape (n_samples, n_clusters)
        How far each row belongs to each cluster.
    trace_ : list of Step
        What changed in each iteration.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether nothing changed in the last one.
    stop_reason_ : str
        Why the run ended, in words.
    learner_ : FittedLearner
        What was learned last.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if all are strings.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> tree = DecisionTreeClassifier(max_depth=1)
    >>> clusterer = bl.GeneralizedClusterer(tree, 2, random_state=0).fit(X)
    >>> labels = clusterer.labels_
    >>> labels[0] == labels[2] != labels[3] == labels[5]
    np.True_
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": "no_validation",  # type: ignore[dict-item]
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "assignment": [StrOptions({"strict", "weighted"})],
        "nominal": [StrOptions({"auto"}), list, tuple],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"random", "rows"}), "array-like"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        learner: Any = "naive_bayes",
        n_clusters: int = 8,
        *,
        assignment: str = "strict",
        nominal: str | Sequence[Any] = "auto",
        max_iter: int = 100,
        tol: float = 1e-6,
        init: Any = "rows",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.n_clusters = n_clusters
        self.assignment = assignment
        self.nominal = nominal
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> GeneralizedClusterer:
        """Find clusters.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows of numbers, names, or both.
        y : None
            Not looked at.

        Returns
        -------
        self : GeneralizedClusterer
            The fitted clusterer.
        """
        del y
        self._validate_params()
        learner = _learner(self.learner)
        self._kinds: ColumnKinds
        self._kinds, rows = learn_kinds(self, X, self.nominal)
        if rows.num_rows < self.n_clusters:
            raise ValueError(
                f"n_samples={rows.num_rows} should be >= n_clusters={self.n_clusters}."
            )
        rng = check_random_state(self.random_state)
        shares = self._start(rows, rng)
        self.trace_: list[Step] = []
        self.converged_ = False
        self.stop_reason_ = f"max_iter={self.max_iter} iterations"
        seen: dict[bytes, int] = {}
        refills = 0
        for iteration in range(self.max_iter):
            try:
                fitted = learner.fit(rows, shares, rng)
                found = self._shares(fitted, rows)
            except Exception as error:
                if not self.trace_:
                    # A start may hold too few rows of a cluster; another one may not.
                    if isinstance(self.init, str) and iteration < MOST_RESTARTS:
                        shares = self._start(rows, rng)
                        continue
                    raise
                self.stop_reason_ = f"the learner failed in iteration {iteration + 1}: {error}"
                break
            self.learner_: FittedLearner = fitted
            refilled = 0
            if refills < MOST_REFILLS:
                refilled = _refill(found)
                refills += refilled > 0
            change = np.abs(found - shares).max(axis=1)
            self.trace_.append(
                Step(
                    float((change > self.tol).mean()),
                    int((found.sum(axis=0) > 0.0).sum()),
                    refilled,
                )
            )
            shares = found
            # Rows that were given away are not where the learner puts them: not the end yet.
            if not refilled and (change <= self.tol).all():
                self.converged_, self.stop_reason_ = True, "nothing changed"
                break
            if self.assignment == "strict" and not refilled:
                key = shares.argmax(axis=1).astype(np.int32).tobytes()
                if key in seen:
                    length = iteration - seen[key]
                    self.stop_reason_ = f"the clusters go in a circle of {length} iterations"
                    break
                seen[key] = iteration
        self.shares_, self.labels_ = shares, shares.argmax(axis=1)
        self.n_iter_ = len(self.trace_)
        if not self.converged_:
            warnings.warn(
                f"no end after {self.n_iter_} iterations: {self.stop_reason_}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each row, seen or not."""
        rows = self._rows(X)
        return self.learner_.assign(rows)

    def predict_proba(self, X: Any) -> FloatArray:
        """How far each row belongs to each cluster, by what was learned last."""
        rows = self._rows(X)
        return self.learner_.shares(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _rows(self, X: Any) -> MixedRows:
        check_is_fitted(self)
        return mixed_rows(self, X, self._kinds)

    def _shares(self, fitted: FittedLearner, rows: MixedRows) -> FloatArray:
        if self.assignment == "weighted":
            return fitted.shares(rows)
        return _one_hot(fitted.assign(rows), self.n_clusters)

    def _start(self, rows: MixedRows, rng: np.random.RandomState) -> FloatArray:
        if not isinstance(self.init, str):
            shares = np.array(self.init, np.float64)
            if shares.shape != (rows.num_rows, self.n_clusters):
                raise ValueError(
                    f"init must have the shape {(rows.num_rows, self.n_clusters)}, got "
                    f"{shares.shape}"
                )
            if (shares < 0).any() or not np.allclose(shares.sum(axis=1), 1.0):
                raise ValueError("init must hold shares that add up to one in each row")
            return shares
        if self.init == "random":
            # Every cluster has a row.
            labels = rng.randint(self.n_clusters, size=rows.num_rows)
            labels[rng.permutation(rows.num_rows)[: self.n_clusters]] = np.arange(self.n_clusters)
            return _one_hot(labels, self.n_clusters)
        chosen = rng.permutation(rows.num_rows)[: self.n_clusters]
        shares = np.zeros((rows.num_rows, self.n_clusters))
        shares[chosen, np.arange(self.n_clusters)] = 1.0
        prototypes = PrototypeLearner().fit(rows, shares, rng)
        shares = _one_hot(prototypes.assign(rows), self.n_clusters)
        shares[chosen] = np.eye(self.n_clusters)
        return shares


def _learner(given: Any) -> Learner:
    if isinstance(given, str):
        if given not in LEARNERS:
            raise ValueError(f"learner must be one of {', '.join(LEARNERS)}, got {given!r}")
        return LEARNERS[given]
    if isinstance(given, type):
        raise TypeError(f"learner must be an instance, not the class {given.__name__}")
    if hasattr(given, "predict"):
        if not is_classifier(given):
            raise TypeError(f"{type(given).__name__} is not a classifier")
        return ClassifierLearner(given)
    if not hasattr(given, "fit"):
        raise TypeError(f"learner must be a name, a learner or a classifier, got {given!r}")
    learner: Learner = given
    return learner


def _one_hot(labels: NDArray[np.int64], num_clusters: int) -> FloatArray:
    return np.eye(num_clusters)[labels]


def _refill(shares: FloatArray) -> int:
    """Give each cluster without rows the row that is least sure of its own; how many there were."""
    empty = np.flatnonzero(shares.sum(axis=0) <= 0.0)
    if not len(empty):
        return 0
    labels = shares.argmax(axis=1)
    sizes = np.bincount(labels, minlength=shares.shape[1])
    sure = shares.max(axis=1).copy()
    # Rows that are a cluster of their own stay where they are; ties go to the largest cluster.
    sure[sizes[labels] <= 1] = np.inf
    order = np.lexsort((np.arange(len(sure)), -sizes[labels], sure))
    for cluster, row in zip(empty, order, strict=False):
        shares[row] = 0.0
        shares[row, cluster] = 1.0
    return len(empty)
