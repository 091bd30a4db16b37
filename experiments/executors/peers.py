"""k-means of others, timed as ours is: two iterations from one start, thrice over all points."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from experiments.executors.jobs import COLUMNS, COMPONENTS, Job, Timed, made_points, repeated

__all__ = ["PEERS", "installed_peers"]

LOOKS = 3
SETTINGS: dict[str, Any] = {"max_iter": LOOKS - 1, "tol": 0.0}


def scikit_learn(workers: int, jobs: list[Job], enough: float, repeats: int) -> list[Timed]:
    """`sklearn.cluster.KMeans` with as many threads."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    found = []
    with threadpool_limits(workers):
        for job in jobs:
            points, start = _problem(job)
            fit = KMeans(COMPONENTS, init=start, n_init=1, algorithm="lloyd", **SETTINGS).fit
            with np.errstate(all="ignore"):
                found.append(_as_timed(job, 0.0, lambda f=fit, X=points: f(X), enough, repeats))
    return found


def dask_ml(workers: int, jobs: list[Job], enough: float, repeats: int) -> list[Timed]:
    """`dask_ml.cluster.KMeans` on a local cluster with as many workers of one thread."""
    import dask.array as da
    import distributed
    from dask_ml.cluster import KMeans

    found = []
    options = {"n_workers": workers, "threads_per_worker": 1, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster),
    ):
        for job in jobs:
            points, start = _problem(job)
            began = time.perf_counter()
            blocks = da.from_array(points, chunks=(job.block_rows, COLUMNS)).persist()
            distributed.wait(blocks)
            place = time.perf_counter() - began
            fit = KMeans(COMPONENTS, init=start, **SETTINGS).fit
            found.append(_as_timed(job, place, lambda f=fit, X=blocks: f(X), enough, repeats))
    return found


PEERS: dict[str, Callable[[int, list[Job], float, int], list[Timed]]] = {
    "scikit-learn": scikit_learn,
    "dask-ml": dask_ml,
}


def installed_peers() -> list[str]:
    return [name for name in PEERS if name != "dask-ml" or find_spec("dask_ml")]


def _problem(job: Job) -> tuple[Any, Any]:
    points = made_points(job.rows)
    chosen = np.random.default_rng(1).choice(job.rows, COMPONENTS, replace=False)
    return points, points[chosen]


def _as_timed(
    job: Job, place: float, work: Callable[[], Any], enough: float, repeats: int
) -> Timed:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that two iterations are few
        first, passes = repeated(work, enough, repeats)
    units = job.rows * COLUMNS * COMPONENTS
    blocks = -(-job.rows // job.block_rows)
    return Timed(place, first / LOOKS, [one / LOOKS for one in passes], units, blocks, 0.0, 0.0)
