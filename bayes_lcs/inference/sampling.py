"""Drawing from the posterior of any sharing model: one entrance to the samplers of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.protocols import KnownPartitionModel, PrototypeModel
from bayes_lcs.inference import prototype_sampler, sharing_problem
from bayes_lcs.inference.chains import ChainProblem, run_chains
from bayes_lcs.inference.draws import PosteriorDraws

if TYPE_CHECKING:
    from bayes_lcs.data.table import GroupedTable

__all__ = ["draw_posterior"]


def draw_posterior(
    model: Any,
    data: GroupedTable,
    *,
    draws: int = 1000,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
    split_merge: int = 1,
    seed: int = 0,
    progress: bool | None = None,
) -> PosteriorDraws:
    """Draw all that is unknown; the arguments are those of :func:`bayes_lcs.sample`."""
    for name, value, least in (
        ("draws", draws, 1),
        ("chains", chains, 1),
        ("thin", thin, 1),
        ("split_merge", split_merge, 0),
        ("warmup", 0 if warmup is None else warmup, 0),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    sweeps = draws // 2 if warmup is None else warmup
    with jax.enable_x64(True):
        problem: ChainProblem
        if isinstance(model, PrototypeModel):
            problem = prototype_sampler.pose(model, data, num_adapt=sweeps)
        else:
            problem = sharing_problem.pose(model, data, split_merge)
    found = run_chains(
        problem,
        draws=draws,
        warmup=sweeps,
        chains=chains,
        thin=thin,
        seed=seed,
        progress=progress,
    )
    info = dict(found.info)
    if isinstance(model, KnownPartitionModel):
        for name in ("num_clusters", "largest", "entropy", "moved", "split_merge_accepted"):
            del info[name]
    z = info.pop("z", None)
    if z is None:  # the groups of a prototype model are all their own
        shape = (*info["log_joint"].shape, data.num_groups)
        z = np.broadcast_to(np.arange(data.num_groups), shape)
    else:
        for draw in np.ndindex(z.shape[:2]):  # in place: all draws at once would not fit
            z[draw] = first_occurrence(z[draw])
    unknown = {"z": z.astype(np.uint16 if data.num_groups <= 2**16 else np.uint32, copy=False)}
    concentration, beta, labels = (info.pop(name) for name in ("concentration", "beta", "labels"))
    if isinstance(getattr(model, "concentration", None), Gamma):
        unknown["concentration"] = concentration
    if isinstance(model.feature_prior, Gamma):
        unknown["beta"] = beta
    if labels.shape[-1]:
        unknown["latent_label"] = labels.astype(np.uint16)
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
