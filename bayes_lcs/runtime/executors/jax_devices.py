"""The devices of JAX, in this process or in several.

Blocks and tasks are given to devices in turn. A thread a device calls the functions, with that
device as JAX's default: what they make with JAX lies there and is worked on there. Functions that
are one program over all devices use ``mesh`` instead, with `jax.shard_map`.

After `jax.distributed.initialize`, JAX's devices are those of all processes. Each process runs the
same program; it loads and works on the blocks of its own devices only, and the results are
exchanged, so that each call returns the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from bayes_lcs.runtime.checkpoints import fingerprint
from bayes_lcs.runtime.executors.base import BaseExecutor, Blocks
from bayes_lcs.runtime.executors.multihost import all_parcels, disagreement, spans_processes
from bayes_lcs.runtime.executors.pickling import opened, packed, packed_error

__all__ = ["DeviceExecutor"]


class DeviceExecutor(BaseExecutor):
    """All devices that JAX sees, or some.

    Parameters
    ----------
    devices
        Devices, or their number; all of `jax.devices()` by default. Where several processes run
        together, each must have some of them.

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
                raise ValueError(f"JAX has {len(known)} devices here, {devices} were asked for")
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
        """``function(task)`` of all tasks, in their order."""
        self._check()
        return self._everywhere(f"run {_name(function)}", *self._in_turn(function, _Alone(tasks)))

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Blocks ``load(key)``, each on the device that will work on it."""
        self._check()
        placed = Blocks(self, load, keys)
        found, error = self._in_turn(load, _Alone(keys))
        self._everywhere(f"place {_name(load)}", [None] * len(found), error)
        placed.held = found
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """``function(params, block)`` of all blocks, in their order."""
        self._check(placed)
        calls = [(params, block) for block in placed.held]
        what = f"each {_name(function)}"
        if self._spans:
            what += f" {fingerprint(params)}"
        return self._everywhere(what, *self._in_turn(function, calls))

    def close(self) -> None:
        """End the threads."""
        super().close()
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    def _in_turn(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
    ) -> tuple[list[Any], Exception | None]:
        """Results of this process's devices, None for those of others, and what went wrong."""
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
                return results, error  # others wait for this process, and must hear of it
            raise
        return results, None

    def _everywhere(self, what: str, results: list[Any], error: Exception | None) -> list[Any]:
        """The results of all processes, in the order of the calls; or the first one's error."""
        if not self._spans:
            return results
        parcel = packed((f"{what} of {len(results)}", results if error is None else []))
        trouble = b"" if error is None else packed_error(error)
        said = [opened(one) for one in self._exchanged(packed((parcel, trouble)))]
        for _, other in said:
            if other:
                raise opened(other)
        answers = [opened(one) for one, _ in said]
        if len({name for name, _ in answers}) > 1:
            raise disagreement([name for name, _ in answers])
        owners = [device.process_index for device in self.devices]
        return [answers[owners[i % self.num_workers]][1][i] for i in range(len(results))]

    def _exchanged(self, parcel: bytes) -> list[bytes]:
        found = all_parcels(parcel)
        self.traffic.sent += len(parcel)
        self.traffic.received += sum(map(len, found)) - len(parcel)
        return found


class _Alone(Sequence[tuple[Any]]):
    """Values as arguments; each is looked up when its turn comes."""

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
