"""The E-step of EM over rows in a compressed layout.

The rows come as a `RowLayout`: a row is a list of slots. Its log probability is the sum of the
tables of its slots (gathers), and its responsibilities are added to the counts of its slots
(scatter-adds). The lengths of the loops over slots and blocks are data, not part of the program, so
that layouts of similar size share a compiled program. Responsibilities (Meek, Thiesson and
Heckerman 2002, eq. 1) are summed into expected counts block by block, and never stored.

*Precision.* In ``"double"`` everything is float64. In ``"mixed"`` log probabilities and
responsibilities are float32; sums are float32 within a chunk of rows and float64 beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.inference.em.row_layout import MIN_CHUNK_SLOTS, Chunk, RowLayout
from bayes_lcs.runtime.executors.base import merge_sums
from bayes_lcs.runtime.interrupts import run_interruptibly
from bayes_lcs.runtime.memory import num_cores

__all__ = ["LocalEStep", "Precision", "chunk_arrays", "chunk_sums", "zero_sums"]

FloatArray = NDArray[np.float64]
Precision = Literal["mixed", "double"]

LOG_OF_ZERO = -690.0
"""Substitute for the log of probability zero during fits, so that differences stay finite."""

LOG_OF_NO_COMPONENT = -1e30
"""Log weight of a padding component."""

VECTOR_BYTES = 32
"""Components are padded to whole vectors: XLA's loops over 50 take twice as long as over 56."""

UNROLL = MIN_CHUNK_SLOTS
"""Rows of slots per iteration of the unrolled loop."""


@partial(jax.jit, static_argnames=("num_slots", "dtype"))
def _tables(
    logs: jax.Array,
    pattern: jax.Array,
    cell: jax.Array,
    sign: jax.Array,
    num_slots: int,
    dtype: jnp.dtype,
) -> jax.Array:
    """Return tables of patterns ``(T, K)`` from logs of cells, whose last row is zero."""
    added = (logs[cell] * sign[:, None]).astype(dtype)
    return jnp.zeros((num_slots, logs.shape[1]), dtype).at[pattern].add(added)


@partial(jax.jit, static_argnames="num_cells")
def _cell_counts(
    counts: jax.Array, pattern: jax.Array, cell: jax.Array, sign: jax.Array, num_cells: int
) -> jax.Array:
    """Return counts of cells ``(C + 1, K)`` from those of patterns; the last row is padding."""
    shape = (num_cells + 1, counts.shape[1])
    return jnp.zeros(shape, counts.dtype).at[cell].add(counts[pattern] * sign[:, None])


def _log_joint(
    tables: jax.Array, base: jax.Array, slots: jax.Array, start: jax.Array, stop: jax.Array
) -> jax.Array:
    """Return ``log p(x, z)`` of the rows of a block, ``(B, K)``."""
    shape = (slots.shape[1], tables.shape[1])

    def add(_: int, first: jax.Array, count: int, total: jax.Array) -> jax.Array:
        rows = jax.lax.dynamic_slice_in_dim(slots, first, count).astype(jnp.int32)
        for row in rows:
            total = total + tables.at[row].get(mode="promise_in_bounds")
        return total

    return _loop_over_slots(add, start, stop, jnp.broadcast_to(base, shape))


def _loop_over_slots(
    step: Callable, start: jax.Array, stop: jax.Array, carry: jax.Array
) -> jax.Array:
    """Loop over rows of slots, ``UNROLL`` at a time, then the rest one by one."""
    many = (stop - start) // UNROLL

    def several(i: jax.Array, carry: jax.Array) -> jax.Array:
        return step(i, start + i * UNROLL, UNROLL, carry)

    def single(i: jax.Array, carry: jax.Array) -> jax.Array:
        return step(i, i, 1, carry)

    carry = jax.lax.fori_loop(0, many, several, carry)
    return jax.lax.fori_loop(start + many * UNROLL, stop, single, carry)


