"""Executors on Dask: worker processes on this machine, or a cluster of machines.

Everything that is needed again when a worker dies stays with Dask's scheduler: how a block is
loaded, tasks, and parameters. Dask then repeats by itself what was lost, as often as
``distributed.scheduler.allowed-failures`` says. Calls go where their block is, as long as that
worker lives. Blocks are never sent from worker to worker: one that Dask wants elsewhere is loaded
again.

*Trust.* Dask sends pickles, which run code when they are read: whoever can connect to the scheduler
or to a worker can run any program there. A cluster started here listens on 127.0.0.1 only.
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
from bayes_lcs.runtime.executors.pickling import opened, packed, packed_function
from bayes_lcs.runtime.interrupts import children_do_not_hear, interruptible

__all__ = ["DaskExecutor"]

LOOK = 1.0
"""Seconds between looks at whether the scheduler is still there."""
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Signal that ends a process at once; on Windows every signal does."""


class DaskExecutor(BaseExecutor):
    """Workers of a Dask cluster.

    Parameters
    ----------
    scheduler
        A ``distributed.Client``, or the address of a scheduler. None starts a cluster of processes
        on this machine, bound to 127.0.0.1, which ends with the executor.
    workers
        Number of processes of a cluster started here; by default one per core.
    allowed_failures
        How many workers a task of such a cluster may outlive before it is given up. That of a
        cluster elsewhere is in its configuration.
    timeout
        Seconds to wait for a connection, for a worker to be there, and for a scheduler that does
        not answer any more.

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
        self._homes: dict[int, list[str | None]] = {}
        self._owns_client = True
        self.client: Any = None
        try:
            if isinstance(scheduler, distributed.Client):
                self.client, self._owns_client = scheduler, False
            elif scheduler is not None:
                self.client = _connected(distributed, scheduler, timeout)
            else:
                self._cluster = _local_cluster(workers, allowed_failures)
                self.client = _connected(distributed, self._cluster, timeout)
            self._address = str(self.client.scheduler.address)
            self.dashboard_link = str(self.client.dashboard_link)
            self.client.wait_for_workers(1, timeout=timeout)
        except TimeoutError:
            self.close()
            raise ExecutorError(
                f"the Dask scheduler has had no worker for {timeout:g} s; start some"
            ) from None
        except BaseException:  # nobody else will end what was begun
            self._hurries = True
            self.close()
            raise

    @property
    def num_workers(self) -> int:
        """Threads of all workers that are connected now."""
        return sum(self.client.nthreads().values())

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """``function(task)`` of all tasks, in their order."""
        self._check()
        program = self._program(packed_function(function))
        parcels = [self._counted(packed(task)) for task in tasks]
        self.traffic.calls += len(tasks)
        found = self._gathered([self._submit(_run, program, parcel) for parcel in parcels])
        return [opened(parcel) for _, parcel in found]

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Blocks ``load(key)``, each in the worker that will work on it."""
        self._check()
        placed = Blocks(self, load, keys)
        program = self._program(packed_function(load))
        parcels = [self._counted(packed(key)) for key in keys]
        self.traffic.calls += len(keys)
        placed.held = [self._submit(_load, program, parcel) for parcel in parcels]
        self._wait(placed.held)
        homes = self.client.who_has(placed.held)
        self._homes[placed.number] = [_first(homes.get(block.key)) for block in placed.held]
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """``function(params, block)`` of all blocks, in their order."""
        self._check(placed)
        program = self._program(packed_function(function, params))
        self.traffic.calls += placed.num_blocks
        groups: dict[str | None, list[int]] = {}
        for number, home in enumerate(self._homes[placed.number]):
            groups.setdefault(home, []).append(number)
        # One task for all blocks of a worker: a task costs Dask some milliseconds.
        futures = [
            self._submit(_each, program, [placed.held[number] for number in numbers], home=home)
            for home, numbers in groups.items()
        ]
        results: list[Any] = [None] * placed.num_blocks
        for numbers, (home, parcel) in zip(groups.values(), self._gathered(futures), strict=True):
            for number, result in zip(numbers, opened(parcel), strict=True):
                results[number] = result
                # After the death of a worker, a block is where it was worked on last.
                self._homes[placed.number][number] = home
        return results

    def close(self) -> None:
        """Close the connection, and end a cluster that was begun here."""
        if self._closed:
            return
        super().close()
        if self._cluster is not None and self._hurries:
            for nanny in self._cluster.workers.values():
                nanny.auto_restart = False
                if nanny.pid:
                    with suppress(OSError):  # it has ended already
                        os.kill(nanny.pid, KILL)
        if self._owns_client and self.client is not None:
            self.client.close(timeout=self.timeout)
        if self._cluster is not None:
            self._cluster.close(timeout=self.timeout)

    def __repr__(self) -> str:
        return f"bayes_lcs.executor({self.kind!r}, scheduler={self._address!r})"

    def _counted(self, parcel: bytes) -> bytes:
        self.traffic.sent += len(parcel)
        return parcel

    def _program(self, parcel: bytes) -> Any:
        """A function and its parameters: sent once, and passed on from worker to worker."""
        return self.client.submit(bytes, self._counted(parcel), pure=False)

    def _submit(
        self, function: Callable[..., Any], *arguments: Any, home: str | None = None
    ) -> Any:
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **where)

    def _release(self, placed: Blocks) -> None:
        super()._release(placed)
        self._homes.pop(placed.number, None)

    def _gathered(self, futures: list[Any]) -> list[tuple[str, bytes]]:
        """Who answered, and what."""
        self._wait(futures)
        try:
            found: list[tuple[str, bytes]] = self.client.gather(futures)
        except (CancelledError, OSError) as error:
            raise self._lost() from error
        self.traffic.received += sum(len(parcel) for _, parcel in found)
        return found

    def _wait(self, futures: list[Any]) -> None:
        """Wait for all, as long as there is somebody who will bring them."""
        from distributed import wait
        from distributed.scheduler import KilledWorker

        heard = time.monotonic()
        # Results that lay in a worker which died are not there any more, and come again.
        while any(future.status not in ("finished", "error") for future in futures):
            try:
                with self.client.as_current():
                    wait(futures, timeout=LOOK)
            except CancelledError as error:
                raise self._lost() from error
            except TimeoutError:
                if self._is_alive():
                    heard = time.monotonic()
                elif time.monotonic() - heard > self.timeout:
                    raise self._lost() from None
        for future in futures:
            if future.status == "error":
                found = future.exception()
                if isinstance(found, KilledWorker):
                    raise ExecutorError(
                        f"the worker of a task died {found.allowed_failures + 1} times; was "
                        "memory short, or is the function at fault?"
                    ) from found
                raise found

    def _is_alive(self) -> bool:
        comm = getattr(self.client, "scheduler_comm", None)
        return self.client.status == "running" and comm is not None and not comm.comm.closed()

    def _lost(self) -> ExecutorError:
        return ExecutorError(f"the connection to the Dask scheduler at {self._address} is lost")


