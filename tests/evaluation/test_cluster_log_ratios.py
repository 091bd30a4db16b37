"""Log ratios of clusters, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.evaluation.cluster_log_ratios import cluster_log_ratios
from tests.inference.cases import random_case


@pytest.mark.parametrize("num_labels", [2, 3])
def test_by_hand(num_labels):
    case = random_case(3, num_groups=4, num_labels=num_labels, rows=9, missing=0.1)
    chosen = 0
    found = cluster_log_ratios(case.model, case.table, [7, 2, 7, 2], str(chosen))
    counts = case.table.counts()
    for cluster, inside in enumerate(([0, 2], [1, 3])):
        labels = counts.labels[inside].sum(axis=0) + case.label_prior
        cells = counts.features[inside].sum(axis=0) + case.feature_prior
        for feature, width in enumerate(case.schema.num_values):
            span = case.schema.cells_of(feature)
            theta = cells[:, span] / cells[:, span].sum(axis=1, keepdims=True)
            rest = range(1, num_labels)
            other = sum(labels[y] * theta[y] for y in rest) / sum(labels[y] for y in rest)
            assert theta.shape == (num_labels, width)
            np.testing.assert_allclose(
                found[cluster, span], np.log(theta[chosen] / other), atol=1e-12
            )


def test_two_labels_are_each_others_rest():
    data, truth = bl.meeting_requests(seed=0, rows_per_person=20)
    model = bl.ClusteredNaiveBayes()
    accept = cluster_log_ratios(model, data, truth.partition)
    reject = cluster_log_ratios(model, data, truth.partition, "reject")
    np.testing.assert_allclose(accept, -reject, atol=1e-12)


def test_refusals():
    data, truth = bl.meeting_requests(seed=0, rows_per_person=2)
    with pytest.raises(TypeError, match="NoSharing"):
        cluster_log_ratios(bl.NoSharing(), data, truth.partition)
    with pytest.raises(ValueError, match="'maybe'"):
        cluster_log_ratios(bl.ClusteredNaiveBayes(), data, truth.partition, "maybe")
