"""Fill arrays over all subsets of the groups, one group after the other.

Group ``n`` doubles the number of filled entries: those of the subsets whose last member it is come
from a convolution of the entries so far. The last step is two thirds of all work, so checkpoints
are saved within steps as well, and a run that was killed resumes there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.exact.subset_convolution import ConvolutionCheckpoint
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.progress import Tick, progress_bar

__all__ = ["Step", "fill_subsets"]

FloatArray = NDArray[np.float64]


Step = Callable[[slice, slice, Tick, ConvolutionCheckpoint], FloatArray | None]
"""Function that returns the entries ``(..., 2**n)`` of the subsets whose last member is new, or
None to give up. Its first arguments are the slices of the filled subsets and of the new ones."""


def fill_subsets(
    values: FloatArray,
    step: Step,
    *,
    description: str,
    key_parts: tuple[Any, ...],
    progress: bool | None,
) -> bool:
    """Fill ``values[..., 1:]``; return False if the step gave up.

    Parameters
    ----------
    values : (..., 2**U)
        Array whose entry of the empty set is given.
    step
        See :data:`Step`.
    description
        Text beside the progress bar.
    key_parts
        Values that determine the result, for :func:`bayes_lcs.runtime.checkpoints.fingerprint`.
    """
    num_groups = values.shape[-1].bit_length() - 1
    terms = [3**n for n in range(num_groups)]
    with (
        checkpointed_task("subsets", description, *key_parts) as kept,
        progress_bar(description, sum(terms), progress) as tick,
    ):
        num_filled, state = 0, None
        if kept.state is not None:
            known, num_filled = kept.state.pop("known"), int(kept.state.pop("num_filled"))
            values[..., : known.shape[-1]] = known
            state = kept.state or None
            tick(sum(terms[:num_filled]))
        for n in range(num_filled, num_groups):
            low, high = slice(0, 1 << n), slice(1 << n, 2 << n)
            so_far: Arrays = {"known": values[..., low], "num_filled": np.asarray(n)}
            save = partial(_save, kept, so_far)
            found, state = step(low, high, tick, ConvolutionCheckpoint(state, save)), None
            if found is None:
                return False
            values[..., high] = found
        kept.finish(lambda: {"known": values, "num_filled": np.asarray(num_groups)})
    return True


def _save(kept: CheckpointedTask, so_far: Arrays, within: Callable[[], Arrays]) -> None:
    kept.update(lambda: {**so_far, **within()})