def _local_cluster(workers: int | None, allowed_failures: int) -> Any:
    """Processes on this machine; Ctrl-C does not wait for them, and they do not hear it."""
    import dask
    from distributed import LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": allowed_failures,
        # A block that is stolen is loaded again: it is not worth it.
        "distributed.scheduler.work-stealing": False,
    }
    wanted = True

    def begin() -> Any:
        with children_do_not_hear(), dask.config.set(settings):
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
        if not wanted:
            cluster.close()
        return cluster

    try:
        return interruptible(begin)
    except KeyboardInterrupt:
        wanted = False
        raise


def _connected(distributed: Any, scheduler: Any, timeout: float) -> Any:
    if isinstance(scheduler, str):
        _check_address(scheduler)
    try:
        return distributed.Client(scheduler, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise ExecutorError(
            f"no Dask scheduler answers at {scheduler} within {timeout:g} s ({error})"
        ) from None


def _check_address(address: str) -> None:
    """Refuse what is no address before a client is made, which would not end without noise."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(address)
        get_backend(scheme)
        parse_host_port(place)
    except ValueError as error:
        raise ValueError(
            f"{address!r} is no address of a scheduler, such as tcp://scheduler:8786 ({error})"
        ) from None


class _Held:
    """A block in a worker; as a pickle it is only how it is loaded."""

    def __init__(self, program: bytes, key: bytes) -> None:
        self.program, self.key = program, key
        head, *_ = opened(program)
        self.block = opened(head)(opened(key))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Held, (self.program, self.key)


def _load(program: bytes, key: bytes) -> _Held:
    return _Held(program, key)


def _run(program: bytes, task: bytes) -> tuple[str, bytes]:
    head, *_ = opened(program)
    return _here(), packed(opened(head)(opened(task)))


def _each(program: bytes, held: list[_Held]) -> tuple[str, bytes]:
    head, params = opened(program)
    function = opened(head)
    return _here(), packed([function(params, one.block) for one in held])


def _here() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _first(addresses: Sequence[str] | None) -> str | None:
    return next(iter(addresses or ()), None)
