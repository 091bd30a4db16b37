"""Leave-one-out predictions without refits.

Let ``s`` be the unknowns of a model after its parameters are integrated out: the partition, the
prototype, a learned hyper-parameter, or nothing. For a labelled row ``i`` of a table ``D``, Bayes'
rule gives the posterior without the row,

    p(s | D_-i)  is proportional to  p(s | D) / p(y_i, x_i | s, D_-i),

and hence, with ``p_s(y, x) = p(y, x | s, D_-i)`` computed from the counts without the row,

    P(y | x_i, D_-i)  is proportional to  sum_s p(s | D) p_s(y, x_i) / p_s(y_i, x_i).

(Gelfand, Dey and Chang 1992, eq. 9, for cross-validation densities.) The sum over ``s`` is

* one term for No-Sharing and Complete-Sharing: a closed form;
* a quadrature where their feature prior is learned;
* an exact sum over the blocks that may contain the row's group for Clustered Naive Bayes, in
  :mod:`bayes_lcs.evaluation.exact_loo`;
* a sum over draws otherwise: importance sampling with weights ``1 / p_s(y_i, x_i)``, which may be
  uneven. ``effective_draws = (sum w)^2 / sum w^2`` is their effective sample size; it does not
  include the autocorrelation of the draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.naive_bayes import normalise_log
from bayes_lcs.core.predictive import ConditionalPredictive
from bayes_lcs.core.priors import Gamma
from bayes_lcs.evaluation.exact_loo import log_loo_ratios
from bayes_lcs.evaluation.losses import MeanLoss, mean_loss
from bayes_lcs.inference.exact.posterior import ClusteredPosterior, ExactPosterior
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from bayes_lcs.models.base import symmetric_prior_posterior

if TYPE_CHECKING:
    import pandas as pd

    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.diagnostics import Convergence

__all__ = ["LeaveOutWarning", "LeftOut", "leave_one_out"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MIN_EFFECTIVE_DRAWS = 100.0
"""A probability from 100 independent draws has a standard error of at most 0.05."""


class LeaveOutWarning(UserWarning):
    """Some rows are predicted from few effective draws; the message says how to improve them."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Out-of-sample predictions of the labelled rows of a table.

    Attributes
    ----------
    data : GroupedTable
        The table.
    rows : (N,)
        Indices of the predicted rows.
    probabilities : (N, L)
        Probability of each label, in the order of ``data.label_values``.
    method
        Method of computation.
    effective_draws : (N,), optional
        Effective sample size of the importance weights of each row; None if exact.
    fits
        Convergence diagnostics of each fold by its name, for `bayes_lcs.cross_validate`.
    """

    data: GroupedTable
    rows: IntArray
    probabilities: FloatArray
    method: str
    effective_draws: FloatArray | None = None
    fits: Mapping[str, Convergence] = field(default_factory=dict)

    @property
    def labels(self) -> IntArray:
        """True labels, ``(N,)``."""
        return self.data.labels[self.rows].astype(np.int64)

    @property
    def groups(self) -> IntArray:
        """Group of each row, ``(N,)``."""
        return self.data.groups[self.rows].astype(np.int64)

    def mean_loss(self, loss: Literal["zero-one", "log"] | ArrayLike = "zero-one") -> MeanLoss:
        """Return the mean loss of all rows; see :func:`bayes_lcs.mean_loss` for the losses."""
        return mean_loss(self.probabilities, self.labels, loss)

    def loss_by_group(
        self, loss: Literal["zero-one", "log"] | ArrayLike = "zero-one"
    ) -> pd.DataFrame:
        """Return the mean loss of each group with standard errors (thesis Figures 4-4, 4-7)."""
        import pandas as pd

        groups = self.groups
        found = [
            mean_loss(self.probabilities[groups == u], self.labels[groups == u], loss)
            for u in range(self.data.num_groups)
        ]
        return pd.DataFrame(
            found,
            columns=["loss", "standard_error", "num_rows"],
            index=pd.Index(self.data.group_names, name=self.data.group_name),
        )

    def __repr__(self) -> str:
        worth = ""
        if self.effective_draws is not None:
            worth = f", at least {self.effective_draws.min(initial=np.inf):.0f} effective draws"
        return f"<LeftOut: {len(self.rows)} rows by {self.method}{worth}>"


def leave_one_out(posterior: Any, *, max_draws: int | None = 1000) -> LeftOut:
    """Predict every labelled row of the training table from all other rows.

    Parameters
    ----------
    posterior
        Result of `bayes_lcs.exact`, `bayes_lcs.sample` or
        :func:`bayes_lcs.inference.condition.condition`.
    max_draws
        Maximum number of draws of a sampled posterior to use, evenly spaced; None for all.

    Returns
    -------
    LeftOut
        Predictions, with ``probabilities``, ``method``, ``effective_draws`` and ``mean_loss()``.

    Warns
    -----
    LeaveOutWarning
        If the effective sample size of any row is below 100.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=30)
    >>> data = data.select_groups(["person-01", "person-02", "person-09", "person-11"])
    >>> for model in (bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes()):
    ...     left_out = bl.leave_one_out(bl.exact(model, data))
    ...     print(left_out.method, round(left_out.mean_loss("log").value, 3))
    closed form 0.308
    closed form 0.297
    sum over partitions 0.199
    """
    inner = getattr(posterior, "draws", None)
    posterior = inner if isinstance(inner, PosteriorDraws) else posterior
    if not isinstance(posterior, ExactPosterior | PosteriorDraws):
        raise TypeError(
            f"expected a posterior from bl.exact or bl.sample, got {type(posterior).__name__}; for "
            "a fitted classifier pass classifier.posterior_"
        )
    data = posterior.data
    data.require_rows()
    rows = np.flatnonzero(data.labels >= 0)
    labels, groups = data.labels[rows].astype(np.int64), data.groups[rows].astype(np.int64)
    if isinstance(posterior, ClusteredPosterior):
        log_joint = log_loo_ratios(posterior, data.features[rows], groups, labels)
        return LeftOut(data, rows, normalise_log(log_joint), "sum over partitions")
    weighted: Iterator[tuple[float, ConditionalPredictive]]
    if isinstance(posterior, PosteriorDraws) and posterior.is_certain:
        method, weighted = "closed form", ((0.0, one) for one in posterior.informants(1))
    elif isinstance(posterior, PosteriorDraws):
        method = "importance sampling"
        weighted = ((0.0, informants) for informants in posterior.informants(max_draws))
    else:
        learned = isinstance(posterior.model.feature_prior, Gamma)
        method, weighted = (
            "quadrature" if learned else "closed form",
            _weighted_predictives(posterior),
        )
    log_joint, effective = _reweigh(weighted, data.features[rows], groups, labels)
    probabilities = normalise_log(log_joint)
    if method != "importance sampling":
        return LeftOut(data, rows, probabilities, method)
    assert isinstance(posterior, PosteriorDraws)
    _warn(effective, min(posterior.num_draws, max_draws or posterior.num_draws))
    return LeftOut(data, rows, probabilities, method, effective)


def _weighted_predictives(
    posterior: ExactPosterior,
) -> Iterator[tuple[float, ConditionalPredictive]]:
    """Yield log weight and predictive at each quadrature node of a learned feature prior."""
    model = posterior.model
    counts = posterior.data.counts()
    if not isinstance(model.feature_prior, Gamma):
        yield 0.0, model.informants(counts)
        return
    blocks = replace(model, feature_prior=1.0).informants(counts).feature_counts
    rule = symmetric_prior_posterior(model.feature_prior, counts.schema, blocks)
    for node, log_weight in zip(rule.nodes, rule.log_weights, strict=True):
        fixed = replace(model, feature_prior=float(np.exp(node)))
        yield float(log_weight), fixed.informants(counts)


def _reweigh(
    weighted: Iterator[tuple[float, ConditionalPredictive]],
    features: NDArray,
    groups: IntArray,
    labels: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Return ``log sum_s p(s) p_s(y, x_i) / p_s(y_i, x_i)``, ``(N, L)``, and effective draws."""
    own = np.arange(len(labels)), labels
    total: FloatArray | None = None
    log_sum = log_sum_of_squares = np.full(len(labels), -np.inf)
    for log_weight, informants in weighted:
        log_joint = informants.log_joint(features, groups, left_out=labels)
        log_ratio = log_weight - log_joint[own]
        term = log_joint + log_ratio[:, None]
        total = term if total is None else np.logaddexp(total, term, out=total)
        log_sum = np.logaddexp(log_sum, log_ratio)
        log_sum_of_squares = np.logaddexp(log_sum_of_squares, 2.0 * log_ratio)
    assert total is not None
    return total, np.exp(2.0 * log_sum - log_sum_of_squares)


def _warn(effective_draws: FloatArray, used: int) -> None:
    low = effective_draws < MIN_EFFECTIVE_DRAWS
    if used < MIN_EFFECTIVE_DRAWS:
        warnings.warn(
            f"only {used} draws were used; draw more, or increase max_draws",
            LeaveOutWarning,
            stacklevel=3,
        )
    elif low.any():
        warnings.warn(
            f"{int(low.sum())} of {len(low)} rows are predicted from fewer than "
            f"{MIN_EFFECTIVE_DRAWS:.0f} effective draws (fewest: {effective_draws.min():.0f}): "
            "the posterior without one of these rows differs too much from the posterior with it. "
            "Draw more and increase max_draws, or refit without such rows (bl.cross_validate)",
            LeaveOutWarning,
            stacklevel=3,
        )
