"""Validation rows, and which of them the models so far have settled.

``"batch"`` keeps all rows and looks at each again after every part. ``"sequential"`` is the
paper's: rows are taken one after another, a row that is settled is never looked at again, and the
next part is read only when a row is met that is not. Rows are held a chunk at a time, which changes
nothing but the speed if every row has to be settled; with a tolerance, a chunk is left when few
enough of its rows are not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.classification.partial_scan.base_learners import probabilities
from bayes_lcs.classification.partial_scan.payoff import benefits_of, expected_benefits
from bayes_lcs.classification.partial_scan.stopping_bound import Agreement
from bayes_lcs.classification.partial_scan.validate_input import take_rows

__all__ = ["BatchRows", "Look", "SequentialRows", "mean_probabilities"]

FloatArray = NDArray[np.float64]

CHUNK = 256


class Look(NamedTuple):
    """After a part: share of rows settled, expected benefit a row, and whether that is enough."""

    settled: float
    benefit: float
    is_done: bool


class _Rows:
    """Some rows with what all models so far say of them."""

    def __init__(self, X: Any, features: Any, benefit: Any) -> None:
        self.X, self._features, self._benefit = X, features, benefit
        self._said: list[tuple[list[Any], FloatArray]] = []

    @property
    def num_models(self) -> int:
        """Models that were asked."""
        return len(self._said)

    def add(self, model: Any) -> None:
        """Ask another model."""
        labels = model.classes_.tolist()
        self._said.append((labels, probabilities(model, self._features(self.X), labels)))

    def probabilities(self, classes: list[Any]) -> FloatArray:
        """``(k, N, L)``; labels that a model has not met have probability 0."""
        found = np.zeros((len(self._said), len(self.X), len(classes)))
        places = {label: place for place, label in enumerate(classes)}
        for j, (labels, own) in enumerate(self._said):
            found[j][:, [places[label] for label in labels]] = own
        return found

    def benefits(self, classes: list[Any]) -> FloatArray:
        return benefits_of(self._benefit, self.X, classes)


def mean_probabilities(X: Any, features: Any, models: list[Any], classes: list[Any]) -> FloatArray:
    """Return the mean of the probabilities of some models, ``(n, L)``."""
    total = np.zeros((len(X), len(classes)))
    for model in models:
        total += probabilities(model, features(X), classes)
    return total / len(models)


class BatchRows:
    """All validation rows are looked at after every part."""

    def __init__(self, X: Any, features: Any, benefit: Any, rule: Agreement) -> None:
        self._rows, self._rule = _Rows(X, features, benefit), rule
        self.num_rows = len(X)

    def look(self, models: list[Any], classes: list[Any], num_met: int | None = None) -> Look:
        """After some more models than at the last look; labels that were met come first."""
        for model in models[self._rows.num_models :]:
            self._rows.add(model)
        benefits = self._rows.benefits(classes)
        expected = expected_benefits(self._rows.probabilities(classes), benefits)
        verdict = self._rule.judge(expected, benefits, num_met)
        best = float(expected.mean(axis=0)[:, :num_met].max(axis=1).mean())
        unsettled = self.num_rows - verdict.num_settled
        return Look(
            verdict.num_settled / self.num_rows,
            best,
            unsettled <= self._rule.allowed * self.num_rows,
        )

    def predictions(self, classes: list[Any]) -> FloatArray:
        """What each model says of the rows, ``(k, N, L)``."""
        return self._rows.probabilities(classes)

    def mean_probabilities(self, models: list[Any], classes: list[Any]) -> FloatArray:
        """Return the mean over all models, ``(N, L)``; only those are asked that were not yet."""
        for model in models[self._rows.num_models :]:
            self._rows.add(model)
        found: FloatArray = self._rows.probabilities(classes).mean(axis=0)
        return found


class SequentialRows:
    """Validation rows are looked at one after another, each until it is settled."""

    def __init__(self, X: Any, features: Any, benefit: Any, rule: Agreement) -> None:
        self._X, self._features, self._benefit, self._rule = X, features, benefit, rule
        self.num_rows = len(X)
        # Half of the tolerance is for rows that bets settle wrongly.
        self._allowed = rule.allowed / 2.0 if rule.bound == "betting" else rule.allowed
        self._start, self._left_behind = 0, 0
        self._rows: _Rows | None = None
        self._last: _Rows | None = None
        self._settled = np.zeros(0, bool)

    def look(self, models: list[Any], classes: list[Any], num_met: int | None = None) -> Look:
        """Go on until rows are not settled by the models so far, or none is left."""
        benefit = np.nan
        while self._start < self.num_rows:
            rows = self._chunk(models)
            benefits = rows.benefits(classes)
            expected = expected_benefits(rows.probabilities(classes), benefits)
            means = expected.mean(axis=0)
            decisions = means[:, :num_met].argmax(axis=1)
            benefit = float(means[:, :num_met].max(axis=1).mean())
            evidence = self._rule.log_evidence(expected, benefits, decisions)
            self._note(evidence >= self._rule.threshold(self.num_rows, len(classes)))
            open_ = int((~self._settled).sum())
            if open_ > self._allowed * len(self._settled):
                done = self._start - self._left_behind + len(self._settled) - open_
                return Look(done / self.num_rows, benefit, False)
            self._left_behind += open_
            self._start, self._rows = self._start + len(self._settled), None
        return Look(1.0 - self._left_behind / self.num_rows, benefit, True)

    def _note(self, settled: NDArray[np.bool_]) -> None:
        """A row that is settled is not looked at again; without tolerance, one by one."""
        if self._allowed == 0.0:
            first = int(self._settled.sum())
            stop = first + int(np.append(~settled[first:], True).argmax())
            self._settled[first:stop] = True
        else:
            self._settled |= settled

    def predictions(self, classes: list[Any]) -> FloatArray:
        """What each model says of the rows in memory, ``(k, n, L)``."""
        return np.empty((0, 0, 0)) if self._last is None else self._last.probabilities(classes)

    def _chunk(self, models: list[Any]) -> _Rows:
        """The rows in memory, with what all models say of them."""
        if self._rows is None:
            rows = slice(self._start, self._start + CHUNK)
            self._rows = _Rows(take_rows(self._X, rows), self._features, self._benefit)
            self._settled = np.zeros(len(self._rows.X), bool)
        for model in models[self._rows.num_models :]:
            self._rows.add(model)
        self._last = self._rows
        return self._rows
