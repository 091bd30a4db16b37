from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import os
import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import bayes_lcs.io.formats.csv_shards as csv_shards
import bayes_lcs.io.formats.parquet_shards as parquet_shards
import bayes_lcs.io.shards as file_shards
from bayes_lcs.core.errors import DataError
from bayes_lcs.io.formats.csv_shards import deal_blocks, end_of_records
from bayes_lcs.io.options import CsvOptions
from bayes_lcs.io.shards import CannotSeek, ColumnTypeChanged, FileShards, Shard

Write = Callable[..., Path]
Labels = NDArray[Any]
HEAD = "age,town,buys\n"
ROWS = 40_000
NUM_PARTS = 20
HOSTILE = ["<b>x</b>", 'say "hi"', "a,b", "two\nlines", "$\\frac{1}{2}$", "nah", "007", "ü", None]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Numbers with gaps, and names that a careless reader would trip over."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=ROWS)
    frame = {
        "x": np.where(rng.random(ROWS) < 0.1, np.nan, noise),
        "<script>": np.array(HOSTILE, dtype=object)[rng.integers(len(HOSTILE), size=ROWS)],
        "$x$": rng.integers(-5, 1000, ROWS).astype(float),
        "a.b": rng.choice(["p", "q"], ROWS).astype(object),
        "a": rng.normal(size=ROWS),
        'la"bel,': rng.choice(["no", "yes"], ROWS).astype(object),
    }
    return pd.DataFrame({name: pd.Series(values) for name, values in frame.items()})


LABEL = 'la"bel,'
KINDS = ["csv", "csv.gz", "parquet", "groups.parquet"]


