"""Executors on Dask: worker processes on this machine, or a cluster of machines.

Dask's scheduler holds everything that is needed again when a worker dies: loaders of blocks, tasks,
and parameters. Dask repeats lost tasks, up to ``distributed.scheduler.allowed-failures`` times. A
call runs on the worker that holds its block, as long as that worker lives. Blocks are never sent
between workers: if Dask moves one, it is loaded again.

*Trust.* Dask sends pickles, which run code when they are read: anyone who can connect to the
scheduler or to a worker can run any program there. A cluster started here listens on 127.0.0.1
only, which all users of this machine can reach.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from bayes_lcs.core.errors import ExecutorError
from bayes_lcs.runtime.executors.base import BaseExecutor, Blocks
from bayes_lcs.runtime.executors.pickling import pack, pack_function, unpack
from bayes_lcs.runtime.interrupts import block_sigint, run_interruptibly

__all__ = ["DaskExecutor"]

POLL_SECONDS = 1.0
"""Seconds between checks of the connection to the scheduler."""
KILL_SIGNAL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Signal that ends a process immediately; on Windows, SIGTERM does."""


class DaskExecutor(BaseExecutor):
    """Run calls on the workers of a Dask cluster.

    Parameters
    ----------
    scheduler
        A ``distributed.Client``, or the address of a scheduler. None starts a cluster of processes
        on this machine, bound to 127.0.0.1, which ends with the executor.
    workers
        Number of processes of a cluster started here; by default one per core.
    allowed_failures
        Number of workers that may die while running a task before the task fails, for a cluster
        started here. Other clusters define it in their configuration.
    timeout
        Seconds to wait for a connection, for the first worker, and for a scheduler that has stopped
        answering.

    Attributes
    ----------
    client : distributed.Client
        The connection.
    dashboard_link : str
        Address of Dask's dashboard.

    Notes
    -----
    Processes are spawned: a script must create the executor under
    ``if __name__ == "__main__":``.
    """

    def __init__(
        self,
        scheduler: Any = None,
        *,
        workers: int | None = None,
        allowed_failures: int = 3,
        timeout: float = 30.0,
        kind: str = "dask",
    ) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        try:
            import distributed
        except ImportError as error:
            raise ImportError(
                f"executor({kind!r}) needs Dask: pip install 'bayes-lcs[distributed]'"
            ) from error
        super().__init__()
        self.kind = kind
        self.timeout = timeout
        self._cluster = None
        self._addresses: dict[int, list[str | None]] = {}  # workers of placed blocks
        self._owns_client = True
        self.client: Any = None
        try:
            if isinstance(scheduler, distributed.Client):
                self.client, self._owns_client = scheduler, False
            elif scheduler is not None:
                self.client = _connect(distributed, scheduler, timeout)
            else:
                self._cluster = _local_cluster(workers, allowed_failures)
                self.client = _connect(distributed, self._cluster, timeout)
            self._address = str(self.client.scheduler.address)
            self.dashboard_link = str(self.client.dashboard_link)
            self.client.wait_for_workers(1, timeout=timeout)
        except TimeoutError:
            self.close()
            raise ExecutorError(
                f"the Dask scheduler has had no worker for {timeout:g} s; start workers"
            ) from None
        except BaseException:  # including Ctrl-C: do not leave workers behind
            self._kills_workers = True
            self.close()
            raise

    @property
    def num_workers(self) -> int:
        """Number of threads of all workers that are connected now."""
        return sum(self.client.nthreads().values())

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """Return ``function(task)`` for all tasks, in order."""
        self._check()
        program = self._program(pack_function(function))
        parcels = [self._count_sent(pack(task)) for task in tasks]
        self.traffic.calls += len(tasks)
        found = self._gather([self._submit(_run, program, parcel) for parcel in parcels])
        return [unpack(parcel) for _, parcel in found]

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Load blocks ``load(key)``, each on the worker that will process it."""
        self._check()
        placed = Blocks(self, load, keys)
        program = self._program(pack_function(load))
        parcels = [self._count_sent(pack(key)) for key in keys]
        self.traffic.calls += len(keys)
        placed.held = [self._submit(_load, program, parcel) for parcel in parcels]
        self._wait(placed.held)
        owners = self.client.who_has(placed.held)
        self._addresses[placed.number] = [_first(owners.get(block.key)) for block in placed.held]
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """Return ``function(params, block)`` for all blocks, in order."""
        self._check(placed)
        program = self._program(pack_function(function, params))
        self.traffic.calls += placed.num_blocks
        groups: dict[str | None, list[int]] = {}
        for number, address in enumerate(self._addresses[placed.number]):
            groups.setdefault(address, []).append(number)
        # One task for all blocks of a worker: each task costs Dask some milliseconds.
        futures = [
            self._submit(_each, program, [placed.held[n] for n in numbers], address=address)
            for address, numbers in groups.items()
        ]
        results: list[Any] = [None] * placed.num_blocks
        answers = self._gather(futures)
        for numbers, (address, parcel) in zip(groups.values(), answers, strict=True):
            for number, result in zip(numbers, unpack(parcel), strict=True):
                results[number] = result
                # If a worker died, the block has been loaded again on another one.
                self._addresses[placed.number][number] = address
        return results

    def close(self) -> None:
        """Close the connection, and stop a cluster that was started here."""
        if self._closed:
            return
        super().close()
        if self._cluster is not None and self._kills_workers:
            for nanny in self._cluster.workers.values():
                nanny.auto_restart = False
                if nanny.pid:
                    with suppress(OSError):  # it has ended already
                        os.kill(nanny.pid, KILL_SIGNAL)
        if self._owns_client and self.client is not None:
            self.client.close(timeout=self.timeout)
        if self._cluster is not None:
            self._cluster.close(timeout=self.timeout)

    def __repr__(self) -> str:
        return f"bayes_lcs.executor({self.kind!r}, scheduler={self._address!r})"

    def _count_sent(self, parcel: bytes) -> bytes:
        self.traffic.sent += len(parcel)
        return parcel

    def _program(self, parcel: bytes) -> Any:
        """Submit a pickled function with its parameters, so that Dask sends it only once."""
        return self.client.submit(bytes, self._count_sent(parcel), pure=False)

    def _submit(
        self, function: Callable[..., Any], *arguments: Any, address: str | None = None
    ) -> Any:
        where = {} if address is None else {"workers": [address], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **where)

    def _release(self, placed: Blocks) -> None:
        super()._release(placed)
        self._addresses.pop(placed.number, None)

    def _gather(self, futures: list[Any]) -> list[tuple[str, bytes]]:
        """Return the addresses of the workers and their pickled results."""
        self._wait(futures)
        try:
            found: list[tuple[str, bytes]] = self.client.gather(futures)
        except (CancelledError, OSError) as error:
            raise self._connection_error() from error
        self.traffic.received += sum(len(parcel) for _, parcel in found)
        return found

    def _wait(self, futures: list[Any]) -> None:
        """Wait for all futures; raise an `ExecutorError` if the scheduler is lost."""
        from distributed import wait
        from distributed.scheduler import KilledWorker

        last_alive = time.monotonic()
        # A finished future is pending again if its worker dies: its result is computed again.
        while any(future.status not in ("finished", "error") for future in futures):
            try:
                with self.client.as_current():
                    wait(futures, timeout=POLL_SECONDS)
            except CancelledError as error:
                raise self._connection_error() from error
            except TimeoutError:
                if self._is_alive():
                    last_alive = time.monotonic()
                elif time.monotonic() - last_alive > self.timeout:
                    raise self._connection_error() from None
        for future in futures:
            if future.status == "error":
                found = future.exception()
                if isinstance(found, KilledWorker):
                    raise ExecutorError(
                        f"the worker of a task died {found.allowed_failures + 1} times; it may "
                        "have run out of memory, or the function may crash the process"
                    ) from found
                raise found

    def _is_alive(self) -> bool:
        comm = getattr(self.client, "scheduler_comm", None)
        return self.client.status == "running" and comm is not None and not comm.comm.closed()

    def _connection_error(self) -> ExecutorError:
        return ExecutorError(f"the connection to the Dask scheduler at {self._address} is lost")


def _local_cluster(workers: int | None, allowed_failures: int) -> Any:
    """Start a cluster on this machine; its processes ignore Ctrl-C."""
    import dask
    from distributed import LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": allowed_failures,
        # A stolen block would have to be loaded again.
        "distributed.scheduler.work-stealing": False,
    }
    is_needed = True

    def start() -> Any:
        with block_sigint(), dask.config.set(settings):
            try:
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                    silence_logs=50,
                )
            except RuntimeError as error:
                raise ExecutorError(
                    f"the workers did not start ({error}); in a script, create executors under "
                    'if __name__ == "__main__":'
                ) from error
        if not is_needed:  # Ctrl-C came while the cluster was starting
            cluster.close()
        return cluster

    try:
        return run_interruptibly(start)
    except KeyboardInterrupt:
        is_needed = False
        raise


def _connect(distributed: Any, scheduler: Any, timeout: float) -> Any:
    if isinstance(scheduler, str):
        _check_address(scheduler)
    try:
        return distributed.Client(scheduler, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise ExecutorError(
            f"no Dask scheduler answers at {scheduler} within {timeout:g} s ({error})"
        ) from None


def _check_address(address: str) -> None:
    """Raise a `ValueError` if an address is invalid; a client would retry and print logs."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, location = parse_address(address)
        get_backend(scheme)
        parse_host_port(location)
    except ValueError as error:
        raise ValueError(
            f"{address!r} is not the address of a scheduler, such as tcp://scheduler:8786 ({error})"
        ) from None


class _LoadedBlock:
    """Block on a worker; its pickle contains only the loader and the key."""

    def __init__(self, program: bytes, key: bytes) -> None:
        self.program, self.key = program, key
        head, *_ = unpack(program)
        self.block = unpack(head)(unpack(key))

    def __reduce__(self) -> tuple[Any, ...]:
        return _LoadedBlock, (self.program, self.key)


def _load(program: bytes, key: bytes) -> _LoadedBlock:
    return _LoadedBlock(program, key)


def _run(program: bytes, task: bytes) -> tuple[str, bytes]:
    head, *_ = unpack(program)
    return _here(), pack(unpack(head)(unpack(task)))


def _each(program: bytes, blocks: list[_LoadedBlock]) -> tuple[str, bytes]:
    head, params = unpack(program)
    function = unpack(head)
    return _here(), pack([function(params, one.block) for one in blocks])


def _here() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _first(addresses: Sequence[str] | None) -> str | None:
    return next(iter(addresses or ()), None)
