"""A few draws of the partition of many groups, for guides and for runs from the other end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.mcmc import sharing_problem
from bayes_lcs.inference.mcmc.driver import run_chains
from bayes_lcs.inference.mcmc.executor_chains import spread_chains
from bayes_lcs.inference.mcmc.sharing_problem import MOST_SINGLETONS, SharingProblem
from bayes_lcs.runtime.executors.protocol import Executor

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PartitionModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["drawn_partitions"]


def drawn_partitions(
    model: PartitionModel,
    data: GroupedTable,
    *,
    draws: int,
    chains: int,
    warmup: int,
    thin: int,
    seed: int,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Partitions ``(chains, draws, U)`` and their ``log P(X, Y, z)`` ``(chains, draws)``.

    Up to 256 groups chains start far apart, beyond they are grown: out of many blocks, which would
    have to become fewer, chains of many groups do not find.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, also if there are draws: too few of them are of no use here.
    """
    numbers = {"draws": draws, "warmup": warmup, "chains": chains, "thin": thin, "seed": seed}
    problem = _posed(model, data)
    if executor is None:
        found = run_chains(problem, **numbers, progress=progress)
    else:
        pose = partial(_posed, model, data)
        found = spread_chains(executor, pose, problem, **numbers, progress=progress)
    if found.interrupted:
        raise KeyboardInterrupt
    return found.info["z"].astype(np.int64), found.info["log_joint"]


def _posed(model: PartitionModel, data: GroupedTable) -> SharingProblem:
    start = "apart" if data.num_groups <= MOST_SINGLETONS else "grown"
    with jax.enable_x64(True):
        return sharing_problem.pose(model, data, start=start)
