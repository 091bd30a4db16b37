"""One rule for types: CSV, Parquet, polars, Arrow, pandas and arrays give equal tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayes_lcs as bl
from bayes_lcs.core.errors import DataError, DataNote, DataWarning
from bayes_lcs.data.grouped_table import GroupedTable

Write = Callable[..., Path]
ROLES: dict[str, Any] = {"group": "who", "label": "buys"}


def mixed(num_rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "who": rng.choice(["NA", "ann", "bob"], num_rows),
            "count": rng.integers(8, 12, num_rows),
            "share": rng.choice([0.5, 1.0, 2.25], num_rows),
            "holes": np.where(rng.random(num_rows) < 0.3, np.nan, rng.integers(0, 3, num_rows)),
            "flag": rng.random(num_rows) < 0.5,
            "day": pd.to_datetime("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 3, num_rows), "D"),
            "town": rng.choice(["Ulm", "NA", "?", "Bonn"], num_rows),
            "code": rng.choice(["007", "08", "x"], num_rows),
            "level": pd.Categorical(rng.choice(["low", "mid"], num_rows), ["mid", "low", "no"]),
            "buys": rng.integers(0, 2, num_rows),
        }
    )
    frame.loc[3, "who"] = None
    return frame


def sources(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same rows in every form that a user may have."""
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "index.csv")
    frame.to_parquet(folder / "t.parquet")
    found = {
        "csv": folder / "t.csv",
        "csv with index": folder / "index.csv",
        "parquet": folder / "t.parquet",
        "pandas": frame,
        "read_csv": pd.read_csv(
            folder / "t.csv", dtype={"code": str}, keep_default_na=False, na_values={"holes": ""}
        ),
        "read_csv with index": pd.read_csv(
            folder / "index.csv", dtype={"code": str}, keep_default_na=False, na_values=[""]
        ),
        "arrow": pa.Table.from_pandas(frame),
        "data set": pa.dataset.dataset(folder / "t.parquet"),
    }
    try:
        import polars as pl
    except ImportError:
        return found
    found["polars"] = pl.from_pandas(frame)
    found["polars from file"] = pl.read_parquet(folder / "t.parquet")
    return found


def read(source: Any, **options: Any) -> GroupedTable:
    options = {**ROLES, **options}
    if isinstance(source, Path):
        return bl.read_grouped(source, **options)
    return GroupedTable.from_frame(source, **options)


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataNote")
@pytest.mark.filterwarnings("ignore:.*rows? without a group:bayes_lcs.core.errors.DataWarning")
def test_every_kind_of_input_gives_the_same_table(tmp_path: Path) -> None:
    import pyarrow.dataset  # noqa: F401

    frame = mixed()
    tables = {name: read(source) for name, source in sources(frame, tmp_path).items()}
    expected = tables["pandas"]
    assert expected.num_rows == len(frame) - 1
    assert dict(zip(expected.feature_names, expected.values, strict=True)) == {
        "count": ("8", "9", "10", "11"),
        "share": ("0.5", "1", "2.25"),
        "holes": ("0", "1", "2"),
        "flag": ("False", "True"),
        "day": ("2024-01-01", "2024-01-02", "2024-01-03"),
        "town": ("Bonn", "Ulm"),
        "code": ("007", "08", "x"),
        "level": ("low", "mid"),
    }
    assert set(expected.group_names) == {"NA", "ann", "bob"}
    for name, table in tables.items():
        assert table == expected, name
        assert table.content_hash() == expected.content_hash(), name
        assert table.typed_label_values.tolist() == [0, 1], name
    counted = bl.read_counts(tmp_path / "t.csv", **ROLES)
    assert counted == bl.read_counts(tmp_path / "t.parquet", **ROLES)
    assert counted.values == expected.values
    np.testing.assert_array_equal(counted.counts().features, expected.counts().features)


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataNote")
def test_every_kind_of_row_is_predicted_alike(tmp_path: Path) -> None:
    frame = mixed().dropna(subset="who").reset_index(drop=True)
    posterior = bl.exact(bl.CompleteSharing(), read(frame))
    expected = posterior.predict_proba(frame)
    for name, rows in sources(frame, tmp_path).items():
        np.testing.assert_array_equal(posterior.predict_proba(rows), expected, err_msg=name)


