"""Arrays in one file: the same again, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bayes_lcs.core.errors import DataError
from bayes_lcs.runtime.array_store import open_arrays, save_arrays

ARRAYS = {
    "small": np.arange(5, dtype=np.uint8),
    "by columns": np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4)),
    "one": np.array(2.5),
    "none": np.empty((0, 3), np.float32),
    "numbers": np.random.default_rng(0).normal(size=(7, 2, 3)),
    "ü": np.array([True, False]),
}


def test_arrays_are_the_same_again(tmp_path: Path) -> None:
    path = tmp_path / "x.rows"
    save_arrays(path, ARRAYS)
    found = open_arrays(path)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, strict=True)
    assert [p.name for p in tmp_path.iterdir()] == ["x.rows"]


def test_any_change_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.rows"
    save_arrays(path, {"a": np.arange(20), "b": np.ones(3)})
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(DataError, match="is damaged"):
            open_arrays(path)
        path.write_bytes(whole[:place])
        with pytest.raises(DataError, match=r"is damaged|cannot be read"):
            open_arrays(path)
    path.unlink()
    with pytest.raises(DataError, match=r"x\.rows.*cannot be read"):
        open_arrays(path)
