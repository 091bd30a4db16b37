"""States of chains as plain arrays, to be written down, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.runtime.checkpoints import Arrays

__all__ = ["as_arrays", "from_arrays"]


def as_arrays(parts: Sequence[Any]) -> Arrays:
    """Leaves of states with a leading chain axis, those of all parts together.

    Examples
    --------
    >>> found = as_arrays([{"a": jnp.zeros((1, 2))}, {"a": jnp.ones((2, 2))}])
    >>> found["leaf-0"].shape
    (3, 2)
    """
    leaves = zip(*map(jax.tree.leaves, parts), strict=True)
    return {
        f"leaf-{i}": np.concatenate([np.asarray(leaf) for leaf in each])
        for i, each in enumerate(leaves)
    }


def from_arrays(written: Arrays, like: Any) -> Any:
    """A state of the structure of another, from what `as_arrays` gave."""
    leaves, structure = jax.tree.flatten(like)
    arrays = [jnp.asarray(written[f"leaf-{i}"]) for i in range(len(leaves))]
    return jax.tree.unflatten(structure, arrays)
