"""The E-step as one program over the devices of a JAX mesh.

All chunks of a layout have the same shape: they are stacked and divided evenly over the devices.
Each device sums its chunks (`jax.shard_map`), the sums are added across devices (`psum`), and every
device holds the total. Rows never move.

If several processes form the mesh (`jax.distributed`), each computes the same layout and transfers
to its own devices only their chunks. Each pass checks that all processes use the same layout and
parameters, because sums over different ones would be meaningless.
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
    LocalEStep,
    Precision,
    chunk_arrays,
    chunk_sums,
    zero_sums,
)
from bayes_lcs.inference.em.row_layout import RowLayout
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
    """Return sums over all chunks, replicated on every device."""
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
    # check_vma=False: the carry starts as replicated zeros and then varies over devices.
    return jax.shard_map(
        on_one_device, mesh=mesh, in_specs=specs, out_specs=everywhere, check_vma=False
    )(tables, base, chunks)


def _specs(mesh: Mesh) -> tuple[Spec, Spec]:
    """Return the partition specs of replicated arrays and of arrays split over the devices."""
    return Spec(), Spec(*mesh.axis_names)  # type: ignore[no-untyped-call]


class MeshEStep(LocalEStep):
    """E-step over a layout on all devices of a mesh with one axis."""

    def __init__(self, layout: RowLayout, precision: Precision, mesh: Mesh) -> None:
        self.mesh = mesh
        self.is_shared = spans_processes(mesh)
        super().__init__(layout, precision, cores=1)
        if self.is_shared:
            check_agreement(fingerprint(*self.identity()), "rows")

    def put_chunks(self) -> Any:
        """Transfer the chunks to the devices, padded with empty ones to equal numbers."""
        given = [chunk_arrays(chunk) for chunk in self.layout.chunks]
        last = self.layout.chunks[-1]
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
        """Compute statistics at each of the requested parameters."""

        def take() -> list[MixtureStatistics]:
            answers = []
            if self.is_shared:
                check_agreement(fingerprint(*requests), "parameters")
            with jax.enable_x64(True):
                for request in requests:
                    sums = self._sums(*self.tables(request))
                    here = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), sums)
                    answers.append(self.finish([here], request.num_components))
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
