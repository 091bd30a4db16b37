"""Standard errors of a mixture's parameters.

*Information.* In natural parameters, log odds against the largest weight and against the largest
probability of each feature, the observed information is (Louis 1982, eq. 3.2')

    I = E[complete information | x] - Cov[complete score | x],

summed over rows. With ``S_k`` the complete score of a row if it is of component ``k``, the
covariance is ``sum_k r_k S_k S_k' - s s'`` with ``s = sum_k r_k S_k``. A Dirichlet prior in natural
parameters adds pseudo-rows to the first term. The delta method converts natural parameters to
probabilities.

*Boundary.* The maximum of a likelihood often has probabilities of 0. There the log-likelihood has a
nonzero slope, so that its curvature gives no standard error. Such parameters are held fixed, as in
Mplus and Latent GOLD: the information of the others is inverted, and their own standard errors are
NaN.

*Bootstrap.* Weights of the rows are resampled from a multinomial, and EM continues from the fitted
parameters. Components may be permuted: they are matched with the fitted ones by the assignment with
the smallest squared distance.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import EncodedColumns
from bayes_lcs.inference.em.initialization import leave_boundary
from bayes_lcs.inference.em.row_densities import map_rows, responsibilities
from bayes_lcs.inference.em.row_layout import RowLayout
from bayes_lcs.runtime.memory import require_memory

__all__ = [
    "FreeParameters",
    "bootstrap_errors",
    "free_parameters",
    "information_errors",
    "observed_information",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK_ROWS = 1024
BOUNDARY_COUNT = 0.01
"""A probability whose expected count, including the prior, is below this is at the boundary."""


class FreeParameters(NamedTuple):
    """Free parameters: without the reference of each distribution, and without fixed ones.

    Attributes
    ----------
    weights
        Components with free weights.
    cells
        For each component, its free cells.
    fixed_weights : (K,)
        Mask of weights that are held fixed at the boundary.
    fixed_cells : (C, K)
        Mask of cells that are held fixed at the boundary.
    """

    weights: IntArray
    cells: list[IntArray]
    fixed_weights: NDArray[np.bool_]
    fixed_cells: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """Number of free parameters."""
        return len(self.weights) + sum(map(len, self.cells))


def free_parameters(
    model: Any, parameters: MixtureParameters, observed: FloatArray, weight: float
) -> FreeParameters:
    """Find the parameters that are not at a boundary.

    Parameters
    ----------
    observed : (K, F)
        Expected weight of the rows of each component in which each feature is observed.
    weight
        Weight of all rows.
    """
    schema: Schema = model.schema
    weight_counts = parameters.weights * (weight + parameters.num_components * model.weight_prior)
    fixed_weights = weight_counts < BOUNDARY_COUNT
    prior = schema.sum_values(np.array(model.cell_parameters))
    totals = (observed + prior).T[schema.cell_feature]
    fixed_cells = parameters.cells * totals < BOUNDARY_COUNT
    cells = []
    for k in range(parameters.num_components):
        free = ~fixed_cells[:, k]
        for f in range(schema.num_features):
            values = schema.cells_of(f)
            fixed_cells[values, k] |= free[values].sum() < 2 and schema.num_values[f] > 1
            free[values.start + int(np.argmax(parameters.cells[values, k]))] = False
        cells.append(np.flatnonzero(free))
    free_weights = ~fixed_weights
    if free_weights.sum() < 2 and parameters.num_components > 1:
        fixed_weights[:] = True
    free_weights[int(np.argmax(parameters.weights))] = False
    return FreeParameters(np.flatnonzero(free_weights), cells, fixed_weights, fixed_cells)


def observed_information(
    model: Any,
    parameters: MixtureParameters,
    table: EncodedColumns,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FreeParameters]:
    """Compute the observed information of the log posterior, ``(d, d)``, in natural parameters.

    The order is: free weights, then the free cells of each component in turn.
    """
    schema: Schema = model.schema
    num_components = parameters.num_components
    if weights is None:
        weights = np.ones(table.num_rows)
    shares = map_rows(parameters, table, responsibilities)
    total = float(weights.sum())
    observed = np.zeros((num_components, schema.num_features))
    for f in range(schema.num_features):
        has_value = table.column(f) >= 0
        observed[:, f] = weights[has_value] @ shares[has_value]  # missing cells are not observed
    free = free_parameters(model, parameters, observed, total)
    size = free.size
    require_memory(
        3 * 8 * size**2, f"the information of {size:,} parameters", "Use method='bootstrap'"
    )
    scores_product = np.zeros((size, size))
    own = [np.zeros((1 + len(cells),) * 2) for cells in free.cells]
    pi = parameters.weights[free.weights]
    for start in range(0, table.num_rows, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        is_observed, is_value = _indicators(schema, table.take(rows))
        share, weight = shares[rows], weights[rows]
        mean = [share[:, free.weights] - pi]
        for k, cells in enumerate(free.cells):
            # Score of a row of component k: observed values less their expectation.
            expected = is_observed[:, schema.cell_feature[cells]] * parameters.cells[cells, k]
            score = is_value[:, cells] - expected
            mean.append(share[:, k, None] * score)
            full = np.hstack([np.ones((len(score), 1)), score])
            own[k] += full.T @ (full * (weight * share[:, k])[:, None])
        stacked = np.hstack(mean)
        scores_product += stacked.T @ (stacked * weight[:, None])
    complete = _complete_information(model, parameters, free, total, observed)
    return complete - _second_moment(own, parameters, free) + scores_product, free


def _indicators(schema: Schema, table: EncodedColumns) -> tuple[FloatArray, FloatArray]:
    """Return indicators of observed features, ``(B, F)``, and of cells, ``(B, C)``."""
    is_value = np.zeros((table.num_rows, schema.num_cells))
    is_observed = np.zeros((table.num_rows, schema.num_features))
    for feature in range(schema.num_features):
        codes = table.column(feature).astype(np.int64)
        rows = np.flatnonzero(codes >= 0)
        is_value[rows, codes[rows] + schema.offsets[feature]] = 1.0
        is_observed[rows, feature] = 1.0
    return is_observed, is_value


def _parameter_slices(free: FreeParameters) -> list[slice]:
    """Return the slices of the weights and of each component's cells."""
    ends = np.cumsum([len(free.weights), *map(len, free.cells)])
    parts = [free.weights, *free.cells]
    return [slice(end - len(part), end) for end, part in zip(ends, parts, strict=True)]


