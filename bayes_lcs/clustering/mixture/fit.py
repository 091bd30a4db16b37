"""From coded rows to fitted mixtures: starts, runs of EM, and the number of components."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.mixture.encode_input import WeightedRows
from bayes_lcs.clustering.mixture.parameters import extend_to_new_categories, parse_init
from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.em import information_criteria
from bayes_lcs.inference.em.initialization import (
    column_counts,
    draw_start,
    leave_boundary,
    single_fit_objective,
)
from bayes_lcs.inference.em.row_densities import log_density, map_rows, responsibilities
from bayes_lcs.inference.em.row_layout import PatternPlan, plan_rows
from bayes_lcs.models.multinomial_mixture import MultinomialMixture
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = [
    "FitData",
    "FittedMixture",
    "InMemoryData",
    "WarmStart",
    "best_result",
    "compute_statistics",
    "fit_mixture",
    "make_e_step",
    "make_model",
    "row_sums",
]

FloatArray = NDArray[np.float64]

MAX_COMPONENTS = 64
PATIENCE = 2
"""``n_components="auto"`` stops after so many numbers of components that are no better."""


class FitOptions(Protocol):
    """Parameters of `bayes_lcs.MixtureClusterer` that decide how it is fitted."""

    n_components: Any
    criterion: str
    prior: float
    init: Any
    n_init: int
    max_iter: int
    stopping: str
    tol: float
    acceleration: str | None
    verbose: bool | None


class FitData(Protocol):
    """What a fit needs to know of rows beside their statistics, wherever they are."""

    @property
    def schema(self) -> Schema:
        """Numbers of values."""

    @property
    def row_weight(self) -> float:
        """Mean weight of the rows, 1 at most."""

    def counts(self) -> FloatArray:
        """Weight of the rows that have each value, ``(C,)``."""

    def statistics(self, parameters: MixtureParameters) -> MixtureStatistics:
        """Expected counts, in double precision."""

    def row_sums(
        self, model: MultinomialMixture, parameters: MixtureParameters
    ) -> tuple[float, int, float, float]:
        """Log-likelihood, free parameters, weight, and entropy of the components of the rows."""


class InMemoryData:
    """Coded rows, as what a fit needs to know of them."""

    def __init__(self, data: WeightedRows) -> None:
        self.data = data
        self.schema = Schema(1, data.table.num_values)
        self.row_weight = min(data.total / data.table.num_rows, 1.0)

    def counts(self) -> FloatArray:
        """Weight of the rows that have each value, ``(C,)``."""
        return column_counts(self.data.table, self.data.weights)

    def statistics(self, parameters: MixtureParameters) -> MixtureStatistics:
        """Expected counts, in double precision."""
        return compute_statistics(self.data, parameters)

    def row_sums(
        self, model: MultinomialMixture, parameters: MixtureParameters
    ) -> tuple[float, int, float, float]:
        """Log-likelihood, free parameters, weight, and entropy of the components of the rows."""
        return row_sums(self.data, model, parameters)


@contextmanager
def make_e_step(
    data: WeightedRows, executor: Executor | None, precision: Callable[[int], Any]
) -> Iterator[tuple[Any, PatternPlan | None]]:
    """Whoever takes statistics of rows in memory, all cores or the executor, and their layout.

    The layout is None where blocks of rows are laid out elsewhere.
    """
    if executor is not None and executor.mesh is None:
        from bayes_lcs.inference.em.distributed_e_step import BlockEStep, RowSlices, as_they_are

        slices = RowSlices(data.table, data.weights)
        chosen = precision(data.table.num_rows)
        with closing(BlockEStep(executor, as_they_are, slices, chosen)) as e_step:
            yield e_step, None
        return
    plan = plan_rows(data.table, data.weights)
    if executor is not None:
        from bayes_lcs.inference.em.sharded_e_step import MeshEStep

        yield MeshEStep(plan, precision(plan.num_distinct), executor.mesh), plan
        return
    from bayes_lcs.inference.em.e_step import PlanExecutor

    yield PlanExecutor(plan, precision(plan.num_distinct)), plan


class WarmStart(NamedTuple):
    """What an earlier fit found, to begin with: values of the columns, parameters, rows' weight."""

    categories: list[NDArray[Any]]
    parameters: MixtureParameters
    weight: float


class FittedMixture(NamedTuple):
    """A fitted model.

    Attributes
    ----------
    model
        The model.
    results
        Results of all its starts.
    interrupted
        Whether Ctrl-C ended them.
    unconverged
        Numbers of components, among those tried, whose best start did not converge.
    criterion_scores
        Scores of all numbers of components, if several were tried.
    """

    model: MultinomialMixture
    results: list[Any]
    interrupted: bool
    unconverged: tuple[int, ...]
    criterion_scores: dict[int, float] | None = None


def best_result(results: list[Any]) -> Any:
    """The start with the highest posterior."""
    return max(results, key=lambda result: result.objective)


