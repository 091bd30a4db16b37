"""Input of the partial scan: one rule for types, whatever the rows come from."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayes_lcs as bl
from bayes_lcs import PartialScanClassifier
from bayes_lcs.core.errors import DataError, DataNote, DataWarning

WHOLE = {"n_partitions": 4, "early_stop": False, "random_state": 0}
IN_ORDER = {**WHOLE, "shuffle": False}
DAYS = [dt.date(2024, 2, 29), dt.date(2024, 3, 1)]


def visits(num_rows=400, seed=0):
    """Numbers, integers, truth values and text; the label depends on town and age."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Bonn", "Ulm", "Kiel"], num_rows),
            "age": rng.integers(18, 90, num_rows),
            "pay": rng.normal(size=num_rows).round(3),
            "new": rng.random(num_rows) < 0.5,
        }
    )
    frame["kind"] = ((frame["town"] == "Ulm") ^ (frame["age"] > 60)).astype(int)
    return frame


def split(frame, label="kind"):
    return frame.drop(columns=label), frame[label]


def stored(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet", index=False)
    return {kind: folder / f"t.{kind}" for kind in ("csv", "parquet")}


LABELS = {
    "integers": ([0, 1], [0, 1]),
    "large integers": ([10, 9], [9, 10]),
    "truth values": ([True, False], [False, True]),
    "floats": ([1.0, 2.0], [1.0, 2.0]),
    "text": (["yes", "no"], ["no", "yes"]),
    "numbers with zeros": (["007", "7"], ["007", "7"]),
    "dates": (DAYS, [str(day) for day in DAYS]),
}


@pytest.mark.parametrize("base", ["tree", "naive_bayes"])
@pytest.mark.parametrize("case", LABELS)
def test_frame_csv_and_parquet_give_the_same(case, base, tmp_path):
    values, known = LABELS[case]
    frame = visits()
    frame["kind"] = [values[code] for code in frame["kind"]]
    paths = stored(frame, tmp_path)
    X, y = split(frame)
    models = {"frame": PartialScanClassifier(base, **WHOLE).fit(X, y)}
    for kind, path in paths.items():
        models[kind] = PartialScanClassifier(base, **WHOLE).fit_file(path, label="kind")
    for source, model in models.items():
        assert model.classes_.tolist() == known, source
        assert [type(label) for label in model.classes_.tolist()] == [type(k) for k in known]
        assert model.classes_.dtype == models["frame"].classes_.dtype
        for rows in (X, *paths.values(), pa.Table.from_pandas(X)):
            np.testing.assert_array_equal(model.predict_proba(rows), models["csv"].predict_proba(X))
            np.testing.assert_array_equal(model.predict(rows), models["csv"].predict(X))
    if base == "tree":
        assert ((models["csv"].predict(X) == known[1]) == (y == max(values))).mean() > 0.9


def test_polars_frames_are_frames(tmp_path):
    polars = pytest.importorskip("polars")
    frame = visits()
    frame.loc[:5, "town"] = None
    X, y = split(frame)
    table = polars.from_pandas(frame)
    of_polars = PartialScanClassifier(**WHOLE).fit(table.drop("kind"), table["kind"])
    of_pandas = PartialScanClassifier(**WHOLE).fit(X, y)
    assert of_polars.classes_.dtype == of_pandas.classes_.dtype == np.int64
    chances = of_pandas.predict_proba(X)
    np.testing.assert_array_equal(of_polars.predict_proba(X), chances)
    np.testing.assert_array_equal(of_pandas.predict_proba(table.drop("kind").lazy()), chances)


def test_the_file_itself_is_predicted_as_users_do_it_first(tmp_path):
    """With its index column, its label, and a column that was ignored."""
    frame = visits().assign(note="x")
    path = tmp_path / "t.csv"
    frame.to_csv(path)
    found = PartialScanClassifier(**WHOLE)
    with pytest.warns(DataNote, match=r"t\.csv: the first column has no name .* as an index"):
        found.fit_file(path, label="kind", ignore=["note"])
    assert found.feature_names_in_.tolist() == ["town", "age", "pay", "new"]
    chances = found.predict_proba(path)
    np.testing.assert_array_equal(found.predict_proba(pd.read_csv(path)), chances)
    np.testing.assert_array_equal(found.predict_proba(frame), chances)
    np.testing.assert_array_equal(found.predict_proba(frame[frame.columns[::-1]]), chances)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame.assign(other=1))
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame.drop(columns="age"))
    frame.drop(columns="age").to_csv(path)
    with pytest.raises(DataError, match=r"t\.csv, column 'age': the classifier needs this column"):
        found.predict(path)