def _second_moment(
    own: list[FloatArray], parameters: MixtureParameters, free: FreeParameters
) -> FloatArray:
    """Return ``sum_n w_n sum_k r_nk S_nk S_nk'``, sparse in the cells of other components.

    ``own`` has, for each component, the sums of 1, of its cells' scores, and of their products.
    """
    result = np.zeros((free.size, free.size))
    head, *blocks = _parameter_slices(free)
    for k, (sums, cells) in enumerate(zip(own, blocks, strict=True)):
        # The weights' score depends on the row only through its component.
        weight_score = (free.weights == k) - parameters.weights[free.weights]
        result[head, head] += sums[0, 0] * np.outer(weight_score, weight_score)
        result[head, cells] += np.outer(weight_score, sums[0, 1:])
        result[cells, head] += np.outer(sums[0, 1:], weight_score)
        result[cells, cells] += sums[1:, 1:]
    return result


def _complete_information(
    model: Any,
    parameters: MixtureParameters,
    free: FreeParameters,
    total: float,
    observed: FloatArray,
) -> FloatArray:
    """Return the information of rows with known components, and of the prior."""
    schema: Schema = model.schema
    head, *blocks = _parameter_slices(free)
    result = np.zeros((free.size, free.size))
    count = total + parameters.num_components * model.weight_prior
    pi = parameters.weights[free.weights]
    result[head, head] = count * (np.diag(pi) - np.outer(pi, pi))
    prior = schema.sum_values(np.array(model.cell_parameters))
    for k, (cells, block) in enumerate(zip(free.cells, blocks, strict=True)):
        theta, feature = parameters.cells[cells, k], schema.cell_feature[cells]
        counts = (observed[k] + prior)[feature]
        same = feature[:, None] == feature[None, :]
        slope = np.diag(theta) - np.where(same, np.outer(theta, theta), 0.0)
        result[block, block] = counts[:, None] * slope
    return result


