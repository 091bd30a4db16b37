"""EM for a mixture of products of multinomials in plain NumPy: one row, one cell at a time."""

from __future__ import annotations

import numpy as np

from bayes_lcs.core.model_protocols import MixtureParameters


def plain_em(rows, sizes, start, num_iter, prior=1.0, weights=None):
    """Parameters after ``num_iter`` steps, and the objective before each, without constants."""
    rows = np.asarray(rows)
    weights = np.ones(len(rows)) if weights is None else np.asarray(weights, float)
    pi = np.array(start.weights)
    first = np.concatenate([[0], np.cumsum(sizes)])
    theta = [np.array(start.cells[first[f] : first[f + 1]]) for f in range(len(sizes))]
    objectives = []
    for _ in range(num_iter):
        counts = [np.full(table.shape, float(prior)) for table in theta]
        totals = np.full(len(pi), float(prior))
        objective = prior * np.log(pi).sum() if prior else 0.0
        if prior:
            objective += prior * sum(np.log(table).sum() for table in theta)
        for row, weight in zip(rows, weights, strict=True):
            joint = pi.copy()
            for f, value in enumerate(row):
                if value >= 0:
                    joint = joint * theta[f][value]
            share = joint / joint.sum()
            objective += weight * np.log(joint.sum())
            totals += weight * share
            for f, value in enumerate(row):
                if value >= 0:
                    counts[f][value] += weight * share
        objectives.append(objective)
        pi = totals / totals.sum()
        theta = [table / table.sum(axis=0) for table in counts]
    return MixtureParameters(pi, np.vstack(theta)), np.array(objectives)
