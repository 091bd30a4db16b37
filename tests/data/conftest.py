from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bayes_lcs.data.datasets import dataset_path
from bayes_lcs.data.errors import DatasetNotFound


@pytest.fixture
def raw_file() -> Callable[..., Path]:
    """The path of a data set's file, or a skipped test if it is not on this machine."""

    def find(name: str, file: str | None = None) -> Path:
        try:
            return dataset_path(name, file)
        except DatasetNotFound as error:
            pytest.skip(str(error))

    return find


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes into a file of the test's own folder."""

    def put(content: str | bytes, name: str = "people.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put
