"""Clustering of points: coresets against all rows, online restarts, and how fast rows go by.

Points are drawn from ``k`` normal clouds of different sizes and widths. Every contestant's centres
are judged by their cost on all points. Peers that are not installed are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.cluster import MiniBatchKMeans

import bayes_lcs as bl
from bayes_lcs.clustering.coresets.sampling_scores import METHODS
from bayes_lcs.clustering.kmeans import online_kernel
from bayes_lcs.clustering.kmeans.init import nearest
from experiments.benchmarks.tables import Scale, Table


class Size(NamedTuple):
    rows: int
    columns: int
    clusters: int
    coreset: int
    starts: int


SIZES = {
    Scale.SMOKE: Size(4_000, 4, 5, 400, 3),
    Scale.NORMAL: Size(1_000_000, 16, 20, 20_000, 10),
    Scale.FULL: Size(4_000_000, 16, 20, 20_000, 10),
}


RIVER_ROWS = 20_000
SLOW = ("all rows", "river", "dask-ml")


def points(size: Size, seed: int = 0) -> NDArray[np.float64]:
    """Clouds whose sizes and widths differ by a factor of ten."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(size.clusters, 1.0))
    kind = rng.choice(size.clusters, size.rows, p=share)
    centers = 4.0 * rng.normal(size=(size.clusters, size.columns))
    width = 10.0 ** rng.uniform(-0.5, 0.5, size.clusters)
    return centers[kind] + width[kind, None] * rng.normal(size=(size.rows, size.columns))