@pytest.mark.parametrize("base", ["tree", "naive_bayes"])
def test_columns_may_be_named_by_integers(base, tmp_path):
    frame = visits()
    X, y = split(frame)
    named = PartialScanClassifier(base, **WHOLE).fit(X, y)
    numbered = X.set_axis(range(X.shape[1]), axis=1)
    found = PartialScanClassifier(base, **WHOLE).fit(numbered, y)
    chances = named.predict_proba(X)
    np.testing.assert_array_equal(found.predict_proba(numbered), chances)
    numbered.assign(kind=y).to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(found.predict_proba(tmp_path / "t.csv"), chances)
    of_file = PartialScanClassifier(base, **WHOLE).fit_file(tmp_path / "t.csv", label="kind")
    np.testing.assert_array_equal(of_file.predict_proba(numbered), chances)
    for model in (found, of_file):
        model.save(tmp_path / "m.skops")
        again = bl.load(tmp_path / "m.skops")
        np.testing.assert_array_equal(again.predict_proba(numbered), chances)
        np.testing.assert_array_equal(again.predict_proba(tmp_path / "t.csv"), chances)


def test_arrays_of_mixed_cells_are_predicted():
    X, y = split(visits())
    found = PartialScanClassifier(**WHOLE).fit(X, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        chances = found.predict_proba(X.to_numpy())
    np.testing.assert_array_equal(chances, found.predict_proba(X))
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="4 features"),
    ):
        found.predict(X.to_numpy()[:, :3])


PANDAS_TYPES = {
    "nullable": {"age": "Int64", "new": "boolean", "pay": "Float64", "town": "string"},
    "arrow": {"age": "int64[pyarrow]", "town": "string[pyarrow]", "new": "bool[pyarrow]"},
    "objects": {"age": object, "new": object, "pay": object},
    "categories": {"town": pd.CategoricalDtype(["Rom", "Ulm", "Kiel", "Bonn", "Oslo"])},
    "small": {"age": np.int8},
}


@pytest.mark.parametrize("case", PANDAS_TYPES)
def test_types_of_pandas(case):
    X, y = split(visits())
    X.loc[3, "new"] = X.loc[4, "new"]
    gaps = X.astype(PANDAS_TYPES[case])
    plain = PartialScanClassifier(**WHOLE).fit(X, y)
    found = PartialScanClassifier(**WHOLE).fit(gaps, y)
    chances = plain.predict_proba(X)
    for rows in (X, gaps, gaps.iloc[::-1].iloc[::-1]):
        np.testing.assert_array_equal(found.predict_proba(rows), chances)
        np.testing.assert_array_equal(plain.predict_proba(rows), chances)
    assert found._spec.text == ("town",)
    assert found._spec.texts == {"town": {"Bonn", "Ulm", "Kiel"}}


def test_truth_values_with_gaps_are_numbers(tmp_path):
    X, y = split(visits())
    X["new"] = X["new"].astype(object).where(X.index % 7 != 0, None)
    X["age"] = X["age"].astype("Int64").where(X.index % 5 != 0)
    paths = stored(X.assign(kind=y), tmp_path)
    found = PartialScanClassifier(**WHOLE).fit(X, y)
    assert found._spec.text == ("town",)
    for path in paths.values():
        model = PartialScanClassifier(**WHOLE).fit_file(path, label="kind")
        np.testing.assert_array_equal(model.predict_proba(X), found.predict_proba(path))


@pytest.mark.parametrize("labels", ["Int64", "boolean", "category", object, "string"])
def test_types_of_labels_of_pandas(labels):
    X, y = split(visits())
    kinds = {"boolean": (bool, [False, True]), "string": (str, ["0", "1"])}
    kind, known = kinds.get(labels, (int, [0, 1]))
    found = PartialScanClassifier(**WHOLE).fit(X, y.astype(kind).astype(labels))
    assert found.classes_.tolist() == known
    assert {type(label) for label in found.classes_.tolist()} == {kind}


# Missing cells ------------------------------------------------------------------------------------