@pytest.mark.parametrize(
    ("cells", "names", "kind"),
    [
        (["1.0", "2.0"], ("1", "2"), "float"),
        (["1.50", "1.5"], ("1.5",), "float"),
        (["10", "9"], ("9", "10"), "integer"),
        (["true", "TRUE"], ("True",), "boolean"),
        (["true", "yes"], ("true", "yes"), "text"),
        (["007", "7"], ("007", "7"), "text"),
        (["+1", "1"], ("+1", "1"), "text"),
        (["1", "1.0"], ("1",), "float"),
        (["1", "NA"], ("1",), "integer"),
        (["2024-01-02", "2024-01-01"], ("2024-01-01", "2024-01-02"), "text"),
    ],
)
@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataNote")
def test_cells_of_a_csv_file(
    write: Write, cells: list[str], names: tuple[str, ...], kind: str
) -> None:
    lines = [f"u{row},{cell},{row % 2}" for row, cell in enumerate(cells * 2)]
    path = write("\n".join(["who,x,buys", *lines]))
    table = bl.read_grouped(path, **ROLES)
    assert table.values == (names,)
    assert table.value_types == (kind,)
    counted = bl.read_counts(path, **ROLES)
    assert counted.values == (names,)
    np.testing.assert_array_equal(counted.counts().features, table.counts().features)


def test_rows_without_a_group_are_dropped_counted_and_warned_of(write: Write) -> None:
    path = write("who,x,buys\n,only here,no\nann,a,no\nann,b,yes\n,a,no\nNA,a,no\n")
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    kept = frame.dropna()
    expected = read(kept)
    assert expected.group_names == ("ann", "NA")
    masked = np.ma.array(["x", "ann", "ann", "x", "NA"], mask=[1, 0, 0, 1, 0])
    calls: list[Callable[[], GroupedTable]] = [
        lambda: read(path),
        lambda: read(frame),
        lambda: read(pa.Table.from_pandas(frame)),
        lambda: from_arrays(frame["who"]),
        lambda: from_arrays(masked),
    ]

    def from_arrays(groups: Any) -> GroupedTable:
        return GroupedTable.from_arrays(
            frame[["x"]].to_numpy(),
            frame["buys"],
            groups,
            feature_names=["x"],
            label_name="buys",
            group_name="who",
        )

    for call in calls:
        with pytest.warns(DataWarning, match="2 rows without a group are left out"):
            assert call() == expected
    with pytest.warns(DataWarning, match="2 rows without a group are left out"):
        counted = bl.read_counts(path, **ROLES)
    assert counted.values == expected.values
    np.testing.assert_array_equal(counted.counts().features, expected.counts().features)
    with pytest.warns(DataWarning, match="1 row without a group"):
        coded = GroupedTable.from_arrays([[0], [1]], [0, 1], ["u", None], num_values=2)
    assert coded.features.tolist() == [[0]]
    with pytest.raises(DataError, match=r"people\.csv, line 2, column 'who': the row has no group"):
        expected.encode(path)


def notes_of(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if issubclass(one.category, DataNote)]


