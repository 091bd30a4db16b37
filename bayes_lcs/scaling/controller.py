"""The loop: train on a sample, look at the curve, decide; until a rule says stop.

It knows of samples only through a `bayes_lcs.scaling.stages.Trainer`, so the same loop runs with a
live estimator, with records of one, and in tests with curves made by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bayes_lcs.scaling.cost_model import CostModel, fit_cost_model
from bayes_lcs.scaling.num_clusters import ComponentSearch
from bayes_lcs.scaling.stages import Fit, Trainer
from bayes_lcs.scaling.stopping import Decision, Rule, Situation
from bayes_lcs.scaling.utility import Preferences

__all__ = ["Rule", "Run", "Stage", "run_stages", "stage_sizes"]


@dataclass(frozen=True)
class Stage:
    """One stage: its run, what the model costs and scores when fully trained, the decision.

    ``score`` is that of full training; after a run cut short it is estimated (equation 10 with the
    hold-out in place of D_i, for which the paper's print has a slip). ``predicted_seconds`` is what
    the stage had been expected to take.
    """

    fit: Fit
    score: float
    elapsed: float
    predicted_seconds: float | None = None
    decision: Decision | None = None


@dataclass
class Run:
    """All that happened: stages, every training run, the last one, and seconds spent."""

    base: float
    stages: list[Stage] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    spent: float = 0.0
    offset: float = 0.0
    full_on_first: Fit | None = None
    final: Fit | None = None
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


def stage_sizes(initial: int, growth: float, num_rows: int) -> tuple[int, ...]:
    """``initial``, ``initial · growth``, … below ``num_rows``, and ``num_rows``.

    Examples
    --------
    >>> stage_sizes(40_000, 2, 200_000)
    (40000, 80000, 160000, 200000)
    """
    if initial < 1:
        raise ValueError(f"initial_size must be at least 1, got {initial}")
    if not growth > 1:
        raise ValueError(f"growth must exceed 1, got {growth}")
    sizes: list[int] = []
    size = float(initial)
    while round(size) < num_rows:
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
    spent: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
    abbreviated_iterations: float | None = None,
    components: ComponentSearch | None = None,
    report: Callable[[Stage, int], None] | None = None,
) -> Run:
    """Go through the sizes until the rule says stop, then train to the end.

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
    spent
        Seconds spent before the first stage.
    clock
        Times the rule itself.
    abbreviated_iterations
        Iterations of runs cut short, where known beforehand.
    components
        Chooses the number of components along the way.
    report
        Told of each stage, with the number of sizes left out before it.
    """
    run = Run(base, spent=spent)
    place = 0
    try:
        while True:
            size = sizes[place]
            predicted = _predicted_stage(run, trainer, size, abbreviated_iterations)
            fit = _train_stage(run, trainer, size, preferences, components)
            run.stages.append(Stage(fit, fit.score + run.offset, run.spent, predicted))
            if fit.interrupted:
                raise KeyboardInterrupt
            began = clock()
            situation = _situation(run, trainer, sizes, place, abbreviated_iterations)
            decision = rule(situation, preferences)
            run.spent += clock() - began
            run.stages[-1] = replace(run.stages[-1], decision=decision)
            size = decision.next_size or 0
            following = sizes.index(size) if size else len(sizes)
            if report is not None:
                report(run.stages[-1], following - place)
            if decision.stop:
                break
            place = following
        run.final = _finish(run, trainer)
        if run.final.interrupted:
            run.interrupted = "interrupted in the last training; the parameters so far are kept"
    except KeyboardInterrupt:
        if not run.stages:
            raise
        done = len(run.stages)
        run.interrupted = (
            f"interrupted after {done} stage{'s' if done > 1 else ''}; the curve and the model so "
            "far are kept"
        )
        run.final = run.stages[-1].fit
    return run


def _train_stage(
    run: Run,
    trainer: Trainer,
    size: int,
    preferences: Preferences,
    components: ComponentSearch | None,
) -> Fit:
    """The run of one stage; of the first one also the full run that gives the offset."""
    if components is not None:
        fit, tried = components.stage(trainer, size, run.base, preferences)
        for other in tried:
            run.charge(other)
        return fit
    if not trainer.abbreviated:
        return run.charge(trainer.fit(size, "full"))
    if run.full_on_first is None:
        run.full_on_first = run.charge(trainer.fit(size, "full"))
        if run.full_on_first.interrupted:
            return run.full_on_first
        fit = run.charge(trainer.fit(size, "abbreviated"))
        run.offset = run.full_on_first.score - fit.score
        return fit
    return run.charge(trainer.fit(size, "abbreviated"))


def _finish(run: Run, trainer: Trainer) -> Fit:
    """Full training where the stages were cut short; the first stage has had it."""
    last = run.stages[-1].fit
    if last.mode != "abbreviated":
        return last
    if len(run.stages) == 1 and run.full_on_first is not None:
        return run.full_on_first
    return run.charge(trainer.fit(last.size, "final", start=last))


def _mean_iterations(run: Run, mode: str) -> float:
    return float(np.mean([fit.iterations for fit in run.fits if fit.mode == mode]))


def _expected_iterations(run: Run, trainer: Trainer, fixed: float | None) -> tuple[float, float]:
    """Iterations of the next stage's run and of full training (equations 6 and 11)."""
    if not trainer.abbreviated:
        mean = _mean_iterations(run, "full")
        return mean, mean
    assert run.full_on_first is not None
    short = _mean_iterations(run, "abbreviated") if fixed is None else fixed
    return short, run.full_on_first.iterations


def _predicted_stage(run: Run, trainer: Trainer, size: int, fixed: float | None) -> float | None:
    """What the next stage is expected to take, as the decision before it had it."""
    if not run.stages:
        return None
    short, _ = _expected_iterations(run, trainer, fixed)
    own = run.stages[-1].fit.components
    return run.cost.seconds(size, short, own) + trainer.read_seconds(size)


def _situation(
    run: Run, trainer: Trainer, sizes: Sequence[int], place: int, fixed: float | None
) -> Situation:
    """What is known after a stage, and the costs of stopping and of going on.

    Where stages are cut short, going on has three parts: the full run on this sample is saved,
    a short and a full run on the next are added.
    """
    cost, (short, full) = run.cost, _expected_iterations(run, trainer, fixed)
    own = run.stages[-1].fit.components

    def finishing(size: int) -> float:
        return cost.seconds(size, full, own) if trainer.abbreviated else 0.0

    # The first sample has been trained to the end already.
    to_stop = 0.0 if len(run.stages) == 1 else finishing(sizes[place])
    future = tuple(sizes[place + 1 :])
    to_look = tuple(trainer.read_seconds(n) + cost.seconds(n, short, own) for n in future)
    return Situation(
        sizes=tuple(stage.fit.size for stage in run.stages),
        scores=tuple(stage.score for stage in run.stages),
        base=run.base,
        future=future,
        total_rows=sizes[-1],
        spent=run.spent,
        to_stop=to_stop,
        to_go=tuple(look + finishing(n) for look, n in zip(to_look, future, strict=True)),
        to_look=to_look,
    )
