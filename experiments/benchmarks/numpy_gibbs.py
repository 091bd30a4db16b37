"""A peer: collapsed Gibbs sampling of partitions as one writes it in NumPy and SciPy.

Counts of all blocks in arrays, one call of ``scipy.special.gammaln`` a group for all blocks and
cells, ``log m`` of the blocks kept between updates, a Python loop over the groups. No tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

import bayes_lcs as bl


class NumpyGibbs:
    """Collapsed Gibbs for clustered naive Bayes with uniform priors and concentration 1."""

    def __init__(self, data: bl.GroupedTable, start: NDArray[np.int64], seed: int = 0) -> None:
        counts = data.counts()
        schema, num_groups = counts.schema, counts.num_groups
        cells = counts.features.reshape(num_groups, -1)
        totals = counts.feature_totals.reshape(num_groups, -1)
        # Cells and feature totals side by side, so that one call of gammaln serves both.
        self.vectors = np.concatenate([cells, totals], axis=1).astype(np.float64)
        sizes = np.repeat(np.asarray(schema.num_values, dtype=np.float64)[None], 2, axis=0)
        self.prior = np.concatenate([np.ones(cells.shape[1]), sizes.reshape(-1)])
        self.sign = np.concatenate([np.ones(cells.shape[1]), -np.ones(totals.shape[1])])
        self.log_empty = float(gammaln(self.prior) @ self.sign)
        self.rng = np.random.default_rng(seed)
        self.z = np.unique(start, return_inverse=True)[1].reshape(-1)
        self.num_blocks = int(self.z.max()) + 1
        # Room for every group alone would cost nothing here: only the first blocks are touched.
        self.sizes = np.zeros(num_groups + 1)
        self.blocks = np.zeros((num_groups + 1, self.prior.size))
        np.add.at(self.sizes, self.z, 1.0)
        np.add.at(self.blocks, self.z, self.vectors)
        self.blocks += self.prior
        self.log_marginals = gammaln(self.blocks) @ self.sign - self.log_empty

    def sweep(self) -> None:
        sizes, blocks, log_marginals = self.sizes, self.blocks, self.log_marginals
        uniforms = self.rng.random(len(self.z))
        for group, vector in enumerate(self.vectors):
            old = self.z[group]
            sizes[old] -= 1.0
            blocks[old] -= vector
            if sizes[old] == 0.0:
                last = self.num_blocks - 1
                if old != last:
                    self.z[self.z == last] = old
                    sizes[old], blocks[old] = sizes[last], blocks[last]
                    log_marginals[old] = log_marginals[last]
                sizes[last], blocks[last], log_marginals[last] = 0.0, self.prior, 0.0
                self.num_blocks = last
            else:
                log_marginals[old] = gammaln(blocks[old]) @ self.sign - self.log_empty
            choices = self.num_blocks + 1  # the last is empty: a new block
            joined = gammaln(blocks[:choices] + vector) @ self.sign - self.log_empty
            scores = joined - log_marginals[:choices]
            scores[:-1] += np.log(sizes[: choices - 1])
            weights = np.exp(scores - scores.max()).cumsum()
            new = int(weights.searchsorted(uniforms[group] * weights[-1], side="right"))
            self.z[group] = new
            sizes[new] += 1.0
            blocks[new] += vector
            log_marginals[new] = joined[new]
            self.num_blocks = max(self.num_blocks, new + 1)
