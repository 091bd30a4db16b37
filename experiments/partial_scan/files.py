"""The data sets as they come in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.data.datasets import dataset_path

ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
)

CENSUS_CODES = (2, 3, 36, 38, 40)
"""Columns of numbers that are names: industry, occupation, own business, veteran, year."""
CENSUS_WEIGHT, CENSUS_LABEL = 24, 41


class Labelled(NamedTuple):
    """Rows and labels; which are for testing, if the data say so; what was donated."""

    X: pd.DataFrame
    y: NDArray[Any]
    is_test: NDArray[np.bool_] | None = None
    given: NDArray[np.float64] | None = None


def adult() -> Labelled:
    """Whether somebody earns more than 50,000 dollars."""
    options: dict[str, Any] = {
        "names": list(ADULT),
        "skipinitialspace": True,
        "keep_default_na": False,
    }
    train = pd.read_csv(dataset_path("adult", "adult.data"), **options)
    test = pd.read_csv(dataset_path("adult", "adult.test"), skiprows=1, **options)
    frame = pd.concat([train, test], ignore_index=True)
    labels = frame.pop("income").str.rstrip(".").to_numpy(object)
    return Labelled(frame, labels, np.arange(len(frame)) >= len(train))


def census() -> Labelled:
    """Whether somebody earns more than 50,000 dollars; the weights of rows are left out."""
    options: dict[str, Any] = {"skipinitialspace": True, "keep_default_na": False, "header": None}
    options |= {"dtype": dict.fromkeys(CENSUS_CODES, str)}
    files = ("census-income.data.gz", "census-income.test.gz")
    train, test = (pd.read_csv(dataset_path("census_income_kdd", f), **options) for f in files)
    frame = pd.concat([train, test], ignore_index=True).drop(columns=CENSUS_WEIGHT)
    labels = frame.pop(CENSUS_LABEL).to_numpy(object)
    is_test = np.arange(len(frame)) >= len(train)
    return Labelled(frame.rename(columns="x{}".format), labels, is_test)


def donations() -> Labelled:
    """Whether somebody answers a mailing; the file at hand has columns of names only."""
    path = dataset_path("kdd98", "cup98LRN_categorical.csv.gz")
    frame = pd.read_csv(path, keep_default_na=False, dtype=str)
    given = frame.pop("TARGET_D").astype(float).to_numpy(np.float64)
    labels = np.where(frame.pop("TARGET_B") == "1", "donor", "other").astype(object)
    return Labelled(frame, labels, given=given)


def frauds() -> Labelled:
    """Whether a transaction is a fraud."""
    frame = pd.read_csv(dataset_path("ucsd_fico2009"), keep_default_na=False)
    labels = np.where(frame.pop("target") == 1, "fraud", "honest").astype(object)
    return Labelled(frame.drop(columns="cv_fold"), labels)


FILES: dict[str, Callable[[], Labelled]] = {
    "adult": adult,
    "kdd98": donations,
    "ucsd_fico2009": frauds,
    "census_income_kdd": census,
}
