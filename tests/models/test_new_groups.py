"""A group never seen is predicted as the joint probability says: one more group, one more row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype

SCHEMA = Schema(2, (3, 2))
ROW, CELLS = [[2, 1]], [2, 4]
PARTITION = (0, 1, 0)


def data() -> GroupCounts:
    return ClusteredNaiveBayes().simulate(SCHEMA, [9, 5, 6], seed=5, missing=0.2)[0].counts()


def with_a_new_group(counts: GroupCounts, label: int | None) -> GroupCounts:
    labels = np.concatenate([counts.labels, np.zeros((1, 2), dtype=np.int64)])
    features = np.concatenate([counts.features, np.zeros((1, 2, 5), dtype=np.int64)])
    if label is not None:
        labels[-1, label] = 1
        features[-1, label, CELLS] = 1
    return GroupCounts(SCHEMA, labels, features)


@pytest.mark.parametrize("feature_prior", [0.6, Gamma(2.0, 2.0)])
@pytest.mark.parametrize("model_class", [NoSharing, CompleteSharing, Prototype])
def test_without_a_partition(model_class: Any, feature_prior: Any) -> None:
    model = model_class(feature_prior=feature_prior)
    _, truth = Prototype().simulate(SCHEMA, [1], seed=2)
    latent = (truth.prototype, truth.strength) if model_class is Prototype else ()
    counts = data()
    logs = model.log_predictive(counts, ROW, *latent, groups=[-1, 1])
    assert logs.shape == (2, 1, 2)
    np.testing.assert_allclose(logs[1], model.log_predictive(counts, ROW, *latent)[1])
    before = model.log_marginal(with_a_new_group(counts, None), *latent)
    for label in range(2):
        after = model.log_marginal(with_a_new_group(counts, label), *latent)
        assert logs[0, 0, label] == pytest.approx(after - before, abs=1e-10)


@pytest.mark.parametrize("feature_prior", [0.6, Gamma(2.0, 2.0)])
def test_with_a_partition_it_joins_a_block_or_opens_one(feature_prior: Any) -> None:
    model = ClusteredNaiveBayes(feature_prior=feature_prior, concentration=0.7)
    counts = data()
    logs = model.log_predictive(counts, ROW, PARTITION, groups=[1, -1])
    np.testing.assert_allclose(logs[0], model.log_predictive(counts, ROW, PARTITION)[1])
    before = model.log_joint(counts, PARTITION)
    for label in range(2):
        more = with_a_new_group(counts, label)
        after = logsumexp([model.log_joint(more, (*PARTITION, k)) for k in range(3)])
        assert logs[1, 0, label] == pytest.approx(after - before, abs=1e-10)
