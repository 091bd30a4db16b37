"""Serial, processes and devices give the same, to rounding, on every algorithm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.classification.partial_scan import loop
from bayes_lcs.clustering.kmeans import lloyd
from bayes_lcs.core.errors import InterruptedWarning
from bayes_lcs.inference.em import distributed_e_step
from tests.runtime.executors import agreeing

pytestmark = pytest.mark.filterwarnings("ignore:EM has not converged")

KINDS = {
    "serial": {},
    "threads": {"threads": 2},
    "processes": {"workers": 2, "timeout": 300.0},
    "devices": {},
}


@pytest.fixture(scope="module", params=list(KINDS))
def executor(request):
    kind = "serial" if request.param == "threads" else request.param
    with bl.executor(kind, **KINDS[request.param]) as made:
        yield made


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """A few rows are then many blocks."""
    monkeypatch.setattr(distributed_e_step, "BLOCK_ROWS", 400)
    monkeypatch.setattr(lloyd, "BLOCK_ROWS", 400)


@cache
def plain(algorithm):
    return agreeing.ALGORITHMS[algorithm](None)


@cache
def serial(algorithm):
    with bl.executor("serial") as made:
        return agreeing.ALGORITHMS[algorithm](made)


@pytest.mark.parametrize("algorithm", list(agreeing.ALGORITHMS))
def test_all_agree(executor, algorithm):
    found = agreeing.ALGORITHMS[algorithm](executor)
    assert found.keys() == plain(algorithm).keys()
    for name, value in plain(algorithm).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-12, err_msg=name)
    if executor.mesh is None:
        # Blocks and the order in which they are merged are the same: so is every bit.
        for name, value in serial(algorithm).items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert executor.traffic.calls > 0 or executor.mesh is not None


def test_a_worker_killed_in_the_middle_of_em_changes_nothing(executor, monkeypatch):
    if executor.kind != "processes":
        pytest.skip("there is no worker to be killed")
    calls, each = [], executor.each

    def murderous(placed, function, params=None):
        calls.append(function)
        if len(calls) == 6:  # laid out, and some passes made
            threading.Timer(0.005, os.kill, (workers_of(executor)[0], signal.SIGKILL)).start()
        return each(placed, function, params)

    monkeypatch.setattr(executor, "each", murderous)
    before = workers_of(executor)
    found = agreeing.em(executor)
    assert len(calls) > 6
    for name, value in serial("em").items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    executor.run(abs, [-1, -2])
    assert workers_of(executor) != before


def test_rows_of_files_are_read_where_they_are_worked_on(executor, tmp_path):
    """What travels does not grow with the rows, and all rows are counted."""
    rng = np.random.default_rng(0)
    sent = []
    for number, size in enumerate((2000, 20_000)):
        path = tmp_path / f"{number}.parquet"
        pd.DataFrame(rng.normal(size=(size, 3)), columns=list("abc")).to_parquet(path, index=False)
        source = bl.row_source(path, kind="numbers")
        before = executor.traffic.sent
        found = bl.coreset_tree(source, 2, 20, block_rows=size // 2, executor=executor)
        assert (found.num_rows, found.total_weight) == (size, size)
        assert (source.reading.passes, source.reading.rows) == (1, size)
        sent.append(executor.traffic.sent - before)
    assert abs(sent[1] - sent[0]) < 2000


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A file of 40 row groups, and how it is scanned."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(8000, 3)), columns=list("abc"))
    frame["kind"] = np.where(frame["a"] + 0.1 * frame["b"] > 0, "high", "low")
    path = tmp_path_factory.mktemp("scan") / "rows.parquet"
    frame.to_parquet(path, index=False, row_group_size=200)

    def scan(executor):
        classifier = bl.PartialScanClassifier(
            "tree", 40, tolerance=0.0, executor=executor, random_state=2
        )
        return classifier.fit_file(path, label="kind", progress=False)

    return path, scan


def test_parts_of_files_are_read_where_they_are_trained_on(executor, labelled):
    _, scan = labelled
    plain = scan(None)
    before = executor.traffic.sent
    found = scan(executor)
    assert found.parts_ == plain.parts_
    assert len(found.parts_) > 10
    read = [one.scan_.rows_read for one in (plain, found)]
    # Whole parts are read ahead, as many as there are workers.
    assert read[0] <= read[1] <= read[0] + 200 * executor.num_workers
    if executor.num_workers == 1:
        assert found.scan_.bytes_read == plain.scan_.bytes_read
    assert executor.traffic.sent - before < 200 * 3 * 8 * len(found.parts_)


def test_a_scan_of_a_file_goes_on_elsewhere(executor, labelled, tmp_path, monkeypatch):
    _, scan = labelled
    plain = scan(None)
    add_part = loop._Run.add_part

    def interrupted(self, part, model):
        if len(self.models) == 6:
            raise KeyboardInterrupt
        return add_part(self, part, model)

    with monkeypatch.context() as patched, bl.checkpoints(tmp_path):
        patched.setattr(loop._Run, "add_part", interrupted)
        with pytest.warns(InterruptedWarning, match="after 6 of 40 parts"):
            scan(executor)
    with bl.checkpoints(tmp_path) as kept:
        found = scan(executor)
    assert kept.recalled == 1
    assert found.parts_ == plain.parts_


def test_a_part_that_cannot_be_read_is_named(executor, tmp_path):
    frame = pd.DataFrame({"a": np.arange(400.0), "kind": ["x", "y"] * 200})
    path = tmp_path / "rows.parquet"
    classifier = bl.PartialScanClassifier(
        "tree", 20, early_stop=False, executor=executor, random_state=0
    )
    for row in (7, 207, 387):  # two of them, at least, are read elsewhere
        wrong = frame.assign(a=frame["a"].where(frame.index != row, np.inf))
        wrong.to_parquet(path, index=False, row_group_size=20)
        told = rf"rows\.parquet, row {row}, column 'a': the number is"
        with pytest.raises(bl.DataError, match=told):
            classifier.fit_file(path, label="kind", progress=False)


def test_files_missing_or_damaged_where_they_are_worked_on_are_named(executor, tmp_path):
    frame = pd.DataFrame(np.zeros((500, 2)), columns=list("ab"))
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, index=False)
    source = bl.row_source(path, kind="numbers")
    (ranges,) = source.row_ranges(500)
    read = source.number_reader
    assert executor.run(read, [ranges])[0].shape == (500, 2)
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes(200) + content[220:])
    with pytest.raises(bl.DataError, match=r"rows\.parquet: cannot be read, the file is damaged"):
        executor.run(read, [ranges])
    frame[:400].to_parquet(path, index=False)
    with pytest.raises(bl.DataError, match=r"rows\.parquet: had 500 rows and has 400 now"):
        executor.run(read, [ranges])
    frame.assign(b=["x"] * 500).to_parquet(path, index=False)
    with pytest.raises(
        bl.DataError, match=r"rows\.parquet, row 0, column 'b': 'x' is not a number"
    ):
        executor.run(read, [ranges])
    frame[["a"]].to_parquet(path, index=False)
    with pytest.raises(
        bl.DataError, match=r"rows\.parquet, column 'b': this column has disappeared"
    ):
        executor.run(read, [ranges])
    path.unlink()
    with pytest.raises(
        bl.DataError, match=r"rows\.parquet: the file does not exist on this worker"
    ):
        executor.run(read, [ranges])


def workers_of(executor):
    return sorted(executor.client.run(os.getpid).values())


def test_checkpoints_are_taken_up_by_another_executor(executor, tmp_path, monkeypatch):
    if executor.mesh is not None:
        pytest.skip("devices work on other blocks")
    e_step = distributed_e_step.DistributedEStep.statistics
    passes = []

    def interrupted(self, requests):
        passes.append(len(requests))
        if len(passes) == 8:
            raise KeyboardInterrupt
        return e_step(self, requests)

    with (
        monkeypatch.context() as patched,
        bl.executor("serial") as here,
        bl.checkpoints(tmp_path),
    ):
        patched.setattr(distributed_e_step.DistributedEStep, "statistics", interrupted)
        with pytest.warns(InterruptedWarning, match="interrupted"):
            agreeing.em(here)
    calls = executor.traffic.calls
    with bl.checkpoints(tmp_path):
        found = agreeing.em(executor)
    assert executor.traffic.calls - calls == 8 * (2 + 15 - 7)  # blocks; laid out, told, passes
    for name, value in serial("em").items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


PROGRAM = """
import json, sys
import jax
import bayes_lcs as bl
from bayes_lcs.inference.em import row_layout
import agreeing

row_layout.BLOCK_ROWS, row_layout.CHUNK_BLOCKS = 256, 2  # a few rows are then many chunks
assert len(jax.devices()) == 4
found = {}
for size in (1, 2, 3, 4):
    with bl.executor("devices", devices=size) as executor:
        assert executor.num_workers == size
        em = agreeing.em(executor)
        found[size] = {name: value.ravel().tolist() for name, value in em.items()}
        placed = executor.place(jax.numpy.asarray, [1.0, 2.0, 3.0, 4.0, 5.0])
        homes = [block.device.id for block in placed.held]
        assert homes == [i % size for i in range(5)], homes
print(json.dumps(found))
"""


def test_any_number_of_devices_agrees():
    """Several devices that share this machine's cores, in a process of their own."""
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parents[2])])
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for found in json.loads(done.stdout).values():
        for name, value in plain("em").items():
            np.testing.assert_allclose(
                found[name], value.ravel(), rtol=1e-10, atol=1e-12, err_msg=name
            )