def test_markers_for_missing_are_missing_and_told(tmp_path):
    frame = visits()
    text = frame.astype(object)
    text.loc[::9, "age"] = "NA"
    text.loc[::11, "town"] = "?"
    text.loc[::13, "kind"] = "n/a"
    text.to_csv(tmp_path / "t.csv", index=False)
    found = PartialScanClassifier(**WHOLE)
    with pytest.warns() as told:
        found.fit_file(tmp_path / "t.csv", label="kind")
    texts = {warning.category: str(warning.message) for warning in told}
    assert len(told) == 2
    assert (
        "t.csv: cells taken as missing: column 'town' 37 '?'; column 'age' 45 'NA'; "
        in (texts[DataNote])
    )
    assert "31 rows without a label are left out" in texts[DataWarning]
    assert found.classes_.tolist() == [0, 1]
    assert found._spec.text == ("town",)
    # As pandas reads it, in which "?" is text, and as gaps.
    gaps = frame.astype({"age": float, "kind": float})
    gaps.loc[::9, "age"] = np.nan
    gaps.loc[::11, "town"] = None
    gaps.loc[::13, "kind"] = np.nan
    of_frame = PartialScanClassifier(**WHOLE)
    with pytest.warns(DataWarning, match="31 rows without a label"):
        of_frame.fit(*split(gaps))
    chances = found.predict_proba(split(gaps)[0])
    np.testing.assert_array_equal(of_frame.predict_proba(split(gaps)[0]), chances)
    with pytest.warns(DataNote, match=r"cells taken as missing: column 'town' 37 '\?'"):
        read = found.predict_proba(pd.read_csv(tmp_path / "t.csv"))
    np.testing.assert_array_equal(read, chances)


def test_other_markers(tmp_path):
    frame = visits()
    frame.loc[::9, "age"] = -9
    frame.loc[::4, "town"] = "NA"
    paths = stored(frame, tmp_path)
    chances = []
    for path in paths.values():
        found = PartialScanClassifier(**WHOLE)
        found.fit_file(path, label="kind", missing_values={"age": [-9], "town": [""]})
        assert found._spec.texts["town"] == {"Bonn", "Ulm", "Kiel", "NA"}
        found.save(tmp_path / "m.skops")
        again = bl.load(tmp_path / "m.skops")
        chances.append(again.predict_proba(paths["csv"]))
        np.testing.assert_array_equal(found.predict_proba(paths["csv"]), chances[-1])
    np.testing.assert_array_equal(*chances)
    gaps = frame.astype({"age": float}).replace({"age": {-9: np.nan}})
    np.testing.assert_array_equal(again.predict_proba(gaps), chances[0])


def test_a_label_that_is_missing_everywhere_or_absent(tmp_path):
    path = tmp_path / "t.csv"
    visits().assign(kind="NA").to_csv(path, index=False)
    with pytest.raises(DataError, match=r"t\.csv, column 'kind': the label is missing in every"):
        PartialScanClassifier(**WHOLE).fit_file(path, label="kind")
    with pytest.raises(DataError, match="column 'Kind': there is no such column; did you mean"):
        PartialScanClassifier(**WHOLE).fit_file(path, label="Kind")
    X, y = split(visits())
    with pytest.raises(ValueError, match="all labels in y are missing"):
        PartialScanClassifier(**WHOLE).fit(X, y.astype("Int64").where(y > 1))
    with pytest.raises(ValueError, match="NaN"):
        PartialScanClassifier(**WHOLE).fit(X, np.where(y > 0, np.nan, 1.0))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_part_without_labels_is_passed_over(kind, tmp_path):
    frame = visits().astype({"kind": "Int64"})
    frame.loc[:99, "kind"] = pd.NA
    path = stored(frame, tmp_path)[kind]
    found = PartialScanClassifier(**IN_ORDER)
    with pytest.warns(DataWarning, match="100 rows without a label"):
        found.fit_file(path, label="kind")
    assert found.parts_ == [1, 2, 3]
    found = PartialScanClassifier(**WHOLE)
    with pytest.warns(DataWarning, match="100 rows without a label"):
        found.fit_file(path, label="kind")
    assert found.parts_ == [0, 1, 2, 3]
    of_frame = PartialScanClassifier(**WHOLE)
    with pytest.warns(DataWarning, match="100 rows without a label"):
        of_frame.fit(*split(frame))
    rows = split(frame)[0]
    np.testing.assert_array_equal(found.predict_proba(rows), of_frame.predict_proba(rows))


