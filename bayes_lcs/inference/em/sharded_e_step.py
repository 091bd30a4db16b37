"""The E-step as one program over the devices of a JAX mesh.

The chunks of a plan all have the same shape: they are stacked, and each device is given as many. It
sums its own (`jax.shard_map`), the sums of all devices are added where they are (`psum`), and every
device ends with the whole. Rows never move.

Where several processes form the mesh (`jax.distributed`), each lays out the same plan and puts onto
its own devices their chunks and no others. Whether all work on the same plan and parameters is
checked at each pass: sums of different ones would be sums of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.inference.em.e_step import (
    PlanExecutor,
    Precision,
    chunk_arrays,
    chunk_sums,
    zero_sums,
)
from bayes_lcs.inference.em.row_layout import PatternPlan
from bayes_lcs.runtime.checkpoints import fingerprint
from bayes_lcs.runtime.executors.multihost import (
    check_agreement,
    explain_lost_host,
    spans_processes,
)
from bayes_lcs.runtime.interrupts import run_interruptibly

__all__ = ["MeshEStep"]


@partial(jax.jit, static_argnames="mesh")
def _sums_over(mesh: Mesh, tables: jax.Array, base: jax.Array, chunks: tuple[Any, ...]) -> Any:
    """Sums over all chunks, the same on every device."""
    (axis,) = mesh.axis_names
    everywhere, split = _specs(mesh)

    def on_one_device(tables: jax.Array, base: jax.Array, chunks: tuple[Any, ...]) -> Any:
        def add(i: jax.Array, sums: Any) -> Any:
            chunk = jax.tree.map(
                lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, keepdims=False), chunks
            )
            return chunk_sums(sums, tables, base, *chunk)

        sums = jax.lax.fori_loop(0, chunks[0].shape[0], add, zero_sums(*tables.shape))
        return jax.lax.psum(sums, axis)  # type: ignore[no-untyped-call]

    specs = (everywhere, everywhere, split)
    # Sums begin as zeros that are the same everywhere, and do not stay so.
    return jax.shard_map(
        on_one_device, mesh=mesh, in_specs=specs, out_specs=everywhere, check_vma=False
    )(tables, base, chunks)


def _specs(mesh: Mesh) -> tuple[Spec, Spec]:
    """The same everywhere, and split over the devices."""
    return Spec(), Spec(*mesh.axis_names)  # type: ignore[no-untyped-call]


class MeshEStep(PlanExecutor):
    """Takes statistics of a plan's rows on all devices of a mesh of one axis."""

    def __init__(self, plan: PatternPlan, precision: Precision, mesh: Mesh) -> None:
        self.mesh = mesh
        self.is_shared = spans_processes(mesh)
        super().__init__(plan, precision, cores=1)
        if self.is_shared:
            check_agreement(fingerprint(*self.identity()), "rows")

    def put_chunks(self) -> Any:
        """All chunks, and empty ones until every device has as many."""
        given = [chunk_arrays(chunk) for chunk in self.plan.chunks]
        last = self.plan.chunks[-1]
        empty = (last.slots, last.starts, np.zeros_like(last.weights), np.int32(0))
        given += [empty] * (-len(given) % self.mesh.size)
        sharding = NamedSharding(self.mesh, _specs(self.mesh)[1])

        def put(leaves: tuple[Any, ...]) -> jax.Array:
            shape = (len(leaves), *np.shape(leaves[0]))
            return jax.make_array_from_callback(
                shape, sharding, lambda index: np.stack(leaves[cast("tuple[slice, ...]", index)[0]])
            )

        return tuple(put(leaves) for leaves in zip(*given, strict=True))

    def statistics(self, requests: Sequence[MixtureParameters]) -> list[MixtureStatistics]:
        """Statistics at each of some parameters, all together."""

        def take() -> list[MixtureStatistics]:
            answers = []
            if self.is_shared:
                check_agreement(fingerprint(*requests), "parameters")
            with jax.enable_x64(True):
                for asked in requests:
                    sums = self._sums(*self.tables(asked))
                    here = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), sums)
                    answers.append(self.finish([here], asked.num_components))
            return answers

        return run_interruptibly(take)

    def _sums(self, tables: jax.Array, base: Any) -> Any:
        everywhere = NamedSharding(self.mesh, _specs(self.mesh)[0])
        if not self.is_shared:
            both = jax.device_put((tables, base), everywhere)
            return _sums_over(self.mesh, *both, self.chunks)

        def put(values: Any) -> jax.Array:
            return jax.make_array_from_callback(values.shape, everywhere, lambda _: values)

        with explain_lost_host():
            both = put(np.asarray(tables)), put(base)
            sums = _sums_over(self.mesh, *both, self.chunks)
            return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), sums)
