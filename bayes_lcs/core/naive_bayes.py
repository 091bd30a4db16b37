"""Naive Bayes likelihood of all sharing models, with its parameters integrated out.

``P(y, x | phi, theta) = phi_y prod_f theta_{y,f,x_f}`` (thesis eqs. 2.1, 2.7) with Dirichlet
priors. The sharing models differ only in which counts they pass to these functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.dirichlet import log_cells_marginal, log_dirichlet_multinomial
from bayes_lcs.core.schema import Schema

__all__ = [
    "NaiveBayesParameters",
    "dirichlet_mean",
    "log_feature_likelihood",
    "log_feature_marginal",
    "log_label_marginal",
    "log_row_predictive",
    "normalise_log",
    "posterior_parameters",
]

FloatArray = NDArray[np.float64]


class NaiveBayesParameters(NamedTuple):
    """Point values of the naive Bayes parameters of one or more blocks.

    Attributes
    ----------
    phi : (..., L)
        Label probabilities.
    theta : (..., L, C)
        Feature value probabilities on the flat cell axis; they sum to one within each feature.
    """

    phi: FloatArray
    theta: FloatArray


def log_label_marginal(label_counts: ArrayLike, label_prior: FloatArray) -> FloatArray:
    """Return ``log P(Y_u)`` per group, ``B(m_u + alpha) / B(alpha)``; ``(..., L)`` to ``(...)``."""
    return log_dirichlet_multinomial(label_counts, label_prior)


def log_feature_marginal(
    schema: Schema, feature_counts: ArrayLike, feature_prior: FloatArray
) -> FloatArray:
    """Return ``log m(T)``, the features of a block given its labels; ``(..., L, C)`` to ``(...)``.

    ``m(T) = prod_{y,f} B(n_{T,y,f} + beta_{y,f}) / B(beta_{y,f})``. The total inside ``B`` is
    ``n_{T,y,f,.}``, not ``m_{T,y}`` (thesis A.44, corrected), so missing values do not count.
    """
    result: FloatArray = log_cells_marginal(schema, feature_counts, feature_prior).sum(axis=-1)
    return result


def dirichlet_mean(schema: Schema, counts: ArrayLike, prior: FloatArray) -> FloatArray:
    """Return ``(n + a) / sum(n + a)`` within each feature of the flat cell axis."""
    pseudo = np.asarray(counts, dtype=np.float64) + prior
    totals = schema.sum_values(pseudo)
    result: FloatArray = pseudo / totals[..., schema.cell_feature]
    return result


def posterior_parameters(
    counts: GroupCounts, label_prior: FloatArray, feature_prior: FloatArray
) -> NaiveBayesParameters:
    """Return the posterior mode of each block's parameters in natural (softmax) coordinates.

    The mode is ``(n + a) / sum(n + a)``. It equals the posterior mean, lies inside the simplex and
    exists for priors below one, where the density on the simplex itself has no interior mode.
    """
    pseudo = counts.labels + label_prior
    phi = pseudo / pseudo.sum(axis=-1, keepdims=True)
    return NaiveBayesParameters(phi, dirichlet_mean(counts.schema, counts.features, feature_prior))


def log_feature_likelihood(
    schema: Schema, log_theta: FloatArray, features: ArrayLike
) -> FloatArray:
    """Return ``sum_f log theta_{y,f,x_f}`` of each row under each label; missing cells add 0.

    Parameters
    ----------
    log_theta : (..., L, C)
        Log probabilities of the feature values.
    features : (N, F)
        Coded rows, ``-1`` missing.

    Returns
    -------
    (..., N, L)
    """
    codes = np.asarray(features, dtype=np.int64)
    total = np.zeros((*log_theta.shape[:-2], len(codes), schema.num_labels))
    for feature in range(schema.num_features):
        column = codes[:, feature]
        seen = column >= 0
        cells = schema.offsets[feature] + np.where(seen, column, 0)
        term = np.swapaxes(log_theta[..., cells], -1, -2)
        total += np.where(seen[:, None], term, 0.0)
    return total


def log_row_predictive(
    counts: GroupCounts,
    label_prior: FloatArray,
    feature_prior: FloatArray,
    features: ArrayLike,
) -> FloatArray:
    """Return ``log P(y, x | counts)`` of each row under each block and label, ``(K, N, L)``.

    Each row is predicted from the counts alone, independently of the other rows.
    """
    parameters = posterior_parameters(counts, label_prior, feature_prior)
    likelihood = log_feature_likelihood(counts.schema, np.log(parameters.theta), features)
    return np.log(parameters.phi)[:, None, :] + likelihood


def normalise_log(log_joint: FloatArray) -> FloatArray:
    """Return normalised probabilities along the last axis; logs of any size do not underflow.

    Examples
    --------
    >>> normalise_log(np.array([[-2000.0, -2000.0]])).tolist()
    [[0.5, 0.5]]
    """
    weights = np.exp(log_joint - log_joint.max(axis=-1, keepdims=True))
    result: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return result
