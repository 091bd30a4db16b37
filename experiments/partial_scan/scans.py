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
from bayes_lcs.classification.scan_learners import probabilities
from bayes_lcs.classification.scanning import DriftWarning
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


def whole(setting: Setting, data: Problem, learner: str, parts: int) -> Fitted:
    """One scan; with one part, a single model."""
    return fitted(setting, data, learner, parts, early_stop=False)


def said_of_test(data: Problem, one: Fitted) -> FloatArray:
    """What the models of all parts say of the test rows, ``(K, n, L)``.

    The model of a part depends on that part alone, so that an ensemble of fewer parts is a mean of
    some of these.
    """
    rows = data.test_features
    return np.stack([probabilities(model, rows, data.classes) for model in one.model.estimators_])


@cache
def records(setting: Setting, name: str, benefits: bool, learner: str) -> pd.DataFrame:
    """A row for each number of parts: values, shares that were read, and seconds.

    Values are per cent right, or dollars. The rule of the paper is run with the usual number of
    parts only.
    """
    data = problem(setting, name, benefits)
    if learner == "rules":
        data = data.first(RULES_ROWS)
    single = whole(setting, data, learner, 1)
    single_value = data.value(said_of_test(data, single)[0])
    rows = []
    for parts in setting.parts(learner):
        one = whole(setting, data, learner, parts)
        said = said_of_test(data, one)
        less = fitted(setting, data, learner, parts)
        row = {
            "data": name,
            "learner": learner,
            "parts": parts,
            "single": single_value,
            "one": data.value(said.mean(axis=0)),
            "less": data.value(said[less.model.parts_].mean(axis=0)),
            "share": 100.0 * less.model.scanned_fraction_,
            "single_seconds": single.seconds,
            "one_seconds": one.seconds,
            "less_seconds": less.seconds,
            "paper": np.nan,
            "paper_share": np.nan,
        }
        if parts == setting.usual_parts or learner == "rules":
            papers = fitted(setting, data, learner, parts, **PAPERS).model
            row["paper"] = data.value(said[papers.parts_].mean(axis=0))
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
