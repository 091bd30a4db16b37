"""Parquet as data engineers write it: small integers, flags, dates, categories, nulls."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import bayes_lcs as bl
from tests.journeys.inputs import assert_all_equal


@pytest.fixture
def orders():
    """Every type that a category may have, each with nulls."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, 300)
    likely = rng.random((6, 300)) < 0.9
    days = [dt.date(2024, 3, 1), dt.date(2024, 11, 30)]
    pick = lambda i, values: [values[int(k == ok)] for k, ok in zip(kind, likely[i], strict=True)]  # noqa: E731
    columns = {
        "small": pa.array(pick(0, [-1, 7]), pa.int8()),
        "flag": pa.array(pick(1, [True, False]), pa.bool_()),
        "day": pa.array(pick(2, days), pa.date32()),
        "color": pa.array(pick(3, ["red", "blue"])).dictionary_encode(),
        "price": pa.array(pick(4, [decimal.Decimal("1.50"), decimal.Decimal("2.00")])),
        "ratio": pa.array(pick(5, [0.1, 0.5]), pa.float32()),
        "buys": pa.array(kind, pa.int16()),
        "shop": pa.array(rng.integers(1, 5, 300), pa.uint8()),
    }
    table = pa.table(columns)
    for i, name in enumerate(["small", "flag", "day", "color", "price", "ratio"]):
        cells = table.column(name).combine_chunks()
        holes = pa.array(np.arange(300) % 10 == i)
        cells = pa.compute.if_else(holes, pa.scalar(None, cells.type), cells)
        table = table.set_column(table.column_names.index(name), name, cells)
    return table


FEATURES = ["small", "flag", "day", "color", "price", "ratio"]


def files(table, folder):
    """The same cells as Parquet, CSV, and as pandas reads both."""
    pq.write_table(table, folder / "t.parquet")
    pa.csv.write_csv(table, folder / "t.csv")
    return {
        "Arrow": table,
        "Parquet": folder / "t.parquet",
        "CSV": folder / "t.csv",
        "frame of Parquet": pd.read_parquet(folder / "t.parquet"),
        "frame with Arrow types": pd.read_parquet(folder / "t.parquet", dtype_backend="pyarrow"),
        "frame with nullable types": pd.read_parquet(
            folder / "t.parquet", dtype_backend="numpy_nullable"
        ),
        "frame of CSV": pd.read_csv(folder / "t.csv"),
    }


def test_a_mixture_has_typed_categories_from_every_source(orders, tmp_path):
    forms = files(orders.select(FEATURES), tmp_path)
    models = {
        name: bl.MixtureClusterer(2, random_state=0).fit(rows) for name, rows in forms.items()
    }
    for name, model in models.items():
        assert [values.tolist() for values in model.categories_] == [
            [-1, 7],
            [False, True],
            ["2024-03-01", "2024-11-30"],
            ["blue", "red"],
            [1.5, 2.0],
            [0.1, 0.5],
        ], name
    assert_all_equal({name: model.score(forms["Parquet"]) for name, model in models.items()})
    for model in (models["Parquet"], models["CSV"], models["frame of Parquet"]):
        assert_all_equal({name: model.predict(rows) for name, rows in forms.items()})

    read = bl.MixtureClusterer(2, random_state=0).fit_file(tmp_path / "t.parquet")
    assert read.score(forms["CSV"]) == pytest.approx(models["CSV"].score(forms["CSV"]), abs=1e-9)
    truth = orders.column("buys").to_numpy()
    agree = (read.predict(forms["Arrow"]) == truth).mean()
    assert max(agree, 1 - agree) > 0.95


def test_grouped_tables_are_the_same_from_every_source(orders, tmp_path):
    forms = files(orders, tmp_path)
    tables = {
        name: bl.read_grouped(rows, group="shop", label="buys")
        if name in ("Parquet", "CSV")
        else bl.GroupedTable.from_frame(rows, group="shop", label="buys")
        for name, rows in forms.items()
    }
    assert_all_equal({name: data.features for name, data in tables.items()})
    assert_all_equal({name: data.labels for name, data in tables.items()})
    assert {data.values for data in tables.values()} == {
        (
            ("-1", "7"),
            ("False", "True"),
            ("2024-03-01", "2024-11-30"),
            ("blue", "red"),
            ("1.5", "2"),
            ("0.1", "0.5"),
        )
    }
    assert {data.group_names for data in tables.values()} == {tables["CSV"].group_names}
    counted = bl.read_counts(tmp_path / "t.parquet", group="shop", label="buys")
    model = bl.NoSharing()
    expected = bl.evidence(model, tables["CSV"]).value
    assert bl.evidence(model, counted).value == pytest.approx(expected, abs=1e-9)

    posterior = bl.exact(bl.ClusteredNaiveBayes(), tables["CSV"])
    assert_all_equal({name: posterior.predict_proba(rows) for name, rows in forms.items()})


@pytest.mark.parametrize("label", ["buys", "flag", "color", "day"])
@pytest.mark.filterwarnings("ignore:.*rows without a label:bayes_lcs.DataWarning")
def test_labels_of_every_type_can_be_scanned(orders, tmp_path, label):
    known = orders.filter(pa.compute.is_valid(orders.column(label)))
    expected = sorted(set(known.column(label).to_pylist()))
    if label == "day":
        expected = [day.isoformat() for day in expected]
    pq.write_table(orders, tmp_path / "t.parquet")
    pa.csv.write_csv(orders, tmp_path / "t.csv")
    found = {}
    for path in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
        scan.fit_file(path, label=label)
        assert scan.classes_.tolist() == expected
        found[path.suffix] = scan.predict(tmp_path / "t.parquet")
        assert set(found[path.suffix].tolist()) <= set(expected)
    assert_all_equal(found)