def test_all_missing_cells_are_announced_for_every_kind_of_input(tmp_path: Path) -> None:
    rows = 40
    frame = pd.DataFrame({"who": ["ann", "bob"] * 20, "x": ["p", "q"] * 20, "y": [1.0, 2.0] * 20})
    frame["buys"] = ["no", "no", "yes", "yes"] * 10
    frame.loc[:2, "x"] = None
    frame.loc[5, "x"] = "NA"
    frame.loc[7:8, "y"] = np.nan
    frame.loc[9, "buys"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    table = pa.Table.from_pandas(frame)
    polars = pytest.importorskip("polars").from_pandas(frame)
    features = "cells taken as missing: column 'x' 3 empty, 1 'NA'; column 'y' 2 empty"
    end = "; missing_values= changes this"
    label = "; column 'buys' 1 empty"
    files = [tmp_path / "t.csv", tmp_path / "t.parquet"]
    for source in (*files, frame, table, polars):
        is_file = isinstance(source, Path)
        where = f"{source.name}: " if isinstance(source, Path) else ""
        read = bl.read_grouped if is_file else GroupedTable.from_frame
        told = notes_of(lambda read=read, source=source: read(source, **ROLES))  # type: ignore[misc]
        assert told == [where + features + label + end]
        bayes = bl.SharedNaiveBayesClassifier(sharing="none", draws=20, chains=1)
        told = notes_of(lambda b=bayes, s=source: b.fit(s, "buys", "who"))  # type: ignore[misc]
        known = [where + features + label + end]
        if source is frame:  # labels are looked at before the rows
            known = [f"cells taken as missing: column 'y' 1 empty{end}", features + end]
        assert told == known
        assert notes_of(lambda b=bayes, s=source: b.predict(s)) in (  # type: ignore[misc]
            [f"{where}cells taken as missing: column 'x' 1 'NA'{end}"],
            [f"cells taken as missing: column 'x' 1 'NA'{end}"],
        )
        mixture = bl.MixtureClusterer(1, random_state=0)
        told = notes_of(lambda m=mixture, s=source: m.fit(s))  # type: ignore[misc]
        assert told == [where + features + label + end]
        scan = bl.PartialScanClassifier(random_state=0)
        X = frame.drop(columns=["who", "buys"]) if source is frame else None
        if X is not None:
            told = notes_of(lambda s=scan, X=X: s.fit(X, np.arange(rows) % 2))  # type: ignore[misc]
            assert told == [features + end]
        elif is_file:
            told = notes_of(lambda s=scan, f=source: s.fit_file(f, label="buys", ignore=["who"]))  # type: ignore[misc]
            assert told == [where + features + label + end]
            told = notes_of(lambda m=mixture, f=source: m.fit_file(f))  # type: ignore[misc]
            assert told == [where + features + label + end]
    X = frame[["y", "y"]].to_numpy()
    known = [f"cells taken as missing: column 'x0' 2 empty; column 'x1' 2 empty{end}"]
    assert notes_of(lambda: bl.MixtureClusterer(1, random_state=0).fit(X)) == known
    scan = bl.PartialScanClassifier(random_state=0)
    assert notes_of(lambda: scan.fit(X, np.arange(rows) % 2)) == known
    (told,) = notes_of(lambda: GroupedTable.from_arrays(X, label_values=[0, 1]))
    assert "column 'feature_0' 2 empty; column 'feature_1' 2 empty;" in told


def test_at_most_eight_columns_of_missing_cells_are_listed() -> None:
    frame = pd.DataFrame({f"c{place}": [None, "a", "b"] for place in range(11)})
    frame["who"], frame["buys"] = "ann", ["no", "yes", "no"]
    (told,) = notes_of(lambda: GroupedTable.from_frame(frame, **ROLES))
    assert "column 'c7' 1 empty; and 3 cells in 3 more columns; missing_values=" in told
    assert "'c8'" not in told


def test_markers_are_announced_once_with_their_numbers(write: Write) -> None:
    path = write("who,x,y,buys\nann,NA,1,no\nann,?,2,yes\nbob,a,n/a,NULL\nbob,?,1,no\n")
    said = (
        "cells taken as missing: column 'x' 1 'NA', 2 '?'; column 'y' 1 'n/a'; column 'buys' 1 "
        "'NULL'; missing_values= changes this"
    )
    frame = pd.read_csv(path, keep_default_na=False)
    for source in (path, frame, pa.Table.from_pandas(frame)):
        with pytest.warns(DataNote) as caught:
            table = read(source)
        assert len(caught) == 1
        assert str(caught[0].message).endswith(said)
        assert Path(caught[0].filename) == Path(__file__)
        assert table.values[0] == ("a",)
        assert table.labels.tolist() == [0, 1, -1, 0]
    assert read(path).value_types == ("text", "integer")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(path, missing_values=["NA", "?", "n/a", "NULL"])  # the user knows


def test_numbers_that_are_listed_as_missing(write: Write, tmp_path: Path) -> None:
    path = write("who,x,buys\nann,-9.0,0\nann,2,1\nbob,3,0\n")
    frame = pd.read_csv(path)
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (path, frame, tmp_path / "t.parquet", pa.Table.from_pandas(frame)):
        for listed in ([-9], ["-9"]):
            assert read(source, missing_values={"x": listed}).values == (("2", "3"),)


def test_declared_values_are_not_missing_and_need_not_occur(write: Write) -> None:
    path = write("who,x,buys\nann,NA,0\nann,EU,1\nbob,1,0\n")
    table = read(path, values={"x": ["NA", "EU", "1", "AS"]}, label_values=["1", "0", "2"])
    assert table.features[:, 0].tolist() == [0, 1, 2]
    assert table.typed_label_values.tolist() == [1, 0, 2]
    assert table.encode(table.to_frame()) == table
    path = write("who,x,buys\nann,1.0,true\nbob,2.50,true\n")
    table = read(path, values={"x": ["2.50", "1.0"]}, label_values=["true", "unknown"])
    assert table.values == (("2.5", "1"),)
    assert table.label_values == ("true", "unknown")


def test_an_index_column_is_set_aside_unless_it_is_named(write: Write) -> None:
    path = write(",who,x,buys\n0,ann,a,no\n1,ann,b,yes\n2,bob,a,no\n")
    frame = pd.read_csv(path)
    unnamed = frame.rename(columns={"Unnamed: 0": ""})
    for source in (path, frame, unnamed, pa.Table.from_pandas(unnamed)):
        with pytest.warns(DataNote, match="the first column has no name"):
            assert read(source).feature_names == ("x",)
        for ignore in ("", "Unnamed: 0"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert read(source, ignore=[ignore]).feature_names == ("x",)
    assert read(path, features=["Unnamed: 0", "x"]).num_features == 2
    assert read(path, bins={"Unnamed: 0": 2}).num_features == 2
    by_row = bl.read_grouped(path, group="Unnamed: 0", label="buys", ignore=["who"])
    assert by_row.group_names == ("0", "1", "2")


def test_columns_named_by_integers() -> None:
    frame = pd.DataFrame({0: ["u", "u", "v"], 1: ["a", "b", "a"], 2: [0, 1, 0]})
    expected = GroupedTable.from_frame(frame, group=0, label=2, features=[1])
    assert expected.feature_names == ("1",)
    assert GroupedTable.from_frame(frame, group="0", label="2", values={1: ["a", "b"]}) == expected
    assert expected.encode(frame) == expected


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([5, 7, 5], "integer"), ([0.5, 1.0, 0.5], "float"), ([True, False, True], "boolean")],
)
@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_labels_have_their_type_everywhere(labels: list[Any], kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": ["u", "u", "v"] * 8, "x": ["a", "b", "a"] * 8, "buys": labels * 8})
    table = read(frame)
    assert table.label_type == kind
    assert table.typed_label_values.tolist() == sorted(set(labels))
    posterior = bl.sample(bl.CompleteSharing(), table, draws=4, chains=1, progress=False)
    assert posterior.decide(frame).tolist() == frame["buys"].tolist()
    posterior.save(tmp_path / "fit.nc")
    again = bl.load(tmp_path / "fit.nc")
    assert again.data == table
    assert again.data.label_type == kind
    assert (again.decide(frame) == frame["buys"]).all()
    assert again.decide(frame).dtype == frame["buys"].dtype
    assert table.label_code(labels[0]) == table.label_code(table.label_values[table.labels[0]])
    assert table.with_labels(frame["buys"].to_numpy(dtype=object)) == table


def test_types_are_no_part_of_equality() -> None:
    whole = pd.DataFrame({"who": [1, 1, 2], "x": [3, 4, 3], "buys": [0, 1, 0]})
    table, same = read(whole), read(whole.astype(float))
    assert (table.value_types, same.value_types) == (("integer",), ("float",))
    assert table == same
    assert table.content_hash() == same.content_hash()
    assert table.group_codes([0, 1]) == [0, 1]
    assert same.group_codes([1.0, "2"]) == [0, 1]
    with pytest.raises(DataError, match=r"column 'x': the values are not all of type integer"):
        replace(read(whole.assign(x=["a", "b", "a"])), value_types=("integer",))


def test_new_files_are_read_as_text_where_the_model_has_text(write: Write) -> None:
    table = read(write("who,x,buys\n1.0,true,0\n007,1.0,1\n007,yes,0\n"))
    assert table.values == (("1.0", "true", "yes"),)
    for cell, code in (("true", 1), ("1.0", 0)):
        coded = table.encode(write(f"who,x\n1.0,{cell}\n1.0,{cell}\n", "new.csv"))
        assert coded.features[:, 0].tolist() == [code, code]
        assert coded.groups.tolist() == [0, 0]


def test_numbers_match_by_value_in_new_rows(write: Write) -> None:
    table = read(write("who,x,buys\n1,1,0\n2,2.5,1\n2,1,0\n"))
    with pytest.warns(DataWarning, match=r"column 'x' 1 cell \('old'\)"):
        coded = table.encode(write("who,x\n2.0,1.0\n1.0,2.50\nnew,old\n", "new.csv"))
    assert coded.features[:, 0].tolist() == [0, 1, -1]
    assert coded.groups.tolist() == [1, 0, -1]
    assert coded.new_group_names == ("new",)


def test_ordered_dictionaries_keep_their_order_over_row_groups(tmp_path: Path) -> None:
    kinds = pd.CategoricalDtype(["c", "b", "a"], ordered=True)
    frame = pd.DataFrame({"who": list("uvuv"), "x": list("abca"), "buys": [0, 1, 0, 1]})
    frame["x"] = frame["x"].astype(kinds)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=1)
    assert read(tmp_path / "t.parquet").values == (("c", "b", "a"),)
    assert bl.read_counts(tmp_path / "t.parquet", **ROLES).values == (("c", "b", "a"),)
    pl = pytest.importorskip("polars")
    levels = pl.Series(frame["x"].tolist(), dtype=pl.Enum(["c", "b", "a"]))
    assert read(pl.from_pandas(frame).with_columns(x=levels)).values == (("c", "b", "a"),)
