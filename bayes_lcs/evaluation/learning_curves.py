"""How the loss on rows held out falls as the training rows of each group become more.

The thesis's protocol (section 4.1, Figure 4-1; section 4.2, Figure 4-3): a random set of ``n`` rows
of each group is trained on and the group's other rows are predicted, for ``n`` from few to all but
one, ten times over. The models that share are trained on ``n`` rows *of every group*: that is
``others="same"``. Ours, and the question that sharing is meant to answer, is ``others="all"``: a
group of which ``n`` rows are known joins groups whose rows are all known.

Two differences. Within a repeat the training sets of growing ``n`` contain each other and, unless
``test_fraction`` is None (the thesis's way), the rows held out are the same at every ``n``: steps
of a curve then come from the training rows and not from the choice of what is predicted. And ``n``
counts rows, not a share of each group's: a group too small for some ``n`` has no point there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.evaluation.losses import row_losses
from bayes_lcs.inference.condition import condition
from bayes_lcs.inference.diagnostics import Convergence, judge, warn_of_fits
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["average_learning_curve", "learning_curve"]

IntArray = NDArray[np.int64]

KEYS = ("model", "group", "size", "repeat", "num_rows", "convergence", "rhat", "ess")
"""Columns of a learning curve that are not losses."""


def learning_curve(
    models: Mapping[str, Any] | Sequence[Any],
    data: GroupedTable,
    sizes: Sequence[int],
    *,
    repeats: int = 10,
    others: Literal["same", "all"] = "same",
    groups: Sequence[str] | None = None,
    test_fraction: float | None = 0.2,
    losses: Mapping[str, ArrayLike] | None = None,
    seed: int = 0,
    method: Literal["auto", "exact", "sample"] = "auto",
    draws: int = 500,
    chains: int = 2,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Losses on rows held out, after training on ``n`` rows of each group.

    Parameters
    ----------
    models
        Models, or models by the names they are to have. All see the same rows.
    data : GroupedTable
        Labelled rows are drawn from; rows without a label are not used.
    sizes
        The training sizes ``n``, in rows of a group; 0 is allowed.
    repeats
        How often the rows are shuffled.
    others : {"same", "all"}
        What is known of the other groups when a group is predicted: ``n`` rows of each (the
        thesis; one fit a size), or all their rows (one fit a size and group).
    groups
        The groups that are predicted, by name; all by default.
    test_fraction
        Share of each group's rows that is held out at every size; None holds out all that is not
        trained on, as the thesis does.
    losses
        Loss matrices by name, beside 0-1 and log loss; see :func:`bayes_lcs.mean_loss`.
    seed
        Of the shuffles, and of the sampler.
    method, draws, chains
        How each model is fitted; see :func:`bayes_lcs.inference.condition.condition`.
    progress
        Show a progress bar; None shows one on a terminal.

    Returns
    -------
    pandas.DataFrame
        One row for each ``model``, ``group``, ``size`` and ``repeat``: ``num_rows`` held out,
        whether the fit behind them can be trusted, and their mean ``zero_one_loss``, ``log_loss``
        and the losses named. ``convergence`` is ``"exact"``, ``"converged"`` or ``"not
        converged"``, or why R-hat cannot tell: ``"constant"``, ``"one chain"`` or ``"too few
        draws"``. ``rhat`` is the worst R-hat and ``ess`` the fewest effective draws, NaN if there
        are none.

    Warns
    -----
    SamplingWarning
        Once, with the fits of which R-hat exceeds 1.01, effective draws are below 400, or a
        diagnosed quantity never varied.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=40)
    >>> models = [bl.NoSharing(), bl.CompleteSharing()]
    >>> frame = bl.learning_curve(models, data, [5, 30], repeats=2)
    >>> bl.average_learning_curve(frame)[["model", "size", "zero_one_loss"]].round(2)
                  model  size  zero_one_loss
    0        No-Sharing     5           0.27
    1        No-Sharing    30           0.13
    2  Complete-Sharing     5           0.17
    3  Complete-Sharing    30           0.14
    """
    import pandas as pd

    named = _named(models)
    matrices = {"zero_one_loss": "zero-one", "log_loss": "log", **(losses or {})}
    if clash := set(KEYS) & set(matrices):
        raise ValueError(f"a loss cannot be named {sorted(clash)[0]!r}")
    if others not in ("same", "all"):
        raise ValueError(f"others must be 'same' or 'all', got {others!r}")
    if isinstance(groups, str):
        raise TypeError(f"groups must be a list of names, such as [{groups!r}]")
    if repeats < 1 or not len(sizes):
        raise ValueError("there must be at least one size and one repeat")
    labelled = data.labelled()
    codes = _codes(labelled, groups)
    _check_sizes(labelled, sizes, codes, test_fraction)
    rng = np.random.default_rng(seed)
    found = []
    fits: dict[str, Convergence] = {}
    num_fits = repeats * len(sizes) * len(named)
    with progress_bar("learning curves", num_fits, progress) as tick:
        for repeat in range(repeats):
            orders = [
                rng.permutation(np.flatnonzero(labelled.groups == u))
                for u in range(labelled.num_groups)
            ]
            for name, model in named.items():
                for size in map(int, sizes):
                    for train, held_out in _trials(orders, size, codes, others, test_fraction):
                        posterior = condition(
                            model,
                            labelled.take(train),
                            method=method,
                            draws=draws,
                            chains=chains,
                            seed=seed,
                            progress=False,
                        )
                        fit = judge(posterior)
                        whose = f"{name}, {size} rows"
                        if others == "all":
                            whose += f" of {labelled.group_names[next(iter(held_out))]}"
                        fits[f"{whose}, repeat {repeat}"] = fit
                        for code, rows in held_out.items():
                            tested = labelled.take(rows)
                            p = posterior.predict_proba(tested)
                            key = (name, labelled.group_names[code], size, repeat, len(rows))
                            trust = (fit.verdict, fit.rhat, fit.ess)
                            means = (
                                row_losses(p, tested.labels, matrix).mean()
                                for matrix in matrices.values()
                            )
                            found.append((*key, *trust, *means))
                    tick(status=f"{name}, {size} rows")
    warn_of_fits(fits, draws, chains)
    return pd.DataFrame(found, columns=[*KEYS, *matrices])


