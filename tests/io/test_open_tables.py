"""Files, Arrow data sets and Dask dataframes as one table: costs, counts, and drift by name."""

from __future__ import annotations

import subprocess
import sys
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import bayes_lcs as bl
from bayes_lcs.clustering.kmeans import lloyd
from bayes_lcs.clustering.kmeans.point_store import Moments
from bayes_lcs.io.category_encoder import read_columns
from bayes_lcs.io.decode import decode_column
from bayes_lcs.io.formats import csv as csv_format
from bayes_lcs.io.formats import parquet as parquet_format
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import MissingRule
from bayes_lcs.io.raw_table import Source
from bayes_lcs.io.sampler import SourcePart

pytestmark = pytest.mark.filterwarnings("ignore:EM has not converged")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    values = {"size": ["2", "10", "7"], "mood": ["good", "bad"], "town": ["a", "b", "c", "d"]}
    return pd.DataFrame({name: rng.choice(names, 900) for name, names in values.items()})


@pytest.fixture
def folder(frame, tmp_path):
    """Parquet files of 400, 400 and 100 rows."""
    for number in range(3):
        piece = frame.iloc[number * 400 : (number + 1) * 400]
        piece.to_parquet(tmp_path / f"{number}.parquet", index=False)
    return tmp_path


def unpacked(path):
    """Bytes of all columns, summed over their own records."""
    about = pq.read_metadata(path)
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    columns = [group.column(j) for group in groups for j in range(group.num_columns)]
    return sum(c.total_uncompressed_size for c in columns)


# Costs and counts ---------------------------------------------------------------------------------


def test_costs_are_known_before_anything_is_read(frame, folder):
    source = bl.row_source(folder, ignore=["town"])
    sizes = [unpacked(folder / f"{i}.parquet") for i in range(3)]
    rows = [400, 400, 100]
    assert source.parts == [SourcePart(f"{i}.parquet", rows[i], sizes[i]) for i in range(3)]
    assert (source.reading.passes, source.reading.bytes) == (0, 0)
    assert source.num_rows == 900
    assert source.reading.bytes == sum(sizes)
    source = bl.row_source(ds.dataset(folder), ignore=["town"])
    assert [part[1:] for part in source.parts] == list(zip(rows, sizes, strict=True))
    frame.to_csv(folder / "all.csv", index=False)
    text = bl.row_source(folder / "all.csv")
    assert text.parts == [SourcePart("all.csv", None, (folder / "all.csv").stat().st_size)]
    assert text.num_rows == 900
    assert text.reading.bytes == (folder / "all.csv").stat().st_size
    X = np.zeros((7, 3))
    assert bl.row_source(X).parts == [SourcePart("memory", 7, X.nbytes)]


def test_a_second_pass_is_counted(folder):
    source = bl.row_source(folder, memory=12 * 300)
    source.take(0, 900)
    assert source.reading.passes == 2
    assert source.reading.bytes == 2 * sum(part.bytes for part in source.parts)


def test_partition_columns_of_a_data_set_are_columns(frame, tmp_path):
    ds.write_dataset(
        pa.Table.from_pandas(frame, preserve_index=False),
        tmp_path,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("mood", pa.string())]), flavor="hive"),
    )
    source = bl.row_source(ds.dataset(tmp_path, partitioning="hive"))
    assert source.num_rows == 900
    assert source.categories["mood"].tolist() == ["bad", "good"]
    found = source.take(0, 900).X["mood"].value_counts()
    assert found.to_dict() == frame["mood"].value_counts().to_dict()


def test_dask_is_not_imported_for_others(folder):
    program = (
        "import sys, pyarrow.dataset as ds, bayes_lcs as bl\n"
        f"assert bl.row_source(ds.dataset({str(folder)!r})).num_rows == 900\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'dask']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Whoever reads ------------------------------------------------------------------------------------


def kinds(folder):
    yield ds.dataset(folder)
    yield ds.dataset(folder).to_table()
    yield sorted(folder.iterdir())
    dask = pytest.importorskip("dask.dataframe")
    yield dask.read_parquet(folder)


def test_mixtures_take_every_kind(folder):
    settings = {"max_iter": 6, "tol": 0.0, "precision": "double", "random_state": 1}
    plain = bl.MixtureClusterer(2, **settings).fit_file(folder)
    for data in kinds(folder):
        found = bl.MixtureClusterer(2, **settings).fit_file(data)
        np.testing.assert_array_equal(found.trace_, plain.trace_)


def test_coreset_trees_take_every_kind(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 3))
    for number, piece in enumerate(np.split(X, [180, 400])):
        pd.DataFrame(piece, columns=list("abc")).to_parquet(
            tmp_path / f"{number}.parquet", index=False
        )
    plain = bl.coreset_tree(X, 3, 60, block_rows=70)
    for data in [tmp_path, *kinds(tmp_path)]:
        found = bl.coreset_tree(data, 3, 60, block_rows=70)
        np.testing.assert_array_equal(found.points, plain.points)
        np.testing.assert_array_equal(found.weights, plain.weights)


