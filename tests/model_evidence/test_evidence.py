"""`bl.evidence`: the method chosen, the fields filled, the refusals."""

from __future__ import annotations

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.model_evidence.evidence import evidence_from_posterior
from bayes_lcs.model_evidence.prototype import prototype_log_evidence
from tests.inference.cases import Case, random_case
from tests.model_evidence.prototype_quadrature import log_factor_integral


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(3, num_groups=4, num_values=(2, 3), rows=5, missing=0.1)


def priors(case: Case) -> dict:
    return {"label_prior": case.label_prior, "feature_prior": case.feature_prior}


def test_closed_forms(case):
    nothing = bl.evidence(bl.NoSharing(**priors(case)), case.table)
    everything = bl.evidence(bl.CompleteSharing(**priors(case)), case.table)
    alone = case.log_labels() + sum(case.log_block([u]) for u in range(4))
    together = case.log_labels(together=True) + case.log_block(range(4))
    assert nothing.value == pytest.approx(alone, abs=1e-9)
    assert everything.value == pytest.approx(together, abs=1e-9)
    for found, name in ((nothing, "No Sharing"), (everything, "Complete Sharing")):
        assert found.method == "closed-form"
        assert found.lower == found.value == found.upper
        assert found.standard_error == 0.0
        assert found.effective_draws == np.inf
        assert found.is_exact
        assert found.model.replace("-", " ").lower() == name.lower()


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_clustered(case, method):
    found = bl.evidence(case.model, case.table, method)
    assert found.value == pytest.approx(case.log_evidence, abs=1e-9)
    assert found.method == "exact"
    assert found.is_exact
    assert found.lower == found.value == found.upper
    assert "exact" in str(found)
    assert found == evidence_from_posterior(bl.exact(case.model, case.table))


def test_prototype(case):
    model = bl.Prototype(**priors(case))
    found = bl.evidence(model, case.table, num_draws=3000, seed=4)
    expected = case.log_labels()
    counts = case.table.counts()
    for label in range(2):
        for feature in range(2):
            cells = case.schema.cells_of(feature)
            expected += log_factor_integral(
                counts.features[:, label, cells], case.feature_prior[label, cells], 1.0, 0.1, 0.1
            )
    assert abs(found.value - expected) < 4 * found.standard_error  # one chance in 16,000
    assert found.method == "importance"
    assert not found.is_exact
    assert found.upper - found.value == pytest.approx(1.959964 * found.standard_error, rel=1e-6)
    assert found.value - found.lower == pytest.approx(1.959964 * found.standard_error, rel=1e-6)
    assert 100 < found.effective_draws <= 3000
    assert "±" in str(found)
    same = prototype_log_evidence(model, counts, 3000, 4)
    assert (found.value, found.standard_error) == same[:2]


def test_methods_that_do_not_fit(case):
    with pytest.raises(ValueError, match=r"one of auto, exact, .*, guided, got 'guess'"):
        bl.evidence(bl.NoSharing(), case.table, "guess")
    with pytest.raises(ValueError, match="only where no label is missing"):
        bl.evidence(bl.ClusteredNaiveBayes(), case.table.mask_labels([3]), "particles")
    learned = bl.NoSharing(feature_prior=bl.Gamma(2.0, 2.0))
    with pytest.raises(ValueError, match="not learned"):
        bl.evidence(learned, case.table.mask_labels([3]), "particles")
    with pytest.raises(ValueError, match="all rows have a label"):
        bl.evidence(bl.NoSharing(), case.table, "particles")
    with pytest.raises(bl.NotExactError, match="prototype"):
        bl.evidence(bl.Prototype(), case.table, "exact")
    with pytest.raises(ValueError, match="prototype"):
        bl.evidence(bl.ClusteredNaiveBayes(), case.table, "importance")


@pytest.mark.parametrize("method", ["exact", "importance"])
def test_methods_that_need_all_labels_say_what_to_do_without(case, method):
    model = bl.Prototype() if method == "importance" else bl.NoSharing()
    with pytest.raises(bl.NotExactError, match=r"1 .*rows"):
        bl.evidence(model, case.table.mask_labels([3]), method)


def test_the_truth_wins():
    """Data drawn from clusters: the clustered model has the highest evidence of the four."""
    data, _ = bl.meeting_requests(seed=0, rows_per_person=60)
    data = data.select_groups(range(10))
    models = [bl.NoSharing(), bl.CompleteSharing(), bl.Prototype(), bl.ClusteredNaiveBayes()]
    values = [bl.evidence(model, data, num_draws=500).value for model in models]
    assert int(np.argmax(values)) == 3
    assert values[3] > max(values[:3]) + 10