def test_a_label_of_fractions_is_refused_from_every_source(orders, tmp_path):
    pq.write_table(orders, tmp_path / "t.parquet")
    pa.csv.write_csv(orders, tmp_path / "t.csv")
    scan = bl.PartialScanClassifier("tree", n_partitions=4)
    for path in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        with pytest.raises(bl.DataError, match=r"column 'ratio': .* measurement, not a class"):
            scan.fit_file(path, label="ratio")
    frame = orders.to_pandas().dropna()
    with pytest.raises(ValueError, match="Unknown label type"):
        scan.fit(frame.drop(columns="ratio"), frame["ratio"])


def test_numbers_match_by_value_where_pandas_made_floats(tmp_path):
    whole = pd.DataFrame({"a": [1, 2, 2, 1] * 20, "b": [0, 1, 1, 0] * 20})
    model = bl.MixtureClusterer(2, random_state=0).fit(whole)
    holes = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [0.0, np.nan, 1.0]})
    holes.to_csv(tmp_path / "t.csv", index=False)
    expected = model.predict_proba(pd.DataFrame({"a": [1, 2, None], "b": [0, None, 1]}))
    np.testing.assert_array_equal(model.predict_proba(holes), expected)
    np.testing.assert_array_equal(model.predict_proba(tmp_path / "t.csv"), expected)
    assert abs(expected[0, 0] - 0.5) > 0.1  # the values are recognised


def test_categories_that_do_not_occur_are_no_parameters(tmp_path):
    cells = ["a", "b", "a", "b", "b"]
    plain = pd.DataFrame({"x": cells, "y": cells})
    wide = plain.astype(pd.CategoricalDtype(["a", "b", "c", "d"]))
    wide.to_parquet(tmp_path / "t.parquet")
    bics = {
        "plain": bl.MixtureClusterer(2, random_state=0).fit(plain).bic(plain),
        "wide": bl.MixtureClusterer(2, random_state=0).fit(wide).bic(wide),
        "file": bl.MixtureClusterer(2, random_state=0).fit(tmp_path / "t.parquet").bic(plain),
    }
    assert_all_equal(bics)


def test_ordered_categories_keep_their_order(tmp_path):
    sizes = pd.CategoricalDtype(["small", "medium", "large"], ordered=True)
    frame = pd.DataFrame({"size": ["large", "small", "medium", "small"], "u": list("aabb")})
    frame["buys"] = [1, 0, 1, 0]
    frame["size"] = frame["size"].astype(sizes)
    frame.to_parquet(tmp_path / "t.parquet")
    from_file = bl.read_grouped(tmp_path / "t.parquet", group="u", label="buys")
    from_frame = bl.GroupedTable.from_frame(frame, group="u", label="buys")
    assert from_file.values == from_frame.values == (("small", "medium", "large"),)


def test_a_column_that_is_empty_at_first_is_not_numeric(tmp_path):
    rows = 70_000  # more than a batch
    frame = pd.DataFrame({"late": [None] * (rows - 2) + ["x", "y"], "a": np.arange(rows) % 2})
    frame["late"] = frame["late"].astype("string")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=30_000)
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        for fitted in (
            bl.MixtureClusterer(1, max_iter=3).fit_file(path),
            bl.MixtureClusterer(1, max_iter=3).fit(path),
        ):
            assert fitted.categories_[0].tolist() == ["x", "y"]


def test_frames_with_numbered_columns(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 3, (200, 3)))  # columns 0, 1, 2
    y = (frame[0] + frame[1] > 2).to_numpy()
    scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
    scan.fit(frame, y)
    assert (scan.predict(frame) == y).mean() > 0.95
    assert scan.classes_.tolist() == [False, True]
    model = bl.MixtureClusterer(2, random_state=0).fit(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    kmeans = bl.KMeans(2, random_state=0).fit(frame)
    with pytest.warns(UserWarning, match="feature names"):  # scikit-learn knows no numbered names
        np.testing.assert_array_equal(model.predict(tmp_path / "t.csv"), model.predict(frame))
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(kmeans.predict(tmp_path / "t.csv"), kmeans.predict(frame))
    data = bl.GroupedTable.from_frame(frame, group=0, label=2)
    assert data.feature_names == ("1",)


@pytest.mark.parametrize(
    "make", [bl.MixtureClusterer, lambda k, **o: bl.GeneralizedClusterer("naive_bayes", k, **o)]
)
def test_dates_and_durations_are_text_from_every_source(tmp_path, make):
    days = ["2020-01-01", "2020-01-02", "2020-03-05"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"day": pd.to_datetime(rng.choice(days, 60)), "kind": rng.choice(["a", "b"], 60)}
    )
    frame["span"] = frame["day"] - pd.Timestamp(days[0])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    from_frame = make(2, random_state=0).fit(frame)
    expected = from_frame.predict(frame)
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        np.testing.assert_array_equal(from_frame.predict(path), expected)
        np.testing.assert_array_equal(make(2, random_state=0).fit(path).predict(frame), expected)
    if isinstance(from_frame, bl.MixtureClusterer):
        assert [values.tolist() for values in from_frame.categories_] == [
            days, ["a", "b"], ["0 days", "1 days", "64 days"],
        ]  # fmt: skip
