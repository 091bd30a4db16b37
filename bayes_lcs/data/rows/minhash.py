"""MinHash: represent sets as points whose squared distances estimate Jaccard distances.

A hash function orders all items at random; the probability that two sets have the same first item
is their Jaccard similarity, the size of their intersection over that of their union (Broder 1997).
Only one random bit of the first item is used (b-bit MinHash, Li and König 2010): bits differ with
half the probability, so that over ``m`` hash functions the expected squared distance of points of
``±1 / sqrt(2 m)`` is the Jaccard distance. Methods that cluster points by squared distances can
thus cluster sets.
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
    """Return points whose squared distances are unbiased estimates of Jaccard distances.

    Parameters
    ----------
    X : sparse matrix or array-like of shape (n_samples, n_items)
        Rows are sets; non-zero entries are their items. Two empty sets are equal.
    num_hashes
        Number of columns; the standard error of a distance is at most ``num_hashes ** -0.5``.
    random_state
        Seed. Points are comparable if seed and items are the same.

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
            # The lowest bit is independent of the order.
            bits[filled, j] = np.minimum.reduceat(order[sets.indices], starts) & 1
    size = np.float32(1.0 / np.sqrt(2.0 * num_hashes))
    return np.where(bits, size, -size)
