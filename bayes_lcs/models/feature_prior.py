"""The hyper-parameters every sharing model has, and a feature prior that may be learned.

All four models put ``phi ~ Dirichlet(alpha)`` on label probabilities and ``Dirichlet(beta)`` on
feature probabilities, and say so with the same two arguments. ``beta`` is given, or it is one
unknown number ``beta_{y,f,x} = b`` with ``b ~ Gamma(shape, rate)``. Given the blocks of counts
that share parameters, its likelihood

    prod_T m(T | b) = prod_{T,y,f} prod_x (b)_{n_{T,y,f,x}} / (V_f b)_{n_{T,y,f,.}}

is a function of one variable, so that it is integrated out by quadrature in ``log b``: to twelve
digits, in milliseconds. The thesis keeps ``beta`` fixed; learning it is ours.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.dirichlet import log_rising
from bayes_lcs.core.naive_bayes import log_feature_marginal
from bayes_lcs.core.priors import (
    Gamma,
    frozen_prior,
    resolve_feature_prior,
    resolve_label_prior,
)
from bayes_lcs.core.quadrature import Quadrature, integrate_log_density
from bayes_lcs.core.schema import Schema

__all__ = ["NaiveBayesPrior", "learned_posterior", "log_symmetric_marginal"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class NaiveBayesPrior(ABC):
    """Dirichlet priors of one naive Bayes likelihood; the sharing models extend it.

    Parameters
    ----------
    label_prior
        Dirichlet parameters ``alpha`` of the labels: a number, or one number a label.
    feature_prior
        Dirichlet parameters ``beta`` of the feature values: a number; a list with one entry a
        feature, each a number, ``V_f`` numbers, or an array ``(L, V_f)``; an array ``(L, C)``;
        or a `Gamma`, under which one number for all of them is learned.
    """

    label_prior: Any = 1.0
    feature_prior: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_prior", frozen_prior(self.label_prior, "label_prior"))
        object.__setattr__(
            self, "feature_prior", frozen_prior(self.feature_prior, "feature_prior", learnable=True)
        )

    def label_parameters(self, schema: Schema) -> FloatArray:
        """Dirichlet parameters ``alpha_y`` of the labels, ``(L,)``."""
        return resolve_label_prior(self.label_prior, schema)

    def feature_parameters(self, schema: Schema) -> FloatArray:
        """Dirichlet parameters ``beta_{y,f,x}``, ``(L, C)``; an error if they are learned."""
        return resolve_feature_prior(self.feature_prior, schema)

    def _log_feature_marginal(self, schema: Schema, blocks: IntArray) -> float:
        """``log P(X | Y, blocks)`` of counts ``(K, L, C)``, a learned prior integrated out."""
        if isinstance(self.feature_prior, Gamma):
            return learned_posterior(self.feature_prior, schema, blocks).log_integral
        prior = self.feature_parameters(schema)
        return float(log_feature_marginal(schema, blocks, prior).sum())

    def _average_log(
        self, schema: Schema, blocks: IntArray, log_function: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Log of the posterior mean of ``exp(log_function(beta))``, with ``beta`` ``(L, C)``."""
        if not isinstance(self.feature_prior, Gamma):
            return log_function(self.feature_parameters(schema))
        posterior = learned_posterior(self.feature_prior, schema, blocks)
        shape = (schema.num_labels, schema.num_cells)
        total: FloatArray | None = None
        for node, log_weight in zip(posterior.nodes, posterior.log_weights, strict=True):
            term = log_weight + log_function(np.full(shape, np.exp(node)))
            total = term if total is None else np.logaddexp(total, term, out=total)
        assert total is not None
        return total

    def _likely_feature_parameters(self, schema: Schema, blocks: IntArray) -> FloatArray:
        """``beta`` as given, or its posterior mode in ``log b``; ``(L, C)``."""
        if not isinstance(self.feature_prior, Gamma):
            return self.feature_parameters(schema)
        mode = learned_posterior(self.feature_prior, schema, blocks).mode
        return np.full((schema.num_labels, schema.num_cells), np.exp(mode))


class _CountHistogram(NamedTuple):
    """Which counts occur how often: all that a symmetric prior can see."""

    cells: IntArray  # distinct counts of cells
    cell_times: IntArray
    widths: IntArray  # V_f and total of each distinct (feature size, total)
    totals: IntArray
    total_times: IntArray


def _histogram(schema: Schema, blocks: IntArray) -> _CountHistogram:
    cells, cell_times = np.unique(blocks[blocks > 0], return_counts=True)
    totals = schema.sum_values(blocks)
    widths = np.broadcast_to(np.asarray(schema.num_values, dtype=np.int64), totals.shape)
    seen = totals > 0
    pairs, times = np.unique(
        np.stack([widths[seen], totals[seen]], axis=1), axis=0, return_counts=True
    )
    return _CountHistogram(cells, cell_times, pairs[:, 0], pairs[:, 1], times)


def log_symmetric_marginal(schema: Schema, blocks: IntArray, values: FloatArray) -> FloatArray:
    """``sum_T log m(T | b)`` of blocks ``(K, L, C)`` at each of the values ``b``; ``(Q,)``.

    Examples
    --------
    >>> blocks = np.array([[[1, 1]]])  # one block, one label, one binary feature, one of each
    >>> np.exp(log_symmetric_marginal(Schema(1, (2,)), blocks, np.array([1.0]))).round(6).tolist()
    [0.166667]
    """
    counts = _histogram(schema, blocks)
    b = np.asarray(values, dtype=np.float64)[:, None]
    cells = log_rising(b, counts.cells) @ counts.cell_times
    totals = log_rising(b * counts.widths, counts.totals) @ counts.total_times
    result: FloatArray = cells - totals
    return result


def learned_posterior(prior: Gamma, schema: Schema, blocks: IntArray) -> Quadrature:
    """Posterior of ``log b`` given blocks of counts, and ``log P(X | Y, blocks)``.

    Examples
    --------
    Without data the posterior is the prior:

    >>> nothing = np.zeros((1, 1, 2), dtype=np.int64)
    >>> posterior = learned_posterior(Gamma(3.0, 2.0), Schema(1, (2,)), nothing)
    >>> round(posterior.log_integral, 9) + 0.0
    0.0
    >>> float((np.exp(posterior.log_weights) * np.exp(posterior.nodes)).sum().round(9))
    1.5
    """

    def log_density(log_b: FloatArray) -> FloatArray:
        return (
            prior.log_density_of_log(log_b)
            + log_symmetric_marginal(schema, blocks, np.exp(log_b))
        )

    return integrate_log_density(log_density)