def test_learning_curves_take_every_kind(folder):
    def curve(data):
        clusterer = bl.MixtureClusterer(2, max_iter=4, precision="double", random_state=0)
        clock = iter(range(10**6))
        return bl.learning_curve_sample(
            clusterer,
            data,
            alpha=0.0,
            initial_size=200,
            holdout_size=200,
            clock=lambda: float(next(clock)),
        ).curve["score"]

    plain = curve(folder).to_list()
    for data in kinds(folder):
        assert curve(data).to_list() == plain


# Drift and damage ---------------------------------------------------------------------------------


def changed(folder, change):
    piece = pd.read_parquet(folder / "1.parquet")
    change(piece)
    piece.to_parquet(folder / "1.parquet", index=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda p: p.__setitem__("size", p["size"].astype(int)),
            r"1\.parquet, column 'size': holds integers",
        ),
        (lambda p: p.pop("mood"), r"1\.parquet, column 'mood': this column of the data set"),
    ],
)
def test_drift_in_a_data_set_names_file_and_column(folder, change, message):
    dataset = ds.dataset(folder)
    changed(folder, change)
    with pytest.raises(bl.DataError, match=message):
        bl.row_source(ds.dataset(folder, schema=dataset.schema)).take(0, 1)


def test_drift_between_partitions_names_partition_and_column(frame):
    dd = pytest.importorskip("dask.dataframe")
    changes = frame.assign(size=frame["size"].astype(int))
    mixed = dd.concat([dd.from_pandas(frame, npartitions=2), dd.from_pandas(changes, 1)])
    with pytest.raises(bl.DataError, match=r"partition 2 of 3, column 'size': holds integers"):
        bl.row_source(mixed.map_partitions(lambda part: part, meta=frame)).take(0, 1)


def test_a_damaged_file_of_a_data_set_is_named(folder):
    dataset = ds.dataset(folder)
    path = folder / "1.parquet"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(bl.DataError, match=r"1\.parquet: cannot be read, the file is damaged"):
        bl.row_source(dataset).take(0, 1)


# Codes that are kept ------------------------------------------------------------------------------


def test_coded_files_are_opened_again_wherever_they_are(folder, tmp_path_factory):
    there = tmp_path_factory.mktemp("codes")
    coded = bl.code_files(folder, there / "first", block_rows=250)
    (there / "first").rename(there / "second")
    again = bl.CodedFiles.load(there / "second")
    assert [v.tolist() for v in again.values.values()] == [
        v.tolist() for v in coded.values.values()
    ]
    assert (again.num_rows, len(again.blocks)) == (900, 4)
    settings = {"max_iter": 6, "tol": 0.0, "precision": "double", "random_state": 1}
    found = bl.MixtureClusterer(2, **settings).fit_file(again)
    plain = bl.MixtureClusterer(2, **settings).fit_file(folder)
    np.testing.assert_allclose(found.trace_, plain.trace_, rtol=1e-12)
    assert (there / "second" / "codes.json").exists()


