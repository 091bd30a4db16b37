"""Ten thousand users: reading, counting and predicting with the models that have closed forms."""

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from tests.journeys.inputs import assert_all_equal

USERS = 10_000


@pytest.fixture(scope="module")
def users():
    """Four rows of each user, sorted by user; identifiers with leading zeros."""
    rng = np.random.default_rng(6)
    who = np.repeat([f"{i:05d}" for i in range(USERS)], 4)
    y = rng.integers(0, 2, len(who))
    x = np.where(rng.random(len(who)) < 0.8, y, 1 - y)
    return pd.DataFrame(
        {"user": who, "x": x, "device": rng.choice(["phone", "web"], len(who)), "y": y}
    )


def test_evidence_from_rows_and_from_counts(users, tmp_path):
    users.to_csv(tmp_path / "t.csv", index=False)
    users.to_parquet(tmp_path / "t.parquet")
    tables = {
        "frame": bl.GroupedTable.from_frame(users, group="user", label="y"),
        "CSV": bl.read_grouped(tmp_path / "t.csv", group="user", label="y"),
        "Parquet": bl.read_grouped(tmp_path / "t.parquet", group="user", label="y"),
        "counts of CSV": bl.read_counts(tmp_path / "t.csv", group="user", label="y"),
        "counts of Parquet": bl.read_counts(tmp_path / "t.parquet", group="user", label="y"),
    }
    for name, data in tables.items():
        assert data.num_groups == USERS, name
        assert data.group_names[7] == "00007", name
        assert data.num_rows == len(users)
    for model in (bl.NoSharing(), bl.CompleteSharing()):
        values = {name: bl.evidence(model, data).value for name, data in tables.items()}
        np.testing.assert_allclose(list(values.values()), values["frame"], rtol=1e-12)
    # All users are alike: one model for all is better by far.
    together = bl.evidence(bl.CompleteSharing(), tables["CSV"]).value
    assert together > bl.evidence(bl.NoSharing(), tables["CSV"]).value + 1000


def test_predictions_for_users_old_and_new(users, tmp_path):
    shared = bl.SharedNaiveBayesClassifier("complete").fit(users, "y", groups="user")
    assert (shared.predict(users) == users["y"]).mean() > 0.75
    new = pd.DataFrame({"user": ["00001", "99999"], "x": [1, 1], "device": ["web", "web"]})
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet")
    forms = {"frame": new, "CSV": tmp_path / "new.csv", "Parquet": tmp_path / "new.parquet"}
    assert_all_equal({name: shared.predict_proba(rows) for name, rows in forms.items()})
    found = shared.predict_proba(new)
    np.testing.assert_allclose(found[0], found[1])  # everyone shares one model
    assert found[0, 1] > 0.7


def test_groups_are_numbers_in_one_file_and_text_in_another(tmp_path):
    """The identifiers of a small file may look like numbers; they match by name."""
    (tmp_path / "all.csv").write_text("user,x,y\n" + "007,1,1\nb7,0,0\n12,1,1\n" * 5)
    data = bl.read_grouped(tmp_path / "all.csv", group="user", label="y")
    assert data.group_names == ("007", "b7", "12")
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    (tmp_path / "new.csv").write_text("user,x\n12,1\n")
    as_text = pd.DataFrame({"user": ["12"], "x": [1]})
    as_number = pd.DataFrame({"user": [12], "x": [1]})
    assert_all_equal(
        {
            "text": posterior.predict_proba(as_text),
            "file": posterior.predict_proba(tmp_path / "new.csv"),
            "number": posterior.predict_proba(as_number),
        }
    )