def _seconds(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    best = np.inf
    for _ in range(repeats):
        began = time.perf_counter()
        found = work()
        best = min(best, time.perf_counter() - began)
    return best, found


def cost_table(size: Size, X: NDArray[np.float64]) -> Table:
    """Seconds and cost of ten starts on all rows, on a coreset, and of others."""
    k, starts = size.clusters, size.starts

    def on_coreset(method: str) -> Any:
        small = bl.coreset(X, k, size.coreset, method=method, queries=0, random_state=0)
        found = bl.KMeans(k, n_init=starts, random_state=0)
        return found.fit(small.points, sample_weight=small.weights).cluster_centers_

    works: dict[str, Callable[[], Any]] = {
        "scikit-learn KMeans, all rows": lambda: (
            SklearnKMeans(k, n_init=starts, random_state=0).fit(X).cluster_centers_
        ),
        "ours, all rows": lambda: (
            bl.KMeans(k, n_init=starts, random_state=0).fit(X).cluster_centers_
        ),
        "scikit-learn MiniBatchKMeans": lambda: (
            MiniBatchKMeans(k, n_init=starts, random_state=0).fit(X).cluster_centers_
        ),
    }
    for method in METHODS:
        works[f"ours, {method} coreset of {size.coreset:,}"] = lambda m=method: on_coreset(m)
    works["ours, online, 8 restarts"] = lambda: (
        bl.OnlineKMeans(k, n_init=8, random_state=0).fit(X).cluster_centers_
    )
    if find_spec("faiss"):
        works["faiss, all rows"] = lambda: _faiss(X, k, starts)
    if find_spec("dask_ml"):
        works["dask-ml, k-means||, one start"] = lambda: _dask_ml(X, k)
    if find_spec("river"):
        works[f"river, {RIVER_ROWS:,} rows only"] = lambda: _river(X[:RIVER_ROWS], k)
    rows: list[tuple[Any, ...]] = []
    for name, work in works.items():
        seconds, centers = _seconds(work, 1 if any(slow in name for slow in SLOW) else 2)
        rows.append((name, seconds, _cost(X, centers)))
        if "coreset" in name:
            for batch in (1024, 16_384):
                own = _mini_batch_within(seconds, X, k, batch)
                title = f"  MiniBatchKMeans in the same time, batches of {batch:,}"
                rows.append((title, seconds, _cost(X, own)))
    first = rows[0]
    return Table(
        "point_clusters_cost",
        f"{size.rows:,} x {size.columns}, {k} clusters, {starts} starts",
        ("who", "seconds", "cost", "times faster", "cost over scikit-learn's"),
        [(*row, first[1] / row[1], row[2] / first[2]) for row in rows],
    )


def _cost(X: NDArray[np.float64], centers: Any) -> float:
    return float(nearest(X, np.asarray(centers, X.dtype))[1].sum())


def _mini_batch_within(seconds: float, X: NDArray[np.float64], k: int, batch: int) -> Any:
    """Batches of rows at random until the time is over."""
    until = time.perf_counter() + seconds
    rng = np.random.default_rng(0)
    found = MiniBatchKMeans(k, batch_size=batch, n_init=3, random_state=0)
    while True:
        found.partial_fit(X[rng.integers(len(X), size=min(batch, len(X)))])
        if time.perf_counter() > until:
            return found.cluster_centers_


def _faiss(X: NDArray[np.float64], k: int, starts: int) -> Any:
    """All rows, not faiss's own sample of 256 rows a centre, and fifty iterations."""
    import faiss

    found = faiss.Kmeans(
        X.shape[1], k, nredo=starts, niter=50, seed=0, max_points_per_centroid=len(X)
    )
    found.train(X.astype(np.float32))
    return found.centroids


def _dask_ml(X: NDArray[np.float64], k: int) -> Any:
    import dask.array as da
    from dask_ml.cluster import KMeans

    found = KMeans(k, random_state=0).fit(da.from_array(X, chunks=(len(X) // 8, X.shape[1])))
    return found.cluster_centers_


def _river(X: NDArray[np.float64], k: int) -> Any:
    from river.cluster import KMeans

    found = KMeans(k, halflife=0.05, sigma=3.0, seed=0)
    for row in X.tolist():
        found.learn_one(dict(enumerate(row)))
    columns = range(X.shape[1])
    return [[found.centers[j][c] for c in columns] for j in range(k)]


def restart_table(size: Size, X: NDArray[np.float64]) -> Table:
    """An online pass with one restart and with eight."""
    weights = np.ones(len(X))
    rows: list[tuple[Any, ...]] = []
    for restarts in (1, 8):
        starts = np.stack([X[i * size.clusters :][: size.clusters] for i in range(restarts)])
        state = online_kernel.init(starts)
        online_kernel.online_pass(state, X[:5000], weights[:5000])  # compiles
        seconds, _ = _seconds(lambda s=state: online_kernel.online_pass(s, X, weights))
        one = rows[0][1] if rows else seconds
        rows.append((restarts, seconds, 1e9 * seconds / len(X), seconds / one))
    return Table(
        "point_clusters_restarts",
        f"One online pass over {size.rows:,} rows",
        ("restarts", "seconds", "ns a row", "time over one restart's"),
        rows,
    )


def throughput_table(size: Size, X: NDArray[np.float64]) -> Table:
    """Building a coreset against a plain pass over the array."""
    plain, _ = _seconds(lambda: X.sum(axis=0), 5)
    rows: list[tuple[Any, ...]] = [("sum of all rows", plain, X.nbytes / plain / 2**30, 1.0)]
    for method in METHODS:
        seconds, _ = _seconds(
            lambda m=method: bl.coreset(
                X, size.clusters, size.coreset, method=m, queries=0, random_state=0
            )
        )
        rows.append((method, seconds, X.nbytes / seconds / 2**30, seconds / plain))
    return Table(
        "point_clusters_throughput",
        f"Building a coreset of {size.coreset:,} points",
        ("what", "seconds", "GiB a second", "plain passes"),
        rows,
    )


def run(scale: Scale) -> list[Table]:
    size = SIZES[scale]
    X = points(size)
    return [cost_table(size, X), restart_table(size, X), throughput_table(size, X)]