def test_another_file_is_coded_alike(frame, folder, tmp_path_factory):
    """Fewer values in another order: without the dictionary its codes would be others."""
    there = tmp_path_factory.mktemp("codes")
    known = bl.code_files(folder, there / "first")
    few = frame[frame["size"] != "7"][::-1]
    few.to_csv(there / "few.csv", index=False)
    alike = bl.code_files(there / "few.csv", there / "alike", values=known.values)
    assert all(np.array_equal(alike.values[n], known.values[n]) for n in known.values)
    rows = alike.reader(alike.blocks[0])
    for place, (name, values) in enumerate(known.values.items()):
        assert np.array(values)[rows.codes[:, place]].tolist() == few[name].tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_new_value_is_refused_by_name(frame, folder, tmp_path_factory, kind):
    there = tmp_path_factory.mktemp("codes")
    known = bl.code_files(folder, there / "first")
    frame.loc[3, "town"] = "e"
    path = there / f"new.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, index=False)
    place = "line 5" if kind == "csv" else "row 3"
    message = rf"new\.{kind}, {place}, column 'town': 'e' is not one of the 4 values"
    with pytest.raises(bl.DataError, match=message):
        bl.code_files(path, there / "second", values=known.values)
    with pytest.raises(bl.DataError, match=r"no codes\.json: the files were not encoded"):
        bl.CodedFiles.load(there / "second")
    with pytest.raises(bl.DataError, match=message):
        bl.row_source(path, values=known.values).take(0, 1)
    path = there / "without.csv"
    frame.drop(columns="town").to_csv(path, index=False)
    assert bl.row_source(path, values=known.values).num_rows == 900
    with pytest.raises(bl.DataError, match="column 'mood': values= lacks this column"):
        bl.row_source(path, values={"size": ("2",)})


def test_damage_is_noticed(folder, tmp_path_factory):
    there = tmp_path_factory.mktemp("codes")
    coded = bl.code_files(folder, there)
    with pytest.raises(bl.DataError, match=r"there already is a codes\.json"):
        bl.code_files(folder, there)
    blocks = sorted(there.glob("rows-*"))
    blocks[0].write_bytes(blocks[0].read_bytes()[:-1] + b"\x01")
    with pytest.raises(bl.DataError, match=r"rows-000000\.npy: a file of encoded rows is damaged"):
        bl.MixtureClusterer(2).fit_file(coded)
    blocks[0].unlink()
    with pytest.raises(bl.DataError, match=r"rows-000000\.npy: a file of encoded rows cannot be"):
        bl.MixtureClusterer(2).fit_file(coded)
    text = (there / "codes.json").read_text()
    (there / "codes.json").write_text(text.replace("good", "fine"))
    with pytest.raises(bl.DataError, match="does not match its checksum"):
        bl.CodedFiles.load(there)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_values_that_a_dictionary_only_lists(tmp_path, stored, ordered):
    """Only values that occur are categories, in the declared order only if there is one."""
    names = pa.array(["never", "b", "a", "c"])
    codes = pa.array([3, None, 2, 3, 1] * 20, pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, names, ordered=ordered)
    path = tmp_path / "x.parquet"
    # Without its schema the file is one of text, as other programs write it.
    pq.write_table(pa.table({"x": column}), path, store_schema=stored, row_group_size=30)
    source = bl.row_source(path)
    known = ["b", "a", "c"] if stored and ordered else ["a", "b", "c"]
    assert source.categories["x"].tolist() == known
    raw = read_columns(open_file(path), ["x"], {"x": MissingRule()})["x"]
    assert raw.values.tolist() == known
    cells = np.array([*raw.names, ""])[raw.codes].tolist()
    assert cells == ["c", "", "a", "c", "b"] * 20
    coded = bl.code_files(path, tmp_path / "codes", block_rows=7)
    rows = np.concatenate([coded.reader(block).codes for block in coded.blocks])
    assert np.array([*coded.values["x"], ""])[rows[:, 0]].tolist() == cells


def test_columns_of_many_values_are_read_as_text(tmp_path, monkeypatch):
    """Few values in the first row groups, many later, and in another column all the time."""
    monkeypatch.setattr(parquet_format, "MAX_DICTIONARY", 5)
    monkeypatch.setattr(parquet_format, "BATCH_ROWS", 40)
    few = ["a", "b", None, "c"] * 50
    later = [*few[:130], *map(str, range(70))]
    many = [f"name {number}" for number in range(200)]
    table = pa.table({"few": few, "later": later, "many": many})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=100)
    raw = open_file(tmp_path / "x.parquet")
    blocks = list(raw.batches(raw.names, encoded=raw.names))
    assert pa.concat_tables(
        [pa.table({n: b[n].cast(pa.string()) for n in raw.names}) for b in blocks]
    ).equals(table)
    is_coded = [[pa.types.is_dictionary(b[n].type) for n in raw.names] for b in blocks]
    assert {tuple(row) for row in is_coded} == {(True, True, False), (True, False, False)}
    assert bl.row_source(tmp_path / "x.parquet").num_rows == 200


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_of_any_type_is_read_by_its_codes(tmp_path, kind):
    names = ["b", None, "", "a", "b", "ü"] * 9
    pq.write_table(pa.table({"x": pa.array(names, kind)}), tmp_path / "x.parquet")
    raw = open_file(tmp_path / "x.parquet")
    (block,) = raw.batches(raw.names, encoded=raw.names)
    assert pa.types.is_dictionary(block["x"].type)
    column = read_columns(raw, ["x"], {"x": MissingRule(frozenset())})["x"]
    assert column.names == ("", "a", "b", "ü")
    assert np.array([*column.names, None])[column.codes].tolist() == names
    assert not column.is_ordered


