"""Executors: one contract for all kinds, and what happens when workers are lost."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import executor_tasks as tasks  # on the path by conftest.py
import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.runtime.memory import num_cores

KINDS = {
    "serial": {},
    "threads": {"threads": 2},
    "processes": {"workers": 2, "timeout": 120.0},
    "devices": {},
}


@pytest.fixture(scope="module", params=list(KINDS))
def anywhere(request):
    kind = "serial" if request.param == "threads" else request.param
    with bl.executor(kind, **KINDS[request.param]) as executor:
        yield executor


@pytest.fixture(scope="module")
def processes():
    with bl.executor("processes", workers=2, timeout=120.0) as executor:
        yield executor


# The contract -------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_tasks(anywhere):
    assert anywhere.run(tasks.slow_square, list(range(5))) == [0, 1, 4, 9, 16]
    assert anywhere.run(tasks.square, []) == []


def test_blocks_are_worked_on_in_their_order(anywhere):
    rows = np.arange(10.0)
    placed = anywhere.place(tasks.load_slice, [rows[:3], rows[3:4], rows[4:]])
    assert placed.num_blocks == 3
    assert anywhere.each(placed, tasks.total, 2) == [6.0, 6.0, 78.0]
    assert anywhere.each(placed, tasks.total, -1) == [-3.0, -3.0, -39.0]
    placed.release()


def test_blocks_are_loaded_once(anywhere, tmp_path):
    placed = anywhere.place(tasks.load_counted, [(tmp_path, i) for i in range(4)])
    for _ in range(3):
        assert anywhere.each(placed, tasks.slow_in_first, 0.0) == [0, 1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 4


def test_an_error_is_raised_as_it_was(anywhere):
    with pytest.raises(ValueError, match="three is too many"):
        anywhere.run(tasks.fail_at_three, list(range(6)))
    # The executor is as good as before, and no late answer is taken for another's.
    assert anywhere.run(tasks.square, list(range(7))) == [i * i for i in range(7)]


def test_a_file_that_is_not_there_is_named(anywhere, tmp_path):
    np.save(tmp_path / "there.npy", np.ones(3))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "there.npy").read_bytes()[:40])
    with pytest.raises(FileNotFoundError, match=r"gone\.npy"):
        anywhere.place(tasks.load_file, [tmp_path / "there.npy", tmp_path / "gone.npy"])
    with pytest.raises(ValueError):
        anywhere.place(tasks.load_file, [tmp_path / "cut.npy"])


def test_a_slow_worker_is_waited_for(anywhere, tmp_path):
    placed = anywhere.place(tasks.load_counted, [(tmp_path, i) for i in range(4)])
    assert anywhere.each(placed, tasks.slow_in_first, 1.5) == [0, 1, 2, 3]


def test_copies_share_it_and_pickles_are_refused(anywhere):
    assert copy.deepcopy(anywhere) is anywhere is copy.copy(anywhere)
    with pytest.raises(TypeError, match="owns workers"):
        pickle.dumps(anywhere)
    assert anywhere.kind in repr(anywhere)


def test_partial_functions_carry_what_goes_with_them(anywhere):
    assert anywhere.run(partial(pow, 2), [3, 4]) == [8, 16]


def test_blocks_belong_to_their_executor(anywhere):
    with bl.executor("serial") as other:
        placed = other.place(tasks.load_slice, [[1.0]])
        with pytest.raises(bl.ExecutorError, match="another executor"):
            anywhere.each(placed, tasks.total, 1)
    with pytest.raises(bl.ExecutorError, match="closed"):
        other.run(tasks.square, [1])


def test_kinds_are_named():
    with pytest.raises(ValueError, match="serial, processes, dask, devices"):
        bl.executor("threads")
    with pytest.raises(ValueError, match="at least 1"):
        bl.executor("processes", workers=0)


@pytest.mark.parametrize("kind", ["processes", "dask"])
def test_without_dask_the_extra_is_named(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=rf"'{kind}'.*bayes-lcs\[distributed\]"):
        bl.executor(kind)


def test_processes_have_no_scheduler():
    with pytest.raises(TypeError, match="scheduler is an option of"):
        bl.executor("processes", scheduler="tcp://127.0.0.1:9")


# Processes ----------------------------------------------------------------------------------------


def test_blocks_stay_in_their_processes_and_only_parameters_travel(processes):
    rows = np.zeros((5, 100_000))
    rows[:, 0] = range(5)
    before = copy.copy(processes.traffic)
    placed = processes.place(tasks.load_slice, list(rows))
    loaded = copy.copy(processes.traffic)
    assert loaded.sent - before.sent >= rows.nbytes
    first = processes.each(placed, tasks.process_of)
    assert first == processes.each(placed, tasks.process_of)
    assert len({process for _, process in first}) == 2
    assert [number for number, _ in first] == list(range(5))
    assert processes.traffic.sent - loaded.sent < 10_000
    assert 0 < processes.traffic.received - loaded.received < 10_000
    placed.release()


def test_functions_that_cannot_be_imported_are_refused(processes):
    with pytest.raises(TypeError, match=r"lambda.*cannot be sent to workers"):
        processes.run(lambda task: task, [1])


def test_a_script_without_a_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import bayes_lcs as bl\nbl.executor('processes', workers=1).run(abs, [-1])\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(Path(bl.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "ExecutorError: the workers did not start" in done.stderr
    assert 'create executors under if __name__ == "__main__":' in done.stderr


SCRIPT_WITH_LIBRARIES = """
import numpy as np  # loaded in workers too, before they are told anything
import bayes_lcs as bl


def threads(_):
    from threadpoolctl import threadpool_info

    return [library["num_threads"] for library in threadpool_info()]


if __name__ == "__main__":
    with bl.executor("processes", workers=1) as workers:
        print(workers.run(threads, [0]))
"""


def test_libraries_of_the_script_have_one_thread_in_workers(tmp_path):
    if num_cores() == 1:
        pytest.skip("there is one thread anyway")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT_WITH_LIBRARIES)
    kept = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**kept, "PYTHONPATH": str(Path(bl.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (found,) = json.loads(done.stdout)
    assert set(found) == {1}, done.stderr
