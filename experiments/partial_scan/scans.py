"""A single model, one scan and less than one scan of the same rows."""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import bayes_lcs as bl
from bayes_lcs.classification.partial_scan.base_learners import probabilities
from bayes_lcs.classification.partial_scan.loop import DriftWarning
from experiments.partial_scan.data_sets import RULES_ROWS, Problem, problem
from experiments.partial_scan.setting import Setting

FloatArray = NDArray[np.float64]

PAPERS = {
    "bound": "hoeffding-finite",
    "rule": "every",
    "validation": "sequential",
    "shuffle": False,
}
"""The rule of the paper, which takes parts as they lie."""


class Fitted(NamedTuple):
    """A classifier, the seconds it took, and whether it found that the order matters."""

    model: bl.PartialScanClassifier
    seconds: float
    warned: bool


def fitted(setting: Setting, data: Problem, learner: str, parts: int, **options: Any) -> Fitted:
    model = bl.PartialScanClassifier(
        learner,
        parts,
        benefit=data.benefit,
        benefit_only=data.benefit_only,
        validation_size=setting.validation_size,
        random_state=setting.seed,
        **options,
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model.fit(data.X, data.y)
        seconds = time.perf_counter() - began
    return Fitted(model, seconds, any(issubclass(w.category, DriftWarning) for w in said))


class WholeScan(NamedTuple):
    """What the models of all parts say of the test rows, ``(K, n, L)``, and training seconds."""

    said: FloatArray
    seconds: float


def whole_scan(
    setting: Setting, data: Problem, learner: str, parts: int, **options: Any
) -> WholeScan:
    """One scan; with one part, a single model."""
    one = fitted(setting, data, learner, parts, early_stop=False, **options)
    return WholeScan(said_by(one.model, data), one.seconds)


def said_by(model: bl.PartialScanClassifier, data: Problem) -> FloatArray:
    """Return the probabilities of each model of an ensemble for the test rows, ``(k, n, L)``."""
    rows, classes = data.test_features, data.classes
    return np.stack([probabilities(own, rows, classes) for own in model.estimators_])


@cache
def known_scan(setting: Setting, name: str, learner: str, parts: int) -> WholeScan:
    """The same of a data set; benefits change what is decided, not what is learned."""
    return whole_scan(setting, rows_for(setting, name, False, learner), learner, parts)


def rows_for(setting: Setting, name: str, benefits: bool, learner: str) -> Problem:
    """The rows that a learner can do with in time."""
    data = problem(setting, name, benefits)
    return data.first(RULES_ROWS) if learner == "rules" else data


@cache
def records(setting: Setting, name: str, benefits: bool, learner: str) -> pd.DataFrame:
    """A row for each number of parts: values, shares that were read, and seconds.

    Values are per cent right, or dollars. The rule of the paper is run with the usual number of
    parts only.
    """
    data = rows_for(setting, name, benefits, learner)
    single = known_scan(setting, name, learner, 1)
    rows = []
    for parts in setting.parts(learner):
        one = known_scan(setting, name, learner, parts)
        less = fitted(setting, data, learner, parts)
        row = {
            "data": name,
            "learner": learner,
            "parts": parts,
            "single": data.value(single.said[0]),
            "one": data.value(one.said.mean(axis=0)),
            "less": data.value(said_by(less.model, data).mean(axis=0)),
            "share": 100.0 * less.model.scanned_fraction_,
            "single_seconds": single.seconds,
            "one_seconds": one.seconds,
            "less_seconds": less.seconds,
        }
        if parts == setting.usual_parts:
            papers = fitted(setting, data, learner, parts, **PAPERS).model
            row["usual_one"], row["usual_share"] = row["one"], row["share"]
            row["paper"] = data.value(said_by(papers, data).mean(axis=0))
            row["paper_share"] = 100.0 * papers.scanned_fraction_
        rows.append(row)
    return pd.DataFrame(rows)


def all_records(setting: Setting, benefits: bool) -> pd.DataFrame:
    """Of every data set and learner."""
    names = setting.with_benefits if benefits else setting.data_sets
    return pd.concat(
        [records(setting, name, benefits, k) for name in names for k in setting.learners],
        ignore_index=True,
    )
