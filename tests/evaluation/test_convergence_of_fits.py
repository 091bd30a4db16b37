"""Whoever fits in a loop, or for a prediction, says once which fits did not converge.

The sampler is replaced by independent draws from the exact posterior, in which one chain can be
made to stand still: of such draws it is known whether they converge. R-hat of 2,000 independent
draws exceeds 1.01 less than once in a million (see `tests.inference.test_diagnostics`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from bayes_lcs.model_evidence.compare import Comparison
from tests.inference.cases import random_case

CASE = random_case(0, num_groups=5, rows=[4, 4, 4, 4, 4])
DRAWS = {"method": "sample", "draws": 1000, "chains": 2}


@pytest.fixture
def stand_still(monkeypatch) -> Callable[..., None]:
    """Let the first chain stand still in the fits of these numbers, and the others be good."""
    stuck: set[int] = set()
    fits = iter(range(10**9))

    def draw_posterior(model, data, *, draws, chains, seed, progress, executor):
        exact = bl.exact(model, data)
        z = exact.sample(draws * chains, seed).reshape(chains, draws, -1)
        if next(fits) in stuck:
            z[0] = z[0, 0]
        sizes = np.apply_along_axis(np.bincount, -1, z, minlength=z.shape[-1])
        share = sizes / z.shape[-1]
        stats = {
            "num_clusters": (sizes > 0).sum(axis=-1),
            "largest": sizes.max(axis=-1),
            "entropy": -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=-1),
            "log_joint": np.apply_along_axis(exact.log_probability, -1, z),
        }
        return PosteriorDraws(model, data, {"z": z.astype(np.uint16)}, stats)

    monkeypatch.setattr("bayes_lcs.inference.draw_posterior.draw_posterior", draw_posterior)
    return stuck.update


def test_good_draws_pass_in_silence(stand_still):
    """Warnings are errors: there is none."""
    left_out = bl.cross_validate(CASE.model, CASE.table, fraction=0.5, **DRAWS)
    assert [fit.verdict for fit in left_out.fits.values()] == ["converged"] * 2
    frame = bl.learning_curve([CASE.model], CASE.table, [2], repeats=1, **DRAWS)
    assert set(frame["convergence"]) == {"converged"}
    assert frame["rhat"].max() <= 1.01
    assert frame["ess"].min() >= 400
    X, y, groups = CASE.features, CASE.labels, CASE.groups
    classifier = bl.SharedNaiveBayesClassifier(CASE.model, **DRAWS).fit(X, y, groups)
    assert classifier.diagnostics_.verdict == "converged"
    assert set(classifier.diagnostics_.quantities) >= {"num_clusters", "entropy", "log_joint"}


def test_cross_validation_names_the_folds(stand_still):
    stand_still({1, 3})
    told = r"2 of 4 fits \(fold 1; fold 3\) did not converge.*draw more"
    with pytest.warns(bl.SamplingWarning, match=told) as caught:
        found = bl.cross_validate(CASE.model, CASE.table, fraction=0.25, **DRAWS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    verdicts = {name: fit.verdict for name, fit in found.fits.items()}
    assert verdicts == {
        "fold 0": "converged",
        "fold 1": "not converged",
        "fold 2": "converged",
        "fold 3": "not converged",
    }
    assert found.fits["fold 1"].rhat > 1.1


def test_learning_curves_name_the_sizes(stand_still):
    stand_still({2})
    told = r"1 of 4 fits \(m, 1 rows, repeat 1\) did not converge"
    with pytest.warns(bl.SamplingWarning, match=told) as caught:
        frame = bl.learning_curve({"m": CASE.model}, CASE.table, [1, 2], repeats=2, **DRAWS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    bad = (frame["size"] == 1) & (frame["repeat"] == 1)
    assert set(frame.loc[bad, "convergence"]) == {"not converged"}
    assert (frame.loc[bad, "rhat"] > 1.1).all()
    assert set(frame.loc[~bad, "convergence"]) == {"converged"}
    averages = bl.average_learning_curve(frame)
    assert not {"rhat", "ess", "convergence"} & set(averages.columns)


def test_learning_curves_name_the_group_that_is_predicted(stand_still):
    stand_still({1})
    told = r"1 of 5 fits \(m, 2 rows of group-2, repeat 0\) did not"
    name = CASE.table.group_names[1]
    with pytest.warns(bl.SamplingWarning, match=told.replace("group-2", name)):
        frame = bl.learning_curve(
            {"m": CASE.model}, CASE.table, [2], repeats=1, others="all", **DRAWS
        )
    assert frame.set_index("group")["convergence"].value_counts().to_dict() == {
        "converged": 4,
        "not converged": 1,
    }
    assert frame.set_index("group").loc[name, "convergence"] == "not converged"


def test_the_classifier_says_so(stand_still):
    stand_still({0})
    classifier = bl.SharedNaiveBayesClassifier(CASE.model, **DRAWS)
    with pytest.warns(bl.SamplingWarning, match="The fit did not converge") as caught:
        classifier.fit(CASE.features, CASE.labels, CASE.groups)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert classifier.diagnostics_.verdict == "not converged"
    assert classifier.diagnostics_.rhat > 1.1


def test_averaged_predictions_name_the_model(stand_still, monkeypatch):
    stand_still({0})
    monkeypatch.setattr("bayes_lcs.inference.condition.can_be_exact", lambda *_: False)
    evidence = bl.evidence(CASE.model, CASE.table)
    found = Comparison((CASE.model,), CASE.table, (evidence,), np.ones(1), False, 0)
    told = r"Clustered Naive Bayes did not converge.*bl\.sample"
    with pytest.warns(bl.SamplingWarning, match=told) as caught:
        found.predict_proba(CASE.table)
    assert len(caught) == 1
    assert caught[0].filename == __file__