def test_small_row_groups_come_together(tmp_path):
    names = np.array(["a", "b", "c"])[np.random.default_rng(0).integers(0, 3, 5000)]
    pq.write_table(pa.table({"x": names}), tmp_path / "x.parquet", row_group_size=10)
    raw = open_file(tmp_path / "x.parquet")
    (block,) = raw.batches(raw.names, encoded=raw.names)
    assert block["x"].cast(pa.string()).to_pylist() == names.tolist()
    column = read_columns(raw, ["x"], {"x": MissingRule()})["x"]
    assert column.values[column.codes].tolist() == list(names)


def test_codes_beyond_a_dictionary_are_damage(tmp_path):
    codes = pa.array([0, 5], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["a"]), safe=False)
    table = pa.table({"x": column})
    with pytest.raises(bl.DataError, match="column 'x': has codes outside its dictionary"):
        decode_column("x", table.column("x"), Source("a.parquet"))


@pytest.mark.parametrize("size", [40, 1 << 22])
@pytest.mark.parametrize("cell", ["7", " 7.5", "1e3", '"8"', "+5", "?", '"?"', "-0"])
def test_numbers_are_read_alike_in_any_piece(tmp_path, monkeypatch, size, cell):
    """Most pieces are parsed as numbers at once; one with an odd cell is read as text."""
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", size)
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 30 + f"3,{cell}\n" + "4.5,6\n" * 30)
    found = (
        bl.row_source(path, kind="numbers", features=["a", "b"], missing_values=["?"]).take(0, 61).X
    )
    number = np.nan if "?" in cell else float(cell.strip('"'))
    expected = [[1, 2]] * 30 + [[3, number]] + [[4.5, 6]] * 30
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(expected, axis=0))


@pytest.mark.parametrize("size", [40, 1 << 22])
def test_what_is_no_number_is_named_in_any_piece(tmp_path, monkeypatch, size):
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", size)
    path = tmp_path / "x.csv"
    for cell, what in {
        "nan": "there is no number",
        "x": "'x' is not a number",
        "": "there is no number",
        "inf": "the number is infinite",
    }.items():
        path.write_text("a,b\n" + "1,2\n" * 30 + f"3,{cell}\n" + "4.5,6\n" * 30)
        with pytest.raises(bl.DataError, match=rf"line 32, column 'b': {what}"):
            list(bl.number_blocks(path, features=["a", "b"]))


