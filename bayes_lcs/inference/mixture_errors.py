"""Standard errors of a mixture's parameters.

*Information.* In natural parameters, log odds against the last component and against the last value
of each feature, the observed information is (Louis 1982, eq. 3.2')

    I = E[complete information | x] - Cov[complete score | x],

summed over rows. With ``S_k`` the complete score of a row if it is of component ``k``, the
covariance is ``sum_k r_k S_k S_k' - s s'`` with ``s = sum_k r_k S_k``. A Dirichlet prior in natural
parameters counts as so many more rows in the first term. The delta method leads from natural
parameters to probabilities.

*Bootstrap.* Weights of the rows are drawn anew from a multinomial, and EM goes on from the fitted
parameters. Components may have changed places: they are matched with the fitted ones by the
assignment of least squared distance.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment

from bayes_lcs.core.memory import require_memory
from bayes_lcs.core.mixture import MixtureParameters
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.encoded_rows import EncodedColumns
from bayes_lcs.inference.mixture_rows import map_rows, responsibilities
from bayes_lcs.inference.pattern_plan import PatternPlan

__all__ = ["bootstrap_errors", "information_errors", "observed_information"]

FloatArray = NDArray[np.float64]

BLOCK_ROWS = 1024


def observed_information(
    model: Any,
    parameters: MixtureParameters,
    table: EncodedColumns,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Observed information of the log posterior, ``(d, d)``, in natural parameters.

    The order is that of the first ``K - 1`` weights, then, component after component, of all values
    but the last of each feature.
    """
    schema: Schema = model.schema
    num_components = parameters.num_components
    free = _free_cells(schema)
    size = num_components - 1 + num_components * len(free)
    require_memory(
        3 * 8 * size**2, f"the information of {size:,} parameters", "Use method='bootstrap'"
    )
    if weights is None:
        weights = np.ones(table.num_rows)
    shares = map_rows(parameters, table, responsibilities)
    scores_product = np.zeros((size, size))
    own = np.zeros((num_components, 1 + len(free), 1 + len(free)))
    observed = np.zeros((num_components, schema.num_features))
    pi, theta = parameters.weights, parameters.cells[free]
    for start in range(0, table.num_rows, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        seen, held = _indicators(schema, table.take(rows), free)
        share, weight = shares[rows], weights[rows]
        mean = [share[:, :-1] - pi[:-1]]
        for k in range(num_components):
            # Score of a row of component k: what it holds less what is expected where it was seen.
            score = held - seen[:, schema.cell_feature[free]] * theta[:, k]
            mean.append(share[:, k, None] * score)
            full = np.hstack([np.ones((len(score), 1)), score])
            own[k] += full.T @ (full * (weight * share[:, k])[:, None])
            observed[k] += (weight * share[:, k]) @ seen
        stacked = np.hstack(mean)
        scores_product += stacked.T @ (stacked * weight[:, None])
    second_moment = _second_moment(own, parameters, size)
    return (
        _complete_information(model, parameters, weights.sum(), observed)
        - second_moment
        + scores_product
    )


def _free_cells(schema: Schema) -> NDArray[np.int64]:
    """All cells but the last of each feature."""
    last = schema.offsets[1:] - 1
    return np.setdiff1d(np.arange(schema.num_cells), last)


def _indicators(
    schema: Schema, table: EncodedColumns, free: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Which features a row has, ``(B, F)``, and which free cells, ``(B, free)``."""
    held = np.zeros((table.num_rows, schema.num_cells))
    seen = np.zeros((table.num_rows, schema.num_features))
    for feature in range(schema.num_features):
        codes = table.column(feature).astype(np.int64)
        rows = np.flatnonzero(codes >= 0)
        held[rows, codes[rows] + schema.offsets[feature]] = 1.0
        seen[rows, feature] = 1.0
    return seen, held[:, free]


def _second_moment(own: FloatArray, parameters: MixtureParameters, size: int) -> FloatArray:
    """``sum_n w_n sum_k r_nk S_nk S_nk'``: every component touches the weights and its own cells.

    ``own`` holds, of each component, the sums of 1, of its cells' scores, and of their products.
    """
    num_components, width = own.shape[0], own.shape[1] - 1
    pi = parameters.weights
    result = np.zeros((size, size))
    head = slice(0, num_components - 1)
    for k in range(num_components):
        # Of the weights' score only the indicator of the component differs between rows.
        weight_score = (np.arange(num_components) == k)[:-1] - pi[:-1]
        cells = slice(num_components - 1 + k * width, num_components - 1 + (k + 1) * width)
        result[head, head] += own[k, 0, 0] * np.outer(weight_score, weight_score)
        result[head, cells] += np.outer(weight_score, own[k, 0, 1:])
        result[cells, head] += np.outer(own[k, 0, 1:], weight_score)
        result[cells, cells] += own[k, 1:, 1:]
    return result


def _complete_information(
    model: Any, parameters: MixtureParameters, total: float, observed: FloatArray
) -> FloatArray:
    """What the rows would tell if their components were known, and what the prior does."""
    schema: Schema = model.schema
    num_components = parameters.num_components
    free = _free_cells(schema)
    feature = schema.cell_feature[free]
    blocks = [(total + num_components * model.weight_prior) * _softmax_slope(parameters.weights)]
    prior = schema.sum_values(np.array(model.cell_parameters))
    for k in range(num_components):
        theta = parameters.cells[free, k]
        count = (observed[k] + prior)[feature]
        same = feature[:, None] == feature[None, :]
        slope = np.diag(theta) - np.where(same, np.outer(theta, theta), 0.0)
        blocks.append(count[:, None] * slope)
    result = np.zeros((sum(map(len, blocks)),) * 2)
    first = 0
    for block in blocks:
        result[first : first + len(block), first : first + len(block)] = block
        first += len(block)
    return result


def _softmax_slope(point: FloatArray) -> FloatArray:
    """Derivative of all but the last probability by the log odds against the last."""
    head = point[:-1]
    return np.diag(head) - np.outer(head, head)


def information_errors(
    model: Any,
    parameters: MixtureParameters,
    table: EncodedColumns,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Standard errors of the weights ``(K,)`` and of the cells ``(C, K)``.

    NaN, with a warning, where the information is not positive definite: the parameters are not at
    a maximum, or the rows do not settle them.
    """
    information = observed_information(model, parameters, table, weights)
    schema: Schema = model.schema
    try:
        covariance = cho_solve(cho_factor(information), np.eye(len(information)))
    except LinAlgError:
        warnings.warn(
            "the observed information is not positive definite, so that it gives no standard "
            "errors: fit with a smaller tol or fewer components, or use method='bootstrap'",
            RuntimeWarning,
            stacklevel=3,
        )
        covariance = np.full_like(information, np.nan)
    num_components = parameters.num_components
    weight_errors = _errors(
        parameters.weights, covariance[: num_components - 1, : num_components - 1]
    )
    cells = np.empty_like(parameters.cells)
    free = schema.num_cells - schema.num_features
    for k in range(num_components):
        first = num_components - 1 + k * free
        for feature, size in enumerate(schema.num_values):
            part = slice(first, first + size - 1)
            point = parameters.cells[schema.cells_of(feature), k]
            cells[schema.cells_of(feature), k] = _errors(point, covariance[part, part])
            first += size - 1
    return weight_errors, cells


def _errors(point: FloatArray, covariance: FloatArray) -> FloatArray:
    """Standard errors of probabilities, from the covariance of log odds against the last."""
    slope = (np.diag(point) - np.outer(point, point))[:, :-1]
    variance = np.einsum("ij,jk,ik->i", slope, covariance, slope)
    result: FloatArray = np.sqrt(np.maximum(variance, 0.0))
    return result


def bootstrap_errors(
    model: Any,
    parameters: MixtureParameters,
    plan: PatternPlan,
    weights: FloatArray | None,
    *,
    num_fits: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Standard errors of the weights ``(K,)`` and of the cells ``(C, K)``."""
    from bayes_lcs.inference.em import ConvergenceRule, em_steps, run_em
    from bayes_lcs.inference.em_executor import PlanExecutor

    if num_fits < 2:
        raise ValueError(f"a bootstrap needs at least 2 fits, got {num_fits}")
    rng = np.random.default_rng(seed)
    probability = np.ones(plan.num_rows) if weights is None else weights
    total = round(float(probability.sum()))
    probability = probability / probability.sum()
    found = []
    for _ in range(num_fits):
        drawn = rng.multinomial(total, probability).astype(np.float64)
        executor = PlanExecutor(plan.with_weights(drawn), "double")
        steps = partial(em_steps, model, parameters, max_iter, ConvergenceRule(tol, "double"))
        results, interrupted = run_em(
            executor, [steps], max_iter=max_iter, log_prior=model.log_prior, progress=False
        )
        if interrupted:
            raise KeyboardInterrupt
        found.append(matched(parameters, results[0].parameters))
    return (
        np.std([fit.weights for fit in found], axis=0, ddof=1),
        np.std([fit.cells for fit in found], axis=0, ddof=1),
    )


def matched(reference: MixtureParameters, found: MixtureParameters) -> MixtureParameters:
    """Components in the order of those of the reference that they are nearest to.

    Examples
    --------
    >>> cells = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> swapped = MixtureParameters(np.array([0.3, 0.7]), cells[:, ::-1])
    >>> matched(MixtureParameters(np.array([0.7, 0.3]), cells), swapped).weights.tolist()
    [0.7, 0.3]
    """
    distance = ((reference.cells[:, :, None] - found.cells[:, None, :]) ** 2).sum(axis=0)
    order = linear_sum_assignment(distance)[1]
    return MixtureParameters(found.weights[order], found.cells[:, order])
