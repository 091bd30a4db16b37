"""`bayes_lcs.executor`: where algorithms in bulk run, by name."""

from __future__ import annotations

from typing import Any

from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["KINDS", "executor"]

KINDS = ("serial", "processes", "dask", "devices")


def executor(kind: str = "processes", **options: Any) -> Any:
    """Somewhere to run algorithms in bulk; leave it with ``with`` or ``close()``.

    Parameters
    ----------
    kind : {"serial", "processes", "dask", "devices"}
        ``"serial"`` is this process (``threads``, one by default). ``"processes"`` are worker
        processes on this machine, started by Dask and bound to 127.0.0.1 (``workers``,
        ``allowed_failures``, ``timeout``). ``"dask"`` is a Dask cluster: ``scheduler`` is a
        ``distributed.Client`` or an address such as ``"tcp://scheduler:8786"``; without it the
        cluster is that of ``"processes"``. ``"devices"`` are the devices of JAX (``devices``),
        after `jax.distributed.initialize` those of all processes, which run the same program.
    options
        Of the kind.

    Returns
    -------
    Executor
        With ``kind``, ``num_workers``, ``traffic`` (calls, and bytes sent and received), and
        ``close()``. Results do not depend on which one it is, but for rounding.

    Notes
    -----
    ``"processes"`` and ``"dask"`` need the extra ``distributed``. Dask sends pickles, which run
    code: whoever can connect to its scheduler or workers can run any program as you. Use it on
    machines and in networks whose members you trust, or with TLS, which Dask has.

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
    made: Executor
    if kind == "serial":
        from bayes_lcs.runtime.executors.local import LocalExecutor

        made = LocalExecutor(**options)
    elif kind in ("processes", "dask"):
        from bayes_lcs.runtime.executors.dask import DaskExecutor

        if kind == "processes" and "scheduler" in options:
            raise TypeError("scheduler is an option of executor('dask')")
        made = DaskExecutor(kind=kind, **options)
    else:
        from bayes_lcs.runtime.executors.jax_devices import DeviceExecutor

        made = DeviceExecutor(**options)
    return made