def test_a_column_that_is_empty_in_the_first_batches_has_the_type_of_its_cells(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", 40)
    monkeypatch.setattr(csv_format, "HEAD_BYTES", 40)
    path = tmp_path / "x.csv"
    rows = ["1,,,\n"] * 60 + ["1,2,late,\n"] * 60
    path.write_text("a,number,text,empty\n" + "".join(rows))
    with pytest.warns(bl.DataNote, match="without numbers are ignored: 'text', 'empty'"):
        found = bl.row_source(path, kind="numbers").take(0, 120).X
    assert np.nansum(found[:, 1]) == 120
    with pytest.raises(bl.DataError, match="line 2, column 'number': there is no number"):
        list(bl.number_blocks(path))


def test_all_columns_without_a_number_are_named_at_once(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2,3\n,NA,4\n1,2,5\n")
    message = r"line 3, column 'a': there is no number.* \(nor in columns 'b'\)"
    with pytest.raises(bl.DataError, match=message):
        list(bl.number_blocks(path))
    with pytest.raises(bl.DataError, match=message):
        bl.KMeans(1).fit(path)


def test_spellings_of_one_number_are_one_value_of_a_coded_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x,y\n" + "1,a\n1.0,b\n2,a\n" * 20)
    coded = bl.code_files(path, tmp_path / "codes")
    assert coded.reader(coded.blocks[0]).num_values == (2, 2)
    whole = bl.MixtureClusterer(2, random_state=0).fit(path)
    read = bl.MixtureClusterer(2, random_state=0).fit_file(path)
    assert read.probabilities_[0].shape == whole.probabilities_[0].shape == (2, 2)


def test_very_many_cells_may_mean_missing(tmp_path):
    """pyarrow would end the process over such a list."""
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,token 7\n")
    tokens = [f"token {number}" for number in range(40_000)]
    found = (
        bl.row_source(
            tmp_path / "x.csv", kind="numbers", missing_values=tokens, features=["a", "b"]
        )
        .take(0, 2)
        .X
    )
    assert sorted(found[:, 0]) == [1, 3]
    assert np.isnan(found[:, 1]).sum() == 1


def test_a_target_of_numbers_is_a_number_again(tmp_path):
    """Its names have been learned, and the header is among the codes of its first piece."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (300, 2)), columns=["a", "b"])
    frame.to_csv(tmp_path / "x.csv", index=False)
    source = bl.row_source(tmp_path / "x.csv", kind="numbers", target="b")
    assert source.num_rows == 300
    found = np.concatenate([piece.to_numpy() for piece in source.number_blocks()])
    np.testing.assert_array_equal(found, frame)


# k-means ------------------------------------------------------------------------------------------


@pytest.fixture
def numbers(tmp_path):
    """Points around three places, in Parquet files of several row groups, and as CSV."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) + 20 * rng.integers(3, size=(600, 1))
    frame = pd.DataFrame(X, columns=["x", "y"])
    (tmp_path / "parts").mkdir()
    for number, piece in enumerate((frame[:250], frame[250:])):
        piece.to_parquet(tmp_path / "parts" / f"{number}.parquet", index=False, row_group_size=90)
    frame.to_csv(tmp_path / "all.csv", index=False)
    return X, tmp_path


def test_kmeans_takes_every_kind(numbers, monkeypatch):
    monkeypatch.setattr("bayes_lcs.clustering.kmeans.lloyd.BLOCK_ROWS", 100)
    X, folder = numbers
    plain = bl.KMeans(3, init=X[:3]).fit(X)
    for data in [folder / "parts", folder / "all.csv", *kinds(folder / "parts")]:
        found = bl.KMeans(3, init=X[:3]).fit_file(data)
        np.testing.assert_allclose(found.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
        np.testing.assert_array_equal(found.labels_, plain.labels_)
        assert found.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)
        np.testing.assert_array_equal(
            found.predict(pd.DataFrame(X, columns=["x", "y"])), plain.labels_
        )


def test_kmeans_keeps_points_on_disk_if_memory_is_short(numbers, tmp_path_factory, monkeypatch):
    monkeypatch.setattr("bayes_lcs.clustering.kmeans.lloyd.BLOCK_ROWS", 100)
    X, folder = numbers
    scratch = tmp_path_factory.mktemp("scratch")
    seen = []
    look = lloyd._assign_and_sum

    def looked(centers, block):
        seen.append(len(list(scratch.glob("*/points-*"))))
        return look(centers, block)

    monkeypatch.setattr(lloyd, "_assign_and_sum", looked)
    plain = bl.KMeans(3, init=X[:3]).fit(X)
    size = X.nbytes
    # Row groups are read together until they have 100 rows: 90 and 90, 70 and 90, 90 and 90, 80.
    # Each of these is cut into blocks of 100 and what is left.
    for data, memory, files in (
        (folder / "parts", size, {0}),
        (folder / "parts", size - 1, {7}),
        (folder / "all.csv", size, {0}),
        (folder / "all.csv", size - 1, {6}),
        (folder / "all.csv", 0, {6}),
        *((kind, 0, {6, 7}) for kind in kinds(folder / "parts")),
    ):
        found = bl.KMeans(3, init=X[:3]).fit_file(data, memory=memory, folder=scratch)
        np.testing.assert_allclose(found.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
        np.testing.assert_array_equal(found.labels_, plain.labels_)
        assert found.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)
        assert set(seen) <= files
        assert len(set(seen)) == 1
        seen.clear()
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_first_rows_far_from_all_others_cost_no_digits(tmp_path, monkeypatch, kind):
    """Points are moved by the mean of the first block as they are written, and that is far off."""
    monkeypatch.setattr("bayes_lcs.clustering.kmeans.lloyd.BLOCK_ROWS", 100)
    monkeypatch.setattr("bayes_lcs.io.formats.parquet.BATCH_ROWS", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.05, size=(6400, 1)) + rng.integers(0, 4, (6400, 1))
    X[:100] += 1e9
    path = tmp_path / f"x.{kind}"
    frame = pd.DataFrame(X, columns=["x"])
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, index=False)
    start = np.array([[0.1], [0.9], [2.2], [3.1], [1e9]])
    found = bl.KMeans(5, init=start).fit_file(path, memory=0)
    np.testing.assert_allclose(np.sort(found.cluster_centers_[:4, 0]), [0, 1, 2, 3], atol=0.02)
    np.testing.assert_array_equal(found.labels_[100:], np.rint(X[100:, 0]))


def test_points_far_from_their_centres_hold_no_block():
    X = np.random.default_rng(0).normal(size=(50, 2))
    for one in lloyd._farthest((X[:2], 3), (X, np.ones(50))):
        assert one.point.base is None


@pytest.mark.parametrize("how", ["gone", "cut", "changed"])
def test_points_that_are_damaged_between_passes_are_named(numbers, monkeypatch, how):
    X, folder = numbers
    (folder / "scratch").mkdir()
    moved = lloyd.DistributedLloyd._update_centers

    def damaging(self, centers, sums):
        path = min((folder / "scratch").glob("*/points-*"))
        whole = path.read_bytes()
        if how == "gone":
            path.unlink()
        else:
            changed = whole[:-1] + bytes([whole[-1] ^ 1])
            path.write_bytes(whole[:-1] if how == "cut" else changed)
        return moved(self, centers, sums)

    monkeypatch.setattr(lloyd.DistributedLloyd, "_update_centers", damaging)
    with pytest.raises(bl.DataError, match=r"points-.*rows: a batch of points in this file"):
        bl.KMeans(3, init=X[:3]).fit_file(folder / "all.csv", memory=0, folder=folder / "scratch")
    assert not list((folder / "scratch").iterdir())


PROGRAM = """
import resource, sys
import numpy as np
import bayes_lcs as bl
start = np.random.default_rng(0).normal(size=(4, 20))
bl.KMeans(4, init=start, max_iter=2).fit_file(sys.argv[1], memory=1 << 24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_memory_of_kmeans_does_not_grow_with_the_file(tmp_path, kind):
    """Points of 320 MiB after 40, of which 16 are allowed: labels grow, 14 MiB of them.

    With few blocks not all threads have one, which makes some 40 MiB more.
    """
    rng = np.random.default_rng(0)
    peaks = []
    for pieces in (4, 32):
        path = tmp_path / f"{pieces}.{kind}"
        schema = pa.schema([(f"x{f}", pa.float64()) for f in range(20)])
        writer = (csv.CSVWriter if kind == "csv" else pq.ParquetWriter)(path, schema)
        with writer:
            for _ in range(pieces):
                points = rng.normal(size=(20, 1 << 16)).round(3)
                writer.write_table(pa.table(list(points), schema=schema))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(path)],
            capture_output=True,
            text=True,
            timeout=900,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 100 << 20


def test_kmeans_of_files_draws_its_starts(numbers):
    X, folder = numbers
    found = bl.KMeans(3, n_init=3, random_state=0).fit_file(folder / "parts", start_rows=200)
    assert len(found.results_) == 3
    assert found.inertia_ == pytest.approx(bl.KMeans(3, n_init=5, random_state=0).fit(X).inertia_)
    assert bl.KMeans(2).fit_file(folder / "parts", ignore=["y"]).cluster_centers_.shape == (2, 1)


def test_kmeans_of_files_names_what_is_wrong(numbers):
    _, folder = numbers
    with pytest.raises(ValueError, match="n_samples=600 should be >= n_clusters=601"):
        bl.KMeans(601).fit_file(folder / "parts")
    piece = pd.read_parquet(folder / "parts" / "1.parquet")
    piece.loc[130, "y"] = np.nan
    piece.to_parquet(folder / "parts" / "1.parquet", index=False)
    message = r"1\.parquet, row 130, column 'y': there is no number"
    with pytest.raises(bl.DataError, match=message):
        bl.KMeans(3).fit_file(folder / "parts")


def test_moments_of_blocks_are_those_of_all_points():
    X = np.random.default_rng(0).normal([0, 5, -5], size=(100, 3))
    parts = [Moments.of(piece) for piece in np.split(X, [10, 70])]
    found = reduce(Moments.merge, parts)
    assert found.num_rows == 100
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.squares / 100, X.var(axis=0), rtol=1e-13)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [], "values": []}'])
def test_a_dictionary_of_codes_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "codes.json").write_text(text)
    with pytest.raises(bl.DataError, match=r"codes\.json: the dictionary of the codes is damaged"):
        bl.CodedFiles.load(tmp_path)
