"""Cross-validation with folds that are stratified by group.

The thesis (section 4.3, Figure 4-8) leaves out 5 % of the rows at a time. Here the folds divide the
labelled rows of each group evenly at random, so that every row is left out exactly once and every
fold has its share of every group. Rows without a label stay in every training table.

A refit only counts rows if the model has a closed form, sums over partitions for Clustered Naive
Bayes with few groups, and samples otherwise;
:func:`bayes_lcs.inference.condition.condition` chooses the method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.evaluation.loo import LeftOut
from bayes_lcs.inference.condition import condition
from bayes_lcs.inference.diagnostics import Convergence, judge, warn_of_fits
from bayes_lcs.inference.exact.posterior import ClusteredPosterior
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["cross_validate", "folds_by_group"]

IntArray = NDArray[np.int64]


def folds_by_group(data: GroupedTable, num_folds: int, seed: int = 0) -> IntArray:
    """Return the fold of each labelled row, and -1 for rows without a label; ``(N,)``.

    The rows of each group are assigned to the folds in turn, in random order and starting at a
    random fold. Folds therefore differ by at most one row of any group, and small groups are not
    all in the first folds.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=40)
    >>> folds = folds_by_group(data, 20)
    >>> np.bincount(folds[data.groups == 3]).tolist() == [2] * 20
    True
    """
    data.require_rows()
    rng = np.random.default_rng(seed)
    folds = np.full(data.num_rows, -1, dtype=np.int64)
    for group in range(data.num_groups):
        rows = rng.permutation(np.flatnonzero((data.groups == group) & (data.labels >= 0)))
        folds[rows] = (rng.integers(num_folds) + np.arange(len(rows))) % num_folds
    return folds


def cross_validate(
    model: Any,
    data: GroupedTable,
    *,
    fraction: float = 0.05,
    seed: int = 0,
    method: Literal["auto", "exact", "sample"] = "auto",
    draws: int = 500,
    chains: int = 2,
    progress: bool | None = None,
) -> LeftOut:
    """Predict every labelled row from a model fitted without the row's fold.

    Parameters
    ----------
    model
        Any of the sharing models.
    data : GroupedTable
        The table; rows without a label are never left out.
    fraction
        Share of each group's labelled rows per fold; there are ``1 / fraction`` folds.
    seed
        Seed of the folds and of the sampler.
    method, draws, chains
        Inference method of each fold; see :func:`bayes_lcs.inference.condition.condition`.
        Clustered Naive Bayes is exact up to 16 groups with ``"auto"``, and up to 24 with
        ``"exact"``.
    progress
        Show a progress bar over the folds; None shows one on a terminal.

    Returns
    -------
    LeftOut
        Predictions; ``method`` names the inference method and ``fits`` has the convergence
        diagnostics of each fold.

    Warns
    -----
    SamplingWarning
        If in any fold R-hat exceeds 1.01, the effective sample size is below 400, or a diagnosed
        quantity never varied; one warning for all folds.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=20)
    >>> bl.cross_validate(bl.NoSharing(), data)
    <LeftOut: 420 rows by closed form in 20 folds>
    """
    if not 0 < fraction <= 0.5:
        raise ValueError(f"fraction must lie in (0, 0.5], got {fraction}")
    num_folds = round(1 / fraction)
    folds = folds_by_group(data, num_folds, seed)
    rows = np.flatnonzero(folds >= 0)
    probabilities = np.full((data.num_rows, data.num_labels), np.nan)
    how, fits = "no fold", dict[str, Convergence]()
    with progress_bar(f"{model.name}: {num_folds} folds", num_folds, progress) as tick:
        for fold in range(num_folds):
            held_out = folds == fold
            if held_out.any():
                posterior = condition(
                    model,
                    data.take(~held_out),
                    method=method,
                    draws=draws,
                    chains=chains,
                    seed=seed,
                    progress=False,
                )
                probabilities[held_out] = posterior.predict_proba(data.take(held_out))
                how, fits[f"fold {fold}"] = _method_name(posterior), judge(posterior)
            tick()
    warn_of_fits(fits, draws, chains)
    how = f"{how} in {num_folds} folds"
    return LeftOut(data, rows, probabilities[rows], how, fits=fits)


def _method_name(posterior: object) -> str:
    if isinstance(posterior, PosteriorDraws):
        return f"{posterior.num_draws} draws"
    return "sum over partitions" if isinstance(posterior, ClusteredPosterior) else "closed form"
