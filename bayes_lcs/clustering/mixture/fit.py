"""Fit mixtures to encoded rows: starts, EM, and choice of the number of components."""

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
from bayes_lcs.inference.em.row_layout import RowLayout, lay_out_rows
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
"""Numbers of components in a row without a better score after which ``"auto"`` stops."""


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
    """Interface of training rows, in memory or on disk, beside the E-step."""

    @property
    def schema(self) -> Schema:
        """Numbers of values of the columns."""

    @property
    def row_weight(self) -> float:
        """Mean weight of the rows, at most 1."""

    def counts(self) -> FloatArray:
        """Return the weight of the rows with each value, ``(C,)``."""

    def statistics(self, parameters: MixtureParameters) -> MixtureStatistics:
        """Return expected counts, in double precision."""

    def row_sums(
        self, model: MultinomialMixture, parameters: MixtureParameters
    ) -> tuple[float, int, float, float]:
        """Return log-likelihood, number of free parameters, weight, and component entropy."""


class InMemoryData:
    """Encoded rows in memory, as `FitData`."""

    def __init__(self, data: WeightedRows) -> None:
        self.data = data
        self.schema = Schema(1, data.table.num_values)
        self.row_weight = min(data.total / data.table.num_rows, 1.0)

    def counts(self) -> FloatArray:
        """Return the weight of the rows with each value, ``(C,)``."""
        return column_counts(self.data.table, self.data.weights)

    def statistics(self, parameters: MixtureParameters) -> MixtureStatistics:
        """Return expected counts, in double precision."""
        return compute_statistics(self.data, parameters)

    def row_sums(
        self, model: MultinomialMixture, parameters: MixtureParameters
    ) -> tuple[float, int, float, float]:
        """Return log-likelihood, number of free parameters, weight, and component entropy."""
        return row_sums(self.data, model, parameters)


@contextmanager
def make_e_step(
    data: WeightedRows, executor: Executor | None, precision: Callable[[int], Any]
) -> Iterator[tuple[Any, RowLayout | None]]:
    """Make the E-step of rows in memory, on all cores or an executor, with the row layout.

    The layout is None if workers lay out batches of rows.
    """
    if executor is not None and executor.mesh is None:
        from bayes_lcs.inference.em.distributed_e_step import DistributedEStep, RowSlices, identity

        slices = RowSlices(data.table, data.weights)
        chosen = precision(data.table.num_rows)
        with closing(DistributedEStep(executor, identity, slices, chosen)) as e_step:
            yield e_step, None
        return
    layout = lay_out_rows(data.table, data.weights)
    if executor is not None:
        from bayes_lcs.inference.em.sharded_e_step import MeshEStep

        yield MeshEStep(layout, precision(layout.num_distinct), executor.mesh), layout
        return
    from bayes_lcs.inference.em.e_step import LocalEStep

    yield LocalEStep(layout, precision(layout.num_distinct)), layout


class WarmStart(NamedTuple):
    """Result of an earlier fit: categories of the columns, parameters, weight of the rows."""

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
        Whether Ctrl-C ended the fit.
    unconverged
        Numbers of components, among those tried, for which the best start did not converge.
    criterion_scores
        Score of each number of components, if several were tried.
    """

    model: MultinomialMixture
    results: list[Any]
    interrupted: bool
    unconverged: tuple[int, ...]
    criterion_scores: dict[int, float] | None = None


def best_result(results: list[Any]) -> Any:
    """Return the result of the start with the highest posterior."""
    return max(results, key=lambda result: result.objective)


def fit_mixture(
    options: FitOptions,
    data: FitData,
    e_step: Any,
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
                leave_boundary(model, start, before.weight, lambda at: e_step.statistics([at])[0])
                for start in starts
            ]
        is_drawn = before is None and isinstance(options.init, str)
        # A given start may lie at the maximum: `RelativeRule` then counts the improvement from the
        # single-component fit.
        single = np.inf if is_drawn else single_fit_objective(model, counts)
        return _run_starts(options, model, e_step, starts, data.row_weight, single)

    if isinstance(options.n_components, Integral):
        model = make_model(options, schema, int(options.n_components))
        if before is not None and before.parameters.num_components != model.num_components:
            before = None
        return run(model, before)
    auto = isinstance(options.n_components, str)
    given = range(1, MAX_COMPONENTS + 1) if auto else options.n_components
    numbers = [int(number) for number in given]
    if not numbers:
        raise ValueError("n_components is empty; give at least one number of components")
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
            best, since, best_fit = goodness, 0, fitted
        if fitted.interrupted or (auto and since >= PATIENCE):
            break
    return best_fit._replace(unconverged=unconverged, criterion_scores=scores)


def make_model(options: FitOptions, schema: Schema, num_components: int) -> MultinomialMixture:
    """Make the model to fit, with the prior of the options."""
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
    # With one component all starts are equal.
    repeats = 1 if model.num_components == 1 else options.n_init
    return [
        draw_start(rng, model, model.num_components, counts, options.init) for _ in range(repeats)
    ]


def _run_starts(
    options: FitOptions,
    model: MultinomialMixture,
    e_step: Any,
    starts: list[MixtureParameters],
    row_weight: float,
    single: float,
) -> FittedMixture:
    from bayes_lcs.inference.em.em import GapRule, RelativeRule, em_steps, run_em

    stop: Any = GapRule(options.tol * row_weight)
    if options.stopping == "relative":
        stop = RelativeRule(options.tol, e_step.precision, single)
    steps = partial(
        em_steps, is_accelerated=options.acceleration is not None, row_weight=row_weight
    )
    results, interrupted = run_em(
        e_step,
        [partial(steps, model, start, options.max_iter, stop) for start in starts],
        max_iter=options.max_iter,
        log_prior=model.log_prior,
        progress=options.verbose,
        cache_key=(model, options.stopping, options.tol, options.acceleration, row_weight, single),
    )
    unconverged = () if best_result(results).converged else (model.num_components,)
    return FittedMixture(model, results, interrupted, unconverged)


def compute_statistics(data: WeightedRows, parameters: MixtureParameters) -> MixtureStatistics:
    """Compute expected counts of rows, in double precision."""
    from bayes_lcs.inference.em.e_step import LocalEStep

    layout = lay_out_rows(data.table, data.weights)
    return LocalEStep(layout, "double").statistics([parameters])[0]


def row_sums(
    data: WeightedRows, model: MultinomialMixture, parameters: MixtureParameters
) -> tuple[float, int, float, float]:
    """Return log-likelihood, number of free parameters, weight, and component entropy."""

    def density_and_entropy(joint: FloatArray) -> FloatArray:
        shares = responsibilities(joint)
        return np.column_stack([log_density(joint), information_criteria.entropies(shares)])

    sums = map_rows(parameters, data.table, density_and_entropy)
    log_likelihood, entropy = sums.sum(axis=0) if data.weights is None else data.weights @ sums
    return float(log_likelihood), model.num_free_parameters, data.total, float(entropy)


def _criterion(name: str, data: FitData, fitted: FittedMixture) -> float:
    model, parameters = fitted.model, best_result(fitted.results).parameters
    if name == "cheeseman_stutz":
        return information_criteria.cheeseman_stutz(model, parameters, data.statistics(parameters))
    sums = data.row_sums(model, parameters)
    return information_criteria.bic(*sums[:3]) if name == "bic" else information_criteria.icl(*sums)
