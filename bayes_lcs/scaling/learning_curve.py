"""Learning-curve sampling: train on as many rows as are worth it, and no more.

C. Meek, B. Thiesson and D. Heckerman, "The learning-curve sampling method applied to model-based
clustering", JMLR 2 (2002), 397-418. Samples of growing size, each containing the last, are trained
on until what more rows are expected to add is not worth the time that they are expected to take.

Where this differs from the paper: costs are seen from outside the estimator
(`bayes_lcs.scaling.cost_model`); run time has everything in it that the user waits for, reading and
the baseline too; and the denominator of benefit takes the best score so far, as the paper advises
for curves with noise.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from bayes_lcs.core.errors import InterruptedWarning
from bayes_lcs.core.growing_table import AddRow, growing_table
from bayes_lcs.io.sampler import RowSource
from bayes_lcs.scaling.abbreviation import abbreviation
from bayes_lcs.scaling.baseline import default_baseline
from bayes_lcs.scaling.controller import Rule, Run, Stage, run_stages, stage_sizes
from bayes_lcs.scaling.default_sizes import default_initial_size, num_components_of
from bayes_lcs.scaling.hindsight import hindsight
from bayes_lcs.scaling.known_values import with_known_values
from bayes_lcs.scaling.lookahead import fitted
from bayes_lcs.scaling.num_clusters import ComponentSearch
from bayes_lcs.scaling.rates import benefit_per_hour, seconds_text
from bayes_lcs.scaling.result import LearningCurveResult
from bayes_lcs.scaling.stopping import Decision, myopic, within_memory
from bayes_lcs.scaling.trainer import EstimatorTrainer
from bayes_lcs.scaling.training_rows import open_rows
from bayes_lcs.scaling.utility import Preferences

__all__ = ["learning_curve_sample"]

METHODS = ("myopic", "fitted", "full", "oracle")

COLUMNS = ("rows", "score", "benefit (best = 1)", "after", "decision")
"""Of the table of stages that is shown while they are trained."""


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
    method: Literal["myopic", "fitted", "full", "oracle"] = "myopic",
    components: Sequence[int] | None = None,
    baseline: Any = None,
    baseline_size: int = 10_000,
    most_rows: int | None = None,
    benefit: Callable[[float], float] | None = None,
    cost: Callable[[float], float] | None = None,
    scoring: Callable[..., float] | None = None,
    warm_up: bool = True,
    random_state: int = 0,
    progress: bool | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> LearningCurveResult:
    """Train on as many rows as are worth it.

    Parameters
    ----------
    estimator
        A scikit-learn estimator with ``fit`` and ``score``; cloned, so it is left as it is.
    source
        An array, a pandas frame, a SciPy sparse matrix, the path of a CSV or Parquet file or of a
        folder of them; or a source made by :func:`bayes_lcs.row_source`, which has options. Files
        are read as categories for estimators that encode them, and as numbers for others.
    y
        The target, for estimators that need one: an array, or the name of a column of a frame or
        file, which then is not a feature.
    alpha
        What waiting costs, in benefit per hour, or a text such as ``"1% per 10 minutes"``. Benefit
        is 0 for the baseline and 1 for full training on all rows.
    initial_size, growth
        Rows of the first sample, and the factor by which samples grow. By default an eighth of the
        rows, but no more than 40,000, and no fewer than 200 or the number of components.
    holdout_size
        Rows kept for scoring, on which nothing is ever trained. By default a fifth of the rows, but
        no more than 10,000.
    abbreviated
        How stages are cut short: ``"fixed-1"`` (one iteration, likewise 3, 5, 10, …),
        ``"thresh-0.1"`` (``tol=0.1``, likewise 0.01, …), or None for full training at every stage.
        ``fixed`` needs ``max_iter`` or ``partial_fit``, ``thresh`` needs ``tol``. The last training
        goes to the end, from the parameters found if the estimator has ``warm_start``.
    method : {"myopic", "fitted", "full", "oracle"}
        The paper's rule, which looks one stage ahead; a rule that fits the curve and looks at all
        sizes ahead; all rows at once; or all stages, and then the one that the myopic rule would
        have chosen had it known the future (costly: for comparisons).
    components
        Growing numbers of components to choose from as the sample grows, in place of the
        estimator's ``n_components``; larger ones are tried again at every stage. Needs full
        training at every stage.
    baseline
        The estimator that has benefit 0, or its score. By default one component, or for a
        classifier the shares of the labels.
    baseline_size
        Rows on which the baseline is trained.
    most_rows
        Rows of the largest sample that fits into memory: no larger one is trained on by
        ``"myopic"`` and ``"fitted"``.
    benefit, cost
        Functions of relative benefit and of seconds, in place of themselves and of ``alpha``.
    scoring
        ``scoring(model, X, y)`` in place of the estimator's ``score``; larger is better.
    warm_up
        Make one run of one iteration on the first sample and throw it away, so that compilation
        is not taken for the cost of rows. Its time counts as run time.
    random_state
        Seed of the order of the rows. The estimator's own randomness is its ``random_state``.
    progress
        Show the stages in a table that grows, with the reasons, above a progress bar; None shows
        them on a terminal.
    clock
        Tells the time in seconds.

    Returns
    -------
    LearningCurveResult
        Chosen size, model, benefit, run time, utility, speedup, overhead, and the curve. Ctrl-C
        after the first stage ends the run with what there is, and warns.

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
    >>> bool(abs(result.benefit - 1) < 0.1)
    True
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    short = abbreviation(abbreviated)
    if short is not None and method == "full":
        short = None
    search = None if components is None else ComponentSearch(components)
    if search is not None and (short is not None or method in ("full", "oracle")):
        raise ValueError(
            "the number of components is chosen by full training at every stage: use "
            "abbreviated=None and method='myopic' or 'fitted'"
        )
    preferences = Preferences(benefit_per_hour(alpha), benefit, cost)
    began = clock()
    rows = open_rows(estimator, source, y, seed=random_state)
    estimator = with_known_values(estimator, rows)
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
        base, spent = base_fit.score, spent + base_fit.seconds
    else:
        base = float(baseline)
    if warm_up:
        spent += trainer.warm_up(initial_size)
    first = f"training on {sizes[0]:,} rows"
    with growing_table("learning curve", len(sizes), COLUMNS, first, progress) as add_row:
        if method == "oracle":
            run = _oracle_run(trainer, sizes, base, preferences, spent)
        else:
            run = run_stages(
                trainer,
                sizes,
                base,
                preferences,
                _rule(method, random_state, most_rows),
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
        _reading(rows),
    )


