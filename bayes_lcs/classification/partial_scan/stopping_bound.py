"""Test whether the ensemble of the first ``k`` parts decides like that of all ``K`` parts.

For a row ``x`` the model of part ``j`` gives each decision ``l`` an expected benefit ``e_j(l|x)``;
the ensemble takes the decision with the largest mean. The ``K`` numbers are fixed and come in
random order, so after ``k`` of them the mean of all is uncertain. Three bounds quantify this.

``"hoeffding"``
    The bound of the paper: ``eps_l = R_l sqrt(ln(1/delta) / (2k))`` with ``R_l`` the range of the
    benefit of ``l`` and ``delta`` one minus the confidence. A row is settled when the best decision
    is ahead of the second by more than both errors. This is valid for a single test of a single
    row. Since the test is repeated after every part and for many rows, the stated confidence is not
    guaranteed.
``"hoeffding-finite"``
    The same with ``eps_l`` multiplied by ``sqrt((K-k) / (K-1))``, the correction of the paper for
    finite populations.
``"betting"``
    For each pair of decisions, a bet that the mean of ``e(l|x) - e(l'|x)`` over all parts is above
    zero (`core.e_process`); the e-value of ``l`` is the minimum over all ``l'``. If the full
    ensemble decides otherwise, its expectation is at most one at any stopping time. Over ``n`` rows
    the sum of the e-values of wrong decisions is therefore, with the stated confidence and at all
    times simultaneously, below ``n (L-1) / delta``. The number of wrong rows is at most the number
    of smallest e-values that fit under this sum. The bound is on all rows together, not on single
    rows, and it holds under repeated testing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.e_process import log_e_value

__all__ = ["BOUNDS", "RULES", "AgreementTest", "Decision"]

FloatArray = NDArray[np.float64]

BOUNDS = ("betting", "hoeffding", "hoeffding-finite")
RULES = ("tolerance", "every")


class Decision(NamedTuple):
    """Decisions for rows after some parts, and the evidence for them."""

    decisions: NDArray[np.int64]
    """Decisions of the ensemble so far."""
    num_settled: int
    """Number of rows for which the full ensemble decides the same, by the bound."""
    log_e_values: FloatArray
    """Log e-value of each row; 0 or infinity for Hoeffding's bounds."""


@dataclass(frozen=True)
class AgreementTest:
    """Stopping test with its bound, rule, confidence and tolerance.

    Parameters
    ----------
    num_parts
        Number of parts in all, ``K``.
    confidence, bound, rule, tolerance
        As of `bayes_lcs.PartialScanClassifier`.
    num_known
        Number of parts whose models were known when the rows were chosen; they are not bet on.
    """

    num_parts: int
    confidence: float = 0.997
    bound: str = "betting"
    rule: str = "tolerance"
    tolerance: float = 0.05
    num_known: int = 0

    @property
    def max_unsettled_share(self) -> float:
        """Share of rows that need not be settled."""
        return 0.0 if self.rule == "every" else self.tolerance

    def evaluate(
        self, expected: FloatArray, benefits: FloatArray, num_met: int | None = None
    ) -> Decision:
        """Evaluate the test for all rows.

        Parameters
        ----------
        expected : (k, N, L)
            Expected benefits according to the models so far.
        benefits : (N or 1, L, L)
            Benefits, which give the ranges.
        num_met
            Number of labels seen so far, which come first; only these can be decided for.
        """
        num_rows, num_labels = expected.shape[1:]
        decisions = expected.mean(axis=0)[:, :num_met].argmax(axis=1)
        evidence = self.log_e_values(expected, benefits, decisions)
        if self.bound != "betting" or len(expected) == self.num_parts:
            return Decision(decisions, int(np.isinf(evidence).sum()), evidence)
        room = np.log(num_rows * max(num_labels - 1, 1) / (1.0 - self.confidence))
        # Wrong rows have e-values whose sum is below the room: count the smallest ones that fit.
        sums = np.cumsum(np.exp(np.minimum(np.sort(evidence) - room, 700.0)))
        return Decision(decisions, num_rows - int((sums <= 1.0).sum()), evidence)

    def log_e_values(
        self, expected: FloatArray, benefits: FloatArray, decisions: NDArray[np.int64]
    ) -> FloatArray:
        """Return the log e-value of each row for the same decision of the full ensemble."""
        num_drawn, num_rows, num_labels = expected.shape
        if num_drawn == self.num_parts or num_labels == 1:
            return np.full(num_rows, np.inf)
        benefits = np.broadcast_to(benefits, (num_rows, num_labels, num_labels))
        rows = np.arange(num_rows)
        if self.bound == "betting":
            return self._log_e_values(expected, benefits, rows, decisions)
        means = expected.mean(axis=0)
        ranges = benefits.max(axis=1) - benefits.min(axis=1)
        error = np.sqrt(np.log(1.0 / (1.0 - self.confidence)) / (2.0 * num_drawn))
        if self.bound == "hoeffding-finite":
            error *= np.sqrt((self.num_parts - num_drawn) / max(self.num_parts - 1, 1))
        upper, lower = means + ranges * error, means - ranges * error
        upper[rows, decisions] = -np.inf
        settled = lower[rows, decisions] > upper.max(axis=1)
        return np.where(settled, np.inf, 0.0)

    def _log_e_values(
        self,
        expected: FloatArray,
        benefits: FloatArray,
        rows: NDArray[np.int64],
        decisions: NDArray[np.int64],
    ) -> FloatArray:
        found = np.full(len(rows), np.inf)
        for other in range(expected.shape[2]):
            ahead = benefits[rows, :, decisions] - benefits[:, :, other]
            least, most = ahead.min(axis=1), ahead.max(axis=1)
            # A decision that is never worse under any label needs no evidence.
            open_ = np.flatnonzero((other != decisions) & (least < 0.0))
            if not len(open_):
                continue
            width = most[open_] - least[open_]
            usable = np.maximum(width, np.finfo(float).tiny)
            lead = expected[:, open_, decisions[open_]] - expected[:, open_, other]
            share = np.clip((lead - least[open_]) / usable, 0.0, 1.0)
            own = log_e_value(share, self.num_parts, -least[open_] / usable, self.num_known)
            found[open_] = np.minimum(found[open_], np.where(width > 0.0, own, -np.inf))
        return found

    def threshold(self, num_rows: int, num_labels: int) -> float:
        """Return the log e-value at which a row is settled in sequential validation.

        Half of the tolerance covers rows that are settled wrongly, half covers rows that are not
        settled; with ``rule="every"`` none may be wrong.
        """
        if self.bound != "betting":
            return np.inf
        wrong = 1.0 / num_rows if self.rule == "every" else self.tolerance / 2.0
        return float(np.log(max(num_labels - 1, 1) / ((1.0 - self.confidence) * wrong)))
