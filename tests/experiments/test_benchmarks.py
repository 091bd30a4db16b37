"""The benchmarks run at their smallest, write what they print, and refuse unknown names."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.benchmarks.__main__ import main, modules
from experiments.benchmarks.numpy_gibbs import NumpyGibbs
from experiments.benchmarks.simulated import clustered_groups
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


@pytest.mark.slow
def test_partition_sweeps_at_their_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "partition_sweeps"]) == 0
    (sweeps,) = json.loads((tmp_path / "benchmarks.json").read_text())
    assert [row[1] for row in sweeps["rows"]] == [1, 4, 1, 4]
    assert all(row[-1] > 0 for row in sweeps["rows"])


@pytest.mark.slow
def test_scale_ladder_at_its_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "scale_ladder"]) == 0
    sweeps, recovery = json.loads((tmp_path / "benchmarks.json").read_text())
    assert [row[0] for row in sweeps["rows"]] == [21, 60]
    assert [row[2] for row in recovery["rows"]] == [0, 1, 0, 1]


@pytest.mark.slow
def test_em_iterations_at_their_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "em_iterations"]) == 0
    tables = {t["name"]: t for t in json.loads((tmp_path / "benchmarks.json").read_text())}
    assert set(tables) == {
        f"em_iterations_{name}" for name in ("peers", "sparse", "scaling", "memory", "holdout")
    }
    assert [row[0] for row in tables["em_iterations_peers"]["rows"]][:2] == [
        "ours, mixed",
        "ours, double",
    ]
    assert all(row[-1] > 0 for row in tables["em_iterations_sparse"]["rows"])


def test_the_numpy_peer_keeps_its_counts():
    data, truth = clustered_groups(12, num_clusters=4, rows_per_group=4, num_features=2)
    peer = NumpyGibbs(data, truth)
    for _ in range(20):
        peer.sweep()
    again = NumpyGibbs(data, peer.z)
    used = slice(0, peer.num_blocks)
    assert np.array_equal(peer.z, again.z)
    np.testing.assert_array_equal(peer.sizes[used], again.sizes[used])
    np.testing.assert_array_equal(peer.blocks[used], again.blocks[used])
    np.testing.assert_allclose(peer.log_marginals[used], again.log_marginals[used], atol=1e-9)


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