def information_errors(
    model: Any,
    parameters: MixtureParameters,
    table: EncodedColumns,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Compute standard errors of the weights ``(K,)`` and of the cells ``(C, K)`` by information.

    They are NaN for parameters at the boundary. All are NaN, with a warning, if the information of
    the others is not positive definite: the parameters are not at a maximum, or the rows do not
    identify them.
    """
    information, free = observed_information(model, parameters, table, weights)
    schema: Schema = model.schema
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    try:
        # Parameters near a boundary have little information: scale to a unit diagonal.
        factor = cho_factor(information / np.outer(scale, scale))
        covariance = cho_solve(factor, np.eye(free.size)) / np.outer(scale, scale)
    except LinAlgError:
        warnings.warn(
            "the observed information is not positive definite, so that standard errors are NaN; "
            "fit with a smaller tol or fewer components, or use method='bootstrap'",
            RuntimeWarning,
            stacklevel=3,
        )
        covariance = np.full_like(information, np.nan)
    head, *blocks = _parameter_slices(free)
    weight_errors = _delta_method(parameters.weights, free.weights, covariance[head, head])
    cells = np.empty_like(parameters.cells)
    for k, (places, block) in enumerate(zip(free.cells, blocks, strict=True)):
        for feature in range(schema.num_features):
            values = schema.cells_of(feature)
            inside = np.flatnonzero((places >= values.start) & (places < values.stop))
            part = inside + block.start
            cells[values, k] = _delta_method(
                parameters.cells[values, k],
                places[inside] - values.start,
                covariance[np.ix_(part, part)],
            )
    return (
        np.where(free.fixed_weights, np.nan, weight_errors),
        np.where(free.fixed_cells, np.nan, cells),
    )


def _delta_method(point: FloatArray, free: IntArray, covariance: FloatArray) -> FloatArray:
    """Convert the covariance of free log odds to standard errors of probabilities."""
    slope = (np.diag(point) - np.outer(point, point))[:, free]
    variance = np.einsum("ij,jk,ik->i", slope, covariance, slope)
    result: FloatArray = np.sqrt(np.maximum(variance, 0.0))
    return result


def bootstrap_errors(
    model: Any,
    parameters: MixtureParameters,
    layout: RowLayout,
    weights: FloatArray | None,
    *,
    num_fits: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Compute standard errors of the weights ``(K,)`` and of the cells ``(C, K)`` by bootstrap."""
    from bayes_lcs.inference.em.e_step import LocalEStep
    from bayes_lcs.inference.em.em import GapRule, em_steps, run_em

    if num_fits < 2:
        raise ValueError(f"a bootstrap needs at least 2 fits, got {num_fits}")
    rng = np.random.default_rng(seed)
    probability = np.ones(layout.num_rows) if weights is None else weights
    total = round(float(probability.sum()))
    probability = probability / probability.sum()
    fits, num_unconverged = [], 0
    for _ in range(num_fits):
        drawn = rng.multinomial(total, probability).astype(np.float64)
        executor = LocalEStep(layout.with_weights(drawn), "double")
        start = leave_boundary(model, parameters, total, partial(_statistics, executor))
        steps = partial(em_steps, model, start, max_iter, GapRule(tol), is_accelerated=True)
        results, interrupted = run_em(
            executor, [steps], max_iter=max_iter, log_prior=model.log_prior, progress=False
        )
        if interrupted:
            raise KeyboardInterrupt
        num_unconverged += not results[0].converged
        fits.append(match_components(parameters, results[0].parameters))
    if num_unconverged:
        warnings.warn(
            f"{num_unconverged} of {num_fits} fits of the bootstrap have not converged after "
            f"max_iter={max_iter} passes; raise max_iter",
            ConvergenceWarning,
            stacklevel=3,
        )
    return (
        np.std([fit.weights for fit in fits], axis=0, ddof=1),
        np.std([fit.cells for fit in fits], axis=0, ddof=1),
    )


def _statistics(executor: Any, parameters: MixtureParameters) -> MixtureStatistics:
    statistics: MixtureStatistics = executor.statistics([parameters])[0]
    return statistics


def match_components(reference: MixtureParameters, other: MixtureParameters) -> MixtureParameters:
    """Permute components to match those of the reference, by smallest total squared distance.

    Examples
    --------
    >>> cells = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> swapped = MixtureParameters(np.array([0.3, 0.7]), cells[:, ::-1])
    >>> match_components(MixtureParameters(np.array([0.7, 0.3]), cells), swapped).weights.tolist()
    [0.7, 0.3]
    """
    distance = ((reference.cells[:, :, None] - other.cells[:, None, :]) ** 2).sum(axis=0)
    order = linear_sum_assignment(distance)[1]
    return MixtureParameters(other.weights[order], other.cells[:, order])
