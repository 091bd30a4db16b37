"""Algorithms that must give the same on every executor: each a function from one to numbers.

To have another algorithm checked on every executor, write a function that takes an executor, or
None for the plain way, and returns a dictionary of arrays; and name it in `ALGORITHMS`.
"""

from __future__ import annotations

import itertools
import warnings
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

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
    cut_short = {"max_iter": 15, "tol": 0.0, "acceleration": None}
    settings = {**cut_short, "precision": "double", "random_state": 3, **settings}
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
    found = _fit(executor, acceleration="squarem", max_iter=30)
    return {"cells": np.hstack(found.probabilities_), "trace": found.trace_}


def number_of_components(executor):
    found = _fit(executor).set_params(n_components=[2, 3, 4], criterion="icl")
    found.fit(*rows_of_clusters()[:1])
    return {"scores": np.array(list(found.criterion_scores_.values()))}


def em_out_of_core(executor):
    """The rows of a file, laid out on disk; the plain way has them in memory."""
    frame = pd.DataFrame(rows_of_clusters()[0], columns=list("abcdef"))
    frame = frame.mask(frame < 0).apply(lambda column: column.map("v{:.0f}".format, "ignore"))
    settings = {"max_iter": 15, "tol": 0.0, "precision": "double", "random_state": 3}
    clusterer = bl.MixtureClusterer(3, executor=executor, **settings)
    if executor is None:
        clusterer.fit(frame)
    else:
        with TemporaryDirectory() as folder:
            frame.to_parquet(f"{folder}/rows.parquet", index=False)
            clusterer.fit_file(f"{folder}/rows.parquet", memory=0)
    return {"cells": np.hstack(clusterer.probabilities_), "trace": clusterer.trace_}


def stepwise_em(executor):
    """Batches of unequal size and weight, each cut into blocks, after a fit to the first."""
    X, weights = rows_of_clusters()
    settings = {"max_iter": 5, "precision": "double", "random_state": 3, "decay": 0.7}
    known = [list(range(size)) for size in SIZES]
    found = bl.MixtureClusterer(
        3, missing_values=-1, categories=known, executor=executor, **settings
    )
    for start, stop in itertools.pairwise((0, 900, 1000, 2300, 3000)):
        found.partial_fit(X[start:stop], sample_weight=weights[start:stop])
    return {"weights": found.weights_, "cells": np.hstack(found.probabilities_)}


def learning_curve(executor):
    """Stages cut short, the last one finished; a clock that goes by itself."""
    X, _ = rows_of_clusters()
    settings = {"max_iter": 12, "tol": 1e-4, "precision": "double", "random_state": 3}
    clusterer = bl.MixtureClusterer(3, missing_values=-1, executor=executor, **settings)
    ticks = itertools.count()
    found = bl.learning_curve_sample(
        clusterer,
        X,
        alpha=0.0,
        initial_size=250,
        holdout_size=500,
        abbreviated="fixed-2",
        clock=lambda: float(next(ticks)),
    )
    return {
        "sizes": found.curve["size"].to_numpy(),
        "scores": found.curve["score"].to_numpy(),
        "baseline": np.array(found.baseline_score),
        "cells": np.hstack(found.model.probabilities_),
        "trace": found.model.trace_,
    }


def points():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2300, 3)) + 8 * rng.integers(0, 4, (2300, 1))
    return X, rng.exponential(size=len(X))


def tree_of_coresets(executor):
    """23 blocks: leaves without a neighbour on several levels."""
    X, weights = points()
    found = bl.coreset_tree(X, 4, 40, sample_weight=weights, block_rows=100, executor=executor)
    return {"points": found.points, "weights": found.weights}


def tree_of_coresets_of_files(executor):
    """Blocks, row groups and files that end at different rows; the plain way streams them."""
    X, _ = points()
    with TemporaryDirectory() as folder:
        for number, piece in enumerate(np.split(X, [130, 900, 2290])):
            frame = pd.DataFrame(piece, columns=list("abc"))
            frame.to_parquet(f"{folder}/{number}.parquet", index=False, row_group_size=70)
        found = bl.coreset_tree(folder, 4, 40, block_rows=100, executor=executor)
    return {"points": found.points, "weights": found.weights}


