"""Build a sampling problem once on each worker, so that only keys and results are sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.runtime.executors.protocol import Executor, Placed

__all__ = ["WorkerProblem", "build_on_workers"]


class WorkerProblem(NamedTuple):
    """Problem that was built on one worker.

    Attributes
    ----------
    number
        Number of the worker, from 0.
    problem
        The problem.
    """

    number: int
    problem: Any


def build_on_workers(executor: Executor, build: Callable[[], Any], max_workers: int) -> Placed:
    """Build the problem on every worker, but on at most ``max_workers`` of them.

    Parameters
    ----------
    build
        Builds the problem. It is sent instead of the problem's arrays, which need 64 bits.
    max_workers
        Number of workers for which there are chains.
    """
    numbers = range(max(min(executor.num_workers, max_workers), 1))
    return executor.place(partial(_build, build), list(numbers))


def _build(build: Callable[[], Any], number: int) -> WorkerProblem:
    problem: Any = build()
    if len(jax.devices()) > 1:
        # Chains run in threads of their own, which do not inherit JAX's default device.
        with jax.enable_x64(True):
            mine = jnp.zeros(()).device
            problem = replace(problem, data=jax.device_put(problem.data, mine))
    return WorkerProblem(number, problem)
