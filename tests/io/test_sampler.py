"""Samples are random, nested, apart from the hold-out, and the same from every kind of source."""

from __future__ import annotations

import gzip
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import sparse, stats

from bayes_lcs.core.errors import DataError, DataNote
from bayes_lcs.data.rows.array_sampler import row_source
from bayes_lcs.io.category_encoder import MAX_CATEGORIES
from bayes_lcs.io.random_order import BottomK, KeyStream, random_order

try:
    import dask.dataframe as dd

    DASK = ["dask"]
except ImportError:
    DASK = []

FALSE_ALARMS = 1e-6
"""How often a statistical test of this file fails although the code is right."""


def frame_of(num_rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "row": [f"{row:05d}" for row in range(num_rows)],
            "size": rng.choice(["2", "10", "007"], num_rows),
            "mood": rng.choice(["good", "bad", ""], num_rows),
        }
    )


@pytest.fixture
def sources(tmp_path):
    """The same 3,000 rows as a frame, CSV, gzipped CSV, Parquet, and folders of both."""
    frame = frame_of(3000)
    frame.to_csv(tmp_path / "a.csv", index=False)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as stream:
        frame.to_csv(stream, index=False)
    pq.write_table(
        pa.Table.from_pandas(frame, preserve_index=False),
        tmp_path / "a.parquet",
        row_group_size=700,
    )
    for kind in ("csv", "parquet"):
        (tmp_path / kind).mkdir()
    for part, start in enumerate((0, 1000, 1100)):
        piece = frame.iloc[start : (1000, 1100, 3000)[part]]
        piece.to_csv(tmp_path / "csv" / f"{part}.csv", index=False)
        piece.to_parquet(tmp_path / "parquet" / f"{part}.parquet", index=False)
    paths = ["a.csv", "a.csv.gz", "a.parquet", "csv", "parquet"]
    found = {name: tmp_path / name for name in paths}
    found["several paths"] = sorted((tmp_path / "csv").iterdir())
    found["data set"] = ds.dataset(tmp_path / "parquet")
    found["table"] = pa.Table.from_pandas(frame, preserve_index=False)
    if DASK:
        found["dask"] = dd.from_pandas(frame, npartitions=4, sort=False)
    return frame, found


KINDS = ["a.csv", "a.csv.gz", "a.parquet", "csv", "parquet", "several paths", "data set", "table"]


@pytest.mark.parametrize("name", [*KINDS, *DASK])
@pytest.mark.parametrize("memory", [1 << 28, 12 * 500])
def test_every_source_gives_the_same_samples(sources, name, memory):
    frame, paths = sources
    array = row_source(frame.to_numpy(), seed=3)
    file = row_source(paths[name], seed=3, memory=memory)
    for start, stop in ((0, 100), (100, 400), (100, 1900), (0, 3000)):
        expected = array.take(start, stop).X
        found = file.take(start, stop).X
        names = found.astype(object).where(found.notna(), "").to_numpy()
        assert (names == expected).all()
    assert file.num_rows == array.num_rows == 3000
    # 500 rows fit into the small memory: two more passes, for 1,900 and for 3,000.
    assert file.reading.passes == (1 if memory > 12 * 3000 else 3)
    assert file.reading.rows == 3000 * file.reading.passes


def test_keys_do_not_depend_on_blocks():
    whole = KeyStream(5).draw(1000)
    stream = KeyStream(5)
    assert np.array_equal(np.concatenate([stream.draw(n) for n in (1, 99, 400, 500)]), whole)
    kept = BottomK(100)
    for start in range(0, 1000, 37):
        kept.update(whole[start : start + 37], np.arange(start, min(start + 37, 1000)))
    assert np.array_equal(kept.rows(), random_order(1000, 5)[:100])


def test_equal_keys_keep_the_order_of_the_rows():
    kept = BottomK(3)
    kept.update(np.array([4, 4, 4], np.uint64), np.array([0, 1, 2]))
    kept.update(np.array([4, 1, 4], np.uint64), np.array([3, 4, 5]))
    assert kept.rows().tolist() == [4, 0, 1]


def test_samples_are_nested_and_apart_from_the_hold_out():
    source = row_source(np.arange(5000).reshape(-1, 1), seed=1)
    hold_out = set(source.take(0, 500).X.ravel())
    samples = [set(source.take(500, 500 + size).X.ravel()) for size in (400, 800, 1600, 4500)]
    assert [len(sample) for sample in samples] == [400, 800, 1600, 4500]
    assert all(small < large for small, large in pairwise(samples))
    assert all(not sample & hold_out for sample in samples)
    assert hold_out | samples[-1] == set(range(5000))


