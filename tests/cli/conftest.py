from __future__ import annotations

from typing import Any

import pytest

from tests.cli.commands import write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """A small file for each command, and its words."""
    return write_files(tmp_path_factory.mktemp("data"))