# Parts that contradict the first ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # parts of 100 rows
@pytest.mark.parametrize("column", ["age", "pay", "new", "kind"])
@pytest.mark.parametrize("empty_first", [False, True])
def test_a_column_that_turns_out_to_be_text(column, empty_first, tmp_path):
    text = visits().astype(object)
    if empty_first and column != "kind":
        text.loc[:150, column] = None
    text.loc[350, column] = "old"
    text.to_csv(tmp_path / "t.csv", index=False)
    found = PartialScanClassifier(**IN_ORDER)
    told = rf"t\.csv, line 352, column '{column}': holds 'old', but only .* restarted"
    with pytest.warns(DataNote, match=told) as caught:
        found.fit_file(tmp_path / "t.csv", label="kind")
    notes = [str(one.message) for one in caught if one.category is DataNote]
    assert len(notes) == 1 + (empty_first and column != "kind")
    assert len([note for note in notes if "151 empty" in note]) == len(notes) - 1
    if column == "kind":
        assert found.classes_.tolist() == ["0", "1", "old"]
        return
    assert found._spec.text == tuple(name for name in text if name in ("town", column))
    declared = PartialScanClassifier(**IN_ORDER)
    declared.fit_file(tmp_path / "t.csv", label="kind", categorical=[column])
    chances = declared.predict_proba(tmp_path / "t.csv")
    np.testing.assert_array_equal(found.predict_proba(tmp_path / "t.csv"), chances)
    # Rows that were read before the scan was started again are counted.
    assert 400 < found.scan_.rows_read <= 800
    assert found.scanned_fraction_ == 1.0


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # parts of 100 rows
def test_columns_that_turn_out_to_be_text_one_after_the_other(tmp_path):
    text = visits().astype(object)
    for row, column in ((150, "age"), (250, "pay"), (350, "new"), (351, "kind")):
        text.loc[row, column] = "old"
    text.to_csv(tmp_path / "t.csv", index=False)
    found = PartialScanClassifier(**IN_ORDER)
    with pytest.warns(DataNote) as caught:
        found.fit_file(tmp_path / "t.csv", label="kind")
    assert len([one for one in caught if one.category is DataNote]) == 4
    assert found._spec.text == ("town", "age", "pay", "new")
    assert found.classes_.tolist() == ["0", "1", "old"]


def test_integers_that_meet_floats_need_no_second_start(tmp_path):
    text = visits().astype(object)
    text["kind"] = [f"{label}.0" if row > 300 else label for row, label in enumerate(text["kind"])]
    text.to_csv(tmp_path / "t.csv", index=False)
    found = PartialScanClassifier(**WHOLE).fit_file(tmp_path / "t.csv", label="kind")
    assert found.classes_.tolist() == [0.0, 1.0]
    found = PartialScanClassifier(**WHOLE)
    found.fit_file(tmp_path / "t.csv", label="kind", classes=[1, 0])
    assert found.classes_.tolist() == [1, 0]
    with pytest.raises(
        DataError, match=r"the label (0|1)\.0 is not in .*; write (0|1)\.0, not '(0|1)'"
    ):
        found.fit_file(tmp_path / "t.csv", label="kind", classes=["1", "0"])


# Prediction ---------------------------------------------------------------------------------------


def test_texts_that_were_not_seen_are_told(tmp_path):
    X, y = split(visits())
    found = PartialScanClassifier(**WHOLE).fit(X, y)
    strange = X.copy()
    strange.loc[:4, "town"] = ["Rom", "Oslo", "Rom", "rom", "Lund"]
    strange.loc[:, "age"] = 500  # a number is never unseen
    strange.to_csv(tmp_path / "new.csv", index=False)
    told = r"column 'town' 5 cells \('Rom', .*, …\)"
    with pytest.warns(DataWarning, match=told) as caught:
        found.predict(strange)
    assert len(caught) == 1
    found.save(tmp_path / "m.skops")
    with pytest.warns(DataWarning, match=rf"new\.csv: values .* {told}"):
        bl.load(tmp_path / "m.skops").predict(tmp_path / "new.csv")
    # Parts that lack a value that others have are no reason to warn.
    X.loc[399, "town"] = "Rom"
    PartialScanClassifier(**WHOLE).fit(X, y).predict(X)


def test_texts_of_parts_that_were_not_read_are_unseen():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.choice(["a", "b"], 6000)})
    y = X["x"] == "a"
    X.loc[5990:, "x"] = "late"
    found = PartialScanClassifier("tree", 64, shuffle=False, random_state=0).fit(X, y)
    assert found.scanned_fraction_ < 1.0
    with pytest.warns(DataWarning, match=r"column 'x' 10 cells \('late'\)"):
        found.predict(X)


