"""RIPPER: probabilities are wittgenstein's, and there may be more labels than two."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bayes_lcs.classification.partial_scan.ripper import RuleClassifier

wittgenstein = pytest.importorskip("wittgenstein")


def rows(num_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Bonn", "Ulm", "Kiel"], num_rows),
            "age": rng.integers(18, 90, num_rows).astype(float),
        }
    )
    y = np.where(frame["town"] == "Ulm", "b", np.where(frame["age"] > 60, "c", "a"))
    return frame, np.where(rng.random(num_rows) < 0.1, "a", y)


def test_probabilities_are_those_of_wittgenstein():
    frame, y = rows()
    y = np.where(y == "b", "b", "a")
    found = RuleClassifier(random_state=1).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        binned = found._bin_columns(frame, reset=False)
        peer = wittgenstein.RIPPER(k=2, n_discretize_bins=None, random_state=1)
        peer.fit(binned, y=(y == "b").astype(int), pos_class=1)
        expected = np.asarray(peer.predict_proba(binned))[:, 1]
    np.testing.assert_allclose(found.predict_proba(frame)[:, 1], expected, atol=1e-12)
    assert found.score(frame, y) > 0.85


def test_three_labels():
    frame, y = rows()
    found = RuleClassifier().fit(frame, y)
    np.testing.assert_allclose(found.predict_proba(frame).sum(axis=1), 1.0)
    assert found.score(frame, y) > 0.8
    assert "x0 is Ulm" in str(found)


def test_missing_cells_and_new_names_meet_no_rule():
    frame, y = rows()
    found = RuleClassifier().fit(frame, y)
    odd = pd.DataFrame({"town": ["Rom", None], "age": [np.nan, 30.0]})
    assert np.isfinite(found.predict_proba(odd)).all()