def _trials(
    orders: list[IntArray],
    size: int,
    codes: list[int],
    others: str,
    test_fraction: float | None,
) -> Iterator[tuple[IntArray, dict[int, IntArray]]]:
    """Training rows, and the rows held out of each group that is predicted from them."""
    training, held_out = [], {}
    for code, order in enumerate(orders):
        first = _num_tested(len(order), test_fraction)
        pool = order[first:]
        training.append(pool[:size])
        tested = order[:first] if test_fraction is not None else pool[size:]
        if code in codes and len(pool) >= size and len(tested):
            held_out[code] = tested
    if others == "same":
        yield np.concatenate(training), held_out
        return
    for code, tested in held_out.items():
        yield np.concatenate([*orders[:code], training[code], *orders[code + 1 :]]), {code: tested}


def _num_tested(num_rows: int, test_fraction: float | None) -> int:
    return 0 if test_fraction is None else int(np.ceil(test_fraction * num_rows))


def average_learning_curve(
    frame: pd.DataFrame, by: Sequence[str] = ("model", "size")
) -> pd.DataFrame:
    """Means over the repeats of a learning curve, with standard errors over the repeats.

    The groups of a repeat are averaged first, each weighing the same. The errors say how far the
    means would move with other shuffles of the same rows, not with other groups.

    Parameters
    ----------
    frame
        From `learning_curve`.
    by
        ``("model", "size")``, or ``("model", "group", "size")`` for a curve of each group.

    Returns
    -------
    pandas.DataFrame
        The columns of ``by``, and each loss beside its ``..._standard_error``; NaN of one repeat.
    """
    losses = [column for column in frame.columns if column not in KEYS]
    each = frame.groupby([*by, "repeat"], sort=False)[losses].mean()
    grouped = each.groupby(list(by), sort=False)[losses]
    means, errors = grouped.mean(), grouped.sem().add_suffix("_standard_error")
    columns = [name for loss in losses for name in (loss, f"{loss}_standard_error")]
    return means.join(errors)[columns].reset_index()


def _named(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(models, Mapping):
        return dict(models)
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise ValueError(f"two models have the same name in {names}; give a dict of models by name")
    return dict(zip(names, models, strict=True))


def _codes(data: GroupedTable, groups: Sequence[str] | None) -> list[int]:
    if groups is None:
        return list(range(data.num_groups))
    unknown = set(groups) - set(data.group_names)
    if unknown:
        raise ValueError(f"there is no group {sorted(unknown)[0]!r}")
    return [data.group_names.index(name) for name in groups]


def _check_sizes(
    data: GroupedTable, sizes: Sequence[int], codes: list[int], test_fraction: float | None
) -> None:
    """Every size must leave some group with enough rows to train on and a row to predict."""
    if test_fraction is not None and not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie in (0, 1) or be None, got {test_fraction}")
    numbers = data.group_sizes[codes]
    most = max((int(n) - max(_num_tested(int(n), test_fraction), 1) for n in numbers), default=0)
    for size in sizes:
        if not 0 <= size <= most:
            raise ValueError(
                f"size {size} is not between 0 and {most}, the most rows that the largest group "
                "can be trained on"
            )
