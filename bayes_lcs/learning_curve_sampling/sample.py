"""Learning-curve sampling: train on as many rows as pay off.

C. Meek, B. Thiesson and D. Heckerman, "The learning-curve sampling method applied to model-based
clustering", JMLR 2 (2002), 397-418. A model is trained on nested samples of increasing size until
the expected benefit of more rows is not worth the expected time.

Differences from the paper: the rule accounts for the noise of the curve (module `rules`); decisions
to stop after truncated runs are confirmed by full training (module `controller`); the best model
is returned, not the last; costs are measured from outside the estimator (module `cost_model`); run
time includes everything that the user waits for, also reading and the baseline.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from bayes_lcs.core.errors import InterruptedWarning
from bayes_lcs.io.sampler import RowSource
from bayes_lcs.learning_curve_sampling.component_search import ComponentSearch
from bayes_lcs.learning_curve_sampling.controller import Rule, Stage, run_stages, stage_sizes
from bayes_lcs.learning_curve_sampling.default_sizes import default_initial_size, num_components_of
from bayes_lcs.learning_curve_sampling.result import LearningCurveResult
from bayes_lcs.learning_curve_sampling.rules import myopic, within_memory
from bayes_lcs.learning_curve_sampling.time_cost import benefit_per_hour, seconds_text
from bayes_lcs.learning_curve_sampling.trainer import EstimatorTrainer, with_all_categories
from bayes_lcs.learning_curve_sampling.training_rows import open_rows
from bayes_lcs.learning_curve_sampling.truncated_training import parse_abbreviation
from bayes_lcs.learning_curve_sampling.utility import Preferences, default_baseline
from bayes_lcs.runtime.live_table import AddRow, live_table

__all__ = ["learning_curve_sample"]

METHODS = ("myopic", "full")

COLUMNS = ("rows", "score", "gain (best = 1)", "after", "decision")
"""Columns of the table of stages that is shown during the run."""


def learning_curve_sample(
    estimator: Any,
    source: Any,
    y: Any = None,
    *,
    alpha: float | str = 0.2,
    initial_size: int | None = None,
    growth: float = 2.0,
    holdout_size: int | None = None,
    abbreviated: str | None = None,
    method: Literal["myopic", "full"] = "myopic",
    components: Sequence[int] | None = None,
    baseline: Any = None,
    baseline_size: int = 10_000,
    most_rows: int | None = None,
    benefit: Callable[[float], float] | None = None,
    cost: Callable[[float], float] | None = None,
    scoring: Callable[..., Any] | None = None,
    warm_up: bool = True,
    random_state: int = 0,
    progress: bool | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> LearningCurveResult:
    """Train on as many rows as pay off, and return the best model.

    Samples of increasing size are used until the next one is not expected to be worth its time. The
    model with the best score on the hold-out is returned, whichever sample it was trained on.

    Parameters
    ----------
    estimator
        A scikit-learn estimator with ``fit`` and ``score``; it is cloned and left unchanged.
    source
        An array, a pandas frame, a SciPy sparse matrix, the path of a CSV or Parquet file or of a
        folder of them; or a source made by :func:`bayes_lcs.row_source`, which has options. Files
        are read as categories for estimators that encode them, and as numbers for others.
    y
        The target, for estimators that need one: an array, or the name of a column of a frame or
        file, which then is not a feature.
    alpha
        Cost of waiting, in benefit per hour, or a text such as ``"1% per 10 minutes"``. Benefit is
        0 for the baseline and 1 for full training on all rows. With 0 time costs nothing, and all
        rows are used.
    initial_size, growth
        Size of the first sample, and growth factor of samples. By default an eighth of the rows,
        but no more than 40,000, and no fewer than 200 or the number of components.
    holdout_size
        Number of hold-out rows, which are used for scoring only. By default a fifth of the rows,
        but no more than 10,000.
    abbreviated
        Truncation of the stages: ``"fixed-1"`` (one iteration, likewise 3, 5, 10, …),
        ``"thresh-0.1"`` (``tol=0.1``, likewise 0.01, …), or None for full training at every stage.
        ``fixed`` requires ``max_iter`` or ``partial_fit``, ``thresh`` requires ``tol``. If the rule
        stops after such a stage, the sample is trained to convergence (from the parameters of the
        stage if the estimator has ``warm_start``), and the rule is applied again to that score.
    method : {"myopic", "full"}
        The rule that looks one stage ahead, or full training on all rows at once.
    components
        Increasing numbers of components to choose from as the sample grows, instead of the
        estimator's ``n_components``; larger ones are tried again at every stage. Requires full
        training at every stage.
    baseline
        Estimator with benefit 0, or its score. By default one component, or for a classifier the
        frequencies of the labels.
    baseline_size
        Number of rows on which the baseline is trained.
    most_rows
        Size of the largest sample that fits into memory: ``"myopic"`` uses no larger one.
    benefit, cost
        Functions of relative benefit and of seconds, instead of the identity and of ``alpha``.
    scoring
        ``scoring(model, X, y)`` instead of the estimator's ``score``; larger is better. It returns
        a number, or an array with the score of each row, which also gives standard errors.
    warm_up
        Make one run of one iteration on the first sample and discard it, so that compilation is not
        attributed to the number of rows. Its time counts as run time.
    random_state
        Seed of the order of the rows. The estimator has its own ``random_state``.
    progress
        Show a table of the stages, with the reasons of decisions, above a progress bar; None shows
        it if the output is a terminal.
    clock
        Function that returns the time in seconds.

    Returns
    -------
    LearningCurveResult
        The best model, its score and gain over the baseline with intervals, run time, and the
        curve. Benefit and utility, which are relative to full training on all rows, are NaN without
        such a run. Ctrl-C after the first stage ends the run with the best model so far, and a
        warning.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> import bayes_lcs as bl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)) + 4 * rng.integers(3, size=(20_000, 1))
    >>> result = bl.learning_curve_sample(
    ...     GaussianMixture(3, random_state=0), X, alpha="1% per second",
    ...     initial_size=500, holdout_size=2000,
    ... )
    >>> low, high = result.gain_interval
    >>> bool(0 < low < result.score - result.baseline_score < high)
    True
    """
    if method not in METHODS:
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, got {method!r} ('fitted' and 'oracle' "
            "have been removed)"
        )
    short = parse_abbreviation(abbreviated)
    if short is not None and method == "full":
        short = None
    search = None if components is None else ComponentSearch(components)
    if search is not None and (short is not None or method == "full"):
        raise ValueError(
            "components= requires full training at every stage: use abbreviated=None and "
            "method='myopic'"
        )
    preferences = Preferences(benefit_per_hour(alpha), benefit, cost)
    began = clock()
    rows = open_rows(estimator, source, y, seed=random_state)
    estimator = with_all_categories(estimator, rows)
    spent = clock() - began
    trainer = EstimatorTrainer(
        estimator, rows, holdout_size=holdout_size, abbreviation=short, scoring=scoring, clock=clock
    )
    if initial_size is None:
        num_components = num_components_of(estimator, components)
        initial_size = default_initial_size(trainer.num_rows, num_components)
    initial = trainer.num_rows if method == "full" else initial_size
    sizes = stage_sizes(initial, growth, trainer.num_rows)
    spent += trainer.setup_seconds
    if baseline is None or hasattr(baseline, "fit"):
        start = default_baseline(estimator) if baseline is None else baseline
        base_fit = trainer.fit_baseline(start, baseline_size)
        base, base_rows, spent = base_fit.score, base_fit.row_scores, spent + base_fit.seconds
    else:
        base, base_rows = float(baseline), None
    if warm_up:
        spent += trainer.warm_up(initial_size)
    first = f"training on {sizes[0]:,} rows"
    with live_table("learning curve", len(sizes), COLUMNS, first, progress) as add_row:
        run = run_stages(
            trainer,
            sizes,
            base,
            preferences,
            _make_rule(method, most_rows),
            base_rows=base_rows,
            spent=spent,
            clock=clock,
            abbreviated_iterations=None if short is None else short.iterations,
            components=search,
            report=partial(_report, add_row, base),
        )
    if run.interrupted:
        warnings.warn(run.interrupted, InterruptedWarning, stacklevel=2)
    return LearningCurveResult(
        run,
        preferences,
        method,
        None if short is None else abbreviated,
        trainer.num_rows,
        trainer.holdout_size,
        random_state,
        _reading_counts(rows),
    )


def _make_rule(method: str, most_rows: int | None) -> Rule:
    return myopic if most_rows is None or method == "full" else within_memory(myopic, most_rows)


def _reading_counts(rows: RowSource) -> dict[str, int]:
    return {"passes": rows.reading.passes, "rows": rows.reading.rows}


def _report(add_row: AddRow, base: float, stage: Stage, steps: int) -> None:
    """Add a stage to the table: size, score, gain over the baseline, seconds, and decision."""
    decision = stage.decision
    cells = (
        f"{stage.fit.size:,}",
        f"{stage.fit.score:.5g}",
        seconds_text(stage.elapsed),
        "" if decision is None else decision.reason,
    )
    following = None if decision is None else decision.next_size
    status = "last training run" if following is None else f"training on {following:,} rows"
    add_row(cells, stage.fit.score - base, steps=steps, status=status)
