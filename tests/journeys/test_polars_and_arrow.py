"""A polars user, from a scan of a file to predictions, without pandas."""

import datetime as dt

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import bayes_lcs as bl
from tests.journeys.inputs import assert_all_equal


@pytest.fixture
def trips():
    """Trips by day, sorted by time; polars' own types, with nulls."""
    rng = np.random.default_rng(4)
    weekend = np.arange(420) % 7 >= 5
    day = [dt.date(2024, 1, 1) + dt.timedelta(int(d)) for d in np.arange(420) % 7]
    noise = rng.random((2, 420)) < 0.1
    return pl.DataFrame(
        {
            "driver": pl.Series(rng.choice(["ann", "bob", "cleo"], 420), dtype=pl.Categorical),
            "day": day,
            "purpose": pl.Series(
                np.where(weekend ^ noise[0], "leisure", "work"), dtype=pl.Enum(["work", "leisure"])
            ),
            "passengers": pl.Series(
                [None if n else int(w) for w, n in zip(weekend, noise[1], strict=True)],
                dtype=pl.UInt8,
            ),
            "late": weekend,
        }
    )


def forms(trips, folder):
    trips.write_parquet(folder / "t.parquet")
    trips.write_csv(folder / "t.csv")
    return {
        "polars": trips,
        "lazy": pl.scan_parquet(folder / "t.parquet"),
        "Arrow": trips.to_arrow(),
        "record batch": pa.Table.from_batches(trips.to_arrow().to_batches()),
        "data set": ds.dataset(folder / "t.parquet"),
        "pandas": trips.to_pandas(),
        "CSV": folder / "t.csv",
        "Parquet": folder / "t.parquet",
    }


def test_clusters_of_a_polars_frame(trips, tmp_path):
    rows = forms(trips.drop("driver", "late", "day"), tmp_path)
    models = {
        name: bl.MixtureClusterer(2, tol=1e-9, random_state=0).fit(given)
        for name, given in rows.items()
    }
    for name, model in models.items():
        # An Enum declares its order; CSV cannot, and sorts by letters.
        order = ["leisure", "work"] if name == "CSV" else ["work", "leisure"]
        assert model.categories_[0].tolist() == order, name
        assert model.categories_[1].tolist() == [0, 1]
    likelihoods = {name: model.score(trips) for name, model in models.items()}
    assert_all_equal({name: round(value, 6) for name, value in likelihoods.items()})
    model = models["polars"]
    assert_all_equal({name: model.predict(given) for name, given in rows.items()})
    assert_all_equal({"all": model.predict(trips), "some": model.predict(rows["polars"])})


def test_groups_of_a_polars_frame(trips, tmp_path):
    rows = forms(trips, tmp_path)
    tables = {
        name: bl.GroupedTable.from_frame(given, group="driver", label="late")
        for name, given in rows.items()
        if name not in ("CSV", "Parquet")
    }
    tables["Parquet"] = bl.read_grouped(tmp_path / "t.parquet", group="driver", label="late")
    assert_all_equal({name: data.features for name, data in tables.items()})
    for data in tables.values():
        assert data.values[0][0] == "2024-01-01"
        assert list(data.typed_label_values) == [False, True]
    posterior = bl.exact(bl.ClusteredNaiveBayes(), tables["polars"])
    assert_all_equal({name: posterior.predict_proba(given) for name, given in rows.items()})


def test_labels_of_a_polars_frame_are_learned(trips, tmp_path):
    y = trips["late"]
    X = trips.drop("late")
    scan = bl.PartialScanClassifier("naive_bayes", n_partitions=4, early_stop=False)
    scan.fit(X, y)
    assert scan.classes_.tolist() == [False, True]
    assert (scan.predict(X) == y.to_numpy()).mean() > 0.9
    np.testing.assert_array_equal(scan.predict(X.to_pandas()), scan.predict(X))
    np.testing.assert_array_equal(scan.predict(X.to_arrow()), scan.predict(X))

    shared = bl.SharedNaiveBayesClassifier("complete")
    shared.fit(trips, "late", groups="driver")
    expected = shared.predict(trips, groups="driver")
    shared.fit(X.drop("driver"), y, groups=trips["driver"])
    np.testing.assert_array_equal(
        shared.predict(X.drop("driver"), groups=trips["driver"]), expected
    )


def test_points_of_a_polars_frame(points):
    frame = pl.from_pandas(points).with_columns(name=pl.lit("p"))
    with pytest.warns(bl.DataNote, match="name"):
        model = bl.KMeans(3, random_state=0).fit(frame)
    np.testing.assert_array_equal(
        model.predict(frame), bl.KMeans(3, random_state=0).fit(points).predict(points)
    )
    with pytest.warns(bl.DataNote, match="name"):
        small = bl.coreset(frame, 3, 50, random_state=0)
    np.testing.assert_array_equal(small.points, bl.coreset(points, 3, 50, random_state=0).points)