def fit_mixture(
    options: FitOptions,
    data: FitData,
    executor: Any,
    rng: np.random.Generator,
    before: WarmStart | None,
    categories: list[NDArray[Any]],
) -> FittedMixture:
    """Fit one number of components, or several and keep the best."""
    schema = data.schema
    counts = data.counts()

    def run(model: MultinomialMixture, before: WarmStart | None) -> FittedMixture:
        starts = _initial_parameters(options, model, counts, rng, before, categories)
        if before is not None:
            starts = [
                leave_boundary(model, start, before.weight, lambda at: executor.statistics([at])[0])
                for start in starts
            ]
        is_drawn = before is None and isinstance(options.init, str)
        # A start that was not drawn may lie at the maximum.
        single = np.inf if is_drawn else single_fit_objective(model, counts)
        return _run_starts(options, model, executor, starts, data.row_weight, single)

    if isinstance(options.n_components, Integral):
        model = make_model(options, schema, int(options.n_components))
        if before is not None and before.parameters.num_components != model.num_components:
            before = None
        return run(model, before)
    auto = isinstance(options.n_components, str)
    given = range(1, MAX_COMPONENTS + 1) if auto else options.n_components
    numbers = [int(number) for number in given]
    if not numbers:
        raise ValueError("n_components has no number to choose from")
    scores: dict[int, float] = {}
    unconverged: tuple[int, ...] = ()
    best, since = -np.inf, 0
    for number in numbers:
        fitted = run(make_model(options, schema, number), None)
        scores[number] = _criterion(options.criterion, data, fitted)
        unconverged += fitted.unconverged
        goodness = scores[number] * (1 if options.criterion == "cheeseman_stutz" else -1)
        since += 1
        if goodness > best:
            best, since, kept = goodness, 0, fitted
        if fitted.interrupted or (auto and since >= PATIENCE):
            break
    return kept._replace(unconverged=unconverged, criterion_scores=scores)


def make_model(options: FitOptions, schema: Schema, num_components: int) -> MultinomialMixture:
    """The model that is fitted, with the prior asked for."""
    return MultinomialMixture(
        schema=schema,
        num_components=num_components,
        weight_prior=float(options.prior),
        cell_prior=float(options.prior),
    )


def _initial_parameters(
    options: FitOptions,
    model: MultinomialMixture,
    counts: FloatArray,
    rng: np.random.Generator,
    before: WarmStart | None,
    categories: list[NDArray[Any]],
) -> list[MixtureParameters]:
    if before is not None:
        return [extend_to_new_categories(model, *before, categories)]
    if not isinstance(options.init, str):
        return [parse_init(model, options.init)]
    # One component has nothing to start apart from.
    repeats = 1 if model.num_components == 1 else options.n_init
    return [
        draw_start(rng, model, model.num_components, counts, options.init) for _ in range(repeats)
    ]


def _run_starts(
    options: FitOptions,
    model: MultinomialMixture,
    executor: Any,
    starts: list[MixtureParameters],
    row_weight: float,
    single: float,
) -> FittedMixture:
    from bayes_lcs.inference.em.em import GapRule, RelativeRule, em_steps, run_em

    stop: Any = GapRule(options.tol * row_weight)
    if options.stopping == "relative":
        stop = RelativeRule(options.tol, executor.precision, single)
    steps = partial(
        em_steps, is_accelerated=options.acceleration is not None, row_weight=row_weight
    )
    results, interrupted = run_em(
        executor,
        [partial(steps, model, start, options.max_iter, stop) for start in starts],
        max_iter=options.max_iter,
        log_prior=model.log_prior,
        progress=options.verbose,
        decisive=(model, options.stopping, options.tol, options.acceleration, row_weight, single),
    )
    unconverged = () if best_result(results).converged else (model.num_components,)
    return FittedMixture(model, results, interrupted, unconverged)


def compute_statistics(data: WeightedRows, parameters: MixtureParameters) -> MixtureStatistics:
    """Expected counts of some rows, in double precision."""
    from bayes_lcs.inference.em.e_step import PlanExecutor

    plan = plan_rows(data.table, data.weights)
    return PlanExecutor(plan, "double").statistics([parameters])[0]


def row_sums(
    data: WeightedRows, model: MultinomialMixture, parameters: MixtureParameters
) -> tuple[float, int, float, float]:
    """Log-likelihood, free parameters, weight, and entropy of the components of the rows."""

    def both(joint: FloatArray) -> FloatArray:
        shares = responsibilities(joint)
        return np.column_stack([log_density(joint), information_criteria.entropies(shares)])

    sums = map_rows(parameters, data.table, both)
    log_likelihood, entropy = sums.sum(axis=0) if data.weights is None else data.weights @ sums
    return float(log_likelihood), model.num_free_parameters, data.total, float(entropy)


def _criterion(name: str, data: FitData, fitted: FittedMixture) -> float:
    model, parameters = fitted.model, best_result(fitted.results).parameters
    if name == "cheeseman_stutz":
        return information_criteria.cheeseman_stutz(model, parameters, data.statistics(parameters))
    sums = data.row_sums(model, parameters)
    return information_criteria.bic(*sums[:3]) if name == "bic" else information_criteria.icl(*sums)
