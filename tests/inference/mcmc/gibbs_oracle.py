"""Exact posterior over (partition, labeling) pairs by enumeration, and a goodness-of-fit test."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
from scipy.stats import chisquare

from bayes_lcs.data.grouped_table import GroupedTable
from tests.oracles import brute_force_posterior

State = tuple[tuple[int, ...], tuple[int, ...]]


def enumerate_posterior(
    table: GroupedTable, concentration: float = 1.0, feature_prior: float = 1.0
) -> dict[State, float]:
    """Probability of every partition and labeling of the rows without a label."""
    missing = np.flatnonzero(table.labels < 0)
    log_weights: dict[State, float] = {}
    for labeling in itertools.product(range(table.num_labels), repeat=len(missing)):
        labels = table.labels.copy()
        labels[missing] = labeling
        found = brute_force_posterior(
            table.with_labels(labels).counts(), concentration, 1.0, feature_prior
        )
        for partition, probability in found.probs.items():
            log_weights[partition, labeling] = found.log_evidence + math.log(probability)
    top = max(log_weights.values())
    total = math.fsum(math.exp(v - top) for v in log_weights.values())
    return {state: math.exp(v - top) / total for state, v in log_weights.items()}


def fit_p_value(draws: Iterable[State], exact: dict[State, float], least: float = 5.0) -> float:
    """Chi-square p-value of independent draws; rare states are pooled."""
    seen = Counter(draws)
    assert set(seen) <= set(exact), "a draw that has no probability"
    size = sum(seen.values())
    common = [state for state, p in exact.items() if p * size >= least]
    observed = [seen[state] for state in common]
    expected = [exact[state] * size for state in common]
    rare_observed, rare_expected = size - sum(observed), size - sum(expected)
    if rare_expected >= least:
        observed.append(rare_observed)
        expected.append(rare_expected)
    else:
        observed[-1] += rare_observed
        expected[-1] += rare_expected
    return float(chisquare(observed, expected).pvalue)
