"""A Dask cluster that loses workers, its scheduler, or cannot be reached; and who can reach it."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import threading
import time

import executor_tasks as tasks  # on the path by conftest.py
import pytest

import bayes_lcs as bl

psutil = pytest.importorskip("psutil")

PATIENCE = 300
"""Seconds to wait for processes to be there, on a machine that is as busy as it may be."""


@pytest.fixture(scope="module")
def cluster():
    with bl.executor("dask", workers=2, timeout=60.0, allowed_failures=1) as executor:
        yield executor


def test_nothing_listens_elsewhere_than_on_this_machine(cluster):
    here = psutil.Process()
    processes = [here, *here.children(recursive=True)]
    listening = [
        connection.laddr.ip
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 3  # the scheduler, and two workers with their nannies
    # ChromeDriver, if another test of this process has started it, listens on ::1 as well.
    assert all(ipaddress.ip_address(address).is_loopback for address in listening), listening
    assert cluster.dashboard_link.startswith("http://127.0.0.1:")
    assert "tcp://127.0.0.1:" in repr(cluster)


def test_a_task_whose_worker_is_killed_is_done_again(cluster, tmp_path):
    """So late that results of others are lost with it."""
    mark = tmp_path / "died"
    found = cluster.run(tasks.die_once, [(mark if i == 18 else None, i) for i in range(20)])
    assert found == [i * i for i in range(20)]
    assert mark.exists()


def test_blocks_of_a_killed_worker_are_loaded_again(cluster, tmp_path):
    loads = tmp_path / "loads"
    loads.mkdir()
    placed = cluster.place(tasks.load_counted, [(loads, i) for i in range(4)])
    assert cluster.each(placed, tasks.die_once_in_block, tmp_path / "died") == [0, 10, 20, 30]
    assert (tmp_path / "died").exists()
    assert len(list(loads.iterdir())) > 4


def test_what_ends_every_worker_is_given_up(cluster):
    with pytest.raises(bl.ExecutorError, match=r"the worker of a task died 2 times"):
        cluster.run(tasks.always_die, [0])
    assert cluster.run(tasks.square, [3]) == [9]


def test_bytes_are_counted(cluster):
    before = cluster.traffic.sent, cluster.traffic.received
    cluster.run(bytes, [1000])
    assert cluster.traffic.sent - before[0] < 1000 < cluster.traffic.received - before[1]


def test_an_address_at_which_nobody_answers():
    with pytest.raises(bl.ExecutorError, match="no Dask scheduler answers at tcp://127"):
        bl.executor("dask", scheduler="tcp://127.0.0.1:9", timeout=0.5)


def test_a_lost_scheduler_is_an_error_and_no_wait_without_end(tmp_path):
    note = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [
            *[sys.executable, "-m", "distributed.cli.dask_scheduler"],
            *["--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
            *["--scheduler-file", str(note)],
        ],
        **quiet,
    )
    worker = None
    try:
        deadline = time.monotonic() + PATIENCE
        while not note.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        worker = subprocess.Popen(
            [
                *[sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny"],
                *["--host", "127.0.0.1", "--no-dashboard", "--death-timeout", str(PATIENCE)],
                *["--nthreads", "1", "--scheduler-file", str(note)],
            ],
            **quiet,
        )
        from distributed import Client

        with Client(scheduler_file=str(note), timeout=PATIENCE, set_as_default=False) as client:
            executor = bl.executor("dask", scheduler=client, timeout=PATIENCE)
            assert executor.run(abs, [-3]) == [3]
            executor.timeout = 2.0
            threading.Timer(1.0, os.kill, (scheduler.pid, signal.SIGKILL)).start()
            with pytest.raises(bl.ExecutorError, match=r"scheduler at tcp://.* is lost"):
                executor.run(time.sleep, [60.0])
            with pytest.raises(bl.ExecutorError, match=r"scheduler at tcp://.* is lost"):
                executor.run(abs, [-3])
            executor.close()  # a client that was given is not closed
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.kill()
                process.wait(30)
