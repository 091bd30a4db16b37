"""Arrays over all subsets of the groups, filled by taking in one group after the other.

Group ``n`` doubles what is filled: entries of the subsets whose last member it is come from a
convolution of what is there already. The last step is two thirds of all work, so a recursion is
written down within its steps too, and a run that was killed goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.exact.subset_convolution import Course
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.progress import Tick, progress_bar

__all__ = ["Step", "fill_subsets"]

FloatArray = NDArray[np.float64]


Step = Callable[[slice, slice, Tick, Course], FloatArray | None]
"""From the slices of the subsets known and of those whose last member is new: the entries
``(..., 2**n)`` of the latter, or None to give up."""


def fill_subsets(
    values: FloatArray,
    step: Step,
    *,
    what: str,
    decisive: tuple[Any, ...],
    progress: bool | None,
) -> bool:
    """Fill ``values[..., 1:]``; whether the step never gave up.

    Parameters
    ----------
    values : (..., 2**U)
        The entry of the empty set is there.
    step
        See :data:`Step`.
    what
        In words, beside the bar.
    decisive
        What decides the result, as for :func:`bayes_lcs.runtime.checkpoints.fingerprint`.
    """
    num_groups = values.shape[-1].bit_length() - 1
    terms = [3**n for n in range(num_groups)]
    with (
        checkpointed_task("subsets", what, *decisive) as kept,
        progress_bar(what, sum(terms), progress) as tick,
    ):
        reached, begun = 0, None
        if kept.state is not None:
            known, reached = kept.state.pop("known"), int(kept.state.pop("reached"))
            values[..., : known.shape[-1]] = known
            begun = kept.state or None
            tick(sum(terms[:reached]))
        for n in range(reached, num_groups):
            low, high = slice(0, 1 << n), slice(1 << n, 2 << n)
            so_far: Arrays = {"known": values[..., low], "reached": np.asarray(n)}
            look = partial(_keep, kept, so_far)
            found, begun = step(low, high, tick, Course(begun, look)), None
            if found is None:
                return False
            values[..., high] = found
        kept.finish(lambda: {"known": values, "reached": np.asarray(num_groups)})
    return True


def _keep(kept: CheckpointedTask, so_far: Arrays, within: Callable[[], Arrays]) -> None:
    kept.update(lambda: {**so_far, **within()})
