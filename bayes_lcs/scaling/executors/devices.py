"""The devices of JAX in this process.

Blocks and tasks are given to devices in turn. A thread a device calls the functions, with that
device as JAX's default: what they make with JAX lies there and is worked on there. Functions that
are one program over all devices use ``mesh`` instead, with `jax.shard_map`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from bayes_lcs.core.executor_base import BaseExecutor, Blocks

__all__ = ["DeviceExecutor"]


class DeviceExecutor(BaseExecutor):
    """All devices that JAX sees, or some.

    Parameters
    ----------
    devices
        Devices, or their number; all of `jax.devices()` by default.

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
        self._pools = [ThreadPoolExecutor(1, f"bayes-lcs-{device}") for device in known]

    @property
    def num_workers(self) -> int:
        """Number of devices."""
        return len(self.devices)

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """``function(task)`` of all tasks, in their order."""
        self._check()
        return self._in_turn(function, [(task,) for task in tasks])

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Blocks ``load(key)``, each on the device that will work on it."""
        self._check()
        placed = Blocks(self, load, keys)
        placed.held = self._in_turn(load, [(key,) for key in keys])
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """``function(params, block)`` of all blocks, in their order."""
        self._check(placed)
        return self._in_turn(function, [(params, block) for block in placed.held])

    def close(self) -> None:
        """End the threads."""
        super().close()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)

    def _in_turn(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
        self.traffic.calls += len(calls)
        size = self.num_workers
        futures: list[Future[Any]] = []
        try:
            for i, arguments in enumerate(calls):
                pool, device = self._pools[i % size], self.devices[i % size]
                futures.append(pool.submit(_on_device, device, function, arguments))
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _on_device(device: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    import jax

    with jax.default_device(device):
        return function(*arguments)
