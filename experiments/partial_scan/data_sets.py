"""Rows to learn from and rows to be judged on, with what decisions bring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bayes_lcs.classification.partial_scan.payoff import build_benefits, expected_benefits
from experiments.partial_scan.files import FILES, Labelled
from experiments.partial_scan.setting import Setting

FloatArray = NDArray[np.float64]

MAILING = 0.68
"""Dollars that asking for a donation costs."""

LOOKING = 5.0
"""Dollars that looking into a transaction costs. With the 90 of the authors' related work nobody
would look: no fraud at hand is of more."""

TEST_ROWS = 5000
"""At most so many, at random: hundreds of models are asked about each."""

TRAINING_ROWS = {"census_income_kdd": 60_000}
RULES_ROWS = 10_000
"""The first rows only: of the widest data, and for the slowest learner."""


class Payments(NamedTuple):
    """What decisions bring: as it is foreseen, and as it turns out."""

    foreseen: dict[tuple[str, str], Any]
    true: dict[tuple[str, str], Any]
    only: tuple[str, ...] = ()


PAYMENTS = {
    "adult": Payments(*[{(">50K", ">50K"): 2.0, ("<=50K", "<=50K"): 1.0}] * 2),
    "kdd98": Payments(
        {("donor", "donor"): ("amount", -MAILING), ("other", "donor"): -MAILING},
        {("donor", "donor"): ("given", -MAILING), ("other", "donor"): -MAILING},
        ("amount",),
    ),
    "ucsd_fico2009": Payments(
        *[{("fraud", "fraud"): ("amount", -LOOKING), ("honest", "fraud"): -LOOKING}] * 2
    ),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """Training and test rows; ``benefit`` None asks for accuracy.

    Attributes
    ----------
    truth
        What each decision brings for each test row under each label, ``(n or 1, L, L)``.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    X_test: pd.DataFrame
    y_test: NDArray[Any]
    benefit: Any
    benefit_only: tuple[str, ...]
    truth: FloatArray

    @cached_property
    def classes(self) -> list[Any]:
        """All labels in order."""
        return np.unique(self.y).tolist()

    @property
    def test_features(self) -> pd.DataFrame:
        """Test rows as learners see them."""
        return self.X_test.drop(columns=list(self.benefit_only))

    def first(self, rows: int) -> Problem:
        """The same with fewer training rows."""
        return replace(self, X=self.X.iloc[:rows], y=self.y[:rows])

    def value(self, probabilities: FloatArray) -> float:
        """Per cent right, or dollars in all, of the best decisions under some probabilities."""
        foreseen = build_benefits(self.benefit, self.X_test, self.classes)
        decisions = expected_benefits(probabilities, foreseen).argmax(axis=1)
        rows = np.arange(len(self.y_test))
        codes = np.searchsorted(self.classes, self.y_test)
        truth = np.broadcast_to(self.truth, (len(rows), *self.truth.shape[1:]))
        brought = truth[rows, codes, decisions]
        return float(100.0 * brought.mean() if self.benefit is None else brought.sum())


@cache
def problem(setting: Setting, name: str, benefits: bool = False) -> Problem:
    """A data set, for accuracy or for benefits."""
    rows = _made(setting.seed, name) if setting.smoke else FILES[name]()
    rng = np.random.default_rng(setting.seed)
    is_test = rows.is_test
    if is_test is None:
        is_test = rng.permutation(len(rows.y)) < len(rows.y) // 5
    train = np.flatnonzero(~is_test)[: TRAINING_ROWS.get(name)]
    test = np.sort(rng.permutation(np.flatnonzero(is_test))[:TEST_ROWS])
    X, classes = rows.X, np.unique(rows.y).tolist()
    payments = PAYMENTS[name] if benefits else Payments({}, {})
    if "amount" in payments.only:
        X = X.assign(amount=_foreseen_amounts(rows, train))
    outcomes = X.iloc[test]
    if rows.given is not None:
        outcomes = outcomes.assign(given=rows.given[test])
    return Problem(
        X.iloc[train].reset_index(drop=True),
        rows.y[train],
        X.iloc[test].reset_index(drop=True),
        rows.y[test],
        payments.foreseen if benefits else None,
        payments.only,
        build_benefits(payments.true if benefits else None, outcomes, classes),
    )


def _foreseen_amounts(rows: Labelled, train: NDArray[np.int64]) -> FloatArray:
    """Linear regression of the donation on all columns, among the donors to learn from."""
    assert rows.given is not None
    donors = train[rows.given[train] > 0.0]
    found = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LinearRegression())
    found.fit(rows.X.iloc[donors], rows.given[donors])
    return np.maximum(found.predict(rows.X), 0.0)


def _made(seed: int, name: str) -> Labelled:
    """Rows in which two columns say something about the label."""
    rng = np.random.default_rng(seed)
    num, labels = 300, ("donor", "other") if name == "kdd98" else ("fraud", "honest")
    colour = rng.choice(["red", "green", "blue"], num)
    score = rng.normal(size=num)
    amount = np.round(20.0 + 10.0 * rng.exponential(size=num))
    is_first = score + (colour == "red") + 0.3 * rng.normal(size=num) > 1.0
    X = pd.DataFrame({"amount": amount, "colour": colour, "score": np.round(score, 1)})
    y = np.where(is_first, *labels)
    if name != "kdd98":
        return Labelled(X, y)
    return Labelled(X.drop(columns="amount"), y, given=np.where(is_first, amount, 0.0))
