"""Learning curves: loss on test rows as a function of the training rows of each group.

Protocol of the thesis (section 4.1, Figure 4-1; section 4.2, Figure 4-3): train on a random set of
``n`` rows of each group and predict the other rows of the group, for ``n`` from few to all but one,
ten times. Models that share are trained on ``n`` rows *of every group*: ``others="same"``. The
extension ``others="all"`` answers the question that sharing is meant for: a group with ``n`` known
rows is added to groups whose rows are all known.

There are two differences. Within a repeat the training sets are nested, and the test rows are the
same for every ``n`` unless ``test_fraction`` is None (as in the thesis), so that differences along
a curve are due to the training rows and not to the choice of test rows. And ``n`` is a number of
rows instead of a share of the group: a group that is too small for some ``n`` has no point there.
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
    """Return losses on test rows, after training on ``n`` rows of each group.

    Parameters
    ----------
    models
        Models, or a mapping of names to models. All use the same rows.
    data : GroupedTable
        The table; rows without a label are not used.
    sizes
        The training sizes ``n``, in rows per group; 0 is allowed.
    repeats
        Number of random shuffles of the rows.
    others : {"same", "all"}
        Training rows of the other groups when a group is predicted: ``n`` rows of each (as in the
        thesis; one fit per size), or all their rows (one fit per size and group).
    groups
        Names of the groups that are predicted; all by default.
    test_fraction
        Share of each group's rows that is held out at every size; None holds out all rows that are
        not trained on, as in the thesis.
    losses
        Loss matrices by name, in addition to 0-1 and log loss; see :func:`bayes_lcs.mean_loss`.
    seed
        Seed of the shuffles and of the sampler.
    method, draws, chains
        Inference method of each fit; see :func:`bayes_lcs.inference.condition.condition`.
    progress
        Show a progress bar; None shows one on a terminal.

    Returns
    -------
    pandas.DataFrame
        One row for each ``model``, ``group``, ``size`` and ``repeat``, with ``num_rows`` held out,
        convergence diagnostics of the fit, and the mean ``zero_one_loss``, ``log_loss`` and other
        losses. ``convergence`` is ``"exact"``, ``"converged"`` or ``"not converged"``, or the
        reason why R-hat is not available: ``"constant"``, ``"one chain"`` or ``"too few draws"``.
        ``rhat`` is the largest R-hat and ``ess`` the smallest effective sample size, NaN if there
        are none.

    Warns
    -----
    SamplingWarning
        If in any fit R-hat exceeds 1.01, the effective sample size is below 400, or a diagnosed
        quantity never varied; one warning for all fits.

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

    named = _models_by_name(models)
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
    codes = _group_codes(labelled, groups)
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
                    for train, held_out in _train_test_splits(
                        orders, size, codes, others, test_fraction
                    ):
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
                        fit_name = f"{name}, {size} rows"
                        if others == "all":
                            fit_name += f" of {labelled.group_names[next(iter(held_out))]}"
                        fits[f"{fit_name}, repeat {repeat}"] = fit
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


def _train_test_splits(
    orders: list[IntArray],
    size: int,
    codes: list[int],
    others: str,
    test_fraction: float | None,
) -> Iterator[tuple[IntArray, dict[int, IntArray]]]:
    """Yield training rows, and the test rows of each group that is predicted from them."""
    training, held_out = [], {}
    for code, order in enumerate(orders):
        first = _num_test_rows(len(order), test_fraction)
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


def _num_test_rows(num_rows: int, test_fraction: float | None) -> int:
    return 0 if test_fraction is None else int(np.ceil(test_fraction * num_rows))


def average_learning_curve(
    frame: pd.DataFrame, by: Sequence[str] = ("model", "size")
) -> pd.DataFrame:
    """Average a learning curve over its repeats, with standard errors over the repeats.

    The groups of a repeat are averaged first, with equal weights. The standard errors describe the
    variation over shuffles of the same rows, not over groups.

    Parameters
    ----------
    frame
        Result of `learning_curve`.
    by
        ``("model", "size")``, or ``("model", "group", "size")`` for a curve of each group.

    Returns
    -------
    pandas.DataFrame
        The columns of ``by``, and each loss with its ``..._standard_error``; NaN for one repeat.
    """
    losses = [column for column in frame.columns if column not in KEYS]
    each = frame.groupby([*by, "repeat"], sort=False)[losses].mean()
    grouped = each.groupby(list(by), sort=False)[losses]
    means, errors = grouped.mean(), grouped.sem().add_suffix("_standard_error")
    columns = [name for loss in losses for name in (loss, f"{loss}_standard_error")]
    return means.join(errors)[columns].reset_index()


def _models_by_name(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(models, Mapping):
        return dict(models)
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise ValueError(f"two models have the same name in {names}; give a dict of models by name")
    return dict(zip(names, models, strict=True))


def _group_codes(data: GroupedTable, groups: Sequence[str] | None) -> list[int]:
    if groups is None:
        return list(range(data.num_groups))
    unknown = set(groups) - set(data.group_names)
    if unknown:
        raise ValueError(f"there is no group {sorted(unknown)[0]!r}")
    return [data.group_names.index(name) for name in groups]


def _check_sizes(
    data: GroupedTable, sizes: Sequence[int], codes: list[int], test_fraction: float | None
) -> None:
    """Check that at every size some group has enough training rows and a row to predict."""
    if test_fraction is not None and not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie in (0, 1) or be None, got {test_fraction}")
    numbers = data.group_sizes[codes]
    most = max((int(n) - max(_num_test_rows(int(n), test_fraction), 1) for n in numbers), default=0)
    for size in sizes:
        if not 0 <= size <= most:
            raise ValueError(
                f"size {size} is not between 0 and {most}, the maximum number of training rows of "
                "the largest group"
            )