class _Sums(NamedTuple):
    """Expected counts of patterns ``(T, K)`` and components ``(K,)``, and the log-likelihood."""

    patterns: jax.Array
    components: jax.Array
    log_likelihood: jax.Array


@partial(jax.jit, static_argnums=(0, 1))
def zero_sums(num_slots: int, num_components: int) -> _Sums:
    """Return sums over no rows."""
    return _Sums(jnp.zeros((num_slots, num_components)), jnp.zeros(num_components), jnp.zeros(()))


def chunk_sums(
    sums: _Sums,
    tables: jax.Array,
    base: jax.Array,
    slots: jax.Array,
    starts: jax.Array,
    weights: jax.Array,
    num_blocks: jax.Array,
) -> _Sums:
    """Add the statistics of a chunk to sums in float64."""
    dtype = tables.dtype

    def block(b: jax.Array, carry: tuple) -> tuple:
        patterns, components, log_likelihood = carry
        joint = _log_joint(tables, base, slots, starts[b], starts[b + 1])
        weight = jax.lax.dynamic_index_in_dim(weights, b, keepdims=False)
        # Log-sum-exp: the largest term is exp(0), so that nothing overflows.
        top = joint.max(axis=1, keepdims=True)
        shares = jnp.exp(joint - top)
        # A product with ones takes a third of the time of XLA's sum.
        total = shares @ jnp.ones(shares.shape[1], dtype)
        scale = weight.astype(dtype) / total
        share = shares * scale[:, None]  # responsibilities times the weight of the row
        row_log = (top[:, 0] + jnp.log(total)).astype(jnp.float64)
        log_likelihood = log_likelihood + weight @ row_log

        def add(_: int, first: jax.Array, count: int, patterns: jax.Array) -> jax.Array:
            rows = jax.lax.dynamic_slice_in_dim(slots, first, count).astype(jnp.int32)
            for row in rows:
                patterns = patterns.at[row].add(share, mode="promise_in_bounds")
            return patterns

        patterns = _loop_over_slots(add, starts[b], starts[b + 1], patterns)
        return patterns, components + (scale @ shares).astype(jnp.float64), log_likelihood

    # Pattern counts of a chunk are in the precision of the tables, their total in float64.
    zeros = jnp.zeros_like(tables)
    result = jax.lax.fori_loop(0, num_blocks, block, (zeros, sums.components, sums.log_likelihood))
    return _Sums(sums.patterns + result[0].astype(jnp.float64), result[1], result[2])


_accumulate = jax.jit(chunk_sums, donate_argnums=0)