def test_text_where_numbers_were_learned(tmp_path):
    X, y = split(visits())
    found = PartialScanClassifier(**WHOLE).fit(X, y)
    wrong = X.astype(object)
    wrong.loc[7, "age"] = "old"
    wrong.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"row 7, column 'age': the cell is 'old', but the column"):
        found.predict(wrong)
    with pytest.raises(DataError, match=r"t\.csv, line 9, column 'age': the cell is 'old'"):
        found.predict(tmp_path / "t.csv")
    # Numbers where text was learned are names.
    coded = X.assign(town=X["town"].map({"Bonn": "1", "Ulm": "2", "Kiel": "x"}))
    found = PartialScanClassifier(**WHOLE).fit(coded, y)
    chances = found.predict_proba(coded)
    rows = coded["town"] != "x"
    some = coded[rows].astype({"town": float})
    np.testing.assert_array_equal(found.predict_proba(some), chances[rows])
    coded[rows].to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(found.predict_proba(tmp_path / "t.csv"), chances[rows])


# Benefits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["frame", "csv", "parquet"])
def test_benefit_keys_match_labels_by_value(source, tmp_path):
    frame = visits()
    paths = stored(frame, tmp_path)
    X, y = split(frame)

    def fit(benefit, **options):
        found = PartialScanClassifier(benefit=benefit, **WHOLE)
        if source == "frame":
            return found.fit(X, y)
        return found.fit_file(paths[source], label="kind", **options)

    costly = [fit({(one, one): 9.0, (zero, zero): 1.0}) for zero, one in ((0, 1), (0.0, True))]
    np.testing.assert_array_equal(costly[0].predict(X), costly[1].predict(X))
    told = "the labels are 0, 1; they are integers: write 1, not '1'"
    with pytest.raises(ValueError, match=told):
        fit({("1", "1"): 9.0})
    with pytest.raises(ValueError, match="benefit names 2, which is not a label"):
        fit({(1, 1): 9.0, (2, 1): 1.0})
    if source != "frame":
        with pytest.raises(ValueError, match="benefit names 2, which is not a label"):
            fit({(1, 1): 9.0, (2, 1): 1.0}, classes=[0, 1])
        fit({(1, 1): 9.0, (2, 1): 1.0}, classes=[0, 1, 2])


def test_a_benefit_key_that_no_part_read_has(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40_000).round(6)
    y = np.where(x > 0, "yes", "no").astype(object)
    y[39_990:] = "late"
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "t.csv", index=False)
    with (tmp_path / "t.csv").open("a") as stream:
        stream.write("a row that is too short\n")  # an error, if it is read
    benefit = {("yes", "yes"): 1.0, ("no", "no"): 1.0, ("lat", "lat"): 1.0}
    options = {"n_partitions": 64, "shuffle": False, "random_state": 0}
    found = PartialScanClassifier("tree", benefit=benefit, **options)
    with pytest.warns(DataWarning, match="benefit names 'lat', which is not a label of the rows"):
        found.fit_file(tmp_path / "t.csv", label="y")
    assert found.scanned_fraction_ < 1.0
    wrong = PartialScanClassifier("tree", benefit={("Yes", "Yes"): 1.0}, **options)
    with pytest.raises(ValueError, match="write 'yes', not 'Yes'"):
        wrong.fit_file(tmp_path / "t.csv", label="y")


# Saved models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", LABELS)
def test_saved_models_keep_the_types(case, tmp_path):
    values, known = LABELS[case]
    frame = visits()
    frame["kind"] = [values[code] for code in frame["kind"]]
    path = stored(frame, tmp_path)["parquet"]
    found = PartialScanClassifier(**WHOLE).fit_file(path, label="kind")
    found.save(tmp_path / "m.skops")
    again = bl.load(tmp_path / "m.skops")
    assert again.classes_.dtype == found.classes_.dtype
    assert again.classes_.tolist() == known
    assert again._spec == found._spec
    np.testing.assert_array_equal(again.predict(path), found.predict(path))
    np.testing.assert_array_equal(again.predict_proba(frame), found.predict_proba(frame))


def test_parquet_with_categories_dates_and_nulls(tmp_path):
    frame = visits()
    table = pa.table(
        {
            "town": pa.array(frame["town"]).dictionary_encode(),
            "day": [DAYS[age % 2] if age % 5 else None for age in frame["age"].tolist()],
            "age": pa.array(frame["age"], pa.int16()),
            "new": [None if row % 3 else bool(new) for row, new in enumerate(frame["new"])],
            "none": pa.nulls(len(frame)),
            "kind": pa.array(frame["kind"], pa.uint8()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    found = PartialScanClassifier(n_partitions=4, random_state=0)
    found.fit_file(tmp_path / "t.parquet", label="kind")
    assert found.classes_.dtype == np.int64
    assert found._spec.text == ("town", "day")
    chances = found.predict_proba(tmp_path / "t.parquet")
    np.testing.assert_array_equal(found.predict_proba(table), chances)
    np.testing.assert_array_equal(found.predict_proba(table.to_pandas()), chances)
