"""Folds of rows left out together, each predicted from all other rows.

The thesis (section 4.3, Figure 4-8) leaves out 5 % of the rows at a time. Here the folds divide
each group's labelled rows evenly at random, so that every row is left out exactly once, and every
fold takes its share of every group. Rows that have no label stay in every training table.

Fitting again is a matter of counting where the model has a closed form, a sum over partitions for
Clustered Naive Bayes with few groups, and sampling elsewhere;
:func:`bayes_lcs.inference.condition.condition` chooses.
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
    """The fold of each labelled row, -1 for rows without a label; ``(N,)``.

    Each group's rows are dealt out in random order, starting at a random fold: no two folds differ
    by more than one row of any group, and groups of few rows do not all fall into the first folds.

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
    """Predict every labelled row from a table without a share of every group's rows.

    Parameters
    ----------
    model
        Any of the sharing models.
    data : GroupedTable
        Rows without a label are never left out.
    fraction
        Share of each group's labelled rows that is left out at a time; ``1 / fraction`` folds.
    seed
        Of the folds, and of the sampler.
    method, draws, chains
        How each fold is fitted; see :func:`bayes_lcs.inference.condition.condition`. Clustered
        Naive Bayes is exact up to 16 groups under ``"auto"``, and up to 24 under ``"exact"``.
    progress
        Show a progress bar over the folds; None shows one on a terminal.

    Returns
    -------
    LeftOut
        Its ``method`` says how the folds were fitted, its ``fits`` whether each converged.

    Warns
    -----
    SamplingWarning
        Once, with the folds of which R-hat exceeds 1.01, effective draws are below 400, or a
        diagnosed quantity never varied.

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
                how, fits[f"fold {fold}"] = _how(posterior), judge(posterior)
            tick()
    warn_of_fits(fits, draws, chains)
    how = f"{how} in {num_folds} folds"
    return LeftOut(data, rows, probabilities[rows], how, fits=fits)


def _how(posterior: object) -> str:
    if isinstance(posterior, PosteriorDraws):
        return f"{posterior.num_draws} draws"
    return "sum over partitions" if isinstance(posterior, ClusteredPosterior) else "closed form"
