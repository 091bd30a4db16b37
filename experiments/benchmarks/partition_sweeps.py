"""Sampling partitions of groups against peers: sweeps a second, effective draws a second.

Peers:

*NumPy*  `NumpyGibbs`, a collapsed Gibbs sampler of the same posterior;
*NUTS*   NumPyro's, on ``ClusteredNaiveBayes.numpyro_model`` (20 sticks, ``z`` summed out), with
         ``z`` drawn from its conditional given each draw of the sticks and ``theta``.

Sweeps are counted from the same partition, the true one. On two tables both samplers stay there,
and ours gains from what is known; on the third, a flat one, groups move in every sweep. Only
updates of the partition are compared: no split-merge moves. Before that, both samplers must agree
with the exact posterior on a small table whose posterior is flat.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

import bayes_lcs as bl
from bayes_lcs.inference.chain_driver import ChainDraws, run_chains
from bayes_lcs.inference.mcmc.collapsed_gibbs import build_problem
from experiments.benchmarks.numpy_gibbs import NumpyGibbs
from experiments.benchmarks.simulated import clustered_groups
from experiments.benchmarks.tables import Scale, Table

CHAINS = (1, 4)
SECONDS = {Scale.SMOKE: 0.2, Scale.NORMAL: 4.0, Scale.FULL: 15.0}
AGREEMENT = 4.0  # standard errors: fails by chance once in 16,000 comparisons
AGREEMENT_DRAWS = {Scale.SMOKE: 2_000, Scale.NORMAL: 10_000, Scale.FULL: 40_000}
ROWS = 6  # a group, for NUTS: few enough that the number of clusters stays open
FLAT: dict[str, Any] = {
    "num_clusters": 3,
    "rows_per_group": ROWS,
    "num_features": 3,
    "evenness": 1.0,
}


@dataclass(frozen=True)
class NutsSize:
    """How long NUTS runs."""

    warmup: int
    draws: int
    chains: int
    max_tree_depth: int


NUTS_SIZES = {
    Scale.NORMAL: NutsSize(200, 200, 2, 7),
    Scale.FULL: NutsSize(1_000, 1_000, 4, 10),
}


def sample_ours(
    data: bl.GroupedTable,
    *,
    draws: int,
    chains: int,
    split_merge: int,
    start: NDArray[np.int64] | None = None,
) -> ChainDraws:
    with jax.enable_x64(True):
        problem = build_problem(bl.ClusteredNaiveBayes(), data, split_merge)
    return run_chains(
        replace(problem, partition=start),
        draws=draws,
        warmup=max(draws // 10, 2),
        chains=chains,
        thin=1,
        seed=0,
        progress=False,
    )


def effective(num_clusters: NDArray[Any]) -> tuple[float, float]:
    """Bulk effective sample size and R-hat of draws ``(chains, draws)``."""
    import arviz_stats

    values = np.asarray(num_clusters, dtype=np.float64)
    if (np.ptp(values, axis=1) == 0).all():
        return (float("nan"), float("nan")) if np.ptp(values) == 0 else (0.0, float("inf"))
    return (
        float(arviz_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk")),
        float(arviz_stats.rhat(values, chain_axis=0, draw_axis=1)),
    )


# Sweeps of the partition -------------------------------------------------------------------------


def check_agreement(scale: Scale) -> str:
    """Both samplers against the exact mean number of clusters; a sentence that says so."""
    data, _ = clustered_groups(8, num_clusters=3, rows_per_group=6, num_features=3, evenness=1.0)
    exact = bl.exact(bl.ClusteredNaiveBayes(), data, progress=False).num_clusters()
    expected = float(np.arange(len(exact)) @ exact)
    draws = AGREEMENT_DRAWS[scale]
    ours = sample_ours(data, draws=draws, chains=1, split_merge=0).info["num_clusters"]
    peer = NumpyGibbs(data, np.zeros(8, dtype=np.int64))
    theirs = np.zeros((1, draws // 4))
    for draw in range(theirs.size):
        peer.sweep()
        theirs[0, draw] = peer.num_blocks
    parts = []
    for name, values in (("ours", ours), ("NumPy", theirs)):
        ess, _ = effective(values)
        error = float(values.std() / np.sqrt(ess))
        if abs(values.mean() - expected) > AGREEMENT * error:
            raise AssertionError(f"{name}: {values.mean()} +- {error} clusters, not {expected}")
        parts.append(f"{name} {values.mean():.3f} +- {error:.3f}")
    return f"Mean clusters of 8 groups, exactly {expected:.3f}: {', '.join(parts)}."


def sweeps_table(scale: Scale) -> Table:
    smoke = scale is Scale.SMOKE
    meetings, truth = bl.meeting_requests(seed=0)
    many = clustered_groups(60 if smoke else 1_000, num_features=15, num_values=5, evenness=1.0)
    tables = {
        "meetings": (meetings, truth.partition),
        "simulated": many,
        "flat": clustered_groups(21, **FLAT),
    }
    rows = []
    for name, (data, start) in tables.items():
        peer = NumpyGibbs(data, start)
        peer.sweep()
        sweeps, began = 0, time.perf_counter()
        while time.perf_counter() - began < SECONDS[scale]:
            peer.sweep()
            sweeps += 1
        theirs = sweeps / (time.perf_counter() - began)
        for chains in CHAINS:
            draws = max(int(10 * theirs * SECONDS[scale] / chains), 20)
            found = sample_ours(data, draws=draws, chains=chains, split_merge=0, start=start)
            moved = float(found.info["moved"].mean())
            ours = found.sweeps_per_second
            update = 1e6 / ours / data.num_groups
            rows.append((name, data.num_groups, chains, moved, ours, theirs, update, ours / theirs))
    return Table(
        "partition_sweeps_numpy",
        "Sweeps of the partition a second, all chains together, after compilation",
        ("data", "groups", "chains", "moves a sweep", "ours", "NumPy", "us a group, ours", "ratio"),
        rows,
        [check_agreement(scale), "NumPy runs its chains one after the other."],
    )


# NUTS -------------------------------------------------------------------------------------------


def nuts_num_clusters(data: bl.GroupedTable, size: NutsSize) -> tuple[NDArray[Any], float, float]:
    """Number of clusters ``(chains, draws)``, seconds to compile, seconds of sampling."""
    from numpyro.infer import NUTS

    model = bl.ClusteredNaiveBayes()
    arguments = (data.schema, data.groups, data.features, data.labels)
    kernel = NUTS(model.numpyro_model, max_tree_depth=size.max_tree_depth)
    step = jax.jit(lambda state: kernel.sample(state, arguments, {}))
    counts = data.counts().features.reshape(data.num_groups, -1).astype(np.float64)
    rng = np.random.default_rng(0)
    result = np.zeros((size.chains, size.draws))
    began = time.perf_counter()
    keys = jax.random.split(jax.random.key(0), size.chains)
    state = kernel.init(keys, size.warmup, None, arguments, {})
    constrain = jax.jit(jax.vmap(kernel.postprocess_fn(arguments, {})))
    jax.block_until_ready((step(state), constrain(state.z)))
    compiling = time.perf_counter() - began
    for _ in range(size.warmup):
        state = step(state)
    sampling = 0.0
    for draw in range(size.draws):
        began = time.perf_counter()
        state = jax.block_until_ready(step(state))
        sampling += time.perf_counter() - began
        sites = jax.tree.map(np.asarray, constrain(state.z))
        for chain in range(size.chains):
            own = {name: values[chain] for name, values in sites.items()}
            result[chain, draw] = draw_num_clusters(rng, own, counts, data.num_features)
    return result, compiling, sampling


def draw_num_clusters(
    rng: np.random.Generator, sites: dict[str, Any], counts: NDArray[Any], num_features: int
) -> int:
    """Draw ``z`` given sticks and ``theta``, and count its blocks; ``counts`` is ``(U, L * C)``."""
    stick = np.asarray(sites["stick"], dtype=np.float64)
    rest = np.concatenate([[0.0], np.cumsum(np.log1p(-stick))])
    log_weights = rest + np.concatenate([np.log(stick), [0.0]])
    theta = [np.asarray(sites[f"theta_{f}"], dtype=np.float64) for f in range(num_features)]
    cells = np.concatenate(theta, axis=-1)
    log_theta = np.log(np.maximum(cells, 1e-300)).reshape(len(cells), -1)
    scores = log_weights + counts @ log_theta.T
    gumbels = rng.gumbel(size=scores.shape)
    return len(np.unique((scores + gumbels).argmax(axis=1)))


def nuts_rows(name: str, data: bl.GroupedTable, size: NutsSize) -> list[tuple[Any, ...]]:
    began = time.perf_counter()
    found = sample_ours(data, draws=10 * size.draws, chains=4, split_merge=1)
    seconds = 10 * size.draws * 4 / found.sweeps_per_second
    compiled = time.perf_counter() - began - 1.1 * seconds
    values, compiling, sampling = nuts_num_clusters(data, size)
    exact = bl.exact(bl.ClusteredNaiveBayes(), data, progress=False).num_clusters()
    rows: list[tuple[Any, ...]] = []
    rates = []
    for sampler, draws, before, took in (
        ("ours", found.info["num_clusters"], compiled, seconds),
        ("NUTS", values, compiling, sampling),
    ):
        ess, rhat = effective(draws)
        rates.append(ess / took)
        shape = "x".join(map(str, draws.shape))
        rows.append(
            (name, sampler, shape, before, took, float(draws.mean()), rhat, ess, rates[-1], None)
        )
    ratio = rates[0] / rates[1] if rates[1] > 0 else float("nan")
    rows[0] = (*rows[0][:-1], ratio)
    mean = float(np.arange(len(exact)) @ exact)
    return [*rows, (name, "exact", "", None, None, mean, None, None, None, None)]


def nuts_table(scale: Scale) -> Table:
    size = NUTS_SIZES[scale]
    few, _ = clustered_groups(21, **FLAT)
    meetings, _ = bl.meeting_requests(seed=0, rows_per_person=ROWS)
    rows = [*nuts_rows("flat", few, size), *nuts_rows("meetings", meetings, size)]
    return Table(
        "partition_sweeps_nuts",
        f"Effective draws of the number of clusters, {few.num_groups} groups of {ROWS} rows",
        (
            "data",
            "sampler",
            "draws",
            "compile (s)",
            "sample (s)",
            "mean",
            "R-hat",
            "ESS",
            "ESS a s",
            "ratio",
        ),
        rows,
        [
            "Warm-up is in neither's seconds. NaN: the number never changed, and has no ESS.",
            f"NUTS: 32 bits, {size.warmup} warm-up, tree depth at most {size.max_tree_depth}.",
            "Chains of NUTS are vectorised. Ours: one split-merge move a sweep.",
        ],
    )


def run(scale: Scale) -> list[Table]:
    tables = [sweeps_table(scale)]
    # NUTS takes minutes to compile and to run, however small the problem.
    return tables if scale is Scale.SMOKE else [*tables, nuts_table(scale)]
