"""Naive Bayes for nominal and numeric columns (Kalton et al. 2001, section 3.2).

In each class nominal columns have smoothed frequencies, numeric ones a normal distribution. With
weighted assignment this is EM: for nominal columns only, step by step that of
`bayes_lcs.MixtureClusterer`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayes_lcs.clustering.generalized.learners.protocol import weigh
from bayes_lcs.clustering.generalized.mixed_columns import MixedRows
from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.inference.em.row_densities import map_rows, responsibilities
from bayes_lcs.models.multinomial_mixture import MultinomialMixture

__all__ = ["NaiveBayesLearner"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NaiveBayesLearner:
    """Naive Bayes learner.

    Parameters
    ----------
    prior
        Parameter of the Dirichlet priors of classes and nominal values.
    smoothing
        Share of the variance of each column that is added to its variances in the classes.
    """

    prior: float = 1.0
    smoothing: float = 1e-6

    def fit(
        self,
        rows: MixedRows,
        shares: FloatArray,
        rng: np.random.RandomState,
        sample_weight: FloatArray | None = None,
    ) -> FittedNaiveBayes:
        """Fit probabilities, means and variances to expected counts."""
        del rng
        shares = weigh(shares, sample_weight)
        counts = [
            np.array([shares[rows.codes[:, f] == value].sum(axis=0) for value in range(size)])
            for f, size in enumerate(rows.num_values)
        ]
        totals = shares.sum(axis=0)
        schema = Schema(1, rows.num_values)
        model = MultinomialMixture(
            schema=schema,
            num_components=len(totals),
            weight_prior=self.prior,
            cell_prior=self.prior,
        )
        cells = np.vstack(counts) if counts else np.empty((0, len(totals)))
        parameters = model.update(MixtureStatistics(totals, cells, 0.0))
        mass = np.maximum(totals, 1e-300)[:, None]
        weight = shares.sum(axis=1)
        middle = np.average(rows.numbers, axis=0, weights=weight)
        spread = np.average((rows.numbers - middle) ** 2, axis=0, weights=weight)
        # Two passes: E[x^2] - E[x]^2 would lose all digits of numbers far from zero.
        means = middle + (shares.T @ (rows.numbers - middle)) / mass
        squares = [
            own @ (rows.numbers - mean) ** 2 for own, mean in zip(shares.T, means, strict=True)
        ]
        # A constant column has no information about classes; its rounding errors must not count.
        spread[np.ptp(rows.numbers, axis=0) == 0.0] = 1.0
        least = self.smoothing * spread
        # An empty class gets the mean and variance of all rows.
        empty = totals <= 0.0
        variances = np.stack(squares) / mass + least
        means[empty], variances[empty] = middle, spread + least
        return FittedNaiveBayes(parameters, rows.num_values, means, variances)


@dataclass(frozen=True)
class FittedNaiveBayes:
    """Fitted probabilities of nominal values, and normal distributions of numeric columns."""

    parameters: MixtureParameters
    num_values: tuple[int, ...]
    means: FloatArray
    variances: FloatArray

    def log_joint(self, rows: MixedRows) -> FloatArray:
        """Return ``log p(x, class)``, ``(N, K)``."""
        table = DenseRows(rows.codes, self.num_values)
        joint = map_rows(self.parameters, table, lambda joint: joint)
        for f in range(rows.numbers.shape[1]):
            off = rows.numbers[:, f, None] - self.means[:, f]
            joint = joint - 0.5 * (
                off**2 / self.variances[:, f] + np.log(2.0 * np.pi * self.variances[:, f])
            )
        return joint

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """Return the most probable class of each row."""
        return self.log_joint(rows).argmax(axis=1)

    def row_scores(self, rows: MixedRows) -> FloatArray:
        """Return the log density of each row."""
        return np.asarray(logsumexp(self.log_joint(rows), axis=1))

    def shares(self, rows: MixedRows) -> FloatArray:
        """Return the probabilities of the classes for each row."""
        return responsibilities(self.log_joint(rows))