def chains(executor):
    """Chains that start apart and need different numbers of slots."""
    data, _ = bl.meeting_requests(seed=1, rows_per_person=6)
    model = bl.ClusteredNaiveBayes(concentration=bl.Gamma(1.0, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.SamplingWarning)
        found = bl.sample(model, data, draws=20, chains=3, seed=5, executor=executor)
    tree = found.datatree
    return {
        "z": tree["posterior"]["z"].to_numpy(),
        "concentration": tree["posterior"]["concentration"].to_numpy(),
        "log_joint": tree["sample_stats"]["log_joint"].to_numpy(),
    }


def annealing(executor):
    """Chains forwards and backwards, with missing labels and an unknown partition."""
    data, _ = bl.ClusteredNaiveBayes().simulate(bl.Schema(2, (2, 3)), [4, 3, 5, 4], seed=1)
    data = data.mask_labels([0, 5, 9])
    settings = {"precision": 1.0, "max_chains": 32, "seed": 2, "executor": executor}
    found = bl.compare([bl.ClusteredNaiveBayes()], data, **settings).evidences[0]
    assert found.method == "ais"
    return both_ends(found)


def annealing_from_a_guide(executor):
    data, _ = bl.ClusteredNaiveBayes().simulate(bl.Schema(2, (2, 3)), [4, 3, 5, 4], seed=1)
    settings = {"precision": 1.0, "max_chains": 16, "seed": 2, "executor": executor}
    return both_ends(bl.evidence(bl.ClusteredNaiveBayes(), data, "guided", **settings))


def both_ends(found):
    ends = (found.bracket.forward, found.bracket.reverse)
    return {
        "values": np.array([end.value for end in ends]),
        "errors": np.array([end.standard_error for end in ends]),
    }


def partial_scan(executor):
    X, _ = points()
    y = np.where(X[:, 0] > 12, "high", "low")
    classifier = bl.PartialScanClassifier(
        "tree", 12, early_stop=False, executor=executor, random_state=2
    )
    found = classifier.fit(X + np.random.default_rng(3).normal(size=X.shape), y)
    return {"probabilities": found.predict_proba(X), "parts": np.array(found.parts_)}


def partial_scan_of_a_file(executor):
    """Parts of whole row groups in a random order, until it is enough."""
    X, _ = points()
    frame = pd.DataFrame(X + np.random.default_rng(3).normal(size=X.shape), columns=list("abc"))
    frame["town"] = np.where(np.arange(len(X)) % 3, "Ulm", "Bonn")
    frame["kind"] = np.where(X[:, 0] > 12, "high", "low")
    classifier = bl.PartialScanClassifier(
        "tree", 20, tolerance=0.3, executor=executor, random_state=2
    )
    with TemporaryDirectory() as folder:
        frame.to_parquet(f"{folder}/rows.parquet", index=False, row_group_size=60)
        found = classifier.fit_file(f"{folder}/rows.parquet", label="kind", progress=False)
    rows = frame.drop(columns="kind")
    return {"probabilities": found.predict_proba(rows), "parts": np.array(found.parts_)}


def kmeans(executor):
    X, weights = points()
    found = bl.KMeans(5, n_init=2, tol=0.0, random_state=0, executor=executor)
    found.fit(X, sample_weight=weights)
    return {
        "centers": found.cluster_centers_,
        "costs": np.array([result.inertia for result in found.results_]),
        "iterations": np.array([result.n_iter for result in found.results_]),
        "labels": found.labels_,
    }


def kmeans_of_files(executor, **options):
    """Workers read the rows; the plain way has them in memory."""
    X, _ = points()
    found = bl.KMeans(4, init=X[:4], tol=0.0, executor=executor)
    if executor is None:
        found.fit(X)
    else:
        with TemporaryDirectory() as folder:
            for number, piece in enumerate(np.split(X, [130, 900, 2290])):
                frame = pd.DataFrame(piece, columns=list("abc"))
                frame.to_parquet(f"{folder}/{number}.parquet", index=False, row_group_size=70)
            found.fit_file(folder, **options)
    return {
        "centers": found.cluster_centers_,
        "labels": found.labels_,
        "cost": np.array([found.inertia_, found.n_iter_]),
    }


def kmeans_out_of_core(executor):
    """Points are kept on disk."""
    return kmeans_of_files(executor, memory=0)


def kmeans_with_an_empty_cluster(executor):
    """Two starts far from all points: their clusters are given the farthest points."""
    X, weights = points()
    start = np.concatenate([X[:3], [[900.0, 900.0, 900.0], [-900.0, -900.0, -900.0]]])
    found = bl.KMeans(5, init=start, executor=executor).fit(X, sample_weight=weights)
    return {"centers": found.cluster_centers_, "iterations": np.array([found.n_iter_])}


ALGORITHMS = {
    "em": em,
    "accelerated EM": accelerated_em,
    "EM out of core": em_out_of_core,
    "stepwise EM": stepwise_em,
    "learning curve": learning_curve,
    "chains": chains,
    "annealing": annealing,
    "annealing from a guide": annealing_from_a_guide,
    "partial scan": partial_scan,
    "partial scan of a file": partial_scan_of_a_file,
    "k-means": kmeans,
    "k-means of files": kmeans_of_files,
    "k-means out of core": kmeans_out_of_core,
    "k-means, empty cluster": kmeans_with_an_empty_cluster,
    "number of components": number_of_components,
    "tree of coresets": tree_of_coresets,
    "tree of coresets, files": tree_of_coresets_of_files,
}
