"""Several processes that form one mesh of devices through `jax.distributed`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.executors import agreeing

PATIENCE = 300.0
DEVICES = 2

ALGORITHMS = [
    "em",
    "accelerated EM",
    "EM out of core",
    "k-means",
    "k-means, empty cluster",
    "number of components",
    "partial scan",
    "tree of coresets",
]


def together(scene, *arguments, processes=2):
    """What each of some processes says, and how it ended; none may hang."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = Path(__file__).parent
    flags = {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(here), str(here.parents[2])]),
    }
    running = []
    for rank in range(processes):
        command = [sys.executable, str(here / "mesh_program.py"), str(port), str(processes)]
        running.append(
            subprocess.Popen(
                [*command, str(rank), scene, *arguments],
                env={**os.environ, **flags},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        ends = [process.communicate(timeout=PATIENCE) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    said = [lines_of_json(out) for out, _ in ends]
    return said, [process.returncode for process in running], [err for _, err in ends]


def lines_of_json(output):
    """The library below tells of its connections on the same stream."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:EM has not converged")
def test_two_processes_agree_with_the_plain_way():
    said, codes, errors = together("agree", *ALGORITHMS)
    assert codes == [0, 0], errors
    for (answer,) in said:
        assert "found" in answer, errors
        for algorithm in ALGORITHMS:
            plain = agreeing.ALGORITHMS[algorithm](None)
            found = answer["found"][algorithm]
            assert found.keys() == plain.keys()
            for name, value in plain.items():
                np.testing.assert_allclose(
                    found[name], np.ravel(value), rtol=1e-10, atol=1e-12, err_msg=name
                )
        assert answer["shares"]["squares"] == [float(i * i) for i in range(7)]
    (first,), (second,) = said
    assert first["found"] == second["found"]  # to the bit: both make the same decisions
    # Devices are given blocks in turn, two to a process, and nothing lies anywhere twice.
    assert first["shares"]["held"] == [0.0, 1.0, None, None, 4.0, 5.0, None]
    assert second["shares"]["held"] == [None, None, 2.0, 3.0, None, None, 6.0]
    for answer in (first, second):
        here, everywhere = answer["shares"]["chunks"]
        assert here == [everywhere // 4] * DEVICES


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["other_seeds", "other_rows", "other_centers"])
def test_processes_that_have_gone_apart_are_told_so(scene):
    said, _, errors = together(scene)
    for answers in said:
        assert answers, errors
        assert answers[0]["error"] == "ExecutorError"
        assert "have diverged" in answers[0]["message"]


@pytest.mark.slow
def test_an_error_in_one_process_is_raised_in_all():
    said, codes, errors = together("an_error")
    assert codes == [0, 0], errors
    for (answer,) in said:
        assert answer == {"error": "ValueError", "message": "-16 has no root"}


@pytest.mark.slow
def test_a_process_that_dies_is_an_error_and_no_answer():
    said, codes, errors = together("a_death")
    assert codes[1] == -9
    assert said[1] == []
    # The survivor raises, or JAX's own service ends it before it can; it never answers.
    for answer in said[0]:
        assert answer["error"] == "ExecutorError"
        assert "could not reach all others" in answer["message"]
    assert said[0] or codes[0] != 0, errors
