"""Files as they lie on the web: semicolons, no header, gzip, question marks, names with spaces."""

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from tests.journeys.inputs import assert_all_equal

pytestmark = pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")


@pytest.mark.filterwarnings("ignore::bayes_lcs.DataWarning")  # nine of ten want to go on
def test_students_with_semicolons_and_quotes(raw_file):
    path = raw_file("student_performance", "student-mat.csv")
    frame = pd.read_csv(path, sep=";")
    bins = dict.fromkeys(["absences", "G1", "G2", "G3"], 4)
    read = bl.read_grouped(path, group="school", label="romantic", bins=bins)
    made = bl.GroupedTable.from_frame(frame, group="school", label="romantic", bins=bins)
    assert read.feature_names == made.feature_names
    assert read.values == made.values
    np.testing.assert_array_equal(read.features, made.features)

    model = bl.MixtureClusterer(3, random_state=0).fit(path)
    again = bl.MixtureClusterer(3, random_state=0).fit(frame)
    assert_all_equal({"file": model.score(frame), "frame": again.score(frame)})
    assert_all_equal({"file": model.predict(path), "frame": model.predict(frame)})

    scans = {}
    for name in ("file", "frame"):
        scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
        if name == "file":
            scan.fit_file(path, label="higher")
        else:
            scan.fit(frame.drop(columns="higher"), frame["higher"])
        scans[name] = scan.predict_proba(frame.drop(columns="higher"))
    assert_all_equal(scans)


def test_votes_without_a_header(raw_file):
    path = raw_file("votes")
    names = ["party", *(f"vote {number}" for number in range(1, 17))]
    frame = pd.read_csv(path, header=None, names=names)  # pandas keeps "?"
    model = bl.MixtureClusterer(2, random_state=0).fit_file(path, header=names, ignore=["party"])
    assert [values.tolist() for values in model.categories_] == [["n", "y"]] * 16
    again = bl.MixtureClusterer(2, random_state=0).fit(frame.drop(columns="party"))
    assert_all_equal({"file": model.predict(frame), "frame": again.predict(frame)})
    agree = (model.predict(frame) == (frame["party"] == "democrat")).mean()
    assert max(agree, 1 - agree) > 0.85

    scan = bl.PartialScanClassifier("naive_bayes", n_partitions=2, early_stop=False)
    scan.fit_file(path, header=False, label="column_1")
    assert scan.classes_.tolist() == ["democrat", "republican"]
    unnamed = frame.set_axis([f"column_{number}" for number in range(1, 18)], axis=1)
    assert scan.score(unnamed, frame["party"]) > 0.85


def test_gzipped_ratings_of_many_students(raw_file):
    path = raw_file("insteval")
    frame = pd.read_csv(path)
    counted = bl.read_counts(path, group="s", label="y", features=["studage", "lectage", "service"])
    assert counted.num_rows == len(frame)
    assert counted.num_groups == frame["s"].nunique()
    made = bl.GroupedTable.from_frame(
        frame, group="s", label="y", features=["studage", "lectage", "service"]
    )
    for model in (bl.NoSharing(), bl.CompleteSharing()):
        assert bl.evidence(model, counted).value == pytest.approx(
            bl.evidence(model, made).value, rel=1e-12
        )


def test_disability_items_with_spaces_in_their_names(raw_file, tmp_path):
    path = raw_file("nltcs")
    frame = pd.read_csv(path)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    models = {
        "CSV": bl.MixtureClusterer(3, random_state=0, max_iter=50).fit_file(path),
        "Parquet": bl.MixtureClusterer(3, random_state=0, max_iter=50).fit_file(
            tmp_path / "t.parquet"
        ),
    }
    assert_all_equal({name: model.score(frame) for name, model in models.items()})
    assert_all_equal({name: model.predict(frame) for name, model in models.items()})
    assert models["CSV"].feature_names_in_.tolist() == frame.columns.tolist()