@pytest.mark.parametrize("kept", ["array", "file"])
def test_samples_are_uniform(kept):
    """Over 4,000 seeds each of 20 rows is at each of the first 5 places equally often (χ²)."""
    seen = np.zeros((20, 5))
    for seed in range(4000):
        if kept == "array":
            first = random_order(20, seed)[:5]
        else:
            keys, rows = KeyStream(seed), BottomK(5)
            for start in range(0, 20, 4):
                rows.update(keys.draw(4), np.arange(start, start + 4))
            first = rows.rows()
        seen[first, np.arange(5)] += 1
    # Of one place the counts are exactly multinomial; five places share the false alarms.
    for place in range(5):
        assert stats.chisquare(seen[:, place]).pvalue > FALSE_ALARMS / 5


def test_pairs_of_rows_are_uniform():
    """Neighbouring rows are not drawn together more often than others (a block sample would)."""
    together = sum(bool(np.isin([6, 7], random_order(20, seed)[:5]).all()) for seed in range(4000))
    share = (5 / 20) * (4 / 19)
    assert stats.binomtest(together, 4000, share).pvalue > FALSE_ALARMS


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_the_order_does_not_follow_data_drawn_with_the_same_seed(seed):
    """Spearman's test of place against content, for data from the usual generator."""
    content = np.random.default_rng(seed).random(5000)
    place = np.empty(5000)
    place[random_order(5000, seed)] = np.arange(5000)
    assert stats.spearmanr(content, place).pvalue > FALSE_ALARMS / 3


def test_categories_are_those_of_the_whole_file(sources):
    frame, paths = sources
    for name in ("a.csv", "a.parquet"):
        source = row_source(paths[name], ignore=["row"], memory=80)
        small = source.take(0, 3).X
        assert list(small["size"].cat.categories) == ["007", "10", "2"]
        assert list(small["mood"].cat.categories) == ["bad", "good"]
        assert {name: values.tolist() for name, values in source.categories.items()} == {
            "size": ["007", "10", "2"],
            "mood": ["bad", "good"],
        }
    whole = row_source(frame.drop(columns="row")).take(0, 3).X
    assert set(whole["size"].cat.categories) == {"2", "10", "007"}


@pytest.mark.parametrize("ordered", [True, False])
def test_only_an_ordered_dictionary_of_parquet_keeps_its_order(tmp_path, ordered):
    sizes = pd.Categorical(["big", "small"] * 5, ["small", "big", "huge"], ordered=ordered)
    pd.DataFrame({"size": sizes}).to_parquet(tmp_path / "a.parquet")
    found = row_source(tmp_path / "a.parquet").take(0, 4).X
    expected = ["small", "big"] if ordered else ["big", "small"]
    assert list(found["size"].cat.categories) == expected


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_categories_and_targets_have_the_type_of_their_column(tmp_path, kind):
    frame = pd.DataFrame(
        {
            "whole": [1, 2] * 10,
            "half": [0.5, 1.0] * 10,
            "flag": [True, False] * 10,
            "code": ["007", "x"] * 10,
            "gap": [3.0, np.nan] * 10,
            "y": [0, 1] * 10,
        }
    )
    path = tmp_path / f"a.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    source = row_source(path, target="y")
    found = {name: values.tolist() for name, values in source.categories.items()}
    assert found == {
        "whole": [1, 2],
        "half": [0.5, 1.0],
        "flag": [False, True],
        "code": ["007", "x"],
        "gap": [3],
        "y": [0, 1],
    }
    assert [type(found[name][0]) for name in ("whole", "half", "flag", "y")] == [
        int,
        float,
        bool,
        int,
    ]
    assert source.take(0, 5).y.dtype == np.int64


