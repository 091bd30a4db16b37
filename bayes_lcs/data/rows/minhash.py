"""Sets as points whose distances are those of Jaccard.

A hash function orders all items at random; two sets have the same first item with a probability
that is their Jaccard similarity, the size of their intersection over that of their union (Broder
1997). One random bit of the first item is kept (Li and König 2010): bits differ with half the
probability, so that over ``m`` hash functions the points of ``±1 / sqrt(2 m)`` have squared
distances of which the mean is the Jaccard distance. Whatever clusters points by squared distances
then clusters sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_array, check_random_state

__all__ = ["min_hash"]


def min_hash(
    X: Any, num_hashes: int = 128, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.float32]:
    """Points for sets, with squared distances that estimate Jaccard distances without bias.

    Parameters
    ----------
    X : sparse matrix or array-like of shape (n_samples, n_items)
        What is not zero is in the set. Two empty sets are equal.
    num_hashes
        Columns of the result; the standard error of a distance is at most ``num_hashes ** -0.5``.
    random_state
        Seed. Sets hashed with the same seed and the same items can be compared.

    Returns
    -------
    ndarray of shape (n_samples, num_hashes)
        Points.

    Examples
    --------
    >>> import numpy as np
    >>> points = min_hash(np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]), random_state=0)
    >>> float(((points[0] - points[1]) ** 2).sum())
    0.0
    >>> bool(((points[0] - points[2]) ** 2).sum() > 0.7)
    True
    """
    if num_hashes < 1:
        raise ValueError(f"num_hashes must be at least 1, got {num_hashes}")
    sets = csr_array(check_array(X, accept_sparse="csr", dtype=None))
    sets.eliminate_zeros()
    rng = check_random_state(random_state)
    filled = np.flatnonzero(np.diff(sets.indptr))
    starts = sets.indptr[:-1][filled]
    bits = np.zeros((sets.shape[0], num_hashes), bool)
    for j in range(num_hashes):
        order = rng.randint(0, 2**62, size=sets.shape[1], dtype=np.int64)
        if len(filled):
            # The lowest bit says nothing about the order.
            bits[filled, j] = np.minimum.reduceat(order[sets.indices], starts) & 1
    size = np.float32(1.0 / np.sqrt(2.0 * num_hashes))
    return np.where(bits, size, -size)
