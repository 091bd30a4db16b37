"""Rows predicted in their own groups, and rows left out of the counts that predict them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from tests.models.test_contract import SCHEMA, latent

SIZES = [6, 9, 4, 1, 7]
MODELS = [
    NoSharing(feature_prior=0.4, label_prior=[0.5, 2.0]),
    CompleteSharing(feature_prior=0.4, label_prior=[0.5, 2.0]),
    Prototype(feature_prior=0.7),
    ClusteredNaiveBayes(concentration=1.7, feature_prior=0.4, label_prior=[0.5, 2.0]),
]

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


def simulated(model: Any) -> tuple[Any, tuple[Any, ...]]:
    table, truth = model.simulate(SCHEMA, SIZES, seed=4, missing=0.2)
    return table, latent(model, truth)


@every_model
def test_each_row_is_predicted_as_its_group_would_predict_it(model: Any) -> None:
    table, given = simulated(model)
    counts = table.counts()
    groups = np.where(np.arange(table.num_rows) % 4 == 0, -1, table.groups)
    got = model.informants(counts, *given).log_joint(table.features, groups)
    for row, group in enumerate(groups):
        one = model.log_predictive(counts, table.features[[row]], *given, groups=[group])[0, 0]
        np.testing.assert_allclose(got[row], one, atol=1e-12)


@every_model
def test_leaving_a_row_out_equals_counting_again_without_it(model: Any) -> None:
    table, given = simulated(model)
    informants = model.informants(table.counts(), *given)
    got = informants.log_joint(table.features, table.groups, left_out=table.labels)
    for row in range(table.num_rows):
        rest = np.delete(np.arange(table.num_rows), row)
        counts = table.take(rest).counts()
        assert counts.num_groups == table.num_groups
        again = model.informants(counts, *given)
        expected = again.log_joint(table.features[[row]], table.groups[[row]])[0]
        np.testing.assert_allclose(got[row], expected, atol=1e-10)


@every_model
def test_rows_that_are_not_among_the_counts_stay_as_they_are(model: Any) -> None:
    table, given = simulated(model)
    informants = model.informants(table.counts(), *given)
    nothing = np.full(table.num_rows, -1)
    groups = np.where(np.arange(table.num_rows) % 3 == 0, -1, table.groups)
    np.testing.assert_array_equal(
        informants.log_joint(table.features, groups, left_out=nothing),
        informants.log_joint(table.features, groups),
    )
