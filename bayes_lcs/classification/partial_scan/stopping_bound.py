"""Whether an ensemble of the first ``k`` parts decides as that of all ``K`` parts would.

For a row ``x`` the model of part ``j`` gives each decision ``l`` an expected benefit ``e_j(l|x)``;
the ensemble takes the decision with the largest mean. The ``K`` numbers are fixed and come in
random order, so after ``k`` of them the mean of all is uncertain, and three bounds say how much.

``"hoeffding"``
    The paper's: ``eps_l = R_l sqrt(ln(1/delta) / (2k))`` with ``R_l`` the range of the benefit of
    ``l`` and ``delta`` one less the confidence. A row is settled when the best decision is ahead of
    the second by more than both errors. That is true of one look at one row only. It is computed
    anew after every part and for many rows, so that the stated confidence is not kept.
``"hoeffding-finite"``
    The same with ``eps_l`` shrunk by ``sqrt((K-k) / (K-1))``, as the paper has it for finite
    populations.
``"betting"``
    For each pair of decisions, a bet that the mean of ``e(l|x) - e(l'|x)`` over all parts is above
    zero (`core.e_process`); the e-value of ``l`` is the least over all ``l'``. If the full
    ensemble decides otherwise, it has mean at most one, whenever one looks. Among ``n`` rows, the
    sum of the e-values of wrong decisions is therefore, with the stated confidence and at all times
    at once, below ``n (L-1) / delta``: no more rows can be wrong than the smallest e-values have
    room under that sum. No bound for single rows, and none that is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.e_process import log_e_value

__all__ = ["BOUNDS", "RULES", "Agreement", "Verdict"]

FloatArray = NDArray[np.float64]

BOUNDS = ("betting", "hoeffding", "hoeffding-finite")
RULES = ("tolerance", "every")


class Verdict(NamedTuple):
    """Of some rows after some parts."""

    decisions: NDArray[np.int64]
    """What the ensemble so far decides."""
    num_settled: int
    """Rows, of all, for which the full ensemble is bound to decide the same."""
    log_evidence: FloatArray
    """Of each row: the logarithm of its e-value; of Hoeffding's bounds 0 or infinity."""


@dataclass(frozen=True)
class Agreement:
    """A bound, a rule, and how sure and how exact it has to be.

    Parameters
    ----------
    num_parts
        ``K``.
    confidence, bound, rule, tolerance
        As of `bayes_lcs.PartialScanClassifier`.
    num_known
        Parts whose models were known when the rows were chosen, and are not bet on.
    """

    num_parts: int
    confidence: float = 0.997
    bound: str = "betting"
    rule: str = "tolerance"
    tolerance: float = 0.05
    num_known: int = 0

    @property
    def allowed(self) -> float:
        """The share of rows that need not be settled."""
        return 0.0 if self.rule == "every" else self.tolerance

    def judge(
        self, expected: FloatArray, benefits: FloatArray, num_met: int | None = None
    ) -> Verdict:
        """Look at all rows.

        Parameters
        ----------
        expected : (k, N, L)
            Expected benefits by the models so far.
        benefits : (N or 1, L, L)
            Benefits, from which the ranges follow.
        num_met
            Labels that can be decided for, the first of all: others may still come.
        """
        num_rows, num_labels = expected.shape[1:]
        decisions = expected.mean(axis=0)[:, :num_met].argmax(axis=1)
        evidence = self.log_evidence(expected, benefits, decisions)
        if self.bound != "betting" or len(expected) == self.num_parts:
            return Verdict(decisions, int(np.isinf(evidence).sum()), evidence)
        room = np.log(num_rows * max(num_labels - 1, 1) / (1.0 - self.confidence))
        sums = np.cumsum(np.exp(np.minimum(np.sort(evidence) - room, 700.0)))
        return Verdict(decisions, num_rows - int((sums <= 1.0).sum()), evidence)

    def log_evidence(
        self, expected: FloatArray, benefits: FloatArray, decisions: NDArray[np.int64]
    ) -> FloatArray:
        """How surely the full ensemble decides so, for each row."""
        num_drawn, num_rows, num_labels = expected.shape
        if num_drawn == self.num_parts or num_labels == 1:
            return np.full(num_rows, np.inf)
        benefits = np.broadcast_to(benefits, (num_rows, num_labels, num_labels))
        rows = np.arange(num_rows)
        if self.bound == "betting":
            return self._wealth(expected, benefits, rows, decisions)
        means = expected.mean(axis=0)
        ranges = benefits.max(axis=1) - benefits.min(axis=1)
        error = np.sqrt(np.log(1.0 / (1.0 - self.confidence)) / (2.0 * num_drawn))
        if self.bound == "hoeffding-finite":
            error *= np.sqrt((self.num_parts - num_drawn) / max(self.num_parts - 1, 1))
        upper, lower = means + ranges * error, means - ranges * error
        upper[rows, decisions] = -np.inf
        settled = lower[rows, decisions] > upper.max(axis=1)
        return np.where(settled, np.inf, 0.0)

    def _wealth(
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
        """The log e-value at which one row is settled, where rows are looked at one by one.

        Half of the tolerance is for rows that are settled wrongly, half for those that are not
        settled; with ``rule="every"`` none may be wrong.
        """
        if self.bound != "betting":
            return np.inf
        wrong = 1.0 / num_rows if self.rule == "every" else self.tolerance / 2.0
        return float(np.log(max(num_labels - 1, 1) / ((1.0 - self.confidence) * wrong)))