@pytest.fixture(scope="module")
def stored(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("parts")
    paths = {kind: folder / f"table.{kind}" for kind in KINDS}
    table.to_csv(paths["csv"], index=False)
    paths["csv.gz"].write_bytes(gzip.compress(paths["csv"].read_bytes(), mtime=0))
    whole = pa.Table.from_pandas(table, preserve_index=False)
    pages = {"data_page_size": 1 << 9, "write_batch_size": 50, "use_dictionary": False}
    pq.write_table(whole, paths["parquet"], **pages)
    pq.write_table(whole, paths["groups.parquet"], row_group_size=1000, write_page_checksum=True)
    return paths


def os_bytes() -> int:
    """Bytes that this process has read so far, by the operating system's count."""
    try:
        return int(Path("/proc/self/io").read_text().split()[1])
    except (OSError, IndexError):
        pytest.skip("this system does not count what is read")


def rows_of(parts: list[Shard]) -> list[list[object]]:
    return [
        [*cells, label]
        for part in parts
        for cells, label in zip(part.frame.to_numpy().tolist(), part.labels.tolist(), strict=True)
    ]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write text or bytes into a file of the test's own folder."""

    def put(content: str | bytes, name: str = "people.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


def failure(path: Path, **options: object) -> DataError:
    written = {name: options.pop(name) for name in ("encoding", "delimiter") if name in options}
    options["options"] = CsvOptions(**written)  # type: ignore[arg-type]
    with pytest.raises(DataError) as caught:
        list(FileShards(path, **{"label": "buys", "num_shards": 1, "shuffle": False, **options}))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
def test_all_parts_together_are_the_table(
    stored: dict[str, Path], table: pd.DataFrame, kind: str
) -> None:
    source = FileShards(stored[kind], label=LABEL, num_shards=NUM_PARTS, shuffle=False)
    assert source.feature_names == ["x", "<script>", "$x$", "a.b", "a"]
    parts = sorted(source, key=lambda part: part.number)
    assert [part.number for part in parts] == list(range(NUM_PARTS))
    starts = np.cumsum([0, *(len(part.frame) for part in parts)])
    assert [part.first_row for part in parts] == starts[:-1].tolist()
    assert starts[-1] == ROWS == source.count.num_rows
    sizes = np.diff(starts)
    # A gzip file is read by blocks of 8 KiB, a fifth of a part.
    slack = 0.2 if kind == "csv.gz" else 0.1
    assert sizes.min() > (1.0 - slack) * ROWS / NUM_PARTS
    assert sizes.max() < (1.0 + slack) * ROWS / NUM_PARTS
    together = pd.concat([part.frame for part in parts], ignore_index=True)
    dtypes = ["float64", "object", "float64", "object", "float64"]
    assert [str(kind) for kind in together.dtypes] == dtypes
    assert source.text_columns == ["<script>", "a.b"]
    pd.testing.assert_frame_equal(together, table.drop(columns=LABEL), check_exact=True)
    cells = {type(cell) for name in source.text_columns for cell in together[name]}
    assert cells == {str, type(None)}
    labels = np.concatenate([part.labels for part in parts])
    assert labels.dtype == object
    assert labels.tolist() == table[LABEL].tolist()
    assert source.count.num_bytes >= source.file_bytes == stored[kind].stat().st_size


def test_text_is_read_as_pandas_reads_it(stored: dict[str, Path]) -> None:
    known = pd.read_csv(stored["csv"], dtype=str, keep_default_na=False)
    source = FileShards(
        stored["csv"], label=LABEL, categorical=True, missing_values=(), shuffle=False
    )
    assert rows_of(list(source)) == known.to_numpy().tolist()
    assert source.num_shards == 64


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_is_not_read(stored: dict[str, Path], kind: str) -> None:
    source = FileShards(stored[kind], label=LABEL, num_shards=NUM_PARTS, shuffle=False)
    looked = source.count.num_bytes
    parts = iter(source)
    before = os_bytes()
    own = os_bytes() - before
    part_bytes = source.file_bytes / NUM_PARTS
    # Half a part more at most, and 16 KiB per column that pyarrow wants for the head of a page.
    slack = 0.5 * part_bytes + (6 << 14 if kind == "parquet" else 0)
    seen = 0
    for number in range(1, NUM_PARTS):
        seen += len(next(parts).labels)
        read = source.count.num_bytes - looked
        assert 0.9 * number * part_bytes < read < number * part_bytes + slack
        assert seen <= source.count.num_rows < seen + 0.5 * ROWS / NUM_PARTS
    really = os_bytes() - before - 2 * own
    assert read <= really <= read + 4096


def test_counted_bytes_of_the_footer(stored: dict[str, Path]) -> None:
    source = FileShards(stored["parquet"], label=LABEL)
    assert 0 < source.count.num_bytes < source.file_bytes / 2
    assert FileShards(stored["csv"], label=LABEL).count.num_bytes == 0


def test_columns_that_are_not_wanted_are_not_read(stored: dict[str, Path]) -> None:
    for kind in ("parquet", "groups.parquet"):
        source = FileShards(stored[kind], label=LABEL, features=["$x$"], num_shards=NUM_PARTS)
        looked = source.count.num_bytes
        assert sum(len(part.frame) for part in source) == ROWS
        assert source.count.num_bytes - looked < source.file_bytes / 3


@pytest.mark.parametrize("kind", KINDS)
def test_stopping_closes_the_file(stored: dict[str, Path], kind: str) -> None:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list open files")

    def is_open() -> bool:
        links = [entry for entry in folder.iterdir() if entry.is_symlink()]
        return any(os.path.realpath(link) == str(stored[kind].resolve()) for link in links)

    source = FileShards(stored[kind], label=LABEL)
    assert not is_open()
    parts = iter(source)
    next(parts)
    assert is_open()
    parts.close()  # type: ignore[attr-defined]
    assert not is_open()


def test_a_second_pass_gives_the_same_parts_and_counts_on(stored: dict[str, Path]) -> None:
    for kind in ("csv", "csv.gz", "groups.parquet"):
        source = FileShards(stored[kind], label=LABEL, rows_per_shard=2000)
        first = list(source)
        once = source.count.num_bytes
        second = list(source)
        assert [part.first_row for part in first] == [part.first_row for part in second]
        assert source.count.num_rows == 2 * ROWS
        assert source.count.num_bytes > 1.7 * once


@pytest.mark.parametrize("kind", ["csv", "groups.parquet"])
@pytest.mark.parametrize("column", ["x", "$x$"])
def test_scattered_parts_of_a_sorted_file(
    table: pd.DataFrame, tmp_path: Path, kind: str, column: str
) -> None:
    """Every part is like the whole, all parts are the file, and no byte of text is read twice."""
    path = tmp_path / f"sorted.{kind}"
    ordered = table.sort_values(column, kind="stable", ignore_index=True)
    if kind == "csv":
        ordered.to_csv(path, index=False)
    else:
        ordered.to_parquet(path, row_group_size=250)
    source = FileShards(path, label=LABEL, num_shards=NUM_PARTS)
    assert source.is_shuffled
    parts = list(source)
    assert [part.number for part in parts] == list(range(NUM_PARTS))
    sizes = [len(part.labels) for part in parts]
    assert max(sizes) < 1.25 * min(sizes)
    means = [part.frame[column].mean() for part in parts]
    # One of 20 parts of neighbours alone would be up to 1.9 standard deviations away.
    limit = 0.2 if kind == "csv" else 0.4  # a part has 8 row groups
    assert np.abs(np.array(means) - table[column].mean()).max() < limit * table[column].std()
    together = pd.concat([part.frame.assign(label=part.labels) for part in parts])
    known = table.rename(columns={LABEL: "label"})
    names = list(known.columns)
    pd.testing.assert_frame_equal(
        together.sort_values(["a", "x"], ignore_index=True),
        known.sort_values(["a", "x"], ignore_index=True)[names],
        check_exact=True,
    )
    assert source.count.num_rows == ROWS
    if kind == "csv":
        assert source.count.num_bytes == source.file_bytes
    # An error names the line of the file, wherever the row was read.
    places = {float(a): place for place, a in enumerate(ordered["a"])}
    for part in parts[::7]:
        for row in (0, len(part.labels) // 2, len(part.labels) - 1):
            error = source.error(part, row, "a", "is odd")
            place = places[float(part.frame["a"].iloc[row])]
            if kind == "csv":
                before = ordered.iloc[:place].to_csv(index=False)
                assert error.line == before.count("\n") + 1
            else:
                assert error.row == place


@pytest.mark.parametrize("kind", ["csv", "quotes.csv", "groups.parquet"])
def test_every_row_knows_its_block(tmp_path: Path, kind: str) -> None:
    """Rows of one block follow one another in the file, and each block is in one part."""
    path, rows = tmp_path / f"rows.{kind}", 30_000
    note = ['two\nlines, of a "note"', "plain"] if kind == "quotes.csv" else ["a", "b"]
    labels = [None if row % 7 == 0 else "yn"[row % 2] for row in range(rows)]
    frame = pd.DataFrame({"x": np.arange(rows), "note": [note[r % 2] for r in range(rows)]})
    frame["buys"] = labels
    if kind == "groups.parquet":
        frame.to_parquet(path, row_group_size=250)
    else:
        text = frame.to_csv(index=False)
        path.write_text(text.replace("\n100,", "\n\n\n100,"))  # empty lines are no rows
    source = FileShards(path, label="buys", num_shards=8)
    parts = list(source)
    blocks = np.concatenate([part.blocks for part in parts if part.blocks is not None])
    x = np.concatenate([part.frame["x"].to_numpy() for part in parts]).astype(int)
    assert len(blocks) == len(x) == sum(label is not None for label in labels)
    assert (np.diff(blocks[np.argsort(x)]) >= 0).all()
    assert sum(len(np.unique(part.blocks)) for part in parts) == len(np.unique(blocks)) > 100
    if kind == "groups.parquet":
        np.testing.assert_array_equal(blocks, x // 250)
        reader = source.reader()
        assert reader is not None
        np.testing.assert_array_equal(reader.read(3, source.count).blocks, parts[3].blocks)
    in_order = FileShards(path, label="buys", num_shards=8, shuffle=False)
    assert {part.blocks is None for part in in_order} == {True}


def test_the_seed_determines_the_parts(stored: dict[str, Path]) -> None:
    for kind in ("csv", "groups.parquet"):

        def cells(kind: str = kind, **options: Any) -> list[float]:
            source = FileShards(stored[kind], label=LABEL, num_shards=NUM_PARTS, **options)
            return next(iter(source)).frame["a"].tolist()

        assert cells(seed=1, shuffle=True) == cells(seed=1) != cells(seed=2)


@pytest.mark.parametrize("num_hands", [1, 3, 4])
def test_all_orders_of_dealt_hands_are_equally_likely(num_hands: int) -> None:
    """The argument of the partial scan: parts in a uniformly random order, given which they are."""
    rng = np.random.default_rng(0)
    firsts = np.zeros((10, num_hands))
    for _ in range(3000):
        hands = list(deal_blocks(np.arange(10), num_hands, rng))
        assert sorted(np.concatenate(hands).tolist()) == list(range(10))
        assert max(map(len, hands)) - min(map(len, hands)) <= 1
        for number, hand in enumerate(hands):
            firsts[hand, number] += 1
    expected = 3000 / num_hands
    assert np.abs(firsts - expected).max() <= 4.5 * np.sqrt(expected)


def test_the_number_of_parts_follows_from_rows_and_labels(
    stored: dict[str, Path], tmp_path: Path
) -> None:
    asked: list[tuple[int, int]] = []

    def choose(rows: int, labels: int) -> int:
        asked.append((rows, labels))
        return 25 if labels == 2 or rows == ROWS else 1

    for kind, shuffle in (("csv", "auto"), ("csv", False), ("groups.parquet", False)):
        source = FileShards(stored[kind], label=LABEL, num_shards=choose, shuffle=shuffle)
        sizes = [len(part.labels) for part in source]
        assert source.num_shards == len(sizes) == 25
        rows, labels = asked[-1]
        assert abs(rows - ROWS) < 0.05 * ROWS
        assert labels == 2
    # A part of a sorted Parquet file takes many row groups.
    pq.write_table(pq.read_table(stored["parquet"]), tmp_path / "g.parquet", row_group_size=60)
    source = FileShards(tmp_path / "g.parquet", label=LABEL, num_shards=choose)
    assert (source.is_shuffled, source.num_shards) == (True, 20)
    source = FileShards(stored["groups.parquet"], label=LABEL, num_shards=choose)
    assert (source.is_whole, source.num_shards) == (True, 1)


def test_the_first_scattered_part_holds_more_rows(stored: dict[str, Path]) -> None:
    for extra, size in ((0, 2000), (1000, 2950), (5000, 4000)):
        source = FileShards(stored["csv"], label=LABEL, num_shards=NUM_PARTS, extra_rows=extra)
        sizes = [len(part.labels) for part in source]
        assert abs(sizes[0] - size) < 200
        assert sum(sizes) == ROWS


def test_what_is_read_at_once_and_what_in_order(
    stored: dict[str, Path], write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = write(HEAD + "31,Ulm,no\n" * 10)
    packed = write(gzip.compress(small.read_bytes()), "people.csv.gz")
    for path, label in ((small, "buys"), (packed, "buys"), (stored["parquet"], LABEL)):
        source = FileShards(path, label=label, num_shards=2)
        assert (source.is_whole, source.is_shuffled, source.num_shards) == (True, False, 1)
        assert len(list(source)) == 1
    for options in ({"shuffle": False, "num_shards": 8}, {"shuffle": False, "num_shards": 41}):
        source = FileShards(stored["groups.parquet"], label=LABEL, **options)  # type: ignore[arg-type]
        assert not source.is_shuffled
        assert [part.number for part in source] == list(range(source.num_shards))
    assert FileShards(stored["groups.parquet"], label=LABEL, num_shards=41).is_whole
    monkeypatch.setattr(file_shards, "SMALL_STREAM", 0)
    monkeypatch.setattr(parquet_shards, "MAX_CELLS", 0)
    for kind in ("csv.gz", "parquet"):
        source = FileShards(stored[kind], label=LABEL, num_shards=2)
        assert (source.is_whole, source.is_shuffled) == (False, False)
    error = failure(stored["groups.parquet"], label=LABEL, num_shards=41, shuffle=True)
    assert "has 40 row groups, too few for 41 parts" in error.message
    error = failure(stored["csv.gz"], label=LABEL, shuffle=True)
    assert "a gzipped file has no random access" in error.message
    wide = "größe;buys\n" + "1,5;ja\n" * 40_000
    source = FileShards(
        write(wide.encode("utf-16")), label="buys", options=CsvOptions("utf-16"), num_shards=4
    )
    assert (source.is_whole, source.is_shuffled) == (False, False)


def test_empty_row_groups_are_left_out(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64()), ("buys", pa.string())])
    path = tmp_path / "gaps.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        for size in (0, 7, 0, 7, 7, 0):
            rows = {"x": list(range(size)), "buys": ["n"] * size}
            writer.write_table(pa.table(rows, schema=schema), row_group_size=max(size, 1))
    source = FileShards(path, label="buys", num_shards=3)
    assert [len(part.labels) for part in source] == [7, 7, 7]


REVIEWS = [
    "short, and good",
    "first line, of two\nsecond line, of two",
    "\n".join(f"line {number}, with a comma" for number in range(12)),
    'he said ""no"", twice',
    "",
]


def test_line_breaks_in_quotes_do_not_begin_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of a text with as many commas as a row has."""
    rng = np.random.default_rng(0)
    texts = np.array(REVIEWS, dtype=object)[rng.integers(len(REVIEWS), size=12_000)]
    frame = pd.DataFrame({"text": texts, "y": rng.choice(["pos", "neg"], 12_000)})
    for name, quoting in (("some", csv.QUOTE_MINIMAL), ("all", csv.QUOTE_ALL)):
        path = tmp_path / f"{name}.csv"
        frame.to_csv(path, index=False, quoting=quoting)
        source = FileShards(
            path, label="y", features=["text"], missing_values=(), num_shards=30, shuffle=True
        )
        parts = list(source)
        found = pd.concat([part.frame.assign(y=part.labels) for part in parts])
        assert found.value_counts().to_dict() == frame.value_counts().to_dict()
        assert source.count.num_bytes == source.file_bytes


def test_random_tables_in_blocks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks begin within quotes, doubled quotes, line breaks and letters."""
    monkeypatch.setattr(file_shards, "SMALL_FILE", 0)
    draw = random.Random(0)
    plain = ["a", "bb", "c d", "", "ü"]
    cells = [*plain, "b,c", 'q"q', '"', "new\nline", "\r\n", '",\n"', "a, b\nc, d\n"]
    path, read = tmp_path / "random.csv", 0
    for trial in range(60):
        monkeypatch.setattr(csv_shards, "MIN_BLOCK", draw.choice([16, 64, 512]))
        width = draw.randint(2, 5)
        pool = cells if trial % 2 else plain
        rows = [
            [str(number), *draw.choices(pool, k=width - 2), draw.choice("yn")]
            for number in range(draw.randint(1, 300))
        ]
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=draw.choice(["\n", "\r\n"]))
        if not trial % 2:
            writer = csv.writer(text, lineterminator=draw.choice(["\n", "\r\n", "\r"]))
        writer.writerows([[*map(str, range(width - 1)), "buys"], *rows])
        encoding = draw.choice(["utf-8", "utf-8-sig", "latin-1"])
        content = text.getvalue()
        path.write_bytes((content.rstrip() if trial % 3 else content).encode(encoding))
        source = FileShards(
            path,
            label="buys",
            num_shards=draw.choice([1, 2, 4]),
            options=CsvOptions(encoding, ","),
            categorical=True,
            missing_values=(),
            seed=trial,
        )
        try:
            found = rows_of(list(source))
        except CannotSeek:
            continue  # too few rows for blocks
        read += 1
        assert sorted(found, key=lambda row: int(str(row[0]))) == rows
        assert source.count.num_bytes == source.file_bytes
    assert read > 30


def test_parquet_parts_differ_by_one_row_at_most(stored: dict[str, Path]) -> None:
    source = FileShards(stored["parquet"], label=LABEL, num_shards=7, shuffle=False)
    sizes = [len(part.labels) for part in source]
    assert sizes == [len(piece) for piece in np.array_split(np.empty(ROWS), 7)]
    source = FileShards(stored["parquet"], label=LABEL, rows_per_shard=19_000, shuffle=False)
    assert (source.num_shards, source.num_rows) == (3, ROWS)
    assert [len(part.labels) for part in source] == [13_334, 13_333, 13_333]


@pytest.mark.parametrize("kind", ["csv", "csv.gz"])
def test_the_first_rows_tell_the_number_of_parts(stored: dict[str, Path], kind: str) -> None:
    source = FileShards(stored[kind], label=LABEL, rows_per_shard=2000, shuffle=False)
    assert (source.num_shards, source.num_rows) == (0, None)
    parts = iter(source)
    first = len(next(parts).labels)
    assert 1700 < first < 2300
    assert source.count.num_bytes < 0.2 * source.file_bytes
    assert (16 if kind == "csv.gz" else 18) <= source.num_shards <= 22  # blocks of 8 KiB
    sizes = [len(part.labels) for part in parts]
    assert len(sizes) == source.num_shards - 1
    assert min(sizes) > (1400 if kind == "csv.gz" else 1800)
    assert first + sum(sizes) == ROWS


@pytest.mark.parametrize(("rows_per_shard", "sizes"), [(3, [4, 3, 3]), (9, [10]), (99, [10])])
def test_rows_per_shard_of_a_small_file(
    write: Write, rows_per_shard: int, sizes: list[int]
) -> None:
    path = write(HEAD + "31,Ulm,no\n" * 10)
    source = FileShards(path, label="buys", rows_per_shard=rows_per_shard, shuffle=False)
    assert [len(part.labels) for part in source] == sizes
    assert source.num_shards == len(sizes)


def test_a_small_file_is_read_at_once_and_cut_by_rows(write: Write) -> None:
    path = write(HEAD + "".join(f"31,{'Ulm' * (row // 100)},no\n" for row in range(1001)))
    source = FileShards(path, label="buys", num_shards=4, shuffle=False)
    assert source.file_bytes > 20_000
    parts = iter(source)
    assert len(next(parts).labels) == 251
    assert source.count.num_bytes == source.file_bytes
    assert [len(part.labels) for part in parts] == [250, 250, 250]


def test_empty_parts_are_counted_where_most_bytes_are_in_one_row(write: Write) -> None:
    rows = [f"{number},Ulm,no\n" for number in range(100)]
    rows[98] = f'98,"{"x" * 300_000}",no\n'
    path = write(HEAD + "".join(rows))
    source = FileShards(path, label="buys", num_shards=20, shuffle=False)
    parts = list(source)
    assert len(parts) == 2  # before that row, and with it
    assert source.count.num_empty == 18
    assert [row[0] for row in rows_of(parts)] == list(range(100))


def test_random_tables_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few bytes end within quotes, doubled quotes, line breaks and letters."""
    monkeypatch.setattr(csv_shards, "SMALL_FILE", 0)
    draw = random.Random(0)
    cells = ["a", "b,c", 'q"q', '"', "new\nline", "\r\n", "x\ry", "", "ü", '",\n"', "\ufeff"]
    path = tmp_path / "random.csv"
    for _ in range(40):
        monkeypatch.setattr(csv_shards, "MIN_STEP", draw.choice([2, 7, 64]))
        rows = [[*draw.choices(cells, k=2), draw.choice("yn")] for _ in range(draw.randint(1, 25))]
        text = io.StringIO()
        writer = csv.writer(
            text, quoting=csv.QUOTE_ALL, lineterminator=draw.choice(["\n", "\r\n", "\r"])
        )
        writer.writerows([["A", "B", "buys"], *rows, *[[]] * draw.randint(0, 5)])
        encoding = draw.choice(["utf-8", "utf-8-sig", "utf-16"])
        content = text.getvalue().encode(encoding)
        path.write_bytes(gzip.compress(content) if draw.random() < 0.4 else content)
        source = FileShards(
            path,
            label="buys",
            num_shards=draw.randint(1, len(rows)),
            options=CsvOptions(encoding, ","),
            categorical=True,
            missing_values=(),
            shuffle=False,
        )
        parts = list(source)
        assert rows_of(parts) == rows
        assert len(parts) + source.count.num_empty == source.num_shards


def test_quotes_within_cells_that_have_none_around_them(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_shards, "SMALL_FILE", 0)
    monkeypatch.setattr(csv_shards, "MIN_STEP", 2)
    cells = ['5" pipe', 'x""y', '"two\nlines"', '"a"b', "c", '"d,""e"']
    lines = [f"{row},{cells[row % 6]},no\n" for row in range(60)]
    known = ['5" pipe', 'x""y', "two\nlines", "ab", "c", 'd,"e']
    path = write(HEAD + "".join(lines))
    parts = list(FileShards(path, label="buys", num_shards=30, shuffle=False))
    assert [row[:2] for row in rows_of(parts)] == [[row, known[row % 6]] for row in range(60)]


def test_a_mark_at_the_beginning_of_a_later_piece(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_shards, "SMALL_FILE", 0)
    monkeypatch.setattr(csv_shards, "MIN_STEP", 2)
    path = write("\ufefftown,buys\n" + "\ufeffUlm,no\n" * 30)
    parts = list(FileShards(path, label="buys", num_shards=15, shuffle=False))
    assert rows_of(parts) == [["\ufeffUlm", "no"]] * 30


def test_where_a_text_can_be_cut() -> None:
    assert end_of_records(b"a,b\n1,2\n3", ",") == 8
    assert end_of_records(b"a,b", ",") == 0
    assert end_of_records(b"a,b\r1,2\r", ",") == 4
    assert end_of_records(b"a,b\r\n1,2\r", ",") == 5
    assert end_of_records(b'a,"b"\r1,2\r', ",") == 6
    assert end_of_records(b'a\n"b\nc"', ",") == 2
    assert end_of_records(b'a\n"b\nc""\n', ",") == 2
    assert end_of_records(b'a;"b\n', ",") == 5
    assert end_of_records(b'a;"b\n', ";") == 0
    assert end_of_records(b'"a"b"c\n"x\n', ",") == 7


def test_texts_are_cut_where_pythons_csv_module_ends_a_record() -> None:
    """Quotes anywhere: within cells, doubled, after a closing one, never closed."""
    draw = random.Random(1)
    for _ in range(3000):
        text = "".join(draw.choices(['"', '""', "a", ",", "\n", "\r\n"], k=draw.randint(1, 20)))
        end = end_of_records(text.encode(), ",")
        whole, rest = text[:end], text[end:]
        # Cut there, the two halves are the records of the whole.
        assert records(whole) + records(rest) == records(text)
        # No line break of the rest ends a record: all of it is one.
        assert len(records(rest)) <= 1


def records(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_text_in_other_encodings(write: Write) -> None:
    text = "größe;stadt;buys\n1,5;Köln;ja\n2;Köln;nö\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        path = write(text.encode(encoding))
        for name in ("utf-8",) if encoding == "utf-8-sig" else (encoding,):
            (part,) = FileShards(path, label="buys", num_shards=1, options=CsvOptions(name))
            assert part.frame.columns.tolist() == ["größe", "stadt"]
            assert part.labels.tolist() == ["ja", "nö"]
            assert part.frame["größe"].tolist() == ["1,5", "2"]


def test_header_options(write: Write) -> None:
    path = write("\ufeff31\tUlm\tno\n\n45\tBonn\tyes\n", "people.tsv")
    (part,) = FileShards(path, label="column_3", num_shards=1, options=CsvOptions(header=False))
    assert rows_of([part]) == [[31.0, "Ulm", "no"], [45.0, "Bonn", "yes"]]
    (part,) = FileShards(
        path, label="buys", num_shards=1, options=CsvOptions(header=["age", "town", "buys"])
    )
    assert part.frame.columns.tolist() == ["age", "town"]
    path = write("31\ta,b,c,d\tno\n", "people.tsv")
    (part,) = FileShards(path, label="column_3", num_shards=1, options=CsvOptions(header=False))
    assert rows_of([part]) == [[31.0, "a,b,c,d", "no"]]


def test_a_last_letter_cut_in_two(write: Write) -> None:
    path = write(GOOD.encode("utf-16") + b"1")
    assert "is not utf-16 text" in failure(path, encoding="utf-16").message


def test_chosen_columns(write: Write) -> None:
    path = write("a,b,c,buys\n1,2,3,no\n")
    assert FileShards(path, label="buys", ignore="b").feature_names == ["a", "c"]
    source = FileShards(path, label="buys", features=["c", "a"], num_shards=1)
    assert next(iter(source)).frame.to_dict("list") == {"c": [3.0], "a": [1.0]}
    assert "cannot be a feature too" in failure(path, features=["a", "buys"]).message
    assert "is listed twice" in failure(path, features=["a", "a"]).message
    assert "no feature columns are left" in failure(path, ignore=["a", "b", "c"]).message
    assert "not a feature" in failure(path, categorical=["buys"]).message
    assert failure(path, ignore=["d"]).column == "d"


@pytest.mark.parametrize(
    ("cells", "options", "known"),
    [
        (["1e3", " 7", "-0.5 "], {}, [1000.0, 7.0, -0.5]),
        (["1e3", "", "Infinity"], {}, [1000.0, None, float("inf")]),
        (["3", ".5", "1e400"], {}, [3.0, 0.5, float("inf")]),
        (["٣", "4", "5"], {}, ["٣", "4", "5"]),
        (["TRUE", "false", "NA"], {}, [1.0, 0.0, None]),
        (["True", "1", "0"], {}, ["True", "1", "0"]),
        (["", "", ""], {}, [None] * 3),
        (["1_000", "2", "3"], {}, ["1_000", "2", "3"]),
        (["+1", "2", "3"], {}, ["+1", "2", "3"]),
        (["NaN", "2", ""], {}, [None, 2.0, None]),
        (["NaN", "2", ""], {"missing_values": [""]}, ["NaN", "2", None]),
        (["?", "2", ""], {"missing_values": {"x": ["?"]}}, [None, "2", ""]),
        (["?", "n/a", "null"], {}, [None] * 3),
        (["?", "2", "-9"], {"missing_values": {"x": ["?", -9]}}, [None, 2.0, None]),
        (["1", "", "007"], {}, ["1", None, "007"]),
        (["1", "", "7"], {"categorical": ["x"]}, ["1", None, "7"]),
        (["1", "", "7"], {"categorical": True}, ["1", None, "7"]),
        (["1", "", "7"], {"categorical": False}, [1.0, None, 7.0]),
    ],
)
def test_kinds_of_text_columns(
    write: Write, cells: list[str], options: dict[str, object], known: list[object]
) -> None:
    path = write("x,buys\n" + "".join(f'"{cell}",no\n' for cell in cells))
    source = FileShards(path, label="buys", num_shards=1, **options)  # type: ignore[arg-type]
    column = next(iter(source)).frame["x"]
    is_number = all(cell is None or isinstance(cell, float) for cell in known)
    assert str(column.dtype) == ("float64" if is_number else "object")
    if is_number:
        np.testing.assert_array_equal(column, np.array(known, float))
    else:
        assert column.tolist() == known
    assert source.text_columns == ([] if is_number else ["x"])


DAY = dt.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("column", "known"),
    [
        (pa.array([1, None, 3], pa.int8()), [1.0, None, 3.0]),
        (pa.array([0.1, float("nan"), -1.0], pa.float32()), [None, None, None]),
        (pa.array([True, False, None]), [1.0, 0.0, None]),
        (pa.nulls(3), [None] * 3),
        (pa.array(["1", "", None]), ["1", None, None]),
        (pa.array(["1", "x", None], pa.large_string()), ["1", "x", None]),
        (pa.array(["b", None, "b"]).dictionary_encode(), ["b", None, "b"]),
        (pa.array([DAY, None, DAY]), ["2024-02-29", None, "2024-02-29"]),
    ],
)
def test_kinds_of_parquet_columns(tmp_path: Path, column: pa.Array, known: list[object]) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": column, "buys": ["n", "y", "n"]}), path)
    tokens = ["", "-1", "0.1", "0"]
    (part,) = FileShards(path, label="buys", num_shards=1, missing_values=tokens)
    if any(isinstance(cell, str) for cell in known):
        assert part.frame["x"].dtype == object
        assert part.frame["x"].tolist() == known
        return
    assert part.frame["x"].dtype == np.float64
    if pa.types.is_float32(column.type):
        assert part.frame["x"].isna().all()  # 0.1 in single precision is listed too
    np.testing.assert_array_equal(part.frame["x"], np.array(known, float))
    (part,) = FileShards(path, label="buys", num_shards=1, categorical=True)
    assert {type(cell) for cell in part.frame["x"]} <= {str, type(None)}


@pytest.mark.parametrize(
    ("labels", "known"),
    [
        (pa.array([3, 1]), np.array([3, 1])),
        (pa.array([3, 1], pa.uint8()), np.array([3, 1])),
        (pa.array([1.0, 2.0], pa.float32()), np.array([1.0, 2.0])),
        (pa.array([True, False]), np.array([True, False])),
        (pa.array([DAY, DAY]), np.array([str(DAY)] * 2, dtype=object)),
        (pa.array(["1", "x"]), np.array(["1", "x"], dtype=object)),
        (pa.array(["1", "x"]).dictionary_encode(), np.array(["1", "x"], dtype=object)),
        (pa.array([3, 1]).dictionary_encode(), np.array([3, 1])),
    ],
    ids=str,
)
def test_parquet_labels_keep_their_type(tmp_path: Path, labels: pa.Array, known: Labels) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": [1, 2], "buys": labels}), path)
    (part,) = FileShards(path, label="buys", num_shards=1)
    assert part.labels.dtype == known.dtype
    assert part.labels.tolist() == known.tolist()


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        (["0", "1", "0"], np.array([0, 1, 0])),
        (["0", "NA", "1"], np.array([0, 1])),
        (["1.0", "2", "3"], np.array([1.0, 2.0, 3.0])),
        (["true", "False", "?"], np.array([True, False])),
        (["no", "1", ""], np.array(["no", "1"], dtype=object)),
        (["2024-02-29", "007", ""], np.array(["2024-02-29", "007"], dtype=object)),
    ],
)
def test_labels_of_a_text_file_have_a_type(write: Write, cells: list[str], known: Labels) -> None:
    path = write("x,buys\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells)))
    source = FileShards(path, label="buys", num_shards=1)
    (part,) = source
    assert part.labels.dtype == known.dtype
    assert part.labels.tolist() == known.tolist()
    assert source.count.unlabelled == 3 - len(known)
    kept = part.frame["x"].tolist()
    assert len(kept) == len(known)
    # The place of a row is that in the file, although others were left out.
    assert source.error(part, len(known) - 1, "x", "is wrong").line == int(kept[-1]) + 2


def test_missing_cells_are_counted(write: Write) -> None:
    path = write("x,y,buys\n1,a,no\n?,NA,no\n,na,?\n")
    source = FileShards(path, label="buys", num_shards=1)
    list(source)
    known = {"x": {"": 1, "?": 1}, "y": {"NA": 1, "na": 1}, "buys": {"?": 1}}
    assert source.count.notes.missing == known
    source = FileShards(path, label="buys", num_shards=1, missing_values=["?", ""])
    list(source)
    assert not source.count.notes.missing  # the user has listed them
    cells = {"x": [1.0, None, float("nan")], "y": ["a", None, "NA"], "buys": ["n", "y", None]}
    pq.write_table(pa.table(cells), path.with_name("t.parquet"))
    source = FileShards(path.with_name("t.parquet"), label="buys", num_shards=1)
    list(source)
    assert source.count.notes.missing == {"x": {"": 2}, "y": {"": 1, "NA": 1}, "buys": {"": 1}}


def test_a_first_column_without_a_name_is_an_index(write: Write) -> None:
    for head in ("", '""', "Unnamed: 0"):
        path = write(f"{head},x,buys\n0,1,no\n1,2,yes\n")
        source = FileShards(path, label="buys", num_shards=1)
        assert (source.feature_names, source.other_names) == (["x"], ["Unnamed: 0", "buys"])
        assert source.count.notes.index == "Unnamed: 0"
    source = FileShards(path, label="buys", features=["Unnamed: 0", "x"], num_shards=1)
    assert source.count.notes.index is None
    assert next(iter(source)).frame["Unnamed: 0"].tolist() == [0.0, 1.0]


CHANGES = {
    "text among numbers": ("1,a,0\n2,a,1\nold,a,1\n", {"age": (4, "'old', but only numbers")}),
    "text in an empty column": (",a,0\n,a,1\nx,a,1\n", {"age": (4, "only empty cells")}),
    "true among numbers": ("1,a,0\n2,a,1\nTrue,a,1\n", {"age": (4, "'True', but only numbers")}),
    "number among truths": ("true,a,0\nTrue,a,1\n1,a,1\n", {"age": (4, "only true and false")}),
    "007": ("1,a,0\n2,a,1\n007,a,1\n", {"age": (4, "'007', but only numbers")}),
    "label": ("1,a,0\n2,a,1\n7,a,no\n", {"buys": (4, "'no', but only numbers")}),
    "both": ("1,a,0\n2,a,1\n7,a,no\nx,a,1\n", {"buys": (4, "'no'"), "age": (5, "'x'")}),
    "both in one part": ("1,a,0\n2,a,1\nx,a,no\n", {"age": (4, "'x'"), "buys": (4, "'no'")}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_later_part_that_contradicts_the_first(write: Write, case: str) -> None:
    rows, places = CHANGES[case]
    path = write(HEAD + rows)
    text: set[str] = set()
    found: dict[str, DataError] = {}
    for _ in range(4):
        source = FileShards(path, label="buys", rows_per_shard=1, text=text, shuffle=False)
        try:
            parts = list(source)
            break
        except ColumnTypeChanged as change:
            found |= change.columns
            text |= set(change.columns)
    assert {name: error.line for name, error in found.items()} == {
        name: line for name, (line, _) in places.items()
    }
    assert all(message in found[name].message for name, (_, message) in places.items())
    known = [line.split(",") for line in rows.splitlines()]
    if "age" in places:
        assert [row[0] for row in rows_of(parts)] == [cells[0] or None for cells in known]
    if "buys" in places:
        assert [row[2] for row in rows_of(parts)] == [cells[2] for cells in known]


@pytest.mark.parametrize(
    "rows",
    [
        "1,a,0\n2.5,a,1\n",  # integers and floats
        ",a,0\n2.5,a,1\n",  # nothing and numbers
        "1,a,0\n,a,1.0\n",  # integers and floats as labels
        ",a,0\ntrue,a,1\n",
    ],
)
def test_parts_that_differ_and_do_not_contradict(write: Write, rows: str) -> None:
    parts = list(FileShards(write(HEAD + rows), label="buys", num_shards=2, shuffle=False))
    assert [part.labels.tolist() for part in parts] == [[0], [1]]
    assert {part.frame["age"].dtype for part in parts} == {np.dtype(float)}


GOOD = HEAD + "31,Ulm,no\n,Bonn,yes\n"
CASES: dict[str, tuple[Any, dict[str, Any], int | None, str | None, str]] = {
    "empty": ("", {}, None, None, "file is empty"),
    "header only": (HEAD, {}, None, None, "there are no rows"),
    "blank lines after the header": (HEAD + "\n\n", {}, None, None, "there are no rows"),
    "too few rows": (GOOD, {"num_shards": 3}, None, None, "only 2 rows, too few for 3 parts"),
    "absent label": (GOOD, {"label": "Buys"}, None, "Buys", "did you mean 'buys'?"),
    "absent feature": (GOOD, {"features": ["old"]}, None, "old", "there is no such column"),
    "no label at all": (HEAD + "1,Ulm,\n2,Ulm,?\n", {}, None, "buys", "missing in every row"),
    "fraction as a label": (
        HEAD + "1,Ulm,2\n2,a,\n3,a,1.5\n",
        {},
        4,
        "buys",
        "1.5 is not an integer",
    ),
    "short row": (GOOD + "1,Ulm\n", {}, 4, "buys", "has 2 cells where 3 are expected"),
    "long row": (GOOD + "1,Ulm,no,x\n", {}, 4, "buys", "'x' follows this last column"),
    "short row after a line break": (HEAD + '1,"a\n\nb",no\n2\n', {}, 5, "town", "has 1 cell "),
    "no UTF-8": (GOOD.encode() + b"1,K\xf6ln,no\n", {}, 4, "town", "byte 0xf6 at offset 37"),
    "no ASCII": (GOOD + "1,Köln,no\n", {"encoding": "ascii"}, 4, "town", "is not ascii text"),
    "NUL byte": (GOOD + "1,U\x00lm,no\n", {}, 4, "town", "NUL byte"),
    "open quote": (GOOD + '1,"Ulm,no\n2,Ulm,no\n', {}, 4, None, "in this row is never"),
    "open quote beside a stray one": (
        GOOD + '1,5" pipe,no\n2,"Ulm,no\n',
        {},
        5,
        None,
        "in this row is never closed",
    ),
    "long delimiter": (GOOD, {"delimiter": "::"}, None, None, "must be a single character"),
    "odd delimiter": ("a§buys\n1§no\n", {"delimiter": "§"}, None, None, "ASCII"),
    "zip": (b"PK\x03\x04rest", {}, None, None, "zip or Excel"),
}


@pytest.mark.parametrize("case", CASES)
def test_error_names_file_line_and_column(write: Write, case: str) -> None:
    content, options, line, column, message = CASES[case]
    error = failure(write(content), **options)
    assert (error.file, error.line, error.column) == ("people.csv", line, column)
    assert message in error.message


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    assert "there is no such file" in failure(tmp_path / "absent.csv").message
    assert "is a directory" in failure(tmp_path).message


@pytest.mark.parametrize(
    "options", [{"num_shards": 0}, {"rows_per_shard": 0}, {"shuffle": "rows"}], ids=str
)
def test_options_that_make_no_sense(write: Write, options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        FileShards(write(GOOD), label="buys", **options)  # type: ignore[arg-type]


FAULTS = {
    "short row": (b"1,Ulm\n", "buys", "has 2 cells"),
    "no UTF-8": (b"1,K\xf6ln,no\n", "town", "byte 0xf6"),
    "NUL byte": (b"1,U\x00lm,no\n", "town", "NUL byte"),
    "open quote": (b'1,"Ulm,no\n', None, "never closed"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_when_its_part_is_read_and_not_before(
    write: Write, fault: str, packed: bool
) -> None:
    content, column, message = FAULTS[fault]
    rng = np.random.default_rng(0)
    rows = [b"%d,Ulm %d,no\n" % tuple(pair) for pair in rng.integers(10**9, size=(50_000, 2))]
    text = HEAD.encode() + b"".join([*rows[:24_999], content, *rows[24_999:]])
    path = write(gzip.compress(text) if packed else text, "people.csv")
    source = FileShards(path, label="buys", num_shards=20, shuffle=False)
    parts = iter(source)
    # A line break in quotes cannot be told from the end of a row: all is read for the quote.
    assert len(list(islice(parts, 9))) == 9
    assert source.count.num_bytes < 0.52 * source.file_bytes
    with pytest.raises(DataError) as caught:
        list(parts)
    error = caught.value
    assert (error.file, error.line, error.column) == ("people.csv", 25_001, column)
    assert message in error.message


@pytest.mark.parametrize("first", ["short row", "no UTF-8"])
def test_a_fault_that_was_read_is_named_and_not_one_that_was_not(write: Write, first: str) -> None:
    (second,) = {"short row", "no UTF-8"} - {first}
    row = b"31,Ulm,no\n"
    content = [HEAD.encode(), FAULTS[first][0], row * 50_000, FAULTS[second][0], row]
    error = failure(write(b"".join(content)), num_shards=20)
    assert (error.line, error.column) == (2, FAULTS[first][1])
    assert FAULTS[first][2] in error.message


def test_damaged_gzip(write: Write) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{a},Ulm {b},no\n" for a, b in rng.integers(10**9, size=(50_000, 2))]
    packed = gzip.compress((HEAD + "".join(rows)).encode())
    path = write(packed[: len(packed) // 2], "people.csv.gz")
    parts = iter(FileShards(path, label="buys", num_shards=4, shuffle=False))
    assert len(next(parts).labels) > 2000
    with pytest.raises(DataError, match=r"people.csv.gz: the gzip file is incomplete"):
        list(parts)
    path.write_bytes(packed[:-8] + b"\0" * 8)
    assert "the gzip file is damaged" in failure(path).message
    middle = len(packed) // 2
    path.write_bytes(packed[:middle] + bytes(200) + packed[middle + 200 :])
    assert "people.csv.gz" in str(failure(path))


def test_damaged_parquet(stored: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    whole = stored["groups.parquet"].read_bytes()
    for content in (whole[: len(whole) // 2], whole[:20]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"people.parquet: is not a complete Parquet file"):
            FileShards(path, label=LABEL)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + b"\xff" * 3000 + whole[middle + 3000 :])
    source = FileShards(path, label=LABEL, num_shards=40, shuffle=False)
    parts = iter(source)
    assert len(list(islice(parts, 15))) == 15
    with pytest.raises(DataError, match=r"people.parquet: cannot be read, the file is damaged"):
        list(parts)


@pytest.mark.parametrize(
    ("columns", "row", "column", "message"),
    [
        ({"x": [1, 2], "buys": [None, None]}, None, "buys", "missing in every row"),
        ({"x": [1, 2], "buys": ["", "na"]}, None, "buys", "missing in every row"),
        ({"x": [1, 2], "buys": [float("nan")] * 2}, None, "buys", "missing in every row"),
        ({"x": [1, 2, 3], "buys": [2.0, None, 0.5]}, 2, "buys", "0.5 is not an integer"),
        ({"x": [[1], [2]], "buys": ["n", "y"]}, None, "x", "nested cells"),
        ({"x": [b"a", b"b"], "buys": ["n", "y"]}, None, "x", "has cells of bytes"),
        ({"x": [1, 2], "buys": [b"a", b"b"]}, None, "buys", "has cells of bytes"),
        ({"x": [1, 2]}, None, "buys", "there is no such column"),
        ({"x": pa.nulls(0), "buys": pa.nulls(0)}, None, None, "there are no rows"),
    ],
)
def test_parquet_errors_name_row_and_column(
    tmp_path: Path, columns: dict[str, object], row: int | None, column: str, message: str
) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns), path)
    error = failure(path)
    assert (error.file, error.row, error.column) == ("people.parquet", row, column)
    assert message in error.message


def test_too_many_parts_of_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": [1, 2], "buys": ["n", "y"]}), path)
    with pytest.raises(DataError, match="only 2 rows, too few for 3 parts; ask for 2 parts"):
        FileShards(path, label="buys", num_shards=3)


def test_place_of_an_error(write: Write, tmp_path: Path) -> None:
    path = write(HEAD + '31,"a\nb",no\n\n45,c,no\n')
    source = FileShards(path, label="buys", num_shards=2, shuffle=False)
    _, second = source
    error = source.error(second, 0, "town", "is far away")
    assert str(error) == "people.csv, line 5, column 'town': is far away"
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3], "buys": ["n", "y", "n"]}), path)
    source = FileShards(path, label="buys", num_shards=2, shuffle=False)
    first, _ = source
    assert str(source.error(first, 1, None, "is wrong")) == "people.parquet, row 1: is wrong"


@pytest.mark.parametrize("seed", range(4))
def test_blank_lines_in_rare_cells_are_no_ends_of_rows(tmp_path: Path, seed: int) -> None:
    """Before a quote was seen, a blank line within a cell looks like the end of a row."""
    rng = np.random.default_rng(seed)
    rows = [f"{number},,{'pq'[number % 2]}\n" for number in range(30_000)]
    note = '"' + "\n\n".join(["a long paragraph, of a note " * 20] * 40) + '"'
    for row in rng.integers(10_000, 30_000, size=10).tolist():
        rows[row] = f"{row},{note},{'pq'[row % 2]}\n"
    path = tmp_path / "t.csv"
    path.write_text("x,note,y\n" + "".join(rows))
    at_once = False
    while True:
        source = FileShards(
            path, label="y", ignore=["note"], num_shards=8, seed=seed, at_once=at_once
        )
        try:
            found = np.concatenate([part.frame["x"].to_numpy() for part in source])
            break
        except CannotSeek:
            assert not at_once
            at_once = True
    np.testing.assert_array_equal(np.sort(found), np.arange(30_000))
