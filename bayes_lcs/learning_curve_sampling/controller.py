"""The loop of stages: train on a sample, decide, train on a larger one, until the rule stops it.

It knows of samples only through a `Trainer` (module `training_run`), so the same loop runs with a
live estimator, with records of one, and in tests with curves made by hand.

Stages that are cut short underestimate what full training gains from more rows: after one step of
EM learning curves are nearly flat. So where they say stop, the sample is trained to the end, and
the rule is asked again with the scores of the runs that were trained to the end. Only if these say
stop too does the run end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bayes_lcs.learning_curve_sampling.component_search import ComponentSearch
from bayes_lcs.learning_curve_sampling.cost_model import CostModel, fit_cost_model
from bayes_lcs.learning_curve_sampling.rules import Decision, Rule, Situation
from bayes_lcs.learning_curve_sampling.training_run import Fit, RowScores, Trainer
from bayes_lcs.learning_curve_sampling.utility import Preferences

__all__ = ["Rule", "Run", "Stage", "run_stages", "stage_sizes"]


@dataclass(frozen=True)
class Stage:
    """One stage: its run, the score that the rule uses, and the decision.

    ``score`` is that of full training. After a run cut short it is not measured but assumed: the
    offset of the first stage is added (equation 10 with the hold-out in place of D_i, for which the
    paper's print has a slip). ``predicted_seconds`` is the expected duration of the stage.
    """

    fit: Fit
    score: float
    elapsed: float
    predicted_seconds: float | None = None
    decision: Decision | None = None


@dataclass
class Run:
    """Record of a run: stages, every training run, those trained to the end, and seconds spent.

    ``ends`` are the runs to the end where the stages are cut short: that of the first sample, and
    those that followed a decision to stop, by the number of their stage.
    """

    base: float
    base_rows: RowScores | None = None
    stages: list[Stage] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    spent: float = 0.0
    offset: float = 0.0
    ends: dict[int, Fit] = field(default_factory=dict)
    interrupted: str = ""

    def charge(self, fit: Fit) -> Fit:
        """Keep a run and add its seconds."""
        self.fits.append(fit)
        self.spent += fit.seconds
        return fit

    @property
    def cost(self) -> CostModel:
        """The cost model of all runs so far."""
        return fit_cost_model(self.fits)

    @property
    def candidates(self) -> list[Fit]:
        """Models to choose from: those that were trained to the end, of whichever stage.

        Runs cut short only serve to decide, and their estimators have other parameters than the
        user's. They are chosen from only if there is nothing else.
        """
        return list(self.ends.values()) or [stage.fit for stage in self.stages]

    @property
    def best(self) -> Fit:
        """The candidate with the best score on the hold-out; of equal ones that of most rows."""
        return max(self.candidates, key=lambda fit: (fit.score, fit.size))

    @property
    def end(self) -> Fit:
        """The run of the last stage, trained to the end if it was."""
        return self.ends.get(len(self.stages) - 1, self.stages[-1].fit)


def stage_sizes(initial: int, growth: float, num_rows: int) -> tuple[int, ...]:
    """Return ``initial``, ``initial · growth``, … and ``num_rows``.

    Sizes within 5 % of all rows are left out: they would cost as much and add nothing.

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
    """Go through the sizes until the rule stops, and train the last sample to the end.

    Parameters
    ----------
    trainer
        Trains and measures.
    sizes
        Sizes that may be visited, the last of which is all rows.
    base
        Score of the baseline.
    preferences
        Benefit and cost.
    rule
        Decides after every stage.
    base_rows
        Scores of the baseline on the rows of the hold-out, if known.
    spent
        Seconds spent before the first stage.
    clock
        Times the rule itself.
    abbreviated_iterations
        Iterations of runs cut short, where known beforehand.
    components
        Chooses the number of components along the way.
    confirm
        Ask the rule again with runs trained to the end, where runs cut short made it stop. The
        paper does not.
    report
        Told of each stage, with the number of sizes up to the next one.
    """
    run = Run(base, base_rows, spent=spent)
    place = 0
    try:
        while True:
            size = sizes[place]
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
                if place not in run.ends:
                    run.ends[place] = run.charge(trainer.fit(size, "final", start=fit))
                if run.ends[place].interrupted:
                    run.interrupted = (
                        "interrupted in the last training; the parameters so far are kept"
                    )
                    break
                if confirm:
                    decision = _decide(
                        run, trainer, sizes, rule, preferences, clock, abbreviated_iterations
                    )
            run.stages[-1] = replace(run.stages[-1], decision=decision)
            if report is not None:
                report(run.stages[-1], len(sizes) - place if decision.stop else 1)
            if decision.stop:
                break
            place += 1
    except KeyboardInterrupt:
        if not run.stages:
            raise
        done = len(run.stages)
        run.interrupted = (
            f"interrupted after {done} stage{'s' if done > 1 else ''}; the curve and the best "
            "model so far are kept"
        )
    return run


def _train_stage(
    run: Run,
    trainer: Trainer,
    size: int,
    preferences: Preferences,
    components: ComponentSearch | None,
) -> Fit:
    """Train a stage; the first one also to the end, which gives the offset."""
    if components is not None:
        fit, tried = components.stage(trainer, size, run.base, preferences)
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
    """Iterations of the next stage's run and of full training (equations 6 and 11)."""
    if not trainer.abbreviated:
        mean = _mean_iterations(run, "full")
        return mean, mean
    short = _mean_iterations(run, "abbreviated") if fixed is None else fixed
    return short, run.ends[0].iterations


def _predicted_stage(run: Run, trainer: Trainer, size: int, fixed: float | None) -> float | None:
    """Expected seconds of the next stage, as used by the decision before it."""
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
    """Ask the rule, with the costs of stopping and of going on; charge the time it takes.

    Where stages are cut short, going on has three parts: the full run on this sample is saved,
    a short and a full run on the next are added. Once this sample has been trained to the end, the
    scores of all runs to the end are used, and there is nothing to be saved.
    """
    began = clock()
    place, cost = len(run.stages) - 1, run.cost
    short, full = _expected_iterations(run, trainer, fixed)
    own = run.stages[-1].fit.components

    def finishing(size: int) -> float:
        return cost.seconds(size, full, own) if trainer.abbreviated else 0.0

    following = sizes[place + 1] if place + 1 < len(sizes) else None
    to_go = 0.0
    if following is not None:
        to_go = trainer.read_seconds(following)
        to_go += cost.seconds(following, short, own, is_first=True)
        to_go += finishing(following)
    if place in run.ends and place > 0:
        seen = [(number, fit, fit.score) for number, fit in run.ends.items()]
    else:
        seen = [(number, stage.fit, stage.score) for number, stage in enumerate(run.stages)]
    situation = Situation(
        sizes=tuple(fit.size for _, fit, _ in seen),
        scores=tuple(score for _, _, score in seen),
        base=run.base,
        next_size=following,
        spent=run.spent,
        to_stop=0.0 if place in run.ends else finishing(sizes[place]),
        to_go=to_go,
        row_scores=tuple(fit.row_scores for _, fit, _ in seen),
        places=tuple(number for number, _, _ in seen),
    )
    decision = rule(situation, preferences)
    run.spent += clock() - began
    return decision
