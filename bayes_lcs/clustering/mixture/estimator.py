"""Mixture clustering of categorical rows, as a scikit-learn estimator.

The estimator encodes ``X``, lays out the rows for EM (`RowLayout`), in this process or on an
executor, and runs EM (`bayes_lcs.inference.em.em`) from several starts together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from bayes_lcs.clustering.mixture.encode_input import WeightedRows, encode_input, inverse_transform
from bayes_lcs.clustering.mixture.fit import (
    FittedMixture,
    InMemoryData,
    WarmStart,
    best_result,
    compute_statistics,
    fit_mixture,
    make_e_step,
    row_sums,
)
from bayes_lcs.clustering.mixture.out_of_core import open_out_of_core
from bayes_lcs.core.errors import InterruptedWarning
from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.data.rows.encoded_dataset import CodedFiles
from bayes_lcs.inference.em import information_criteria
from bayes_lcs.inference.em.online import StepwiseState, stepwise_init, stepwise_step
from bayes_lcs.inference.em.row_densities import log_density, map_rows, responsibilities
from bayes_lcs.inference.em.row_layout import RowLayout, lay_out_rows
from bayes_lcs.io.options import CsvOptions, MissingValues, add_empty_cell
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.models.multinomial_mixture import MultinomialMixture
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["MixtureClusterer"]

FloatArray = NDArray[np.float64]

MAX_ROWS_IN_DOUBLE = 1 << 15
"""With ``precision="auto"``, data with more distinct rows are fitted in mixed precision."""


class MixtureClusterer(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Mixture of products of multinomials for categorical rows, fitted by EM.

    Also known as latent class analysis, AutoClass, or naive Bayes with a hidden class. The default
    start is that of Meek, Thiesson and Heckerman (2002); their stopping rule is
    ``stopping="relative", tol=1e-5``, with ``acceleration=None``.

    Parameters
    ----------
    n_components : int, "auto", or iterable of int, default=8
        Number of clusters. If several numbers are given, all are fitted and ``criterion`` selects
        one; ``"auto"`` tries 1, 2, 3, ... until two in a row do not improve it.
    criterion : {"bic", "icl", "cheeseman_stutz"}, default="bic"
        Criterion that selects the number of components.
    prior : float, default=1.0
        Parameter of the Dirichlet priors of weights and values; probabilities are then (count +
        prior) / (total + prior * number of values), the posterior mode in natural parameters. 0 is
        maximum likelihood.
    init : {"perturbed", "random"} or (weights, probabilities), default="perturbed"
        ``"perturbed"``: equal weights, and a slightly perturbed single-component fit for every
        component; ``"random"``: components drawn far apart; or the parameters themselves, as in
        ``weights_`` and ``probabilities_``.
    n_init : int, default=1
        Number of starts, run together. ``results_`` holds the results of all; the one with the
        highest posterior is used.
    max_iter : int, default=1000
        Maximum number of passes over the rows for each start. `fit` and `fit_file` issue a
        ``ConvergenceWarning`` if EM has not converged by then.
    stopping : {"absolute", "relative"}, default="absolute"
        With ``"absolute"``, EM has converged when the log posterior is estimated to be at most
        ``tol`` nats below the maximum that the start leads to. With ``"relative"``, it has
        converged when the last improvement is less than ``tol`` times the total improvement since
        the start (or since the single-component fit, if the start is better); this says little
        about the distance to the maximum.
    tol : float, default=1e-3
        Tolerance of ``stopping``. An objective that is 0.001 nats too low moves no parameter by
        more than about 0.05 of its standard error. If the mean weight of the rows is below one,
        ``tol`` is scaled by it.
    acceleration : {"squarem"} or None, default="squarem"
        Extrapolate EM steps after ten plain ones, unless this lowers the log posterior; None means
        plain EM.
    warm_start : bool, default=False
        Whether `fit` starts from the current parameters, if there are any. Probabilities of zero,
        which EM cannot change, are raised slightly.
    categories : "auto" or list of array-like, default="auto"
        Values of each column. ``"auto"`` uses the values that occur. Likelihoods of fits are
        comparable only if their categories are the same: give them if other rows may have more.
    categorical : bool or list of column names, default=False
        Columns to treat as categories although they have many values that are not whole numbers;
        True means all columns. Without it such a column, a measurement, is an error.
    missing_values : scalar, sequence of scalars or None, default=None
        Values that mean "missing" besides None, NaN and the empty text; -1 also matches the text
        "-1". None stands for the texts NA, N/A, NaN, NULL and ?, in upper or lower case.
    handle_unknown : {"missing", "error"}, default="missing"
        Treatment, after fitting, of a value that is not among the categories: as missing, with a
        warning that counts such values, or as an error.
    precision : {"auto", "mixed", "double"}, default="auto"
        ``"double"`` computes in float64. ``"mixed"`` has float32 responsibilities and float64
        sums, and takes half the time. ``"auto"`` is mixed for more than 32,768 distinct rows.
    decay : float, default=0.6
        Step size of `partial_fit`: that of batch t is ``(t + 2) ** -decay``.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    executor : Executor or None, default=None
        Executor from `bayes_lcs.executor` for `fit` and `partial_fit`; None means all cores of
        this process. Results are equal up to rounding. Clones share it; `save` leaves it out.
    verbose : bool or None, default=False
        Whether to show a progress bar; None shows one if the output is a terminal.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Share of each cluster.
    probabilities_ : list of ndarray of shape (n_components, n_values)
        For each column, the probability of its values in each cluster.
    categories_ : list of ndarray
        Values of each column.
    n_components_ : int
        Number of clusters.
    converged_ : bool
        Whether the stopping rule was met; False after `partial_fit`.
    gap_ : float
        Estimated distance of ``log_posterior_`` from the maximum that the start leads to, in nats;
        infinite if EM steps did not yet shrink.
    n_iter_ : int
        Number of passes over the rows of the best start.
    trace_ : ndarray
        Log posterior of the best start after each accepted step: the log-likelihood plus the log
        density of the prior in natural parameters; with ``prior=0``, the log-likelihood.
    log_posterior_, log_likelihood_ : float
        Values at the last pass of `fit`; `partial_fit` does not change them.
    results_ : list of EMResult
        Results of all starts (for the selected number of components).
    criterion_scores_ : dict
        Score of each number of components, if several were tried.
    plan_ : RowLayout or None
        Layout of the rows; its repr summarises it. None if an executor laid out batches of rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if all are strings.

    Notes
    -----
    Every distinct value of a column is a category, also of whole numbers; bin measurements first.
    Missing cells are summed out; a negative number is a value unless listed in ``missing_values``.
    Sparse matrices must contain zeros and ones. Rows of weight 0 are ignored.

    `fit` and `predict` take pandas, polars and Arrow frames, arrays and sparse matrices; `predict`
    also takes the path of a file, and `fit_file` files larger than memory. Numbers match by value:
    1 and 1.0 are one category.

    If EM runs out of iterations, the parameters are one step further than the last entry of
    ``trace_``: their log posterior would cost another pass.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> X = [["red", "round"], ["red", "round"], ["blue", "flat"], ["blue", "flat"]] * 25
    >>> clusterer = bl.MixtureClusterer(2, random_state=0).fit(X)
    >>> labels = clusterer.predict(X)
    >>> labels[0] == labels[1] != labels[2] == labels[3]
    np.True_
    >>> clusterer.plan_.num_distinct
    2
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            "array-like",
        ],
        "criterion": [StrOptions({"bic", "icl", "cheeseman_stutz"})],
        "prior": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"perturbed", "random"}), tuple, list],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "stopping": [StrOptions({"absolute", "relative"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "acceleration": [StrOptions({"squarem"}), None],
        "warm_start": ["boolean"],
        "categories": [StrOptions({"auto"}), list, tuple],
        "categorical": ["boolean", list, tuple],
        "missing_values": "no_validation",  # type: ignore[dict-item]
        "handle_unknown": [StrOptions({"missing", "error"})],
        "precision": [StrOptions({"auto", "mixed", "double"})],
        "decay": [Interval(Real, 0.5, 1.0, closed="right")],
        "random_state": ["random_state"],
        "executor": [HasMethods(["run", "place", "each"]), None],
        "verbose": ["boolean", None],
    }

    categories_: list[NDArray[Any]]
    plan_: RowLayout | None
    _fitted_weight: float
    _stepwise: StepwiseState | None

    def __init__(
        self,
        n_components: int | str | Iterable[int] = 8,
        *,
        criterion: str = "bic",
        prior: float = 1.0,
        init: Any = "perturbed",
        n_init: int = 1,
        max_iter: int = 1000,
        stopping: str = "absolute",
        tol: float = 1e-3,
        acceleration: str | None = "squarem",
        warm_start: bool = False,
        categories: Any = "auto",
        categorical: Any = False,
        missing_values: Any = None,
        handle_unknown: str = "missing",
        precision: str = "auto",
        decay: float = 0.6,
        random_state: int | np.random.RandomState | None = None,
        executor: Executor | None = None,
        verbose: bool | None = False,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.stopping = stopping
        self.tol = tol
        self.acceleration = acceleration
        self.warm_start = warm_start
        self.categories = categories
        self.categorical = categorical
        self.missing_values = missing_values
        self.handle_unknown = handle_unknown
        self.precision = precision
        self.decay = decay
        self.random_state = random_state
        self.executor = executor
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MixtureClusterer:
        """Fit the mixture by EM.

        Parameters
        ----------
        X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)
            Rows of numbers, strings or categories; a sparse matrix must contain zeros and ones.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : MixtureClusterer
            The fitted clusterer.
        """
        del y
        self._validate_params()
        before = None
        if self.warm_start and hasattr(self, "weights_"):
            before = WarmStart(self.categories_, self._parameters, self._fitted_weight)
        data = self._encode(X, sample_weight, reset=True, before=before)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        with make_e_step(data, self.executor, self._precision) as (e_step, self.plan_):
            rows = InMemoryData(data)
            self._set_result(fit_mixture(self, rows, e_step, rng, before, self.categories_))
        self._fitted_weight = data.total
        self._stepwise = None
        return self

    def fit_file(
        self,
        path: Any,
        *,
        features: Iterable[Any] | None = None,
        ignore: Iterable[Any] = (),
        missing_values: MissingValues = None,
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool | Sequence[str] = True,
        memory: int = 1 << 28,
        folder: str | PathLike[str] | None = None,
    ) -> MixtureClusterer:
        r"""Fit the mixture to files that need not fit into memory.

        One pass over the files encodes their rows and learns the values of every column. The
        encoded rows are stored on disk in batches, which the workers read. The result equals that
        of `fit` on the same rows up to rounding.

        Parameters
        ----------
        path
            A CSV or Parquet file, or a folder of such files with the same columns of the same
            types, which are read in the order of their names; or anything else that
            `bayes_lcs.row_source` reads in batches, such as Arrow data sets and Dask dataframes, or
            a source that it returned. Files encoded by `bayes_lcs.code_files` are used as they are.
        features, ignore
            Columns to use, or columns to leave out.
        missing_values
            Cells that mean "missing", as in `bayes_lcs.read_grouped`; by default those of the
            clusterer.
        encoding, delimiter, header
            Options for text files, as in `bayes_lcs.read_grouped`.
        memory
            Bytes that the row layout for EM may take. A larger layout is stored on disk and read
            at each pass. One batch, and Python with its libraries, come on top.
        folder
            Folder for encoded rows and layouts during the fit. They are written to a new folder
            inside it, which is removed at the end. By default the system's folder for temporary
            files. Workers on other machines must have access to it.

        Returns
        -------
        self : MixtureClusterer
            The fitted clusterer.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bayes_lcs as bl
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "visits.csv")
        ...     _ = path.write_text("day,hour\n" + "sun,late\nmon,early\nmon,early\n" * 50)
        ...     mixture = bl.MixtureClusterer(2, random_state=0, verbose=False)
        ...     found = mixture.fit_file(path, memory=1000, folder=folder)
        >>> sorted(found.weights_.round(2).tolist())
        [0.34, 0.66]
        """
        self._validate_params()
        if self.warm_start or not isinstance(self.categories, str):
            raise ValueError(
                "fit_file starts afresh and learns the categories from the files; use "
                "warm_start=False and categories='auto'"
            )
        source = path
        if not isinstance(path, CodedFiles | FileSampler):
            if missing_values is None:
                missing_values = add_empty_cell(self.missing_values)
            source = FileSampler(
                path,
                features=features,
                ignore=ignore,
                categorical=self.categorical,
                missing_values=missing_values,
                options=CsvOptions(encoding, delimiter, header),
            )
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        with open_out_of_core(source, self._precision, memory, folder, self.executor) as rows:
            categories = list(rows.values.values())
            rng = np.random.default_rng(seed)
            self._set_result(fit_mixture(self, rows, rows.e_step, rng, None, categories))
            self._fitted_weight = rows.e_step.weight
            self.feature_names_in_ = np.array(list(rows.values), dtype=object)
        self.n_features_in_, self.categories_ = len(categories), categories
        self.plan_, self._stepwise = None, None
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MixtureClusterer:
        """Update the parameters with one more batch of rows by stepwise EM.

        If the clusterer is not fitted yet, the first batch is fitted as by `fit`, so it should have
        enough rows to tell clusters apart; its values are the categories, unless ``categories``
        gives them. After `fit`, batches continue from the fitted parameters.

        Parameters
        ----------
        X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)
            A batch of rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : MixtureClusterer
            The clusterer.
        """
        if not hasattr(self, "weights_"):
            return self.fit(X, y, sample_weight)
        self._validate_params()
        data = self._encode(X, sample_weight, reset=False)
        with make_e_step(data, self.executor, lambda _: "double") as (e_step, _):
            statistics = e_step.statistics([self._parameters])[0]
        self._stepwise, parameters = stepwise_step(
            self._model, self._stepwise_state(), statistics, data.total, self.decay
        )
        self._fitted_weight = self._stepwise.weight
        self._set_parameters(self._model, parameters)
        self.n_iter_ += 1
        self.converged_, self.gap_ = False, np.inf
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int64]:
        """Fit, and return the cluster of each row; see `fit` and `predict`."""
        return self.fit(X, y, sample_weight).predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each cluster, for each row.

        Parameters
        ----------
        X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Probabilities; each row sums to one.
        """
        return self._map_rows(X, responsibilities)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable cluster of each row; see `predict_proba`."""
        return self._map_rows(X, lambda joint: joint.argmax(axis=1))

    def score_samples(self, X: Any) -> FloatArray:
        """Return ``log p(x)`` of each row, in nats; missing cells are summed out."""
        return self._map_rows(X, log_density)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of `score_samples`."""
        del y
        scores = self.score_samples(X)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, scores)
        return float(np.average(scores, weights=weights))

    def anomaly_score(self, X: Any) -> FloatArray:
        """Return ``-log p(x)`` of each row in nats; higher is more anomalous.

        Missing cells contribute nothing, so that rows with many of them score low. The expected
        score of a complete row drawn from the mixture is the mixture's entropy.
        """
        return -self.score_samples(X)

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows of values from ``categories_``, of type object unless all columns are numbers.
        y : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rows, components, _ = self._model.simulate(int(n_samples), seed, self._parameters)
        return inverse_transform(rows, self.categories_), components

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion of rows; lower is better."""
        data = self._encode_fitted(X, sample_weight)
        return information_criteria.bic(*row_sums(data, self._model, self._parameters)[:3])

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Return BIC plus twice the entropy of the clusters of the rows; lower is better."""
        data = self._encode_fitted(X, sample_weight)
        return information_criteria.icl(*row_sums(data, self._model, self._parameters))

    def cheeseman_stutz(self, X: Any, sample_weight: Any = None) -> float:
        """Return an approximate log evidence of rows, AutoClass's score; higher is better.

        It needs ``prior > 0``, and is meant for the training rows.
        """
        data = self._encode_fitted(X, sample_weight)
        statistics = compute_statistics(data, self._parameters)
        return information_criteria.cheeseman_stutz(self._model, self._parameters, statistics)

    def standard_errors(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        method: str = "information",
        n_bootstrap: int = 100,
        random_state: Any = None,
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Estimate standard errors of ``weights_`` and ``probabilities_``.

        Parameters
        ----------
        X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: numbers of rows, not precisions.
        method : {"information", "bootstrap"}, default="information"
            ``"information"`` inverts the observed information of the log posterior, which takes
            memory proportional to the squared number of parameters. ``"bootstrap"`` fits again to
            rows drawn with replacement, from the current parameters, and matches components.
        n_bootstrap : int, default=100
            Number of bootstrap fits.
        random_state : int, RandomState instance or None, default=None
            Seed of the bootstrap.

        Returns
        -------
        weights : ndarray of shape (n_components,)
            Standard errors of ``weights_``.
        probabilities : list of ndarray of shape (n_components, n_values)
            Standard errors of ``probabilities_``.

        Notes
        -----
        The information gives no standard error for a probability estimated at 0 or 1, as happens
        with ``prior=0``: the probability is held fixed and its standard error is NaN. The same is
        true of an empty cluster. `bic` and `icl` count these parameters too.
        """
        from bayes_lcs.inference.em import standard_errors

        if method not in ("information", "bootstrap"):
            raise ValueError(f"method must be 'information' or 'bootstrap', got {method!r}")
        data = self._encode_fitted(X, sample_weight)
        layout = lay_out_rows(data.table, data.weights)
        if method == "information":
            weights, cells = standard_errors.information_errors(
                self._model, self._parameters, data.table, data.weights
            )
        else:
            seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
            weights, cells = standard_errors.bootstrap_errors(
                self._model,
                self._parameters,
                layout,
                data.weights,
                num_fits=n_bootstrap,
                max_iter=self.max_iter,
                tol=self.tol,
                seed=seed,
            )
        schema = self._model.schema
        return weights, [cells[schema.cells_of(f)].T for f in range(schema.num_features)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted mixture as netCDF, atomically, with a checksum beside it.

        An existing file is replaced.
        """
        from bayes_lcs.clustering.mixture.mixture_io import save_mixture

        check_is_fitted(self)
        save_mixture(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> MixtureClusterer:
        """Load a mixture written by `save`, without pickle, to predict or continue fitting."""
        from bayes_lcs.clustering.mixture.mixture_io import load_mixture

        return load_mixture(cls, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False  # only zeros and ones, which the tag cannot express
        return tags

    # Input ----------------------------------------------------------------------------------------

    def _encode(
        self, X: Any, sample_weight: Any, *, reset: bool, before: Any = None
    ) -> WeightedRows:
        known = None if reset else self.categories_
        more = None if before is None else before[0]
        coded, categories = encode_input(self, X, sample_weight, known=known, more=more)
        if reset:
            self.categories_ = categories
        return coded

    def _encode_fitted(self, X: Any, sample_weight: Any = None) -> WeightedRows:
        check_is_fitted(self)
        return self._encode(X, sample_weight, reset=False)

    def _map_rows(self, X: Any, function: Callable[[FloatArray], NDArray[Any]]) -> NDArray[Any]:
        data = self._encode_fitted(X)
        return map_rows(self._parameters, data.table, function)

    # Output ---------------------------------------------------------------------------------------

    def _set_result(self, fitted: FittedMixture) -> None:
        best = best_result(fitted.results)
        self._set_parameters(fitted.model, best.parameters)
        self.results_ = fitted.results
        if fitted.criterion_scores is not None:
            self.criterion_scores_ = fitted.criterion_scores
        self.trace_ = best.trace
        self.n_iter_ = best.num_iter
        self.converged_ = best.converged
        self.gap_ = best.gap
        self.log_posterior_ = best.objective
        self.log_likelihood_ = best.log_likelihood
        self.interrupted_ = fitted.interrupted
        if fitted.interrupted:
            warnings.warn(
                f"interrupted after {self.n_iter_} passes over the rows; the clusterer has the "
                "best parameters so far",
                InterruptedWarning,
                stacklevel=3,
            )
        elif fitted.unconverged:
            warnings.warn(
                _unconverged_message(self.max_iter, fitted, best), ConvergenceWarning, stacklevel=3
            )

    def _set_parameters(self, model: MultinomialMixture, parameters: MixtureParameters) -> None:
        schema = model.schema
        self._model, self._parameters = model, parameters
        self.n_components_ = model.num_components
        self.weights_ = parameters.weights
        self.probabilities_ = [
            parameters.cells[schema.cells_of(f)].T for f in range(schema.num_features)
        ]

    def _precision(self, num_rows: int) -> Any:
        if self.precision != "auto":
            return self.precision
        return "double" if num_rows <= MAX_ROWS_IN_DOUBLE else "mixed"

    def _stepwise_state(self) -> StepwiseState:
        """Return the state of `partial_fit`: after `fit`, the statistics of its last pass."""
        if self._stepwise is not None:
            return self._stepwise
        return stepwise_init(best_result(self.results_).statistics, self._fitted_weight)


def _unconverged_message(max_iter: int, fitted: FittedMixture, best: Any) -> str:
    """Describe the estimated distance to the maximum, and the remedy."""
    state = "the log posterior is below its maximum"
    if np.isfinite(best.gap):
        state += f", by {best.gap:.1g} nats in a rough estimate"
    if fitted.criterion_scores is not None:
        numbers = ", ".join(map(str, fitted.unconverged))
        state = f"with n_components {numbers}, so that their scores are too low"
    return (
        f"EM has not converged after max_iter={max_iter} passes: {state}. Increase max_iter, or "
        "tol if less accuracy is enough"
    )
