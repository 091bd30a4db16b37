"""Bayes factors, probabilities and verdicts, from evidences with and without errors."""

from __future__ import annotations

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.condition import condition
from bayes_lcs.model_evidence.compare import Comparison
from bayes_lcs.model_evidence.log_evidence import Bracket, LogEvidence, MeanWeight

MODELS = (bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes())


@pytest.fixture(scope="module")
def data() -> bl.GroupedTable:
    return bl.meeting_requests(seed=0, rows_per_person=3)[0].select_groups(range(5))


def invented(data: bl.GroupedTable, *values: tuple[float, float]) -> Comparison:
    """A comparison of values with standard errors."""
    found = [
        LogEvidence.exact(value, "exact", model.name)
        if error == 0.0
        else LogEvidence.estimated(MeanWeight(value, error, 100.0), "ais", model.name)
        for (value, error), model in zip(values, MODELS, strict=False)
    ]
    even = np.full(len(found), 1 / len(found))
    return Comparison(MODELS[: len(found)], data, tuple(found), even, False, 0)


def test_probabilities_are_those_of_bayes_rule(data):
    found = bl.compare(MODELS, data, prior=[1, 2, 1])
    logs = np.array([bl.evidence(model, data).value for model in MODELS])
    joint = np.exp(logs - logs.max()) * [1, 2, 1]
    np.testing.assert_allclose(found.probabilities(), joint / joint.sum(), rtol=1e-12)
    np.testing.assert_allclose(
        found.probability_intervals(), np.stack([found.probabilities()] * 2, axis=1), rtol=1e-9
    )
    table = found.table()
    assert table["log_evidence"].is_monotonic_decreasing
    assert table["log_bayes_factor"][0] == 0.0
    assert set(table["method"]) == {"closed-form", "exact"}


def test_predictions_are_averaged_over_the_models(data):
    found = bl.compare(MODELS, data)
    rows = data.take([0, 4]).to_frame().drop(columns=data.label_name)
    rows.loc[rows.index[0], data.group_name] = "never seen"
    expected = sum(
        weight * condition(model, data).predict_proba(rows)
        for weight, model in zip(found.probabilities(), MODELS, strict=True)
    )
    np.testing.assert_allclose(found.predict_proba(rows), expected, atol=1e-5)


def test_no_verdict_where_intervals_overlap(data):
    found = invented(data, (-100.0, 1.0), (-102.0, 1.0))
    assert found.verdict().startswith("No verdict: the intervals of No-Sharing and Complete")
    assert found.log_bayes_factor(0, 1).lower < 0
    low, high = found.probability_intervals()[0]
    assert low < found.probabilities()[0] < high


@pytest.mark.parametrize(
    ("below", "word"), [(0.5, "barely"), (2.0, "positively"), (4.0, "strongly"), (9.0, "very")]
)
def test_a_verdict_in_words(data, below, word):
    found = invented(data, (-100.0, 0.0), (-100.0 - below, 0.0), (-300.0, 0.0))
    assert f"No-Sharing {word}" in found.verdict()


def test_equal_evidence_has_no_verdict(data):
    assert invented(data, (-1.0, 0.0), (-1.0, 0.0)).verdict().startswith("No verdict")
    assert "no other model" in invented(data, (-1.0, 0.0)).verdict()


def test_ends_that_disagree_are_mentioned(data):
    low, high = MeanWeight(-100.0, 0.1, 50.0), MeanWeight(-98.0, 0.1, 50.0)
    shaky = LogEvidence.estimated(low, "ais", "No-Sharing", bracket=Bracket(low, high, False))
    sure = LogEvidence.exact(-200.0, "exact", "Complete-Sharing")
    found = Comparison(MODELS[:2], data, (shaky, sure), np.full(2, 0.5), True, 0)
    assert "No-Sharing disagree" in found.verdict()
    assert "labels, given the features" in found.verdict()


def test_models_of_one_kind_are_told_apart(data):
    both = [bl.ClusteredNaiveBayes(concentration=a) for a in (0.5, 5.0)]
    found = bl.compare(both, data)
    assert "concentration=0.5" in found.names[0]
    assert "concentration=5.0" in str(found)


@pytest.mark.parametrize("prior", [[1.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, np.nan, 1.0]])
def test_bad_priors(data, prior):
    with pytest.raises(ValueError, match="for each of the 3 models"):
        bl.compare(MODELS, data, prior=prior)


def test_nothing_to_compare(data):
    with pytest.raises(ValueError, match="at least one model"):
        bl.compare([], data)