def _rule(method: str, seed: int, most_rows: int | None) -> Rule:
    rule: Rule = partial(fitted, seed=seed) if method == "fitted" else myopic
    return rule if most_rows is None or method == "full" else within_memory(rule, most_rows)


def _reading(rows: RowSource) -> dict[str, int]:
    return {"passes": rows.reading.passes, "rows": rows.reading.rows}


def _report(add_row: AddRow, base: float, stage: Stage, steps: int) -> None:
    """Show a stage: size, score, what it is above the baseline, seconds, decision and reason."""
    decision = stage.decision
    cells = (
        f"{stage.fit.size:,}",
        f"{stage.score:.5g}",
        seconds_text(stage.elapsed),
        "" if decision is None else decision.reason,
    )
    following = None if decision is None else decision.next_size
    status = "the last training" if following is None else f"training on {following:,} rows"
    add_row(cells, stage.score - base, steps=steps, status=status)


def _oracle_run(
    trainer: EstimatorTrainer,
    sizes: Sequence[int],
    base: float,
    preferences: Preferences,
    spent: float,
) -> Run:
    """All stages, of which the oracle's choice and those before it are kept and charged."""
    known = hindsight(trainer, sizes, base, spent=spent)
    place = known.oracle(preferences)
    run = Run(base, fits=list(known.finals), spent=known.seconds[place], final=known.finals[place])
    for number in range(place + 1):
        fit, last = known.finals[number], number == place
        reason = "stops: knows that the next stage does not pay" if last else "goes on: it pays"
        following = None if last else sizes[number + 1]
        decision = Decision(last, following, None, None, None, "oracle", reason)
        run.stages.append(Stage(fit, fit.score, known.seconds[number], None, decision))
    return run
