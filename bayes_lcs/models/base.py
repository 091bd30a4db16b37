"""Base class of the sharing models: Dirichlet priors, and a feature prior that may be learned.

All four models have the priors ``phi ~ Dirichlet(alpha)`` of the label probabilities and
``Dirichlet(beta)`` of the feature probabilities. ``beta`` is either given or one unknown number
``beta_{y,f,x} = b`` with ``b ~ Gamma(shape, rate)``. Given the blocks of counts that share
parameters, its likelihood

    prod_T m(T | b) = prod_{T,y,f} prod_x (b)_{n_{T,y,f,x}} / (V_f b)_{n_{T,y,f,.}}

is a function of one variable. It is integrated out by quadrature in ``log b``, to twelve digits
and in milliseconds. The thesis keeps ``beta`` fixed; learning it is an extension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.dirichlet import log_rising
from bayes_lcs.core.naive_bayes import log_feature_marginal
from bayes_lcs.core.priors import (
    Gamma,
    resolve_feature_prior,
    resolve_label_prior,
    validate_prior,
)
from bayes_lcs.core.quadrature import Quadrature, integrate_log_density
from bayes_lcs.core.schema import Schema

__all__ = ["NaiveBayesPrior", "symmetric_likelihood", "symmetric_prior_posterior"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class NaiveBayesPrior:
    """Dirichlet priors of a naive Bayes likelihood; base class of the sharing models.

    Parameters
    ----------
    label_prior
        Dirichlet parameters ``alpha`` of the labels: one number, or one per label.
    feature_prior
        Dirichlet parameters ``beta`` of the feature values: a number; a list with one entry per
        feature, each a number, ``V_f`` numbers or an array ``(L, V_f)``; an array ``(L, C)``;
        or a `Gamma`, under which one number for all of them is learned.
    """

    label_prior: Any = 1.0
    feature_prior: Any = 1.0

    shares_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_prior", validate_prior(self.label_prior, "label_prior"))
        object.__setattr__(
            self,
            "feature_prior",
            validate_prior(self.feature_prior, "feature_prior", learnable=True),
        )

    def label_parameters(self, schema: Schema) -> FloatArray:
        """Return the Dirichlet parameters ``alpha_y`` of the labels, ``(L,)``."""
        return resolve_label_prior(self.label_prior, schema)

    def feature_parameters(self, schema: Schema) -> FloatArray:
        """Return the Dirichlet parameters ``beta_{y,f,x}``, ``(L, C)``; an error if learned."""
        return resolve_feature_prior(self.feature_prior, schema)

    def _log_feature_marginal(self, schema: Schema, blocks: IntArray) -> float:
        """Return ``log P(X | Y)`` of block counts ``(K, L, C)``; integrate out a learned prior."""
        if isinstance(self.feature_prior, Gamma):
            return symmetric_prior_posterior(self.feature_prior, schema, blocks).log_integral
        prior = self.feature_parameters(schema)
        return float(log_feature_marginal(schema, blocks, prior).sum())

    def _average_log(
        self, schema: Schema, blocks: IntArray, log_function: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Return the log posterior mean of ``exp(log_function(beta))``; ``beta`` is ``(L, C)``."""
        if not isinstance(self.feature_prior, Gamma):
            return log_function(self.feature_parameters(schema))
        posterior = symmetric_prior_posterior(self.feature_prior, schema, blocks)
        shape = (schema.num_labels, schema.num_cells)
        total: FloatArray | None = None
        for node, log_weight in zip(posterior.nodes, posterior.log_weights, strict=True):
            term = log_weight + log_function(np.full(shape, np.exp(node)))
            total = term if total is None else np.logaddexp(total, term, out=total)
        assert total is not None
        return total

    def _feature_parameters_mode(self, schema: Schema, blocks: IntArray) -> FloatArray:
        """Return ``beta`` as given, or at its posterior mode in ``log b``; ``(L, C)``."""
        if not isinstance(self.feature_prior, Gamma):
            return self.feature_parameters(schema)
        mode = symmetric_prior_posterior(self.feature_prior, schema, blocks).mode
        return np.full((schema.num_labels, schema.num_cells), np.exp(mode))


def symmetric_likelihood(schema: Schema, blocks: IntArray) -> Callable[[FloatArray], FloatArray]:
    """Return the function ``b -> sum_T log m(T | b)`` of blocks ``(K, L, C)``, vectorised over b.

    Under a symmetric prior only the histogram of the counts matters, so the cost of a call depends
    on the number of distinct counts and not on the number of blocks.

    Examples
    --------
    >>> blocks = np.array([[[1, 1]]])  # one block, one label, one binary feature, one of each
    >>> likelihood = symmetric_likelihood(Schema(1, (2,)), blocks)
    >>> np.exp(likelihood(np.array([1.0, 2.0]))).round(6).tolist()  # 1/2 * 1/3, 1/2 * 2/5
    [0.166667, 0.2]
    """
    cells, cell_times = np.unique(blocks[blocks > 0], return_counts=True)
    sums = schema.sum_values(blocks)
    widths = np.broadcast_to(np.asarray(schema.num_values, dtype=np.int64), sums.shape)
    seen = sums > 0
    pairs, pair_times = np.unique(
        np.stack([widths[seen], sums[seen]], axis=1), axis=0, return_counts=True
    )

    def log_likelihood(values: FloatArray) -> FloatArray:
        # For smaller values the likelihood equals its limit at zero.
        b = np.maximum(values, 1e-300)[:, None]
        numerators = log_rising(b, cells) @ cell_times.astype(np.float64)
        denominators = log_rising(b * pairs[:, 0], pairs[:, 1]) @ pair_times.astype(np.float64)
        result: FloatArray = numerators - denominators
        return result

    return log_likelihood


def symmetric_prior_posterior(prior: Gamma, schema: Schema, blocks: IntArray) -> Quadrature:
    """Return the posterior of ``log b`` given blocks of counts, and ``log P(X | Y, blocks)``.

    Examples
    --------
    Without data the posterior is the prior:

    >>> nothing = np.zeros((1, 1, 2), dtype=np.int64)
    >>> posterior = symmetric_prior_posterior(Gamma(3.0, 2.0), Schema(1, (2,)), nothing)
    >>> bool(abs(posterior.log_integral) < 1e-12)
    True
    >>> float((np.exp(posterior.log_weights) * np.exp(posterior.nodes)).sum().round(9))
    1.5
    """
    likelihood = symmetric_likelihood(schema, blocks)
    return integrate_log_density(
        lambda log_b: prior.log_density_of_log(log_b) + likelihood(np.exp(log_b))
    )
