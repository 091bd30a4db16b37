"""What is kept of reading is taken up for the same rows only, and is never in the way."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bayes_lcs as bl
from bayes_lcs.cli.keeping import resumable
from bayes_lcs.data import checkpoints as module
from bayes_lcs.data.checkpoints import work


@pytest.fixture(autouse=True)
def _all_is_kept(monkeypatch):
    for name in ("SECONDS", "MOST_UNKEPT", "RAREST"):
        monkeypatch.setattr(module, name, -1.0)


def read(path, **options):
    table = bl.read_grouped(path, group="g", label="y", **options)
    return table.num_rows, table.values


def test_the_same_file_is_read_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("g,y,f\na,0,p\nb,1,q\n")
    with bl.checkpoints(tmp_path / "kept") as kept:
        once = read(path)
        assert kept.recalled == 0
        assert read(path) == once
        assert kept.recalled == 1


def test_the_same_bytes_read_otherwise_are_read_again(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("g,y,f\na,0,é\nb,1,ê\n".encode("latin-1"))
    ways = [{"encoding": "latin-1"}, {"encoding": "cp1251"}]
    ways.append({"encoding": "latin-1", "header": ["g", "y", "f"]})
    expected = [read(path, **way) for way in ways]
    assert len({str(one) for one in expected}) == 3
    with bl.checkpoints(tmp_path / "kept") as kept:
        assert [read(path, **way) for way in ways] == expected
        assert kept.recalled == 0


def test_files_of_one_name_are_told_apart(tmp_path):
    import os

    for folder, value in (("one", "p"), ("two", "q")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.csv").write_text(f"g,y,f\na,0,{value}\nb,1,{value}\n")
        os.utime(tmp_path / folder / "t.csv", ns=(0, 0))
    with bl.checkpoints(tmp_path / "kept"):
        assert read(tmp_path / "one" / "t.csv")[1] == (("p",),)
        assert read(tmp_path / "two" / "t.csv")[1] == (("q",),)


def test_rows_in_memory_are_never_taken_for_others(tmp_path):
    frames = [pd.DataFrame({"x": [value] * 5}) for value in "ab"]
    tables = [pa.Table.from_pandas(frame) for frame in frames]
    with bl.checkpoints(tmp_path / "kept"):
        found = [bl.row_source(table).take(0, 5).X["x"].tolist() for table in tables]
    assert found == [["a"] * 5, ["b"] * 5]


def test_a_source_with_a_target_has_a_coreset(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"]).to_csv(
        tmp_path / "t.csv", index=False
    )
    source = bl.row_source(tmp_path / "t.csv", kind="numbers", target="b")
    assert bl.coreset_tree(source, 2, 20, block_rows=100).points.shape[1] == 2


def attempt(out, path, resume=False, fail=True, results=False):
    """A command that reads, and then finds its input bad."""
    with resumable(out / ".checkpoint", resume, path, {"seed": 0}):
        read(path)
        if results:
            with work("draws", 1) as kept:
                kept.end(lambda: {"found": np.arange(3)})
        if fail:
            raise ValueError("bad input")


def test_bad_input_found_after_reading_leaves_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("g,y,f\na,0,p\nb,1,q\n")
    with pytest.raises(ValueError, match="bad input"):
        attempt(tmp_path / "out", path)
    assert not (tmp_path / "out" / ".checkpoint").exists()


def test_bad_input_does_not_lose_the_work_of_an_earlier_run(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("g,y,f\na,0,p\nb,1,q\n")
    with pytest.raises(ValueError, match="bad input"):
        attempt(tmp_path / "out", path, results=True)
    kept = tmp_path / "out" / ".checkpoint"
    assert list(kept.glob("*-draws.state.npz"))
    for _ in range(3):
        with pytest.raises(ValueError, match="bad input"):
            attempt(tmp_path / "out", path)
        assert list(kept.glob("*-draws.state.npz"))
    attempt(tmp_path / "out", path, resume=True, fail=False, results=True)
    assert not kept.exists()
