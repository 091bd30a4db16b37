"""Validation rows, and the stopping test on them after each part.

A row is settled when the stopping bound implies that the full ensemble decides the same for it.
``"batch"`` tests all rows again after every part. ``"sequential"`` is the method of the paper: rows
are tested one after another, a settled row is never tested again, and the next part is read only
when a row is not settled. Rows are processed in chunks, which only affects the speed if every row
has to be settled; with a tolerance, a chunk is finished when sufficiently few of its rows are not
settled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.classification.partial_scan.base_learners import probabilities
from bayes_lcs.classification.partial_scan.payoff import build_benefits, expected_benefits
from bayes_lcs.classification.partial_scan.stopping_bound import AgreementTest
from bayes_lcs.classification.partial_scan.validate_input import take_rows

__all__ = ["BatchRows", "SequentialRows", "ValidationStatus", "mean_probabilities"]

FloatArray = NDArray[np.float64]

CHUNK = 256


class ValidationStatus(NamedTuple):
    """Status after a part: share of settled rows, expected benefit per row, whether to stop."""

    settled: float
    benefit: float
    is_done: bool


class _PredictedRows:
    """Rows with the probabilities of all models so far."""

    def __init__(self, X: Any, features: Any, benefit: Any) -> None:
        self.X, self._features, self._benefit = X, features, benefit
        self._predictions: list[tuple[list[Any], FloatArray]] = []

    @property
    def num_models(self) -> int:
        """Number of models that were evaluated."""
        return len(self._predictions)

    def add_model(self, model: Any) -> None:
        """Evaluate another model on the rows."""
        labels = model.classes_.tolist()
        self._predictions.append((labels, probabilities(model, self._features(self.X), labels)))

    def probabilities(self, classes: list[Any]) -> FloatArray:
        """Return ``(k, N, L)``; labels that a model has not seen have probability 0."""
        found = np.zeros((len(self._predictions), len(self.X), len(classes)))
        places = {label: place for place, label in enumerate(classes)}
        for j, (labels, own) in enumerate(self._predictions):
            found[j][:, [places[label] for label in labels]] = own
        return found

    def benefits(self, classes: list[Any]) -> FloatArray:
        """Return the benefits of the rows."""
        return build_benefits(self._benefit, self.X, classes)


def mean_probabilities(X: Any, features: Any, models: list[Any], classes: list[Any]) -> FloatArray:
    """Return the mean probabilities of models, ``(n, L)``."""
    total = np.zeros((len(X), len(classes)))
    for model in models:
        total += probabilities(model, features(X), classes)
    return total / len(models)


class BatchRows:
    """Validation rows that are all tested after every part."""

    def __init__(self, X: Any, features: Any, benefit: Any, rule: AgreementTest) -> None:
        self._rows, self._rule = _PredictedRows(X, features, benefit), rule
        self.num_rows = len(X)

    def update(
        self, models: list[Any], classes: list[Any], num_met: int | None = None
    ) -> ValidationStatus:
        """Test all rows with the models so far; labels that were seen come first in ``classes``."""
        for model in models[self._rows.num_models :]:
            self._rows.add_model(model)
        benefits = self._rows.benefits(classes)
        expected = expected_benefits(self._rows.probabilities(classes), benefits)
        decision = self._rule.evaluate(expected, benefits, num_met)
        best = float(expected.mean(axis=0)[:, :num_met].max(axis=1).mean())
        unsettled = self.num_rows - decision.num_settled
        return ValidationStatus(
            decision.num_settled / self.num_rows,
            best,
            unsettled <= self._rule.max_unsettled_share * self.num_rows,
        )

    def predictions(self, classes: list[Any]) -> FloatArray:
        """Return the probabilities of each model, ``(k, N, L)``."""
        return self._rows.probabilities(classes)

    def mean_probabilities(self, models: list[Any], classes: list[Any]) -> FloatArray:
        """Return the mean over all models, ``(N, L)``; earlier evaluations are reused."""
        for model in models[self._rows.num_models :]:
            self._rows.add_model(model)
        found: FloatArray = self._rows.probabilities(classes).mean(axis=0)
        return found


class SequentialRows:
    """Validation rows that are tested one after another, each until it is settled."""

    def __init__(self, X: Any, features: Any, benefit: Any, rule: AgreementTest) -> None:
        self._X, self._features, self._benefit, self._rule = X, features, benefit, rule
        self.num_rows = len(X)
        # The betting bound spends half of the tolerance on rows that are settled wrongly.
        self._max_unsettled_share = (
            rule.max_unsettled_share / 2.0 if rule.bound == "betting" else rule.max_unsettled_share
        )
        self._start, self._num_unsettled = 0, 0
        self._rows: _PredictedRows | None = None
        self._last: _PredictedRows | None = None
        self._settled = np.zeros(0, bool)

    def update(
        self, models: list[Any], classes: list[Any], num_met: int | None = None
    ) -> ValidationStatus:
        """Test rows until the models so far do not settle one, or no row is left."""
        benefit = np.nan
        while self._start < self.num_rows:
            rows = self._chunk(models)
            benefits = rows.benefits(classes)
            expected = expected_benefits(rows.probabilities(classes), benefits)
            means = expected.mean(axis=0)
            decisions = means[:, :num_met].argmax(axis=1)
            benefit = float(means[:, :num_met].max(axis=1).mean())
            evidence = self._rule.log_e_values(expected, benefits, decisions)
            self._mark_settled(evidence >= self._rule.threshold(self.num_rows, len(classes)))
            open_ = int((~self._settled).sum())
            if open_ > self._max_unsettled_share * len(self._settled):
                done = self._start - self._num_unsettled + len(self._settled) - open_
                return ValidationStatus(done / self.num_rows, benefit, False)
            self._num_unsettled += open_
            self._start, self._rows = self._start + len(self._settled), None
        return ValidationStatus(1.0 - self._num_unsettled / self.num_rows, benefit, True)

    def _mark_settled(self, settled: NDArray[np.bool_]) -> None:
        """Mark rows as settled for good; without tolerance, only up to the first that is not."""
        if self._max_unsettled_share == 0.0:
            first = int(self._settled.sum())
            stop = first + int(np.append(~settled[first:], True).argmax())
            self._settled[first:stop] = True
        else:
            self._settled |= settled

    def predictions(self, classes: list[Any]) -> FloatArray:
        """Return the probabilities of each model for the current chunk, ``(k, n, L)``."""
        return np.empty((0, 0, 0)) if self._last is None else self._last.probabilities(classes)

    def _chunk(self, models: list[Any]) -> _PredictedRows:
        """Return the current chunk with the probabilities of all models."""
        if self._rows is None:
            rows = slice(self._start, self._start + CHUNK)
            self._rows = _PredictedRows(take_rows(self._X, rows), self._features, self._benefit)
            self._settled = np.zeros(len(self._rows.X), bool)
        for model in models[self._rows.num_models :]:
            self._rows.add_model(model)
        self._last = self._rows
        return self._rows
