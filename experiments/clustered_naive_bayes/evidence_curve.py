"""Log evidence of models as a function of the number of rows (thesis Figure 4-5).

Rows are drawn at random from all groups together, and larger samples contain smaller ones. Groups
without rows are left out, which does not change the evidence of any model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.model_evidence.evidence import conditional_evidence, evidence
from bayes_lcs.plots.figure import legend_text, new_axes, plain_text
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["evidence_curve", "plot_evidence_curve"]


def evidence_curve(
    models: Sequence[Any],
    data: GroupedTable,
    sizes: Sequence[int],
    conditional: bool = False,
    *,
    repeats: int = 5,
    seed: int = 0,
    progress: bool | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Compute the log evidence of models on random samples of rows of several sizes.

    Parameters
    ----------
    sizes
        Numbers of rows.
    conditional
        If True, compute ``log P(Y | X)`` instead of ``log P(X, Y)``.
    repeats
        Number of random orders of the rows.
    options
        Arguments of :func:`bayes_lcs.evidence`, such as ``precision``.

    Returns
    -------
    DataFrame
        Columns ``model``, ``size``, ``repeat``, ``log_evidence``, ``standard_error``.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=10)
    >>> frame = evidence_curve([bl.NoSharing(), bl.CompleteSharing()], data, [10, 50], repeats=2)
    >>> len(frame), frame["model"].iloc[0]
    (8, 'No-Sharing')
    """
    import pandas as pd

    ordered = sorted(int(size) for size in sizes)
    if not ordered or ordered[0] < 1 or ordered[-1] > data.num_rows:
        raise ValueError(f"sizes must lie between 1 and {data.num_rows} rows, got {list(sizes)}")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    compute = conditional_evidence if conditional else evidence
    rows = []
    with progress_bar("evidence", repeats * len(ordered) * len(models), progress) as tick:
        for repeat in range(repeats):
            order = np.random.default_rng([seed, repeat]).permutation(data.num_rows)
            for size in ordered:
                part = data.take(order[:size])
                present = np.flatnonzero(np.bincount(part.groups, minlength=part.num_groups))
                part = part.select_groups(present.tolist())
                for model in models:
                    found = compute(model, part, seed=seed, progress=False, **options)
                    error = found.standard_error
                    rows.append((model.name, size, repeat, found.value, error))
                    tick(1, f"{model.name}, {size} rows")
    columns = ["model", "size", "repeat", "log_evidence", "standard_error"]
    return pd.DataFrame(rows, columns=columns)


def plot_evidence_curve(
    frame: pd.DataFrame, ax: Axes | None = None, *, relative_to: str | None = None
) -> Axes:
    """Plot the log evidence of each model relative to a reference, against the number of rows.

    This is Figure 4-5 of the thesis.

    Parameters
    ----------
    frame
        Result of `evidence_curve`.
    relative_to
        Name of the reference model; the last one by default.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=10)
    >>> models = [bl.NoSharing(), bl.CompleteSharing()]
    >>> ax = plot_evidence_curve(evidence_curve(models, data, [10, 50, 200], repeats=2))
    """
    names = list(dict.fromkeys(frame["model"]))
    base = names[-1] if relative_to is None else relative_to
    if base not in names:
        raise ValueError(f"the frame has no model {base!r}; it has {', '.join(names)}")
    wide = frame.pivot_table(index=["size", "repeat"], columns="model", values="log_evidence")
    axes = new_axes(ax, 6.5, 4.2)
    axes.axhline(0.0, color="0.4", linewidth=1, linestyle="--", label=legend_text(base))
    for name in names:
        if name == base:
            continue
        ratio = (wide[name] - wide[base]).groupby("size")
        error = 1.96 * ratio.sem().fillna(0.0)
        axes.errorbar(
            ratio.mean().index, ratio.mean(), error, marker="o", capsize=2, label=legend_text(name)
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_xlabel("rows (drawn at random from all groups)")
    axes.set_ylabel(f"log evidence above {plain_text(base)} (nats)")
    axes.legend()
    return axes
