"""Convert states of chains (pytrees) to named arrays and back, for checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.runtime.checkpoints import Arrays

__all__ = ["state_from_arrays", "state_to_arrays"]


def state_to_arrays(parts: Sequence[Any]) -> Arrays:
    """Return the leaves of states with a leading chain axis, concatenated along that axis.

    Examples
    --------
    >>> found = state_to_arrays([{"a": jnp.zeros((1, 2))}, {"a": jnp.ones((2, 2))}])
    >>> found["leaf-0"].shape
    (3, 2)
    """
    leaves = zip(*map(jax.tree.leaves, parts), strict=True)
    return {
        f"leaf-{i}": np.concatenate([np.asarray(leaf) for leaf in each])
        for i, each in enumerate(leaves)
    }


def state_from_arrays(written: Arrays, like: Any) -> Any:
    """Return the state that `state_to_arrays` converted; ``like`` gives its structure."""
    leaves, structure = jax.tree.flatten(like)
    arrays = [jnp.asarray(written[f"leaf-{i}"]) for i in range(len(leaves))]
    return jax.tree.unflatten(structure, arrays)
