"""Algorithms that must give the same on every executor: each a function from one to numbers.

To have another algorithm checked on every executor, write a function that takes an executor, or
None for the plain way, and returns a dictionary of arrays; and name it in `ALGORITHMS`.
"""

from __future__ import annotations

import numpy as np

import bayes_lcs as bl

SIZES = (3, 2, 4, 2, 3, 5)


def rows_of_clusters(num_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, num_rows)
    columns = [(z * (f + 1) + rng.integers(0, 2, num_rows)) % v for f, v in enumerate(SIZES)]
    X = np.column_stack(columns)
    X[rng.random(X.shape) < 0.02] = -1
    return X, rng.exponential(size=num_rows)


def _fit(executor, **settings):
    X, weights = rows_of_clusters()
    settings = {"max_iter": 15, "tol": 0.0, "precision": "double", "random_state": 3, **settings}
    clusterer = bl.MixtureClusterer(3, missing_values=-1, executor=executor, **settings)
    return clusterer.fit(X, sample_weight=weights)


def em(executor):
    """Two starts together, so that several requests travel at once."""
    found = _fit(executor, n_init=2, init="random")
    return {
        "weights": found.weights_,
        "cells": np.hstack(found.probabilities_),
        "trace": found.trace_,
        "other start": found.results_[0].parameters.cells,
    }


def accelerated_em(executor):
    found = _fit(executor, acceleration="squarem")
    return {"cells": np.hstack(found.probabilities_), "trace": found.trace_}


def number_of_components(executor):
    found = _fit(executor).set_params(n_components=[2, 3, 4], criterion="icl")
    found.fit(*rows_of_clusters()[:1])
    return {"scores": np.array(list(found.criterion_scores_.values()))}


ALGORITHMS = {
    "em": em,
    "accelerated EM": accelerated_em,
    "number of components": number_of_components,
}