class LocalEStep:
    """E-step over a layout on all cores: each thread sums its chunks, and the sums are merged.

    Parameters
    ----------
    layout
        The rows.
    precision
        Precision of the sums.
    cores
        Number of threads; all cores by default.
    on_device
        Whether rows are transferred to JAX once for many passes, instead of at each pass.
    """

    def __init__(
        self,
        layout: RowLayout,
        precision: Precision = "double",
        cores: int | None = None,
        on_device: bool = True,
    ) -> None:
        self.layout = layout
        self.precision: Precision = precision
        self.dtype = np.dtype(np.float64 if precision == "double" else np.float32)
        self.cores = cores or num_cores()
        self.cancelled = False
        self.num_parts = min(self.cores, len(layout.chunks))
        # A single chunk is processed by the calling thread.
        self.pool = ThreadPoolExecutor(self.cores) if self.num_parts > 1 else None
        self.entries: tuple[Any, ...] = (layout.entry_pattern, layout.entry_cell, layout.entry_sign)
        if not on_device:
            self.chunks = [chunk_arrays(chunk) for chunk in layout.chunks]
            return
        with jax.enable_x64(True):
            self.chunks = self.put_chunks()
            self.entries = jax.tree.map(jnp.asarray, self.entries)

    def put_chunks(self) -> Any:
        """Transfer the rows to the device."""
        return [jax.tree.map(jnp.asarray, chunk_arrays(c)) for c in self.layout.chunks]

    def identity(self) -> list[Any]:
        """List everything that the statistics depend on besides parameters, as a cache key."""
        layout = self.layout
        entries = (layout.entry_pattern, layout.entry_cell, layout.entry_sign)
        return [self.precision, layout.chunks, *entries, layout.common_cells]

    def tables(self, parameters: MixtureParameters) -> tuple[jax.Array, NDArray]:
        """Return tables of patterns and the base term of all rows, with padded components."""
        num_cells, size = parameters.cells.shape
        logs = np.zeros((num_cells + 1, _whole_vectors(size, self.dtype.itemsize)))
        logs[:num_cells, :size] = np.maximum(_log(parameters.cells), LOG_OF_ZERO)
        base = np.full(logs.shape[1], LOG_OF_NO_COMPONENT)
        base[:size] = np.maximum(_log(parameters.weights), LOG_OF_ZERO)
        base = base + logs[self.layout.common_cells].sum(axis=0)
        tables = _tables(logs, *self.entries, self.layout.num_slots, self.dtype)
        return tables, base.astype(self.dtype)

    def part_statistics(self, tables: tuple[jax.Array, NDArray], part: int) -> _Sums:
        """Sum over every ``num_parts``-th chunk."""
        with jax.enable_x64(True):
            width = tables[0].shape[1]
            sums = zero_sums(self.layout.num_slots, width)
            for chunk in self.chunks[part :: self.num_parts]:
                if self.cancelled:
                    break
                sums = _accumulate(sums, *tables, *chunk)
            return jax.tree.map(lambda leaf: leaf.block_until_ready(), sums)

    def finish(self, parts: Sequence[_Sums], num_components: int) -> MixtureStatistics:
        """Return statistics of cells from the sums of all parts."""
        sums = parts[0]
        for part in parts[1:]:
            sums = merge_sums(sums, part)
        num_cells = self.layout.schema.num_cells
        counts = _cell_counts(sums.patterns, *self.entries, num_cells)
        cells = np.array(np.asarray(counts)[:num_cells, :num_components])
        components = np.array(np.asarray(sums.components)[:num_components])
        np.add.at(cells, self.layout.common_cells, components)
        # The count of a common value is a difference, which rounding may make negative.
        np.maximum(cells, 0.0, out=cells)
        return MixtureStatistics(components, cells, float(sums.log_likelihood))

    def statistics(self, requests: Sequence[MixtureParameters]) -> list[MixtureStatistics]:
        """Compute statistics at each of the requested parameters."""
        with jax.enable_x64(True):
            self.cancelled = False
            tables = [self.tables(parameters) for parameters in requests]
            sums = self._run_parts([(t, part) for t in tables for part in range(self.num_parts)])
            return [
                self.finish(sums[i * self.num_parts :][: self.num_parts], request.num_components)
                for i, request in enumerate(requests)
            ]

    def _run_parts(self, tasks: list[tuple[tuple[jax.Array, NDArray], int]]) -> list[_Sums]:
        if self.pool is None:
            return run_interruptibly(lambda: [self.part_statistics(*task) for task in tasks])
        futures = []
        try:
            for task in tasks:
                futures.append(self.pool.submit(self.part_statistics, *task))
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            self.cancelled = True  # threads stop after their current chunk
            raise


def chunk_arrays(chunk: Chunk) -> tuple[Any, ...]:
    """Return the arguments of the compiled program for a chunk."""
    return chunk.slots, chunk.starts, chunk.weights, np.int32(chunk.num_blocks)


def _whole_vectors(size: int, itemsize: int) -> int:
    """Round ``size`` up to whole vectors, unless it is at most half a vector."""
    lanes = VECTOR_BYTES // itemsize
    return size if 2 * size <= lanes else -(-size // lanes) * lanes


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(values)
