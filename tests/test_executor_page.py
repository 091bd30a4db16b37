"""What `docs/executors.md` shows is run: examples here, scripts as scripts."""

from __future__ import annotations

import doctest
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bayes_lcs as bl

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "executors.md"


def scripts():
    """Blocks of the page that begin with the name of a file."""
    blocks = re.findall(r"```python\n(# (\w+\.py).*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return {name: text for text, name in blocks}


def started(path, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, str(path), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def weights():
    X = np.random.default_rng(0).integers(0, 3, (5000, 8))
    return bl.MixtureClusterer(4, random_state=0).fit(X).weights_.round(3)


def test_examples_give_what_is_printed():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted >= 8
    assert not found.failed


def test_every_page_that_is_linked_is_there():
    linked = re.findall(r"\]\((\w+\.(?:md|png))\)", PAGE.read_text("utf-8"))
    assert linked
    assert all((PAGE.parent / name).is_file() for name in linked)


@pytest.mark.slow
def test_the_script_with_processes_runs(tmp_path):
    path = tmp_path / "fit_in_processes.py"
    path.write_text(scripts()[path.name])
    out, error = started(path).communicate(timeout=300)
    assert str(weights()) in out, error


@pytest.mark.slow
def test_the_script_of_two_hosts_runs(tmp_path):
    path = tmp_path / "mesh.py"
    path.write_text(scripts()[path.name])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    both = [started(path, address, "2", str(number)) for number in range(2)]
    try:
        ends = [process.communicate(timeout=300) for process in both]
    finally:
        for process in both:
            process.kill()
            process.wait()
    assert [process.returncode for process in both] == [0, 0], ends
    assert f"2 {weights()}" in ends[0][0]
    assert str(weights()) not in ends[1][0]
