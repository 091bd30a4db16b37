"""Draw from the posterior of any sharing model with the sampler that fits it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import KnownPartitionModel, PrototypeModel
from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.core.priors import Gamma
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.inference.chain_driver import ChainDraws, ChainProblem, run_chains
from bayes_lcs.inference.executor_chains import run_chains_on_executor
from bayes_lcs.inference.mcmc import collapsed_gibbs, prototype
from bayes_lcs.inference.mcmc.collapsed_gibbs import MAX_SINGLETONS
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import require_memory

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PartitionModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["draw_posterior", "draws_memory", "sample_partitions"]

BYTES_PER_NUMBER, NUMBERS_SEARCHED = 55.0, 2**25
"""Memory of draws that are made, concatenated and searched for a partition estimate, which uses at
most this many numbers."""
BYTES_PER_STORED_NUMBER = 10.0
"""Memory of the other draws, which are only stored, in 16 bits, and concatenated."""


def draw_posterior(
    model: Any,
    data: GroupedTable,
    *,
    draws: int = 1000,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
    split_merge: int = 1,
    start: str = "auto",
    seed: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> PosteriorDraws:
    """Draw all unknown quantities; the arguments are those of :func:`bayes_lcs.sample`."""
    _check_model_and_data(model, data)
    for name, value, least in (
        ("draws", draws, 1),
        ("chains", chains, 1),
        ("thin", thin, 1),
        ("split_merge", split_merge, 0),
        ("warmup", 0 if warmup is None else warmup, 0),
        ("seed", seed, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} must be a whole number, got {value!r}")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    collapsed_gibbs.resolve_start(start, data.num_groups)
    sweeps = draws // 2 if warmup is None else warmup
    # The memory of the compiler is not counted, since the sampler may already be compiled.
    require_memory(
        draws_memory(float(draws) * chains * _size_of_draw(model, data)),
        f"keeping {draws:,} draws of {chains:,} chains",
        "Use fewer draws or chains, or keep fewer of the sweeps with thin=",
    )
    build = partial(_build_problem, model, data, sweeps, split_merge, start)
    numbers = {"draws": draws, "warmup": sweeps, "chains": chains, "thin": thin, "seed": seed}
    found = _run_chains(build, numbers, progress, executor)
    info = dict(found.info)
    if isinstance(model, KnownPartitionModel):
        for name in ("num_clusters", "largest", "entropy", "moved", "split_merge_accepted"):
            del info[name]
    z = info.pop("z", None)
    if z is None:  # in a prototype model each group is a cluster of its own
        shape = (*info["log_joint"].shape, data.num_groups)
        z = np.broadcast_to(np.arange(data.num_groups), shape)
    else:
        for draw in np.ndindex(z.shape[:2]):  # in place: all draws at once would not fit
            z[draw] = first_occurrence(z[draw])
    narrow = z.max(initial=0) < 2**16
    unknown = {"z": z.astype(np.uint16 if narrow else np.uint32, copy=False)}
    concentration = info.pop("concentration", None)
    beta, labels = info.pop("beta"), info.pop("labels")
    if isinstance(getattr(model, "concentration", None), Gamma):
        unknown["concentration"] = np.asarray(concentration)
    if isinstance(model.feature_prior, Gamma):
        unknown["beta"] = beta
    if labels.shape[-1]:
        narrow = data.num_labels <= 2**16
        unknown["latent_label"] = labels.astype(np.uint16 if narrow else np.uint32)
    for name in ("prototype", "strength"):
        if name in info:
            unknown[name] = info.pop(name)
    return PosteriorDraws(
        model,
        data,
        unknown,
        info,
        found.averages.mean(axis=0) if labels.shape[-1] else None,
        found.interrupted,
        found.sweeps_per_second,
    )


def draws_memory(num_numbers: float) -> float:
    """Return the estimated peak memory of draws, in bytes; ``docs/memory.md`` has measurements."""
    searched = min(num_numbers, NUMBERS_SEARCHED)
    return BYTES_PER_NUMBER * searched + BYTES_PER_STORED_NUMBER * (num_numbers - searched)


def _size_of_draw(model: Any, data: GroupedTable) -> int:
    """Return the size of a draw: clusters of groups, missing labels, prototypes and strengths."""
    labels, features = data.schema.num_labels, data.schema.num_features
    drawn = labels * (data.schema.num_cells + features) if isinstance(model, PrototypeModel) else 0
    return data.num_groups + int((data.labels < 0).sum()) + drawn


def _build_problem(
    model: Any, data: GroupedTable, warmup: int, split_merge: int, start: str
) -> ChainProblem:
    with jax.enable_x64(True):
        if isinstance(model, PrototypeModel):
            return prototype.build_problem(model, data, num_adapt=warmup)
        return collapsed_gibbs.build_problem(model, data, split_merge, start)


def _run_chains(
    build: Callable[[], ChainProblem],
    numbers: dict[str, int],
    progress: bool | None,
    executor: Executor | None,
) -> ChainDraws:
    if executor is None:
        return run_chains(build(), **numbers, progress=progress)
    return run_chains_on_executor(executor, build, **numbers, progress=progress)


def _check_model_and_data(model: Any, data: Any) -> None:
    if isinstance(model, type):
        raise TypeError(f"model must be an instance, not a class; use {model.__name__}()")
    if not isinstance(data, GroupedTable):
        raise TypeError(
            f"data must be a GroupedTable, got {type(data).__name__}; make one with "
            "bl.GroupedTable.from_frame(frame, group=..., label=...) or bl.read_grouped(file, ...)"
        )
    num_unknown = int((data.groups < 0).sum())
    if num_unknown:
        raise ValueError(
            f"{num_unknown} rows belong to groups that are not in this table, as in rows encoded "
            "for prediction; make a table of all rows with bl.GroupedTable.from_frame"
        )


def sample_partitions(
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
    """Draw partitions ``(chains, draws, U)`` and their ``log P(X, Y, z)`` ``(chains, draws)``.

    Up to 256 groups chains start far apart, beyond they are grown: with many groups, chains that
    start with too many clusters do not mix.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, even if there are some draws.
    """
    numbers = {"draws": draws, "warmup": warmup, "chains": chains, "thin": thin, "seed": seed}
    start = "apart" if data.num_groups <= MAX_SINGLETONS else "grown"
    build = partial(_build_problem, model, data, 0, 1, start)
    found = _run_chains(build, numbers, progress, executor)
    if found.interrupted:
        raise KeyboardInterrupt
    return found.info["z"].astype(np.int64), found.info["log_joint"]
