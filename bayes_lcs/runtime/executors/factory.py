"""`bayes_lcs.executor`: create an executor by name."""

from __future__ import annotations

from typing import Any

from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["KINDS", "executor"]

KINDS = ("serial", "processes", "dask", "devices")


def executor(kind: str = "processes", **options: Any) -> Any:
    """Create an executor for bulk computations; close it with ``with`` or ``close()``.

    Parameters
    ----------
    kind : {"serial", "processes", "dask", "devices"}
        ``"serial"`` is this process. ``"processes"`` are worker processes on this machine, started
        by Dask (a ``LocalCluster`` that listens on 127.0.0.1). ``"dask"`` is a Dask cluster.
        ``"devices"`` are the devices of JAX; after `jax.distributed.initialize` those of all hosts,
        which must run the same program.
    options
        ``threads`` of ``"serial"`` (default 1). ``workers``, ``allowed_failures`` and ``timeout``
        of ``"processes"`` and ``"dask"``. ``scheduler`` of ``"dask"``: a ``distributed.Client`` or
        an address such as ``"tcp://scheduler:8786"``; by default a cluster is started as for
        ``"processes"``. ``devices`` of ``"devices"`` (default all).

    Returns
    -------
    Executor
        Object with ``kind``, ``num_workers``, ``traffic`` (number of calls, and bytes sent and
        received), and ``close()``. Results do not depend on the executor, except for rounding.

    Notes
    -----
    ``"processes"`` and ``"dask"`` need the extra ``distributed``. Dask sends pickles, which run
    code: anyone who can connect to the scheduler or a worker can run any program as you. On
    127.0.0.1 this is anyone logged in on the same machine. Use it on machines and in networks whose
    users you trust, or with Dask's TLS.

    Examples
    --------
    >>> import math
    >>> import bayes_lcs as bl
    >>> with bl.executor("serial") as here:
    ...     here.run(math.factorial, [3, 5])
    [6, 120]
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    created: Executor
    if kind == "serial":
        from bayes_lcs.runtime.executors.local import LocalExecutor

        created = LocalExecutor(**options)
    elif kind in ("processes", "dask"):
        from bayes_lcs.runtime.executors.dask import DaskExecutor

        if kind == "processes" and "scheduler" in options:
            raise TypeError("scheduler is an option of executor('dask')")
        created = DaskExecutor(kind=kind, **options)
    else:
        from bayes_lcs.runtime.executors.jax_devices import DeviceExecutor

        created = DeviceExecutor(**options)
    return created
