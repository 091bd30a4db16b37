"""A few draws of the partition of many groups, for guides and for runs from the other end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import jax
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference import sharing_problem
from bayes_lcs.inference.chains import run_chains
from bayes_lcs.inference.sharing_problem import MOST_SINGLETONS

if TYPE_CHECKING:
    from bayes_lcs.core.protocols import PartitionModel
    from bayes_lcs.data.table import GroupedTable

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
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Partitions ``(chains, draws, U)`` and their ``log P(X, Y, z)`` ``(chains, draws)``.

    Up to 256 groups chains start far apart. Beyond, all start with one block, from which clusters
    part within some sweeps; out of many blocks, which would have to become fewer, chains of
    thousands of groups do not find.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, also if there are draws: too few of them are of no use here.
    """
    with jax.enable_x64(True):
        problem = sharing_problem.pose(model, data)
    if data.num_groups > MOST_SINGLETONS:
        problem = replace(problem, partition=np.zeros(data.num_groups, dtype=np.int64))
    found = run_chains(
        problem, draws=draws, chains=chains, warmup=warmup, thin=thin, seed=seed, progress=progress
    )
    if found.interrupted:
        raise KeyboardInterrupt
    return found.info["z"].astype(np.int64), found.info["log_joint"]
