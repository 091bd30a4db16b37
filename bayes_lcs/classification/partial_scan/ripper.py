"""Multi-class RIPPER classifier on top of the package wittgenstein (extra ``rules``).

Wittgenstein learns rules for one class against the rest. As in Cohen (1995), labels are processed
from the rarest to the most frequent: rules separate each label from all more frequent ones, and the
most frequent label is the default. Probabilities are computed label by label from the rules that a
row satisfies.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

__all__ = ["RuleClassifier"]


class RuleSet(NamedTuple):
    """Rules for one label against others: conditions, and counts of covered rows."""

    rules: list[tuple[list[tuple[str, str]], tuple[float, float]]]
    otherwise: tuple[float, float]

    def positive(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return the probability of the label, from the counts of all rules that cover a row."""
        counts = np.zeros((len(frame), 2))
        for conditions, own in self.rules:
            met = np.ones(len(frame), bool)
            for column, value in conditions:
                met &= (frame[column] == value).to_numpy()
            counts[met] += own
        counts[counts.sum(axis=1) == 0.0] = self.otherwise
        return np.asarray(counts[:, 1] / counts.sum(axis=1))

    def __str__(self) -> str:
        return " or ".join(
            " and ".join(f"{column} is {value}" for column, value in conditions)
            for conditions, _ in self.rules
        )


def _rule_set(learner: Any) -> RuleSet:
    """Convert a rule set of wittgenstein into plain numbers and text."""
    found = learner.ruleset_
    rules = [
        (
            [(str(condition.feature), str(condition.val)) for condition in rule.conds],
            _counts(rule.smoothed_class_freqs_),
        )
        for rule in found.rules
    ]
    return RuleSet(rules, _counts(found.smoothed_uncovered_class_freqs_))


def _counts(frequencies: Any) -> tuple[float, float]:
    others, label = (float(number) for number in frequencies)
    return others, label


class RuleClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Rule-based classifier learned by RIPPER.

    Parameters
    ----------
    k : int, default=2
        Rounds of optimisation.
    n_discretize_bins : int, default=10
        Quantile bins of numeric columns.
    random_state : int, default=0
        Seed of the split into growing and pruning rows.
    """

    def __init__(self, k: int = 2, n_discretize_bins: int = 10, random_state: int = 0) -> None:
        self.k = k
        self.n_discretize_bins = n_discretize_bins
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RuleClassifier:
        """Learn rules for all labels but the most frequent one."""
        try:
            from wittgenstein import RIPPER
        except ImportError:
            raise ImportError(
                "base='rules' requires the package wittgenstein: pip install 'bayes_lcs[rules]'"
            ) from None
        y = np.asarray(y)
        frame = self._bin_columns(X, reset=True)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.order_ = np.argsort(counts, kind="stable")
        self.rules_ = []
        rows = np.ones(len(y), bool)  # rows of labels without rules so far
        for place in self.order_[:-1]:
            learner = RIPPER(k=self.k, n_discretize_bins=None, random_state=self.random_state)
            positive = y[rows] == self.classes_[place]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learner.fit(frame[rows], y=positive.astype(int), pos_class=1)
            self.rules_.append(_rule_set(learner))
            rows &= y != self.classes_[place]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each label, from the rules that cover a row."""
        check_is_fitted(self)
        frame = self._bin_columns(X, reset=False)
        found = np.zeros((len(frame), len(self.classes_)))
        left = np.ones(len(frame))  # probability of all labels that follow
        for place, rules in zip(self.order_, self.rules_, strict=False):
            own = rules.positive(frame)
            found[:, place] = left * own
            left = left * (1.0 - own)
        found[:, self.order_[-1]] += left
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _bin_columns(self, X: Any, *, reset: bool) -> pd.DataFrame:
        """Convert columns to text and bin numbers; wittgenstein's own binning is slow."""
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        if reset:
            self.edges_ = [self._edges(frame.iloc[:, f]) for f in range(frame.shape[1])]
        columns: dict[str, Any] = {}
        for f, edges in enumerate(self.edges_):
            cells = frame.iloc[:, f]
            if edges is None:
                columns[f"x{f}"] = cells.astype(object).where(cells.notna(), "").astype(str)
                continue
            numbers = pd.to_numeric(cells).to_numpy(np.float64)
            places = np.searchsorted(edges, numbers, side="right")
            columns[f"x{f}"] = np.where(np.isnan(numbers), "", _bin_names(edges)[places])
        return pd.DataFrame({name: np.asarray(cells, object) for name, cells in columns.items()})

    def _edges(self, cells: pd.Series) -> Any:
        if not pd.api.types.is_numeric_dtype(cells):
            return None
        numbers = cells.to_numpy(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers):
            return np.empty(0)
        inner = np.linspace(0.0, 1.0, self.n_discretize_bins + 1)[1:-1]
        edges = np.unique(np.quantile(numbers, inner, method="higher"))
        return edges[edges > numbers.min()]

    def __str__(self) -> str:
        lines = [
            f"{self.classes_[place]!r}: {rules}"
            for place, rules in zip(self.order_, getattr(self, "rules_", ()), strict=False)
        ]
        return "\n".join(lines) or super().__repr__()


def _bin_names(edges: Any) -> NDArray[Any]:
    bounds = ["", *(f"{edge:.6g}" for edge in edges), ""]
    return np.array([f"{low}..{high}" for low, high in pairwise(bounds)], object)
