"""The benchmarks run at their smallest, write what they print, and refuse unknown names."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.core.partitions import log_crp
from experiments.benchmarks.__main__ import main, modules
from experiments.benchmarks.evidence_problems import (
    Factor,
    Partition,
    cube_to_factor,
    cube_to_partition,
    grid_integral,
    log_blocks,
)
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
    assert [row[2] for row in sweeps["rows"]] == [1, 4, 1, 4, 1, 4]
    assert {row[0] for row in sweeps["rows"] if row[3] > 1} == {"flat"}
    assert all(row[-1] > 0 for row in sweeps["rows"])


@pytest.mark.slow
def test_executor_scaling_at_its_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "executor_scaling"]) == 0
    tables = {
        table["name"]: table for table in json.loads((tmp_path / "benchmarks.json").read_text())
    }
    rows = tables["executor_scaling"]["rows"]
    kinds = {row[1] for row in rows}
    assert {"serial", "dask", "devices", "scikit-learn"} <= kinds
    assert all(row[6] > 0 for row in rows)
    sent = {row[1]: row[11] for row in rows if row[0] == "em"}
    assert sent["serial"] == 0
    assert sent["dask"] > 0
    # As many tables of sums come back as there are blocks: cells and components in 64 bits.
    for row in rows:
        if row[:2] == ["em", "dask"]:
            assert row[12] == pytest.approx(row[4] * 16 * 16 * row[5] * 8 / 1e3, rel=0.15)
    assert len(tables["executor_overhead"]["rows"]) == 3
    fits = tables["executor_disk"]["rows"]
    kinds = [("em", "csv"), ("em", "parquet"), ("k-means", "csv"), ("k-means", "parquet")]
    assert [tuple(row[:2]) for row in fits] == kinds
    assert all(min(row[2:5] + row[6:]) > 0 for row in fits)
    assert {row[1] for row in tables["executor_cost_model"]["rows"]} >= {"serial", "dask"}
    for row in tables["executor_prediction"]["rows"]:
        assert row[3] <= row[4] <= row[5]
    assert (tmp_path / "executor_scaling.png").is_file()
    lines = (tmp_path / "executor_scaling.csv").read_text().splitlines()
    assert len(lines) == 1 + len(rows)


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


@pytest.mark.slow
def test_evidence_peers_at_their_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "evidence_peers"]) == 0
    (peers,) = json.loads((tmp_path / "benchmarks.json").read_text())
    names = [row[1] for row in peers["rows"]]
    assert names[0] == "ours, importance"
    assert names[-1] == "truth"
    # A peer is a row, or named in the note about what is not installed.
    for package in ("PyMC SMC", "blackjax SMC", "jaxns"):
        assert (package in names) != (package in peers["notes"][-1])
    ours = peers["rows"][0]
    assert ours[2] == 2
    assert 0 < ours[4] < 0.1


@pytest.mark.slow
def test_evidence_scale_at_its_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "evidence_scale"]) == 0
    precision, groups, compared = json.loads((tmp_path / "benchmarks.json").read_text())
    for row in precision["rows"]:
        assert row[1] <= row[0]
        # Five standard errors: twice in a million runs by chance.
        assert abs(row[3]) < 5.0
    assert [row[:2] for row in groups["rows"]] == [["particles", 8], ["ais", 8]]
    assert len(compared["rows"]) == 4
    assert (tmp_path / "evidence_scale.png").stat().st_size > 0


def test_small_integrals_have_the_value_that_their_truth_says():
    # The same two-dimensional integral on a coarser grid, and by importance sampling.
    factor = Factor(2)
    truth = factor.truth().value
    assert grid_integral(factor.counts, 301) == pytest.approx(truth, abs=1e-9)
    found = bl.evidence(factor.model, factor.data, progress=False)
    assert abs(found.value - truth) < 5.0 * found.standard_error


def test_uniform_numbers_seat_groups_as_the_restaurant_does():
    # Quantiles of the first share of a prototype under Dirichlet(1, 1, 1), and its mean strength.
    rng = np.random.default_rng(0)
    cube = jnp.asarray(rng.random((20_000, 3)))
    prototype, strength = jax.vmap(cube_to_factor)(cube)
    np.testing.assert_allclose(prototype.sum(axis=1), 1.0, atol=1e-5)
    # Six standard errors: of shares with variance 1/18, and of strengths with mean and sd 10.
    np.testing.assert_allclose(prototype.mean(axis=0), 1 / 3, atol=6 * (1 / 18 / 20_000) ** 0.5)
    assert abs(float(strength.mean()) - 10.0) < 6 * 10.0 / 20_000**0.5
    z = np.asarray(jax.vmap(cube_to_partition)(cube))
    together, apart = (z == 0).all(axis=1).mean(), (z == [0, 1, 2]).all(axis=1).mean()
    # Three groups at concentration 1: one block with probability 1/3, three with 1/6.
    assert abs(together - 1 / 3) < 6 * (2 / 9 / 20_000) ** 0.5
    assert abs(apart - 1 / 6) < 6 * (5 / 36 / 20_000) ** 0.5


def test_likelihood_for_peers_is_that_of_the_model():
    problem = Partition()
    z = np.array([0, 1, 1, 2, 0, 1, 3, 0])
    with jax.enable_x64(True):
        own = float(log_blocks(jnp.asarray(problem.counts, dtype=float), jnp.asarray(z)))
    joint = problem.model.log_joint(problem.data.counts(), z)
    assert own == pytest.approx(joint - log_crp(z, 1.0) - problem.log_labels, abs=1e-9)


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


@pytest.mark.slow
def test_point_clusters_at_their_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "point_clusters"]) == 0
    costs, restarts, throughput = json.loads((tmp_path / "benchmarks.json").read_text())
    assert all(0.99 < row[-1] < 1.3 for row in costs["rows"])
    assert [row[0] for row in restarts["rows"]] == [1, 8]
    assert len(throughput["rows"]) == 4


@pytest.mark.slow
def test_starts_of_many_groups_at_their_smallest(tmp_path):
    assert main(["--smoke", "--out", str(tmp_path), "many_group_starts"]) == 0
    (table,) = json.loads((tmp_path / "benchmarks.json").read_text())
    assert [row[1] for row in table["rows"]] == ["truth", "grown", "one block", "64 blocks"]
