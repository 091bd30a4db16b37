"""Running chains of a kernel: vmapped, in chunks of about half a second, with room to grow.

The driver returns to Python after every chunk, so that progress shows and Ctrl-C keeps what is
done. The key of a sweep depends on the chain and the number of the sweep only, and a state is a
function of its partition, so neither the length of the chunks nor the number of slots changes a
draw: a chunk that ran out of slots is thrown away and repeated with more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.progress import progress_bar

__all__ = ["AVERAGED", "ChainDraws", "ChainProblem", "run_chains"]

CHUNK_SECONDS = 0.5
BUFFER = 128

AVERAGED = "label_probabilities"
"""The part of the information on a sweep of which only the mean is kept: it can be large."""


class SweepDesign(Hashable, Protocol):
    """Everything that decides which program is compiled."""

    def kernel(self, data: Any) -> Callable[[jax.Array, Any], tuple[Any, Any]]:
        """The sweep over these data, as ``kernel(rng_key, state) -> (state, info)``."""


class ChainProblem(Protocol):
    """What is to be sampled, and how its state makes room; ``info`` is a NamedTuple."""

    @property
    def design(self) -> SweepDesign:
        """What decides the program."""

    @property
    def data(self) -> Any:
        """The arrays that it reads, a pytree."""

    def start(self, keys: jax.Array, rng: np.random.Generator) -> Any:
        """The first states of as many chains as there are keys, far apart."""

    def overflowed(self, state: Any) -> bool:
        """Whether a chain ran out of room, which voids the sweeps that led here."""

    def enlarged(self, state: Any) -> Any:
        """The state with more room."""

    def trimmed(self, state: Any) -> Any:
        """The state with less room where most of it is empty, else the state itself."""

    def status(self, info: Any) -> str:
        """The last draw of all chains in a few words."""


class ChainDraws(NamedTuple):
    """What the chains left.

    Attributes
    ----------
    info
        Arrays ``(chains, draws, ...)`` of what each kept sweep reported, by name.
    averages
        Mean over all sweeps after warm-up of the label probabilities, ``(chains, M, L)``.
    interrupted
        Whether Ctrl-C ended the run before all draws were made.
    sweeps_per_second
        Rate after compilation, all chains together.
    """

    info: dict[str, NDArray]
    averages: NDArray
    interrupted: bool
    sweeps_per_second: float


@partial(jax.jit, static_argnames="design")
def _run_chunk(
    design: SweepDesign,
    data: Any,
    keys: jax.Array,
    state: Any,
    start: jax.Array,
    num_sweeps: jax.Array,
    thin: jax.Array,
) -> tuple[Any, Any]:
    """``num_sweeps`` sweeps of all chains from number ``start``, keeping every ``thin``-th.

    The data are arguments, not constants of the program: tables of one shape share it.
    """
    kernel = design.kernel(data)

    def chunk(key: jax.Array, state: Any) -> tuple[Any, Any]:
        shapes = jax.eval_shape(kernel, key, state)[1]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((BUFFER, *leaf.shape), leaf.dtype), shapes)
        total = jnp.zeros_like(getattr(shapes, AVERAGED))
        buffer = buffer._replace(**{AVERAGED: total})

        def body(i: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            state, buffer = carry
            state, info = kernel(jax.random.fold_in(key, start + i), state)
            total = getattr(buffer, AVERAGED) + getattr(info, AVERAGED)
            nothing = {AVERAGED: None}
            rest = jax.tree.map(
                lambda all_, one: all_.at[i // thin].set(one),
                buffer._replace(**nothing),
                info._replace(**nothing),
            )
            return state, rest._replace(**{AVERAGED: total})

        return jax.lax.fori_loop(0, num_sweeps, body, (state, buffer))

    return jax.vmap(chunk)(keys, state)


def run_chains(
    problem: ChainProblem,
    *,
    draws: int,
    warmup: int,
    chains: int,
    thin: int,
    seed: int,
    progress: bool | None = None,
) -> ChainDraws:
    """Run ``chains`` chains and keep ``draws`` draws of each after ``warmup`` sweeps."""
    with jax.enable_x64(True):
        root = jax.random.key(seed)
        keys = jax.random.split(jax.random.fold_in(root, 0), chains)
        start_keys = jax.random.split(jax.random.fold_in(root, 1), chains)
        state = problem.start(start_keys, np.random.default_rng(seed))
        return _drive(problem, keys, state, draws, warmup, thin, progress)


def _drive(
    problem: ChainProblem,
    keys: jax.Array,
    state: Any,
    draws: int,
    warmup: int,
    thin: int,
    progress: bool | None,
) -> ChainDraws:
    chains = len(keys)
    kept: list[Any] = []
    done, total = 0, warmup + draws * thin
    seconds_per_sweep, timed, timed_sweeps = CHUNK_SECONDS, 0.0, 0
    interrupted, fresh = False, True
    with progress_bar("sampling", total, progress) as tick:
        try:
            while done < total:
                in_warmup = done < warmup
                spacing = 1 if in_warmup else thin
                most = min(warmup - done if in_warmup else total - done, BUFFER * spacing)
                size = int(np.clip(CHUNK_SECONDS / seconds_per_sweep, 1, most))
                size = most if in_warmup and size >= most else max(size // spacing, 1) * spacing
                began = time.perf_counter()
                numbers = (jnp.asarray(number) for number in (done, size, spacing))
                after, info = _run_chunk(problem.design, problem.data, keys, state, *numbers)
                overflowed = problem.overflowed(after)
                elapsed = time.perf_counter() - began
                if overflowed:
                    state, fresh = problem.enlarged(state), True
                    continue
                if not fresh:
                    seconds_per_sweep = elapsed / size
                    timed, timed_sweeps = timed + elapsed, timed_sweeps + size
                state, done = problem.trimmed(after), done + size
                fresh = state is not after
                info = _rows(info, size // spacing)
                if not in_warmup:
                    kept.append(info)
                rate = chains * timed_sweeps / timed if timed else float("nan")
                speed = f", {rate:,.0f} sweeps/s" if timed else ""
                tick(size, problem.status(info) + speed)
        except KeyboardInterrupt:
            if not kept:
                raise
            interrupted = True
    info = {
        name: np.concatenate([getattr(part, name) for part in kept], axis=1)
        for name in kept[0]._fields
        if name != AVERAGED
    }
    sweeps = info["log_joint"].shape[1] * thin
    averages = np.sum([getattr(part, AVERAGED) for part in kept], axis=0) / sweeps
    rate = chains * timed_sweeps / timed if timed else float("nan")
    return ChainDraws(info, averages, interrupted, rate)


def _rows(info: Any, rows: int) -> Any:
    """The part of a chunk's buffer that was filled, in NumPy."""
    arrays = {
        name: np.asarray(leaf if name == AVERAGED else leaf[:, :rows])
        for name, leaf in info._asdict().items()
    }
    return info._replace(**arrays)
