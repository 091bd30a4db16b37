"""Loop of stages: train on a sample, decide, train on a larger one, until the rule stops.

Samples are accessed only through a `Trainer` (module `training_run`), so that the same loop runs
with an estimator, with recorded runs, and in tests with synthetic curves.

Truncated stages underestimate the gain of full training from more rows: after one step of EM
learning curves are nearly flat. If the rule stops after such a stage, the sample is trained to
convergence, and the rule is applied again to the scores of full training. The loop ends only if
both decisions are to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bayes_lcs.learning_curve_sampling.component_search import ComponentSearch
from bayes_lcs.learning_curve_sampling.cost_model import CostModel, fit_cost_model
from bayes_lcs.learning_curve_sampling.rules import CurveSoFar, Decision, Rule
from bayes_lcs.learning_curve_sampling.training_run import RowScores, Trainer, TrainingRun
from bayes_lcs.learning_curve_sampling.utility import Preferences

__all__ = ["Rule", "Run", "Stage", "run_stages", "stage_sizes"]


@dataclass(frozen=True)
class Stage:
    """One stage: its training run, the score that the rule uses, and the decision.

    ``score`` is that of full training. After a truncated run it is an estimate: the offset of the
    first stage is added (equation 10 with the hold-out in place of D_i, a misprint in the paper).
    ``predicted_seconds`` is the expected duration of the stage.
    """

    fit: TrainingRun
    score: float
    elapsed: float
    predicted_seconds: float | None = None
    decision: Decision | None = None


@dataclass
class Run:
    """Record of learning-curve sampling: stages, all training runs, and seconds spent.

    If stages are truncated, ``ends`` are the runs to convergence by number of stage: that of the
    first sample, and those that followed a decision to stop.
    """

    base: float
    base_rows: RowScores | None = None
    stages: list[Stage] = field(default_factory=list)
    fits: list[TrainingRun] = field(default_factory=list)
    spent: float = 0.0
    offset: float = 0.0
    ends: dict[int, TrainingRun] = field(default_factory=dict)
    interrupted: str = ""

    def charge(self, fit: TrainingRun) -> TrainingRun:
        """Record a training run and add its seconds."""
        self.fits.append(fit)
        self.spent += fit.seconds
        return fit

    @property
    def cost(self) -> CostModel:
        """Cost model fitted to all training runs so far."""
        return fit_cost_model(self.fits)

    @property
    def candidates(self) -> list[TrainingRun]:
        """Training runs to choose the model from: those to convergence, of all stages.

        Truncated runs only serve for decisions, and their estimators have other parameters than the
        user's. They are candidates only if there are no other runs.
        """
        return list(self.ends.values()) or [stage.fit for stage in self.stages]

    @property
    def best(self) -> TrainingRun:
        """The candidate with the best score on the hold-out; of ties the one with most rows."""
        return max(self.candidates, key=lambda fit: (fit.score, fit.size))

    @property
    def end(self) -> TrainingRun:
        """Training run of the last stage, to convergence if there is one."""
        return self.ends.get(len(self.stages) - 1, self.stages[-1].fit)


def stage_sizes(initial: int, growth: float, num_rows: int) -> tuple[int, ...]:
    """Return ``initial``, ``initial · growth``, … and ``num_rows``.

    Sizes within 5 % of all rows are left out: they would cost as much and add little.

    Examples
    --------
    >>> stage_sizes(40_000, 2, 200_000)
    (40000, 80000, 160000, 200000)
    >>> stage_sizes(1294, 2, 10_356)
    (1294, 2588, 5176, 10356)
    """
    if initial < 1:
        raise ValueError(f"initial_size must be at least 1, got {initial}")
    if not growth > 1:
        raise ValueError(f"growth must exceed 1, got {growth}")
    sizes: list[int] = []
    size = float(initial)
    while 1.05 * round(size) < num_rows:
        if not sizes or round(size) > sizes[-1]:
            sizes.append(round(size))
        size *= growth
    return (*sizes, num_rows)


def run_stages(
    trainer: Trainer,
    sizes: Sequence[int],
    base: float,
    preferences: Preferences,
    rule: Rule,
    *,
    base_rows: RowScores | None = None,
    spent: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
    abbreviated_iterations: float | None = None,
    components: ComponentSearch | None = None,
    confirm: bool = True,
    report: Callable[[Stage, int], None] | None = None,
) -> Run:
    """Train on samples of increasing size until the rule stops; train the last to convergence.

    Parameters
    ----------
    trainer
        Trainer of samples.
    sizes
        Sizes of the samples, the last of which is all rows.
    base
        Score of the baseline.
    preferences
        Benefit and cost.
    rule
        Stopping rule, applied after every stage.
    base_rows
        Scores of the baseline on the rows of the hold-out, if known.
    spent
        Seconds spent before the first stage.
    clock
        Clock that times the rule itself.
    abbreviated_iterations
        Number of iterations of truncated runs, if known beforehand.
    components
        Search for the number of components, if it is to be chosen.
    confirm
        Whether a decision to stop after a truncated run is confirmed by full training. In the paper
        it is not.
    report
        Callback for each stage, with the number of sizes up to the next one.
    """
    run = Run(base, base_rows, spent=spent)
    index = 0
    try:
        while True:
            size = sizes[index]
            predicted = _predicted_stage(run, trainer, size, abbreviated_iterations)
            fit = _train_stage(run, trainer, size, preferences, components)
            run.stages.append(Stage(fit, fit.score + run.offset, run.spent, predicted))
            if fit.interrupted:
                raise KeyboardInterrupt
            decision = _decide(
                run, trainer, sizes, rule, preferences, clock, abbreviated_iterations
            )
            if decision.stop and trainer.abbreviated:
                run.stages[-1] = replace(run.stages[-1], decision=decision)
                if index not in run.ends:
                    run.ends[index] = run.charge(trainer.fit(size, "final", start=fit))
                if run.ends[index].interrupted:
                    run.interrupted = (
                        "interrupted in the last training run; its parameters so far are used"
                    )
                    break
                if confirm:
                    decision = _decide(
                        run, trainer, sizes, rule, preferences, clock, abbreviated_iterations
                    )
            run.stages[-1] = replace(run.stages[-1], decision=decision)
            if report is not None:
                report(run.stages[-1], len(sizes) - index if decision.stop else 1)
            if decision.stop:
                break
            index += 1
    except KeyboardInterrupt:
        if not run.stages:
            raise
        done = len(run.stages)
        run.interrupted = (
            f"interrupted after {done} stage{'s' if done > 1 else ''}; the result has the curve "
            "and the best model so far"
        )
    return run


def _train_stage(
    run: Run,
    trainer: Trainer,
    size: int,
    preferences: Preferences,
    components: ComponentSearch | None,
) -> TrainingRun:
    """Train a stage; if stages are truncated, the first one also in full, for the offset."""
    if components is not None:
        fit, tried = components.train_stage(trainer, size, run.base, preferences)
        for other in tried:
            run.charge(other)
        return fit
    if not trainer.abbreviated:
        return run.charge(trainer.fit(size, "full"))
    if not run.ends:
        full = run.charge(trainer.fit(size, "full"))
        if full.interrupted:
            return full
        run.ends[0] = full
        fit = run.charge(trainer.fit(size, "abbreviated"))
        run.offset = full.score - fit.score
        return fit
    return run.charge(trainer.fit(size, "abbreviated"))


def _mean_iterations(run: Run, mode: str) -> float:
    return float(np.mean([fit.iterations for fit in run.fits if fit.mode == mode]))


def _expected_iterations(run: Run, trainer: Trainer, fixed: float | None) -> tuple[float, float]:
    """Return expected iterations of the next stage and of full training (equations 6, 11)."""
    if not trainer.abbreviated:
        mean = _mean_iterations(run, "full")
        return mean, mean
    short = _mean_iterations(run, "abbreviated") if fixed is None else fixed
    return short, run.ends[0].iterations


def _predicted_stage(run: Run, trainer: Trainer, size: int, fixed: float | None) -> float | None:
    """Return the expected seconds of the next stage, as used by the previous decision."""
    if not run.stages:
        return None
    short, _ = _expected_iterations(run, trainer, fixed)
    own = run.stages[-1].fit.components
    return run.cost.seconds(size, short, own, is_first=True) + trainer.read_seconds(size)


def _decide(
    run: Run,
    trainer: Trainer,
    sizes: Sequence[int],
    rule: Rule,
    preferences: Preferences,
    clock: Callable[[], float],
    fixed: float | None,
) -> Decision:
    """Apply the rule to the curve and the costs of stopping and continuing; add its own time.

    If stages are truncated, continuing saves the full run on this sample and adds a truncated and a
    full run on the next. Once this sample has been trained to convergence, the scores of full runs
    are used, and there is no run to be saved.
    """
    began = clock()
    index, cost = len(run.stages) - 1, run.cost
    short, full = _expected_iterations(run, trainer, fixed)
    own = run.stages[-1].fit.components

    def full_seconds(size: int) -> float:
        return cost.seconds(size, full, own) if trainer.abbreviated else 0.0

    following = sizes[index + 1] if index + 1 < len(sizes) else None
    seconds_to_continue = 0.0
    if following is not None:
        seconds_to_continue = trainer.read_seconds(following)
        seconds_to_continue += cost.seconds(following, short, own, is_first=True)
        seconds_to_continue += full_seconds(following)
    if index in run.ends and index > 0:
        points = [(number, fit, fit.score) for number, fit in run.ends.items()]
    else:
        points = [(number, stage.fit, stage.score) for number, stage in enumerate(run.stages)]
    curve = CurveSoFar(
        sizes=tuple(fit.size for _, fit, _ in points),
        scores=tuple(score for _, _, score in points),
        base=run.base,
        next_size=following,
        spent=run.spent,
        seconds_to_stop=0.0 if index in run.ends else full_seconds(sizes[index]),
        seconds_to_continue=seconds_to_continue,
        row_scores=tuple(fit.row_scores for _, fit, _ in points),
        stage_numbers=tuple(number for number, _, _ in points),
    )
    decision = rule(curve, preferences)
    run.spent += clock() - began
    return decision
