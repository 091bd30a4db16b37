"""The benchmarks run at their smallest, write what they print, and refuse unknown names."""

from __future__ import annotations

import json

import pytest

from experiments.benchmarks.__main__ import main, modules
from experiments.benchmarks.tables import Table, cell, fastest


@pytest.mark.slow
def test_exact_partitions_at_its_smallest(tmp_path, capsys):
    assert main(["--smoke", "--out", str(tmp_path), "exact_partitions"]) == 0
    tables = json.loads((tmp_path / "benchmarks.json").read_text())
    assert [table["name"] for table in tables] == [
        "exact_partitions_times",
        "exact_partitions_memory",
        "exact_partitions_peers",
    ]
    for table in tables:
        assert len(table["rows"]) == 2
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        assert table["title"] in (tmp_path / "benchmarks.md").read_text()
    assert "logs / ours" in capsys.readouterr().out


def test_unknown_names(capsys):
    with pytest.raises(SystemExit):
        main(["--smoke", "no_such_benchmark"])
    assert "exact_partitions" in capsys.readouterr().err
    assert "exact_partitions" in modules()


def test_cells_and_clocks():
    assert [cell(value) for value in (None, 3, 0.012345, 12345.6, "x")] == [
        "",
        "3",
        "0.0123",
        "12,346",
        "x",
    ]
    calls = []
    assert fastest(lambda: calls.append(1), repeats=4) >= 0
    assert len(calls) == 4
    table = Table("n", "Title", ("a", "b"), [(1, None)], ["note"])
    assert "| 1 |  |" in table.markdown()
