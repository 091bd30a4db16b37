"""How large a table is, and what commands will take, before anything is read."""

import gzip
from functools import partial

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.io.size_estimate import READ_AHEAD_BYTES, Extent, table_extent
from bayes_lcs.runtime import memory
from bayes_lcs.workflows.resource_estimates import (
    cluster_memory,
    compare_disk,
    compare_memory,
    coreset_memory,
    partitions_memory,
    rows_that_fit,
    scan_disk,
    scan_memory,
)


def table(rows=5000):
    rng = np.random.default_rng(0)
    cells = {f"c{i}": np.char.add("value-", rng.integers(9, size=rows).astype(str)) for i in "abc"}
    return pd.DataFrame({**cells, "n": rng.normal(size=rows).round(3)})


def test_the_rows_of_text_are_told_from_its_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr("bayes_lcs.io.size_estimate.SAMPLE_BYTES", 4096)
    table().to_csv(tmp_path / "t.csv", index=False)
    found = table_extent(tmp_path / "t.csv")
    assert found.columns == 4
    assert found.rows == pytest.approx(5000, rel=0.05)
    size = (tmp_path / "t.csv").stat().st_size
    assert (found.cell_bytes, found.piece_bytes, found.file_bytes) == (size, size, size)
    assert table_extent(tmp_path / "t.csv", ["n", "ca"]).cells == 2 * found.rows


def test_a_piece_of_text_does_not_grow_with_the_file(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b,c\n" + b"1,2,3\n" * (1 << 21))
    found = table_extent(tmp_path / "t.csv", ["c"])
    assert found.piece_bytes == READ_AHEAD_BYTES * 2 // 3
    assert found.piece_cells == pytest.approx(READ_AHEAD_BYTES / 3, rel=0.01)


def test_a_packed_file_is_as_large_as_its_text(tmp_path):
    text = table().to_csv(index=False).encode()
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
    found = table_extent(tmp_path / "t.csv.gz")
    assert found.cell_bytes == len(text)
    assert found.rows == 5001  # the header is not told from a row
    assert found.file_bytes < len(text) / 3


def test_a_parquet_file_tells_rows_and_its_largest_row_group(tmp_path):
    table().to_parquet(tmp_path / "t.parquet", row_group_size=2000)
    found = table_extent(tmp_path / "t.parquet")
    assert (found.rows, found.columns, found.is_text) == (5000, 4, False)
    assert found.cell_bytes > 5000 * (3 * len("value-1") + 8)
    assert found.piece_bytes == pytest.approx(found.cell_bytes * 0.4, rel=0.01)


def test_the_files_of_a_folder_are_one_table(tmp_path):
    for name in "ab":
        table().to_parquet(tmp_path / f"{name}.parquet")
    found = table_extent(tmp_path)
    assert (found.rows, found.columns) == (10_000, 4)
    assert found.piece_bytes * 2 == found.cell_bytes


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\x1f\x8b\x08", b"\x00\xff", b"\n\n"])
def test_what_is_no_table_has_an_extent_too(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    assert table_extent(tmp_path / "t.csv").rows <= 2


def test_the_most_rows_that_fit():
    extent = Extent(10**7, 100, 10**9, 10**8, False)
    most = rows_that_fit(extent, 10, 4e9)
    assert 0 < most < 10**7
    assert cluster_memory(extent, 10, most) <= 4e9 < cluster_memory(extent, 10, most + 1)
    assert rows_that_fit(extent, 10, 1e15) == 10**7
    assert rows_that_fit(extent, 10, 0.0) == 0


def test_the_memory_of_a_stream_does_not_grow_with_the_file():
    for is_text in (False, True):
        small, large = (Extent(n, 10, 80 * n, 8 * 10**7, is_text) for n in (10**6, 10**9))
        assert coreset_memory(small, 1000, True) == coreset_memory(large, 1000, True)
    assert coreset_memory(small, 1000, False) < coreset_memory(large, 1000, False) / 100


def test_draws_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    data, _ = bl.meeting_requests(seed=0, rows_per_person=2)
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match=r"2,000 draws of 4 chains needs about .* Use fewer"):
        bl.sample(bl.ClusteredNaiveBayes(), data, draws=2000, chains=4)
    with pytest.raises(MemoryError, match="fewer draws"):  # all that a prototype model draws
        bl.sample(bl.Prototype(), data, draws=400, chains=2)


def test_learners_that_are_kept_and_rows_to_predict_count():
    extent, more = Extent(10**6, 10, 10**8, 10**7, True), Extent(10**5, 10, 10**7, 10**6, True)
    for need in (partial(scan_memory, extent, 64, 1), partial(scan_disk, extent)):
        assert need("tree", None) < need("tree", more) < need("naive_bayes", more)


def test_any_number_of_groups_has_an_estimate(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    extent = table_extent(tmp_path / "t.csv")
    assert partitions_memory(100_000) > 1e300
    assert 1e9 < compare_memory(extent, 100_000, 20, 4000, predicts=False) < 1e11
    assert 1e9 < compare_disk(extent, 100_000, 4000, sums=False) < 1e10
