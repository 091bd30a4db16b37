"""Subset convolutions ``h(S) = sum_{T subset of S} f(T) g(S - T)`` over all subsets of n items.

There are three semirings: sums of products; maxima of sums, for the best partition; and sums of
products in logs relative to those maxima, which are safe for any range of scores. All need 3^n
terms. The fast ranked Moebius transform is not used, since it subtracts and cluster weights span
hundreds of orders of magnitude.

*Sums of products* are matrix products. The index is split into high bits and the 7 lowest. For a
fixed high part ``A`` of ``T`` the high parts of ``S - T`` run over the subsets of the complement
of ``A``, and the low parts are combined by one 128 x 128 matrix built from ``f(A, .)``.

*The other two* halve on the leading bit, ``h_0 = f_0 * g_0`` and ``h_1 = f_0 * g_1 + f_1 * g_0``,
with copies, so that the last three bits need 27 operations on long contiguous vectors.

Work is divided between threads by the leading bits of ``S``: each writes its own part of the
result. BLAS is limited to one thread, since its own threads stall on shared machines.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from threading import Event, Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bayes_lcs.inference.exact.subset_masks import popcounts, subsets_of
from bayes_lcs.runtime.checkpoints import Arrays
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import Tick

__all__ = ["ConvolutionCheckpoint", "convolve", "convolve_max", "convolve_relative"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOW_BITS = 7
CHUNK_BITS = 12
LEAF_BITS = 3
THREAD_BITS = 3
LONG_SIZE = 1 << 22
SAVE_SECONDS = 0.5


class _Convolve(Protocol):
    """Convolution of two contiguous parts.

    Both are arrays over the same ``2**n`` subsets; ``target`` is the slice of the whole result to
    which it belongs, for semirings that use other values there.
    """

    def __call__(self, f: FloatArray, g: FloatArray, target: slice, /) -> FloatArray: ...


def _ignore(_arrays: Callable[[], Arrays]) -> None:
    """Save nothing."""


@dataclass(frozen=True)
class ConvolutionCheckpoint:
    """Saves and resumes a long convolution.

    Attributes
    ----------
    state
        Saved arrays from which to resume, or None.
    save
        Called every half a second in the thread of the caller, with a function that returns the
        arrays to save.
    """

    state: Arrays | None = None
    save: Callable[[Callable[[], Arrays]], None] = _ignore


def _num_leading_bits(size: int) -> int:
    """Return the number of leading bits that divide the work into tasks of about a second."""
    if size < 1 << (CHUNK_BITS + THREAD_BITS):
        return 0
    return THREAD_BITS + (size >= LONG_SIZE)


def _convolve_in_threads(
    f: FloatArray,
    g: FloatArray,
    out: FloatArray,
    join: np.ufunc,
    convolve_parts: _Convolve,
    tick: Tick | None,
    checkpoint: ConvolutionCheckpoint,
) -> None:
    """Join the convolutions of all pairs of leading bits, one task per leading part of ``S``."""
    size = f.size
    bits = _num_leading_bits(size)
    width = size >> bits
    terms = 3 ** (width.bit_length() - 1)
    done = np.zeros(1 << bits, dtype=np.int64)
    if checkpoint.state is not None:
        out[...], done[...] = checkpoint.state["out"], checkpoint.state["done"]
    writing, stopped = Lock(), Event()

    def task(target: int) -> None:
        here = slice(target * width, (target + 1) * width)
        for number, part in enumerate(subsets_of(target)):
            if number >= done[target]:
                if stopped.is_set():
                    return
                rest = target ^ int(part)
                found = convolve_parts(
                    f[part * width : (part + 1) * width],
                    g[..., rest * width : (rest + 1) * width],
                    here,
                )
                with writing:
                    join(out[..., here], found, out=out[..., here])
                    done[target] += 1
            if tick is not None:
                tick(terms)

    def so_far() -> Arrays:
        with writing:
            return {"out": out.copy(), "done": done.copy()}

    if size < 1 << CHUNK_BITS:
        task(0)
        return
    with threadpool_limits(limits=1, user_api="blas"):
        pool = ThreadPoolExecutor(num_cores())
        try:
            # Largest tasks first, so that the last one to finish is small.
            order = np.argsort(-popcounts(bits), kind="stable").tolist()
            under_way = {pool.submit(task, target) for target in order}
            while under_way:
                ended, under_way = wait(under_way, SAVE_SECONDS, return_when=FIRST_COMPLETED)
                for each in ended:
                    each.result()
                checkpoint.save(so_far)
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)


NO_CHECKPOINT = ConvolutionCheckpoint()


@lru_cache(maxsize=16)
def _difference_index(low: int) -> IntArray:
    """Return ``index[r, s] = s - r`` if ``r`` is a subset of ``s``, else ``low`` (a zero pad)."""
    r, s = np.arange(low)[:, None], np.arange(low)[None, :]
    return np.where((r & s) == r, s ^ r, low)


@lru_cache(maxsize=16)
def _disjoint_parts(high: int) -> list[IntArray]:
    """Return for each high part all high parts that share no bit with it."""
    return [subsets_of((high - 1) ^ part) for part in range(high)]


def _products(f: FloatArray, g: FloatArray, _target: slice) -> FloatArray:
    low = min(1 << LOW_BITS, f.size)
    high = f.size // low
    index = _difference_index(low)
    padded = np.zeros((high, low + 1))
    padded[:, :low] = f.reshape(high, low)
    # High index first, so that the rows gathered for one product are contiguous.
    rest = np.ascontiguousarray(g.reshape(-1, high, low).swapaxes(0, 1))
    out = np.zeros_like(rest)
    matrix = np.empty((low, low))
    for part, others in enumerate(_disjoint_parts(high)):
        # matrix[r, s] = f(part, s - r), so that one product convolves the low bits of all others.
        np.take(padded[part], index, out=matrix, mode="clip")
        rows = rest[others]
        out[part | others] += (rows.reshape(-1, low) @ matrix).reshape(rows.shape)
    return out.swapaxes(0, 1).reshape(g.shape)


def convolve(
    f: FloatArray,
    g: FloatArray,
    tick: Tick | None = None,
    checkpoint: ConvolutionCheckpoint = NO_CHECKPOINT,
) -> FloatArray:
    """Compute the sum-product subset convolution.

    Parameters
    ----------
    f : (2**n,)
        Non-negative weights of the part ``T``.
    g : (..., 2**n)
        Non-negative values of the rest; leading axes are batched.
    tick
        Called often, from several threads, with the number of new terms; they sum to ``3**n``.
    checkpoint
        Saves the state at intervals, and holds the state from which to resume.

    Examples
    --------
    >>> convolve(np.array([1.0, 2.0]), np.array([10.0, 100.0])).tolist()
    [10.0, 120.0]
    """
    out = np.zeros(g.shape)
    _convolve_in_threads(f, g, out, np.add, _products, tick, checkpoint)
    return out


def convolve_max(
    f: FloatArray,
    g: FloatArray,
    tick: Tick | None = None,
    checkpoint: ConvolutionCheckpoint = NO_CHECKPOINT,
) -> FloatArray:
    """Compute the max-plus subset convolution ``h(S) = max_T f(T) + g(S - T)``.

    Examples
    --------
    >>> convolve_max(np.array([1.0, 5.0]), np.array([0.0, 3.0])).tolist()
    [1.0, 5.0]
    """

    def maxima(f: FloatArray, g: FloatArray, _target: slice) -> FloatArray:
        into = np.full(f.size, -np.inf)
        _Halving(f.size, join=np.maximum).accumulate(f, g, into, None)
        return into

    out = np.full(f.size, -np.inf)
    _convolve_in_threads(f, g, out, np.maximum, maxima, tick, checkpoint)
    return out


def convolve_relative(
    f: FloatArray,
    g: FloatArray,
    best: FloatArray,
    tick: Tick | None = None,
    checkpoint: ConvolutionCheckpoint = NO_CHECKPOINT,
) -> FloatArray:
    """Compute ``sum_T exp(f(T) + g(S - T) - best(S))``, with ``f`` and ``g`` in logs.

    With ``best`` from :func:`convolve_max` each result lies between one and the number of
    partitions, for any range of the scores. It is slower than :func:`convolve`, with an
    exponential for each of the 3^n terms.
    """

    def sums(f: FloatArray, g: FloatArray, target: slice) -> FloatArray:
        into = np.zeros(f.size)
        _Halving(f.size, join=np.add).accumulate(f, g, into, best[target])
        return into

    out = np.zeros(f.size)
    _convolve_in_threads(f, g, out, np.add, sums, tick, checkpoint)
    return out


class _Halving:
    """Convolution by halving on the leading bit, in buffers that are allocated once.

    Down to ``2**CHUNK_BITS`` the halves are slices. Below, level ``j`` holds the ``3**j`` pairs
    of parts as columns of ``(2**(k - j), 3**j)`` arrays, until ``LEAF_BITS`` remain.
    """

    def __init__(self, size: int, join: np.ufunc) -> None:
        self.join = join
        chunk = min(size, 1 << CHUNK_BITS)
        depth = max(chunk.bit_length() - 1 - LEAF_BITS, 0)
        shapes = [(chunk >> level, 3**level) for level in range(depth + 1)]
        self.f, self.g, self.best, self.out = ([np.empty(s) for s in shapes] for _ in range(4))
        self.term = np.empty(shapes[-1][1])

    def accumulate(
        self, f: FloatArray, g: FloatArray, into: FloatArray, best: FloatArray | None
    ) -> None:
        """Add or maximize the convolution of ``f`` and ``g`` into ``into``, as ``join`` does."""
        if f.size == len(self.f[0]):
            self.join(into, self._chunk(f, g, best), out=into)
            return
        half = f.size // 2
        low, high = slice(0, half), slice(half, None)
        for of_f, of_g, of_out in ((low, low, low), (low, high, high), (high, low, high)):
            reference = None if best is None else best[of_out]
            self.accumulate(f[of_f], g[of_g], into[of_out], reference)

    def _chunk(self, f: FloatArray, g: FloatArray, best: FloatArray | None) -> FloatArray:
        self.f[0][:, 0], self.g[0][:, 0] = f, g
        _copy_halves(self.f, (0, 0, 1))
        _copy_halves(self.g, (0, 1, 0))
        if best is not None:
            self.best[0][:, 0] = best
            _copy_halves(self.best, (0, 1, 1))
        self._leaf(relative=best is not None)
        for level in range(len(self.out) - 1, 0, -1):
            three, above = self.out[level], self.out[level - 1]
            half, width = three.shape[0], above.shape[1]
            above[:half] = three[:, :width]
            self.join(three[:, width : 2 * width], three[:, 2 * width :], out=above[half:])
        return self.out[0][:, 0]

    def _leaf(self, relative: bool) -> None:
        f, g, best, out = self.f[-1], self.g[-1], self.best[-1], self.out[-1]
        for target in range(len(f)):
            for part in range(target + 1):
                if part & target != part:
                    continue
                term = self.term if part else out[target]
                np.add(f[part], g[target ^ part], out=term)
                if relative:
                    np.subtract(term, best[target], out=term)
                    np.exp(term, out=term)
                if part:
                    self.join(out[target], term, out=out[target])


def _copy_halves(levels: list[FloatArray], halves: tuple[int, int, int]) -> None:
    """Copy the halves of each level as neighbouring columns into the next."""
    for above, below in pairwise(levels):
        half, width = len(below), above.shape[1]
        for position, which in enumerate(halves):
            source = above[which * half : (which + 1) * half]
            below[:, position * width : (position + 1) * width] = source
