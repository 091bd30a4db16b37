"""Beyond the paper: ten classifiers of scikit-learn inside, on eight data sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from bayes_lcs.evaluation.cluster_accuracy import accuracy_correlation
from experiments.benchmarks.tables import Table
from experiments.generalized_clustering.accuracies import (
    ASSIGNMENTS,
    load,
    with_labels,
    without_labels,
)
from experiments.generalized_clustering.data_sets import MORE, PAPER
from experiments.generalized_clustering.pictures import scatter
from experiments.generalized_clustering.setting import Setting
from experiments.papers.outcome import Outcome

CLASSIFIERS: dict[str, Any] = {
    "nearest centroid": NearestCentroid(),
    "Gaussian naive Bayes": GaussianNB(var_smoothing=1e-3),
    "linear discriminants": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
    "quadratic discriminants": QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.3),
    "logistic regression": LogisticRegression(),
    "ridge": RidgeClassifier(),
    "perceptron": Perceptron(random_state=0),
    "15 neighbours": KNeighborsClassifier(15),
    "tree of depth 3": DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": RandomForestClassifier(20, min_samples_leaf=5, random_state=0),
}
MOST_ITERATIONS = 30
"""Forests and neighbours seldom come to an end, and what they find does not change much."""
SETS = tuple(name for name in (*PAPER, *MORE) if name != "glass")


def run(setting: Setting) -> Outcome:
    setting = replace(setting, name="any_classifier")
    names = SETS[:2] if setting.smoke else SETS
    chosen = dict(list(CLASSIFIERS.items())[:3]) if setting.smoke else CLASSIFIERS
    found = []
    for name in names:
        data = load(name, setting)
        for title, classifier in chosen.items():
            row: dict[str, Any] = {"data": name, "learner": title}
            row["supervised"] = with_labels(_on_frames(classifier), data, setting)
            for assignment in ASSIGNMENTS:
                row[assignment] = without_labels(
                    classifier, assignment, data, setting, MOST_ITERATIONS
                )
            found.append(row)
    frame = pd.DataFrame(found)
    means = frame.groupby("learner", sort=False)[["supervised", *ASSIGNMENTS]].mean()
    rows: list[tuple[Any, ...]] = [
        (title, *(f"{value:.1f}" for value in own)) for title, own in means.iterrows()
    ]
    notes = []
    for assignment in ASSIGNMENTS:
        seen = accuracy_correlation(frame["supervised"], frame[assignment])
        notes.append(
            f"{assignment}: accuracy with labels explains {seen.explained:.0%} of the variance "
            f"over {len(frame)} cases (p = {seen.p_value:.2g})."
        )
        centred = frame.groupby("data")[["supervised", assignment]].transform(
            lambda c: c - c.mean()
        )
        within = accuracy_correlation(centred["supervised"], centred[assignment])
        notes.append(
            f"{assignment}, within data sets: r = {within.r:.2f}, {within.explained:.0%} "
            f"(p = {within.p_value:.2g})."
        )
    title = f"Mean accuracy over {len(names)} data sets, per cent ({setting.about})"
    table = Table("any_classifier", title, ("inside", "with labels", *ASSIGNMENTS), rows, notes)
    return Outcome([table], frame, {"": scatter(dict.fromkeys(ASSIGNMENTS, frame), "strict")}, {})


def _on_frames(classifier: Any) -> Any:
    """Names as columns of zeros and ones, as the clusterer gives them."""
    nominal = make_column_selector(dtype_include=[object, "string", "category"])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer((encoder, nominal), remainder="passthrough"), classifier
    )
