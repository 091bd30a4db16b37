"""The partition of a setting's groups that Clustered Naive Bayes finds, and how sure it is."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import bayes_lcs as bl
from bayes_lcs.inference.exact.posterior import ClusteredPosterior
from experiments.clustered_naive_bayes.posteriors import posterior
from experiments.clustered_naive_bayes.setting import NUM_GROUPS, Setting


@dataclass(frozen=True)
class FoundPartition:
    """A partition with its certainty.

    Attributes
    ----------
    partition : (U,)
        The most probable partition where the posterior is exact; of draws, the partition of least
        expected variation of information.
    probability
        Of the most probable partition: exact, or the share of the draws that equal it.
    expected_clusters
        Posterior mean of the number of clusters.
    coclustering : (U, U)
        Probability that each two groups are together.
    method
        How it was found.
    notes
        What the sampler warned of.
    """

    partition: NDArray[np.int64]
    probability: float
    expected_clusters: float
    coclustering: NDArray[np.float64]
    method: str
    notes: list[str] = field(default_factory=list)


def expected_clusters(found: ClusteredPosterior) -> float:
    """Posterior mean of the number of clusters: the probabilities of all blocks, added up."""
    return float(found.sums.block_probabilities.sum())


def find_partition(setting: Setting) -> FoundPartition:
    """Exactly up to 21 groups, by sampling beyond."""
    model = bl.ClusteredNaiveBayes()
    if setting.data.num_groups <= NUM_GROUPS:
        found = posterior(model, setting)
        assert isinstance(found, ClusteredPosterior)
        best = found.map_partition()
        return FoundPartition(
            best,
            float(np.exp(found.log_probability(best))),
            expected_clusters(found),
            found.coclustering(),
            "sum over all partitions",
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", bl.SamplingWarning)
        drawn = bl.sample(
            model,
            setting.data,
            draws=100 if setting.smoke else 1000,
            seed=setting.seed,
            progress=False,
        )
    z = drawn.partitions()
    _, times = np.unique(z, axis=0, return_counts=True)
    return FoundPartition(
        drawn.partition(),
        float(times.max() / len(z)),
        float((z.max(axis=1) + 1).mean()),
        np.asarray(drawn.coclustering()),
        f"{len(z)} draws",
        [str(warning.message) for warning in caught],
    )