def test_the_type_follows_from_the_last_cell(tmp_path):
    """One cell makes a column of numbers text, wherever it is; 1 and 1.0 are one category."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,1\n" * 200_000 + "+1,1.0\n")
    found = row_source(path).categories
    assert found["a"].tolist() == ["+1", "1"]
    assert found["b"].tolist() == [1.0]


def test_numeric_columns_are_found(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",town,x,y,empty\n0,Ulm,1.5,NA,\n1,Bonn,2,3,\n")
    source = row_source(path, kind="numbers")
    assert source.features == ["x", "y"]
    with pytest.warns(DataNote) as notes:
        rows = source.take(0, 2).X
    assert sorted(rows[:, 0]) == [1.5, 2.0]
    said = " ".join(str(note.message) for note in notes)
    assert "columns without numbers are ignored: 'town', 'empty'" in said
    assert "ignored as an index" in said


def test_measurements_are_no_categories(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "\n".join(map(str, np.random.default_rng(0).random(50))) + "\n")
    with pytest.raises(DataError, match=r"a\.csv, column 'x': holds 50 distinct numbers"):
        row_source(path).take(0, 1)
    assert len(row_source(path, categorical=["x"]).categories["x"]) == 50


def test_a_target_is_no_feature(sources):
    frame, paths = sources
    for source in (
        row_source(paths["a.csv"], target="size", ignore="row", seed=2),
        row_source(frame, target="size", ignore="row", seed=2),
        row_source(frame[["mood"]], frame["size"], seed=2),
    ):
        rows = source.take(0, 50)
        assert list(rows.X.columns) == ["mood"]
        order = random_order(3000, 2)[:50]
        assert rows.y.tolist() == frame["size"].iloc[order].tolist()


def test_numbers(tmp_path):
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    numbers.iloc[5, 1] = np.nan
    numbers["kind"] = rng.choice(["x", "y"], 200)
    numbers.to_csv(tmp_path / "a.csv", index=False)
    numbers.to_parquet(tmp_path / "a.parquet", index=False)
    expected = row_source(numbers.iloc[:, :3].to_numpy(), seed=9).take(10, 150).X
    for name in ("a.csv", "a.parquet"):
        rows = row_source(tmp_path / name, target="kind", kind="numbers", seed=9).take(10, 150)
        np.testing.assert_array_equal(rows.X, expected)
        assert set(rows.y) == {"x", "y"}


def test_sparse_rows():
    dense = np.eye(40, dtype=np.int8)
    source = row_source(sparse.coo_array(dense), seed=4)
    assert np.array_equal(source.take(3, 9).X.toarray(), row_source(dense, seed=4).take(3, 9).X)


def write(path, text):
    path.write_text(text)
    return path


def test_what_is_wrong_is_named(tmp_path):
    ragged = write(tmp_path / "ragged.csv", "a,b\n1,2\n3\n")
    with pytest.raises(DataError, match=r"ragged.csv, line 3, column 'b'"):
        row_source(ragged).take(0, 1)
    letters = write(tmp_path / "letters.csv", "a,b\n1,2\n\n3,x\n")
    with pytest.raises(DataError, match=r"letters.csv, line 4, column 'b': 'x' is not a number"):
        row_source(letters, kind="numbers", features=["b"]).take(0, 1)
    many = write(tmp_path / "many.csv", "id\n" + "\n".join(map(str, range(MAX_CATEGORIES + 1))))
    with pytest.raises(DataError, match=rf"line {MAX_CATEGORIES + 2}, column 'id': has more than"):
        row_source(many).take(0, 1)
    nul = write(tmp_path / "nul.csv", "a,b\n1,2\n3,x\x00\n")
    with pytest.raises(DataError, match=r"nul.csv, line 3, column 'b'.*NUL"):
        row_source(nul).take(0, 1)
    with pytest.raises(DataError, match="there are no rows"):
        row_source(write(tmp_path / "head.csv", "a,b\n")).take(0, 1)
    with pytest.raises(DataError, match="no such column; did you mean 'b'"):
        row_source(letters, target="B")
    with pytest.raises(DataError, match="no such file"):
        row_source(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="no feature columns are left"):
        row_source(letters, ignore=["a", "b"])
    with pytest.raises(ValueError, match="kind must be"):
        row_source(letters, kind="words")
    with pytest.raises(DataError, match="there are only 2"):
        row_source(letters).take(0, 3)


def test_folders_must_agree(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,2\n")
    write(tmp_path / "2.csv", "a,c\n1,2\n")
    with pytest.raises(DataError, match=r"2.csv: has other columns than 1.csv"):
        row_source(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="contains no CSV or Parquet file"):
        row_source(tmp_path / "empty")


def test_a_file_that_changes_is_noticed(tmp_path):
    path = write(tmp_path / "a.csv", "a\n" + "x\ny\n" * 50)
    source = row_source(path, memory=40)
    assert source.num_rows == 100
    write(path, "a\n" + "x\ny\n" * 60)
    with pytest.raises(DataError, match="had 100 rows in the first pass and 120 now"):
        source.take(0, 90)


def test_arrays_are_checked():
    with pytest.raises(DataError, match="two dimensions"):
        row_source(np.arange(4))
    with pytest.raises(DataError, match="3 entries for 4 rows"):
        row_source(np.ones((4, 2)), [1, 2, 3])
    with pytest.raises(DataError, match="require a frame or a file"):
        row_source(np.ones((4, 2)), target="a")
    with pytest.raises(DataError, match="not both"):
        row_source(pd.DataFrame({"a": [1], "b": [2]}), [1], target="a")


def test_cells_that_spell_nan_are_no_numbers(tmp_path):
    """Of text only what ``missing_values`` lists is missing; pyarrow would take it for a number."""
    (tmp_path / "n.csv").write_text("a,b\n1, 2\n?,nan\n+3,1e2\n")
    numbers = {"kind": "numbers", "features": ["a", "b"]}
    with pytest.raises(DataError, match="line 3, column 'b': 'nan' is not a number"):
        row_source(tmp_path / "n.csv", missing_values=["?"], **numbers).take(0, 1)
    found = row_source(tmp_path / "n.csv", missing_values=["?", "nan"], seed=0, **numbers)
    rows = found.take(0, 3).X
    assert sorted(map(str, rows.tolist())) == ["[1.0, 2.0]", "[3.0, 100.0]", "[nan, nan]"]
