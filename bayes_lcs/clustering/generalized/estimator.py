"""Clustering with any supervised learner inside (Kalton, Langley, Wagstaff and Yoo, KDD 2001).

Iterative optimisation: (1) a learner is fitted to the rows with their current clusters, (2) the
rows are assigned to the clusters that it predicts, until nothing changes. With prototypes and
strict assignment this is k-means, with naive Bayes and weighted assignment EM. Other learners do
not guarantee ascent: a run may cycle, which is detected and ends the run.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.base import BaseEstimator, ClusterMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter

from bayes_lcs.clustering.generalized.learners.naive_bayes import NaiveBayesLearner
from bayes_lcs.clustering.generalized.learners.perceptron_list import PerceptronListLearner
from bayes_lcs.clustering.generalized.learners.protocol import FittedLearner, Learner
from bayes_lcs.clustering.generalized.learners.prototype import PrototypeLearner
from bayes_lcs.clustering.generalized.learners.sklearn_adapter import ClassifierLearner
from bayes_lcs.clustering.generalized.learners.stump import StumpLearner
from bayes_lcs.clustering.generalized.mixed_columns import (
    ColumnKinds,
    MixedRows,
    encode_mixed,
    learn_kinds,
)

__all__ = ["GeneralizedClusterer"]

FloatArray = NDArray[np.float64]

LEARNERS: dict[str, Learner] = {
    "prototype": PrototypeLearner(),
    "naive_bayes": NaiveBayesLearner(),
    "perceptron_list": PerceptronListLearner(),
    "stump": StumpLearner(),
}

MAX_REFILLS = 10
"""Iterations of a run in which empty clusters are given a row."""
MAX_RESTARTS = 10
"""Maximum number of other starts if the learner fails on the first."""
TESTED_AGREEMENT = 0.3
"""Chance-corrected agreement of result and start above which memorising is tested."""
MEMORISED = 0.8
"""Chance-corrected agreement with random clusters above which a learner memorises."""
STUCK_AGREEMENT = 0.8
"""Chance-corrected agreement of result and start above which other starts are tried."""
OTHER_STARTS, OTHER_ITERATIONS = 3, 10
"""Number and length of the runs that test whether the result depends on the start."""
SAME_RESULT = 0.8
"""Adjusted Rand index above which two runs have the same result."""


class Step(NamedTuple):
    """One iteration: share of rows that changed, number of non-empty and of refilled clusters."""

    changed: float
    num_clusters: int
    refilled: int


@dataclass(frozen=True)
class _Run:
    """Result of the iterations from one start."""

    fitted: FittedLearner
    start: FloatArray
    shares: FloatArray
    trace: list[Step]
    converged: bool
    stop_reason: str
    objective: float

    @property
    def labels(self) -> NDArray[np.int64]:
        """Cluster of each row at the end."""
        return self.shares.argmax(axis=1)

    @property
    def start_agreement(self) -> float:
        """Chance-corrected agreement of the result with the start."""
        return _beyond_chance(self.labels, self.start.argmax(axis=1), self.shares.shape[1])


class GeneralizedClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clustering by a supervised learner that is fitted to its own assignments.

    Parameters
    ----------
    learner : {"prototype", "naive_bayes", "perceptron_list", "stump"}, learner or classifier
        Learner that is fitted in every iteration: one of
        `bayes_lcs.clustering.generalized.learners`, or any scikit-learn classifier. Classifiers get
        nominal columns one-hot encoded.
    n_clusters : int, default=8
        Number of clusters.
    assignment : {"strict", "weighted"}, default="strict"
        Whether a row belongs to one cluster, or to all of them by shares that sum to one.
    nominal : "auto" or list, default="auto"
        Nominal columns. ``"auto"`` uses all columns that are not numeric.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        With weighted assignment, a run ends when no share changes by more than this.
    init : {"random", "rows"} or array of shape (n_samples, n_clusters), default="rows"
        ``"random"`` assigns rows to clusters at random; ``"rows"`` draws a distinct row for each
        cluster and assigns the others to the nearest; or initial shares.
    n_init : int, default=1
        Number of runs from different starts; the one with the highest `score` on the training rows
        is used. There is one run if ``init`` is an array.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts, and of random learners.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    shares_ : ndarray of shape (n_samples, n_clusters)
        Share of each cluster in each row.
    trace_ : list of Step
        Changes in each iteration.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether nothing changed in the last iteration, no cluster is empty, and the result is not
        merely that of the start (``memorised_``, ``start_dependent_``). If False, a
        `ConvergenceWarning` gives the reason.
    stop_reason_ : str
        Reason why the run ended or has not converged.
    objective_ : float
        Score of the training rows, see `score`.
    n_clusters_ : int
        Number of non-empty clusters.
    memorised_ : bool
        Whether rows remain in their initial clusters because the learner reproduces any clusters,
        such as an unpruned tree, a random forest or one nearest neighbour. It is tested on random
        clusters.
    start_dependent_ : bool
        Whether most rows remain in their initial clusters, also in runs from other starts, and none
        of these ends in the same result. This happens with small trees, because nearly every start
        is a fixed point. It is not tested if ``init`` is an array.
    learner_ : FittedLearner
        The learner of the last iteration.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if all are strings.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> tree = DecisionTreeClassifier(max_depth=1)
    >>> clusterer = bl.GeneralizedClusterer(tree, 2, n_init=5, random_state=0).fit(X)
    >>> labels = clusterer.labels_
    >>> labels[0] == labels[2] != labels[3] == labels[5]
    np.True_
    """

    takes_text_columns: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": "no_validation",  # type: ignore[dict-item]
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "assignment": [StrOptions({"strict", "weighted"})],
        "nominal": [StrOptions({"auto"}), list, tuple],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"random", "rows"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
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
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.n_clusters = n_clusters
        self.assignment = assignment
        self.nominal = nominal
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GeneralizedClusterer:
        """Find clusters.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows of numbers, nominal values, or both.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, passed to the learner. A weight of two equals two copies of the
            row; rows of weight zero are assigned clusters and otherwise ignored.

        Returns
        -------
        self : GeneralizedClusterer
            The fitted clusterer.

        Raises
        ------
        ValueError
            If weights are given to a learner whose ``fit`` takes no ``sample_weight``.
        """
        del y
        self._validate_params()
        learner = _check_learner(self.learner)
        self._kinds: ColumnKinds
        self._kinds, every = learn_kinds(self, X, self.nominal)
        used = np.ones(every.num_rows, bool)
        rows, weights = every, None
        if sample_weight is not None:
            _require_weights(learner)
            weights = _check_weights(sample_weight, every.num_rows)
            used = weights > 0.0
            rows, weights = every.take(used), weights[used]
        if rows.num_rows < self.n_clusters:
            raise ValueError(
                f"n_samples={rows.num_rows} should be >= n_clusters={self.n_clusters}."
            )
        rng = check_random_state(self.random_state)
        # Runs from the same given start would be equal.
        num_runs = self.n_init if isinstance(self.init, str) else 1
        runs = [self._iterate(learner, rows, weights, used, rng) for _ in range(num_runs)]
        best = runs[0]
        for run in runs[1:]:
            # Objectives that differ by rounding are equal; the first run wins.
            if run.objective > best.objective + 1e-7 * abs(best.objective):
                best = run
        self.learner_: FittedLearner = best.fitted
        self.objective_ = best.objective
        self.trace_, self.n_iter_ = best.trace, len(best.trace)
        self.n_clusters_ = len(np.unique(best.labels))
        # Learners with scores of rows ascend an objective and need no test.
        is_tested = (
            not hasattr(best.fitted, "row_scores") and best.start_agreement >= TESTED_AGREEMENT
        )
        self.memorised_ = is_tested and _memorises(learner, rows, self.n_clusters)
        self.start_dependent_ = self.memorised_ or (
            is_tested and self._depends_on_start(learner, rows, weights, used, runs, best)
        )
        problems = [] if best.converged else [best.stop_reason]
        if self.n_clusters_ < self.n_clusters:
            empty = self.n_clusters - self.n_clusters_
            problems.append(
                f"{empty} of {self.n_clusters} clusters have no rows; use fewer clusters or "
                "another random_state"
            )
        if self.memorised_:
            problems.append(
                "the learner reproduces any clusters that it is given, so rows stay in their "
                "initial clusters; use a learner that generalizes: limit its size (max_depth, "
                "min_samples_leaf), use more neighbours or regularize it"
            )
        elif self.start_dependent_:
            problems.append(
                "most rows stay in their initial clusters, and other starts end in other "
                "clusters, so the result depends on the start; increase n_init, or use a learner "
                "that moves rows, such as 'naive_bayes' or 'prototype'"
            )
        self.converged_ = not problems
        self.stop_reason_ = "; ".join(problems) or best.stop_reason
        if weights is None:
            self.shares_ = best.shares
        else:
            self.shares_ = self._shares(best.fitted, every)
            self.shares_[used] = best.shares
        self.labels_ = self.shares_.argmax(axis=1)
        if not self.converged_:
            warnings.warn(
                f"the clustering has not converged after {self.n_iter_} iterations: "
                f"{self.stop_reason_}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _iterate(
        self,
        learner: Learner,
        rows: MixedRows,
        weights: FloatArray | None,
        used: NDArray[np.bool_],
        rng: np.random.RandomState,
        max_iter: int | None = None,
    ) -> _Run:
        """Iterate learning and assignment from one start."""
        max_iter = self.max_iter if max_iter is None else max_iter
        start = shares = self._initial_shares(rows, weights, used, rng)
        given: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
        trace: list[Step] = []
        converged, reason = False, f"max_iter={max_iter} iterations were made"
        seen: dict[bytes, int] = {}
        refills = 0
        for iteration in range(max_iter):
            try:
                new = learner.fit(rows, shares, rng, **given)
                new_shares = self._shares(new, rows)
            except Exception as error:
                if not trace:
                    # A start may have too few rows of a cluster for the learner; try another.
                    left = min(MAX_RESTARTS, max_iter - 1) - iteration
                    if isinstance(self.init, str) and left > 0:
                        start = shares = self._initial_shares(rows, weights, used, rng)
                        continue
                    raise
                reason = f"the learner failed in iteration {iteration + 1}: {error}"
                break
            fitted = new
            refilled = 0
            if refills < MAX_REFILLS:
                refilled = _refill(new_shares)
                refills += refilled > 0
            change = np.abs(new_shares - shares).max(axis=1)
            num_clusters = int((new_shares.sum(axis=0) > 0.0).sum())
            trace.append(Step(float((change > self.tol).mean()), num_clusters, refilled))
            shares = new_shares
            # Refilled clusters hold rows that the learner assigned elsewhere: continue.
            if not refilled and (change <= self.tol).all():
                converged, reason = True, "nothing changed"
                break
            if self.assignment == "strict" and not refilled:
                key = shares.argmax(axis=1).astype(np.int32).tobytes()
                if key in seen:
                    reason = f"the clusters go in a circle of {iteration - seen[key]} iterations"
                    break
                seen[key] = iteration
        return _Run(fitted, start, shares, trace, converged, reason, _score(fitted, rows, weights))

    def _depends_on_start(
        self,
        learner: Learner,
        rows: MixedRows,
        weights: FloatArray | None,
        used: NDArray[np.bool_],
        runs: Sequence[_Run],
        best: _Run,
    ) -> bool:
        """Test whether runs from other starts keep these too, and none ends in the same result."""
        if (
            not isinstance(self.init, str)
            or best.start_agreement < STUCK_AGREEMENT
            or not _has_enough_rows(rows, self.n_clusters)
        ):
            return False
        others = [run for run in runs if run is not best]
        rng = np.random.RandomState(0)  # the seed of the fit does not change the test
        max_iter = min(self.max_iter, OTHER_ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(len(others), OTHER_STARTS):
                try:
                    others.append(self._iterate(learner, rows, weights, used, rng, max_iter))
                except Exception:  # a learner may fail on every other start: no evidence
                    break
        if not others:
            return False
        ends = [adjusted_rand_score(best.labels, run.labels) for run in others]
        starts = [adjusted_rand_score(best.labels, run.start.argmax(axis=1)) for run in others]
        # A result that other starts converge to does not merely repeat its own start.
        is_attractor = any(
            end >= SAME_RESULT > start for end, start in zip(ends, starts, strict=True)
        )
        agreement = np.median([run.start_agreement for run in others])
        return bool(
            agreement >= STUCK_AGREEMENT and np.mean(ends) < SAME_RESULT and not is_attractor
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score rows by the learner; higher is better.

        The score of the training rows is the objective by which ``n_init`` runs are compared. It
        depends on the learner, so scores of different learners cannot be compared.

        - Prototypes: minus the mean squared distance to the nearest mean, columns scaled to between
          0 and 1, as in k-means.
        - Naive Bayes: the mean log density of a row, as in EM.
        - Other learners: the mutual information of rows and clusters in nats, that is, the entropy
          of the mean shares less the mean entropy of the shares (Bridle, Heading and MacKay 1992).
          It is high if clusters are of equal size and assignments are certain, and at most
          ``log(n_clusters)``.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        score : float
            Mean over the rows.
        """
        del y
        rows = self._encode(X)
        weights = None if sample_weight is None else _check_weights(sample_weight, rows.num_rows)
        return _score(self.learner_, rows, weights)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of each row, in the training data or not."""
        rows = self._encode(X)
        return self.learner_.assign(rows)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the share of each cluster in each row."""
        rows = self._encode(X)
        return self.learner_.shares(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _encode(self, X: Any) -> MixedRows:
        check_is_fitted(self)
        return encode_mixed(self, X, self._kinds)

    def _shares(self, fitted: FittedLearner, rows: MixedRows) -> FloatArray:
        if self.assignment == "weighted":
            return fitted.shares(rows)
        return _one_hot(fitted.assign(rows), self.n_clusters)

    def _initial_shares(
        self,
        rows: MixedRows,
        weights: FloatArray | None,
        used: NDArray[np.bool_],
        rng: np.random.RandomState,
    ) -> FloatArray:
        if not isinstance(self.init, str):
            shares = np.array(self.init, np.float64)
            if shares.shape != (len(used), self.n_clusters):
                raise ValueError(
                    f"init must have the shape {(len(used), self.n_clusters)}, got {shares.shape}"
                )
            if (shares < 0).any() or not np.allclose(shares.sum(axis=1), 1.0):
                raise ValueError("init must hold shares that add up to one in each row")
            return np.asarray(shares[used])
        if self.init == "random":
            # Ensure that every cluster has a row.
            labels = rng.randint(self.n_clusters, size=rows.num_rows)
            labels[rng.permutation(rows.num_rows)[: self.n_clusters]] = np.arange(self.n_clusters)
            return _one_hot(labels, self.n_clusters)
        # Distinct rows, drawn by their weights, so that repeated and weighted rows are equivalent.
        distinct, inverse = _distinct_rows(rows)
        mass = np.bincount(inverse, weights=weights)
        enough = len(distinct) >= self.n_clusters
        chosen = distinct[
            rng.choice(len(distinct), self.n_clusters, replace=not enough, p=mass / mass.sum())
        ]
        shares = np.zeros((rows.num_rows, self.n_clusters))
        shares[chosen, np.arange(self.n_clusters)] = 1.0
        prototypes = PrototypeLearner().fit(rows, shares, rng)
        shares = _one_hot(prototypes.assign(rows), self.n_clusters)
        shares[chosen] = np.eye(self.n_clusters)
        return shares


def _check_learner(given: Any) -> Learner:
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


def _require_weights(learner: Learner) -> None:
    inner = learner.classifier if isinstance(learner, ClassifierLearner) else learner
    if not has_fit_parameter(inner, "sample_weight"):
        raise ValueError(
            f"{type(inner).__name__}.fit takes no sample_weight. Use a learner that does, or "
            "repeat rows instead of weighting them"
        )


def _check_weights(sample_weight: Any, num_rows: int) -> FloatArray:
    """Check that there is one finite weight a row, none negative and not all zero."""
    rows = np.empty((num_rows, 1))
    weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must not be zero for all rows")
    return np.asarray(weights)


def _distinct_rows(rows: MixedRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first index of each distinct row, in the order of values, and the inverse."""
    table = np.hstack([rows.numbers, rows.codes])
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _score(fitted: FittedLearner, rows: MixedRows, weights: FloatArray | None) -> float:
    """Return the mean score of rows, or the mutual information of rows and clusters."""
    if hasattr(fitted, "row_scores"):
        return float(np.average(fitted.row_scores(rows), weights=weights))
    shares = fitted.shares(rows)
    mean = np.average(shares, axis=0, weights=weights)
    return float(entr(mean).sum() - np.average(entr(shares).sum(axis=1), weights=weights))


def _memorises(learner: Learner, rows: MixedRows, num_clusters: int) -> bool:
    """Test whether the learner reproduces random clusters of the distinct rows.

    Then almost any start is a fixed point, so that convergence is meaningless. Training accuracy on
    random labels is the test of Zhang et al. (2017). Any learner can separate few distinct rows,
    so these are not tested.
    """
    if not _has_enough_rows(rows, num_clusters):
        return False
    first, _ = _distinct_rows(rows)
    distinct = rows.take(first)
    rng = np.random.RandomState(0)
    agreement = []
    for _ in range(3 if len(first) < 1000 else 1):
        labels = rng.permutation(np.arange(len(first)) % num_clusters)
        try:
            fitted = learner.fit(distinct, _one_hot(labels, num_clusters), rng)
            agreement.append(_beyond_chance(fitted.assign(distinct), labels, num_clusters))
        except Exception:  # a learner that fails on random clusters does not memorise them
            return False
    return bool(np.mean(agreement) >= MEMORISED)


def _has_enough_rows(rows: MixedRows, num_clusters: int) -> bool:
    """Return whether there are enough distinct rows to test a learner."""
    return num_clusters > 1 and len(_distinct_rows(rows)[0]) >= max(10, 4 * num_clusters)


def _beyond_chance(a: NDArray[np.int64], b: NDArray[np.int64], num_clusters: int) -> float:
    """Return the share of equal labels, scaled so that random labels have 0 and equal ones 1."""
    chance = 1.0 / max(num_clusters, 2)
    return float(((a == b).mean() - chance) / (1.0 - chance))


def _one_hot(labels: NDArray[np.int64], num_clusters: int) -> FloatArray:
    return np.eye(num_clusters)[labels]


def _refill(shares: FloatArray) -> int:
    """Give each empty cluster the row with the smallest maximal share; return their number."""
    empty = np.flatnonzero(shares.sum(axis=0) <= 0.0)
    if not len(empty):
        return 0
    labels = shares.argmax(axis=1)
    sizes = np.bincount(labels, minlength=shares.shape[1])
    certainty = shares.max(axis=1).copy()
    # Rows alone in their cluster are not moved; ties are taken from the largest cluster.
    certainty[sizes[labels] <= 1] = np.inf
    order = np.lexsort((np.arange(len(certainty)), -sizes[labels], certainty))
    for cluster, row in zip(empty, order, strict=False):
        shares[row] = 0.0
        shares[row, cluster] = 1.0
    return len(empty)
