"""Train an estimator on nested samples of a source, and measure time and score.

The first rows of the random order are the hold-out; training uses the rows after it, so that no
model is scored on its training rows.

All samples must have the same categories: an estimator that learns categories from a small sample
would treat other values as unknown and score the hold-out on fewer cells, so that the scores of two
stages would not be comparable. Files and text columns come with all categories; for arrays and
integer columns `with_all_categories` sets them.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bayes_lcs.core.errors import DataError, DataNote
from bayes_lcs.io.options import add_empty_cell
from bayes_lcs.io.sampler import FileSampler, Rows, RowSource
from bayes_lcs.learning_curve_sampling.default_sizes import default_holdout_size
from bayes_lcs.learning_curve_sampling.training_run import Mode, RowScores, TrainingRun
from bayes_lcs.learning_curve_sampling.truncated_training import Abbreviation
from bayes_lcs.runtime.checkpoints import Arrays, checkpointed_task, fingerprint, is_checkpointing
from bayes_lcs.runtime.estimator_io import model_from_arrays, model_to_arrays

__all__ = ["EstimatorTrainer", "run_from_arrays", "run_to_arrays", "with_all_categories"]


class EstimatorTrainer:
    """Trainer of an estimator, a `bayes_lcs.learning_curve_sampling.training_run.Trainer`.

    Parameters
    ----------
    estimator
        Estimator, cloned for every run and left unchanged.
    source
        Source of the rows.
    holdout_size
        Number of hold-out rows; None for :func:`default_holdout_size`.
    abbreviation
        Truncation of the stages; None means full training.
    scoring
        ``scoring(model, X, y)``, a number or a score for each row; by default the estimator's
        ``score``.
    clock
        Function that returns the time in seconds.

    Attributes
    ----------
    holdout_size
        Number of hold-out rows.
    """

    def __init__(
        self,
        estimator: Any,
        source: RowSource,
        *,
        holdout_size: int | None = None,
        abbreviation: Abbreviation | None = None,
        scoring: Callable[..., Any] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.clock = clock
        self.abbreviated = abbreviation is not None
        self._estimator, self._source, self._scoring = estimator, source, scoring
        self._abbreviation = abbreviation
        self._missing_reported = isinstance(source, FileSampler)  # reading reports missing cells
        self._short = None if abbreviation is None else abbreviation.parameters(estimator)
        start = clock()
        if holdout_size is None:
            holdout_size = default_holdout_size(source.num_rows)
        if not 0 < holdout_size < source.num_rows:
            raise ValueError(
                f"a hold-out of {holdout_size} rows leaves nothing of {source.num_rows} rows to "
                "train on; choose a smaller one (holdout_size=, --holdout), or leave it out for "
                "a default that depends on the number of rows"
            )
        self.holdout_size = holdout_size
        self._holdout = source.take(0, holdout_size)
        if self._holdout.y is None and _needs_target(estimator):
            raise DataError(
                f"{type(estimator).__name__} needs a target: give y, the name of its column "
                "or an array"
            )
        self.setup_seconds = clock() - start
        self._pass_seconds = self.setup_seconds
        self._cached: tuple[int, Rows] | None = None
        self._digest = ""
        self._is_mean: dict[type, bool] = {}
        self._trained: set[tuple[int, int | None]] = set()  # sizes and components of runs so far

    @property
    def num_rows(self) -> int:
        """Number of rows for training."""
        return self._source.num_rows - self.holdout_size

    def read_seconds(self, size: int) -> float:
        """Return the expected time of reading: that of the last pass, if another is needed."""
        needed = self._source.needs_pass(self.holdout_size + size)
        return self._pass_seconds if needed else 0.0

    def fit(
        self,
        size: int,
        mode: Mode,
        *,
        start: TrainingRun | None = None,
        components: int | None = None,
    ) -> TrainingRun:
        """Train on the first ``size`` rows after the hold-out, and score."""
        fit = self._load_or_train(
            ("fit", size, mode, components),
            self._estimator,
            lambda: self._train_and_score(
                size, mode, lambda rows: self._train(rows, mode, start, components), components
            ),
        )
        is_first = (size, components) not in self._trained
        self._trained.add((size, components))
        return replace(fit, is_first=is_first)

    def _load_or_train(
        self, key: tuple[Any, ...], like: Any, train: Callable[[], TrainingRun]
    ) -> TrainingRun:
        """Load a run from its checkpoint, or train; an interrupted run resumes its own checkpoint.

        The estimator writes checkpoints of its iterations, if it supports them.
        """
        with checkpointed_task("fit", self._cache_key(), *key) as written:
            resumed = None if written.state is None else run_from_arrays(written.state, like)
            if resumed is not None:
                return resumed
            fit = train()
            if not fit.interrupted:
                written.finish(partial(run_to_arrays, fit))
        return fit

    def _cache_key(self) -> str:
        """Return the cache key of checkpoints, in which the hold-out stands for all rows."""
        if not is_checkpointing():
            return ""
        if not self._digest:
            rules = (_without_executor(self._estimator), self._abbreviation, self._scoring)
            self._digest = fingerprint(*rules, self._source.num_rows, *self._holdout)
        return self._digest

    def _train_and_score(
        self, size: int, mode: Mode, train: Callable[[Rows], Any], components: int | None = None
    ) -> TrainingRun:
        began = self.clock()
        rows = self._rows(size)
        read = self.clock()
        with warnings.catch_warnings():
            if self._missing_reported:  # report missing cells only once
                warnings.simplefilter("ignore", DataNote)
            model = train(rows)
        self._missing_reported = True
        trained = self.clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataNote)  # not for the hold-out either
            score, row_scores = self.score(model)
        scored = self.clock()
        return TrainingRun(
            size,
            mode,
            score,
            _iterations(model),
            fit_seconds=trained - read,
            score_seconds=scored - trained,
            read_seconds=read - began,
            components=components,
            model=model,
            interrupted=bool(getattr(model, "interrupted_", False)),
            row_scores=row_scores,
        )

    def fit_baseline(self, baseline: Any, size: int) -> TrainingRun:
        """Train the baseline, which has benefit 0, on the first rows."""
        from sklearn.base import clone

        own = min(size, self.num_rows)
        return self._load_or_train(
            ("baseline", _without_executor(baseline), own),
            baseline,
            lambda: self._train_and_score(own, "full", lambda rows: _fit(clone(baseline), rows)),
        )

    def warm_up(self, size: int) -> float:
        """Make one short run to compile programs, discard it, and return its seconds."""
        began = self.clock()
        if "max_iter" in self._estimator.get_params(deep=False):
            from sklearn.base import clone

            rows = self._rows(min(size, self.num_rows))
            self._trained.add((min(size, self.num_rows), None))
            with _ignore_unconverged():
                warnings.simplefilter("ignore", DataNote)  # training reports them
                _fit(clone(self._estimator).set_params(max_iter=1), rows)
        return self.clock() - began

    def score(self, model: Any) -> tuple[float, RowScores | None]:
        """Return the score on the hold-out, and the scores of its rows if their mean is the score.

        Scores of rows are known for estimators with ``score_samples``, for classifiers scored by
        accuracy, and if ``scoring`` returns an array.
        """
        X, y = self._holdout
        scores: Any = None
        if self._scoring is not None:
            scores = self._scoring(model, X, y)
        elif self._is_mean.get(type(model), True):
            scores = _row_scores(model, X, y)
        if scores is None or (self._scoring is None and type(model) not in self._is_mean):
            whole = _score(model, X, y)
            # The score of a class need not be the mean over rows: check once per class.
            is_mean = scores is not None and math.isclose(scores.mean(), whole, rel_tol=1e-6)
            self._is_mean[type(model)] = is_mean
            scores = scores if is_mean else whole
        each = np.asarray(scores, np.float64)
        if each.shape not in ((), (self.holdout_size,)):
            raise ValueError(
                f"scoring returned an array of shape {each.shape}; it must return a number, or one "
                f"score for each of the {self.holdout_size} rows"
            )
        score = float(each.mean())
        if not math.isfinite(score):
            raise ValueError(
                f"the score on the hold-out is {score}; a value that does not occur in the "
                "training rows may have probability 0: smooth the model, or pass scoring="
            )
        return score, each if each.ndim else None

    def _rows(self, size: int) -> Rows:
        """Return the sample, cached until another size is requested."""
        if self._cached is None or self._cached[0] != size:
            self._cached = None  # not two samples in memory at once
            stop = self.holdout_size + size
            passes, began = self._source.needs_pass(stop), self.clock()
            rows = self._source.take(self.holdout_size, stop)
            if passes:
                self._pass_seconds = self.clock() - began
            self._cached = (size, rows)
        return self._cached[1]

    def _train(
        self, rows: Rows, mode: Mode, start: TrainingRun | None, components: int | None
    ) -> Any:
        from sklearn.base import clone

        own = {} if components is None else {"n_components": components}
        if mode == "final" and start is not None and _has_warm_start(start.model):
            model = copy.deepcopy(start.model)
            params = self._estimator.get_params(deep=False)
            # Models from checkpoints have no executor: restore it with the full parameters.
            full = {key: params[key] for key in (*(self._short or {}), "executor") if key in params}
            return _fit(model.set_params(**full, warm_start=True), rows)
        model = clone(self._estimator).set_params(**own)
        if mode != "abbreviated":
            return _fit(model, rows)
        if self._short is not None:
            with _ignore_unconverged():
                return _fit(model.set_params(**self._short), rows)
        assert self._abbreviation is not None
        for step in range(int(self._abbreviation.value)):
            if rows.y is None:
                model.partial_fit(rows.X)
            elif step == 0 and hasattr(model, "predict_proba"):
                model.partial_fit(rows.X, rows.y, classes=np.unique(rows.y))
            else:
                model.partial_fit(rows.X, rows.y)
        return model


def _fit(model: Any, rows: Rows) -> Any:
    return model.fit(rows.X) if rows.y is None else model.fit(rows.X, rows.y)


def _score(model: Any, X: Any, y: Any) -> float:
    return float(model.score(X) if y is None else model.score(X, y))


def _row_scores(model: Any, X: Any, y: Any) -> RowScores | None:
    """Return the scores of single rows, or None if the estimator has none."""
    from sklearn.base import is_classifier

    if y is None and hasattr(model, "score_samples"):
        return np.asarray(model.score_samples(X), np.float64)
    if y is not None and is_classifier(model) and np.ndim(y) == 1:
        return np.asarray(np.asarray(model.predict(X)) == np.asarray(y), np.float64)
    return None


def _needs_target(estimator: Any) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).target_tags.required)


def _without_executor(estimator: Any) -> Any:
    """Return the estimator without its executor, which does not affect results."""
    from sklearn.base import clone

    if "executor" not in estimator.get_params(deep=False):
        return estimator
    return clone(estimator).set_params(executor=None)


def _has_warm_start(model: Any) -> bool:
    """Return whether another fit can start from the fitted parameters."""
    return "warm_start" in model.get_params(deep=False)


def _iterations(model: Any) -> float:
    """Return the iterations of the run, as counted by the estimator."""
    count = getattr(model, "n_iter_", None)
    return 1.0 if count is None else float(max(np.max(count), 1))


class _ignore_unconverged(warnings.catch_warnings):
    """Context in which truncated runs do not warn that they have not converged."""

    def __enter__(self) -> None:
        from sklearn.exceptions import ConvergenceWarning

        super().__enter__()
        warnings.simplefilter("ignore", ConvergenceWarning)


def with_all_categories(estimator: Any, source: RowSource) -> Any:
    """Return the estimator, or a copy with all categories if it has ``categories="auto"``.

    Examples
    --------
    >>> import numpy as np, bayes_lcs as bl
    >>> source = bl.row_source(np.array([[0, 1], [2, 1]]))
    >>> clusterer = with_all_categories(bl.MixtureClusterer(2), source)
    >>> [values.tolist() for values in clusterer.categories]
    [[0, 2], [1]]
    """
    params = estimator.get_params(deep=False)
    if not (isinstance(params.get("categories"), str) and params["categories"] == "auto"):
        return estimator
    missing = add_empty_cell(params.get("missing_values"))
    values = source.values(missing, params.get("categorical"))
    if values is None:
        return estimator
    from sklearn.base import clone

    return clone(estimator).set_params(categories=values)


_NUMBERS = ("score", "iterations", "fit_seconds", "score_seconds", "read_seconds")


def run_to_arrays(fit: TrainingRun) -> Arrays:
    """Convert a run and its model to arrays; without the model if it cannot be converted."""
    rows = {} if fit.row_scores is None else {"row_scores": fit.row_scores}
    return {
        **(model_to_arrays(fit.model) or {}),
        **rows,
        "size": np.asarray(fit.size),
        "mode": np.asarray(fit.mode),
        "components": np.asarray(-1 if fit.components is None else fit.components),
        "numbers": np.asarray([getattr(fit, name) for name in _NUMBERS]),
    }


def run_from_arrays(written: Arrays, like: Any) -> TrainingRun | None:
    """Restore a run with a model of the class of ``like``; return None if it has no model."""
    if "model" not in written:
        return None
    components = int(written["components"])
    mode: Any = str(written["mode"])
    return TrainingRun(
        int(written["size"]),
        mode,
        **dict(zip(_NUMBERS, written["numbers"].tolist(), strict=True)),
        components=None if components < 0 else components,
        model=model_from_arrays(written, like),
        row_scores=written.get("row_scores"),
    )
