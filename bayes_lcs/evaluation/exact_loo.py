"""Exact leave-one-out predictions of Clustered Naive Bayes from one sum over all partitions.

Given the partition, a row of group ``u`` depends only on the block ``T`` that holds ``u``. With
``q_u(T)`` the posterior probability of that block and ``p_T(y, x)`` the predictive of the row from
the block's counts without the row (and the group's own label counts without it),

    P(y | x_i, D_-i)  is proportional to  sum_{T with u} q_u(T) p_T(y, x_i) / p_T(y_i, x_i),

by the identity in :mod:`bayes_lcs.evaluation.loo`. The sum starts with the most probable blocks. It
ends for a row once the remaining blocks, of total probability ``r``, can change none of its
probabilities by more than `LEAVE_OUT_ERROR`. As ratios may be far larger than one, this is decided
by a bound over all blocks with ``u``: the label factors do not depend on the block, and the factors
of each feature

    (n_{T,y,f,x} + beta_{y,f,x}) / (n_{T,y,f,.} + beta_{y,f,.})     and its inverse for y_i

are mediants of the members' fractions. A mediant is largest for the groups with the largest
fractions, so sorting the groups gives each maximum exactly. The product of the maxima bounds the
ratio. (Block probabilities are those of the recursion; blocks that it rounds to zero are left out.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.naive_bayes import log_feature_likelihood
from bayes_lcs.inference.exact.posterior import ClusteredPosterior

__all__ = ["log_loo_ratios"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAVE_OUT_ERROR = 1e-10
"""Maximum error of a probability from leaving out improbable blocks."""


def log_loo_ratios(
    posterior: ClusteredPosterior, features: NDArray, groups: IntArray, labels: IntArray
) -> FloatArray:
    """Return ``log sum_T q_u(T) p_T(y, x_i) / p_T(y_i, x_i)`` of training rows, ``(N, L)``.

    The entry of a row's own label is the log total probability of the blocks, which is nearly 0.
    """
    result = np.empty((len(labels), posterior.data.num_labels))
    counts = posterior.data.counts()
    for group in np.unique(groups):
        here = np.flatnonzero(groups == group)
        result[here] = _one_group(posterior, counts, int(group), features[here], labels[here])
    return result


def _one_group(
    posterior: ClusteredPosterior,
    counts: GroupCounts,
    group: int,
    features: NDArray,
    labels: IntArray,
) -> FloatArray:
    schema = counts.schema
    priors = (
        posterior.model.label_parameters(schema),
        posterior.model.feature_parameters(schema),
    )
    bound = _log_largest_ratio(counts, group, *priors, features, labels)
    total = np.full((len(labels), schema.num_labels), -np.inf)
    active = np.arange(len(labels))
    for blocks in posterior.informing_blocks(group):
        term = _log_ratios(blocks.counts, *priors, features[active], labels[active])
        term += np.log(blocks.probability)[:, None, None]
        total[active] = np.logaddexp(total[active], np.logaddexp.reduce(term, axis=0))
        if blocks.left <= 0:
            break
        # The remaining blocks add at most this much; relative to the sum so far it is the error.
        missing = np.log(blocks.left) + bound[active]
        so_far = np.logaddexp.reduce(total[active], axis=1)
        active = active[missing > np.log(LEAVE_OUT_ERROR) + so_far]
        if not active.size:
            break
    return total


def _log_ratios(
    blocks: GroupCounts,
    label_prior: FloatArray,
    feature_prior: FloatArray,
    features: NDArray,
    labels: IntArray,
) -> FloatArray:
    """Return ``log p_T(y, x_i) / p_T(y_i, x_i)`` under each of ``K`` blocks; ``(K, N, L)``."""
    schema = blocks.schema
    rows = np.arange(len(labels))
    pseudo = blocks.features + feature_prior
    totals = schema.sum_values(pseudo)[..., schema.cell_feature]
    # The counts of a row's own cells include the row; without it they are one smaller.
    less = (blocks.features > 0).astype(np.float64)
    log_theta = np.log(pseudo / totals)
    log_less = np.log((pseudo - less) / (totals - less))
    ratios = log_feature_likelihood(schema, log_theta, features)
    ratios -= log_feature_likelihood(schema, log_less, features)[:, rows, labels][..., None]
    ratios += _log_label_odds(blocks.labels[0], label_prior, labels)
    ratios[:, rows, labels] = 0.0
    return ratios


def _log_label_odds(
    label_counts: IntArray, label_prior: FloatArray, labels: IntArray
) -> FloatArray:
    """Return log odds of each label against the row's own, without the row; ``(N, L)``."""
    rows = np.arange(len(labels))
    pseudo = np.tile(label_counts + label_prior, (len(labels), 1))
    pseudo[rows, labels] -= 1.0
    result: FloatArray = np.log(pseudo) - np.log(pseudo[rows, labels])[:, None]
    return result


def _log_largest_ratio(
    counts: GroupCounts,
    group: int,
    label_prior: FloatArray,
    feature_prior: FloatArray,
    features: NDArray,
    labels: IntArray,
) -> FloatArray:
    """Return the log of a bound on ``sum_y p_T(y, x_i) / p_T(y_i, x_i)`` over all ``T`` with u."""
    schema = counts.schema
    wide = schema.cell_feature
    value = counts.features.astype(np.float64)
    whole = counts.feature_totals[..., wide].astype(np.float64)
    others = np.arange(counts.num_groups) != group
    own_value = value[group] + feature_prior
    own_whole = whole[group] + schema.sum_values(feature_prior)[:, wide]
    rows = np.arange(len(labels))
    up = _largest_mediant(own_value, own_whole, value[others], whole[others])
    upper = log_feature_likelihood(schema, np.log(up), features)
    # The counts of a row's own cells include the row; without it they are one smaller.
    less = (value[group] > 0).astype(np.float64)
    down = _largest_mediant(own_whole - less, own_value - less, whole[others], value[others])
    inverse = log_feature_likelihood(schema, np.log(down), features)[rows, labels]
    bound = _log_label_odds(counts.labels[group], label_prior, labels)
    bound += upper + inverse[:, None]
    bound[rows, labels] = 0.0
    result: FloatArray = np.logaddexp.reduce(bound, axis=1)
    return result


def _largest_mediant(
    top: FloatArray, bottom: FloatArray, more_top: FloatArray, more_bottom: FloatArray
) -> FloatArray:
    """Return ``max_S (top + sum_S more_top) / (bottom + sum_S more_bottom)`` over all sets ``S``.

    ``(L, C)`` and ``(V, L, C)`` to ``(L, C)``. The best set consists of the members with the
    largest fractions, so only ``V + 1`` sets are compared.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        fraction = np.nan_to_num(more_top / more_bottom, nan=-1.0, posinf=np.inf)
    order = np.argsort(-fraction, axis=0)
    tops = np.concatenate([top[None], np.take_along_axis(more_top, order, axis=0)]).cumsum(axis=0)
    bottoms = np.concatenate([bottom[None], np.take_along_axis(more_bottom, order, axis=0)]).cumsum(
        axis=0
    )
    result: FloatArray = (tops / bottoms).max(axis=0)
    return result
