"""Settings of the whole suite."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bayes_lcs.core.errors import DatasetNotFound
from bayes_lcs.data.datasets import dataset_path

# Kernels are compiled once for all tests, workers and runs on a machine.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / "bayes-lcs-test-jax-cache")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

# A shell that starts the tests in the background lets them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers share the cores: OpenMP's threads of one would wait for those of another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Times mean little on a shared machine, so no example has a deadline. The examples are the same
# in every run unless BAYES_LCS_SWEEP is set, so that a failure can be repeated.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("sweep", deadline=None)
settings.load_profile("sweep" if os.environ.get("BAYES_LCS_SWEEP") else "repeatable")

MOST_MAPPINGS = 30_000
"""Of memory: Linux allows 65,530 a process, and every compiled program takes three or more."""


@pytest.fixture(autouse=True, scope="module")
def _programs_are_forgotten() -> Iterator[None]:
    """A process that has run two thousand tests would be ended by the next program it loads."""
    yield
    mappings = Path("/proc/self/maps")
    if not mappings.exists() or "jax" not in sys.modules:
        return
    if mappings.read_bytes().count(b"\n") > MOST_MAPPINGS:
        sys.modules["jax"].clear_caches()


@pytest.fixture
def raw_file() -> Callable[..., Path]:
    """The path of a data set's file, or a skipped test that says what is missing."""

    def find(name: str, file: str | None = None) -> Path:
        try:
            return dataset_path(name, file)
        except DatasetNotFound as error:
            pytest.skip(str(error))

    return find
