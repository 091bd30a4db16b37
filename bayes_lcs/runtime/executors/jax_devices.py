"""Executor on the devices of JAX, in one process or several.

Blocks and tasks are assigned to devices in turn. Each device has a thread that calls the functions
with that device as JAX's default, so their arrays are created and processed on it. Functions that
are one program over all devices use ``mesh`` instead, with `jax.shard_map`.

After `jax.distributed.initialize`, JAX's devices are those of all processes. Each process runs the
same program, loads and processes the blocks of its own devices only, and exchanges the results, so
that each call returns the same values in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from bayes_lcs.runtime.checkpoints import fingerprint
from bayes_lcs.runtime.executors.base import BaseExecutor, Blocks
from bayes_lcs.runtime.executors.multihost import allgather_bytes, divergence_error, spans_processes
from bayes_lcs.runtime.executors.pickling import pack, pack_error, unpack

__all__ = ["DeviceExecutor"]


class DeviceExecutor(BaseExecutor):
    """Run calls on the devices of JAX.

    Parameters
    ----------
    devices
        Devices, or their number; all of `jax.devices()` by default. With several processes, each
        must own at least one of them.

    Attributes
    ----------
    mesh : jax.sharding.Mesh
        The devices on one axis, ``"rows"``.
    """

    kind = "devices"

    def __init__(self, devices: int | Sequence[Any] | None = None) -> None:
        import jax

        super().__init__()
        known = jax.devices()
        if isinstance(devices, int):
            if not 1 <= devices <= len(known):
                raise ValueError(f"JAX has {len(known)} devices here, but devices={devices}")
            known = known[:devices]
        elif devices is not None:
            known = list(devices)
        self.devices = known
        self.mesh = jax.sharding.Mesh(np.array(known), ("rows",))
        self._spans = spans_processes(self.mesh)
        own = [device for device in known if device.process_index == jax.process_index()]
        self._pools = {device: ThreadPoolExecutor(1, f"bayes-lcs-{device}") for device in own}

    @property
    def num_workers(self) -> int:
        """Number of devices."""
        return len(self.devices)

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """Return ``function(task)`` for all tasks, in order."""
        self._check()
        results, error = self._call_on_devices(function, _SingleArguments(tasks))
        return self._share_results(f"run {_name(function)}", results, error)

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Load blocks ``load(key)``, each on the device that will process it."""
        self._check()
        placed = Blocks(self, load, keys)
        found, error = self._call_on_devices(load, _SingleArguments(keys))
        self._share_results(f"place {_name(load)}", [None] * len(found), error)
        placed.held = found
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """Return ``function(params, block)`` for all blocks, in order."""
        self._check(placed)
        calls = [(params, block) for block in placed.held]
        what = f"each {_name(function)}"
        if self._spans:
            what += f" {fingerprint(params)}"
        return self._share_results(what, *self._call_on_devices(function, calls))

    def close(self) -> None:
        """Stop the threads."""
        super().close()
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    def _call_on_devices(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
    ) -> tuple[list[Any], Exception | None]:
        """Return the results of this process's devices (None for others), and an error if any."""
        self.traffic.calls += len(calls)
        futures: dict[int, Future[Any]] = {}
        results: list[Any] = [None] * len(calls)
        try:
            for i in range(len(calls)):
                device = self.devices[i % self.num_workers]
                if device in self._pools:
                    futures[i] = self._pools[device].submit(_on_device, device, function, calls[i])
            for i, future in futures.items():
                results[i] = future.result()
        except BaseException as error:
            for future in futures.values():
                future.cancel()
            if self._spans and isinstance(error, Exception):
                return results, error  # the other processes wait for it
            raise
        return results, None

    def _share_results(self, what: str, results: list[Any], error: Exception | None) -> list[Any]:
        """Return the results of all processes in the order of the calls, or raise an error."""
        if not self._spans:
            return results
        parcel = pack((f"{what} of {len(results)}", results if error is None else []))
        failure = b"" if error is None else pack_error(error)
        received = [unpack(one) for one in self._allgather(pack((parcel, failure)))]
        for _, other in received:
            if other:
                raise unpack(other)
        answers = [unpack(one) for one, _ in received]
        # Processes that run different calls have diverged.
        if len({name for name, _ in answers}) > 1:
            raise divergence_error([name for name, _ in answers])
        owners = [device.process_index for device in self.devices]
        return [answers[owners[i % self.num_workers]][1][i] for i in range(len(results))]

    def _allgather(self, parcel: bytes) -> list[bytes]:
        found = allgather_bytes(parcel)
        self.traffic.sent += len(parcel)
        self.traffic.received += sum(map(len, found)) - len(parcel)
        return found


class _SingleArguments(Sequence[tuple[Any]]):
    """Values as tuples of one argument; each value is accessed when it is needed."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, number: Any) -> Any:
        return (self._values[number],)


def _name(function: Any) -> str:
    function = getattr(function, "func", function)  # of a partial, whose arguments may be folders
    return getattr(function, "__qualname__", type(function).__name__)


def _on_device(device: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    import jax

    with jax.default_device(device):
        return function(*arguments)
