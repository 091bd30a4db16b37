"""Problems that are posed where they are worked on: what they are made of is sent once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.runtime.executors.protocol import Executor, Placed

__all__ = ["PosedElsewhere", "pose_elsewhere"]


class PosedElsewhere(NamedTuple):
    """A problem in the hands of one worker.

    Attributes
    ----------
    number
        Of the worker, from 0.
    problem
        As it was posed there.
    """

    number: int
    problem: Any


def pose_elsewhere(executor: Executor, pose: Callable[[], Any], most: int) -> Placed:
    """Let every worker, or as many as will have work, pose the problem and keep it.

    Parameters
    ----------
    pose
        Poses it: it is sent in place of the problem's arrays, which need 64 bits.
    most
        More workers than this would be idle.
    """
    numbers = range(max(min(executor.num_workers, most), 1))
    return executor.place(partial(_posed, pose), list(numbers))


def _posed(pose: Callable[[], Any], number: int) -> PosedElsewhere:
    problem: Any = pose()
    if len(jax.devices()) > 1:
        # Chains move in threads of their own, which do not know which device is theirs.
        with jax.enable_x64(True):
            mine = jnp.zeros(()).device
            problem = replace(problem, data=jax.device_put(problem.data, mine))
    return PosedElsewhere(number, problem)
