"""Accuracy on rows held out against the number of training rows, group by group.

The thesis's protocol (section 4.1): ``n`` random rows of every group are trained on and the
group's other rows are predicted, ``n`` in 50 equal steps, ten times over, from 10 rows (2 where a
group of median size has no more than 20) to all but one. Ten single rows say little: here the
steps end at 95 % of a group of median size, and the last point is leave-one-out over every row.
Groups too small for some ``n`` have no point there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import bayes_lcs as bl
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.left_out import predictions
from experiments.clustered_naive_bayes.setting import Setting

SEVERAL, ONE = "several", "all but one"


def learning_sizes(setting: Setting) -> list[int]:
    """The numbers of training rows, leave-one-out aside."""
    middle = int(np.median(setting.data.group_sizes))
    first, steps = (10 if middle > 20 else 2), (4 if setting.smoke else 50)
    last = max(int(0.95 * middle), first)
    return np.unique(np.linspace(first, last, steps).astype(int)).tolist()


def accuracy_curves(models: Sequence[Any], setting: Setting) -> pd.DataFrame:
    """Mean accuracy of each model, group and size, with its standard error.

    ``held_out`` is `SEVERAL` for random sets of rows, the error being that over the repeats, and
    `ONE` for leave-one-out, the error being that over the rows, which takes the place of random
    single rows.
    """
    frame = bl.learning_curve(
        models,
        setting.data,
        learning_sizes(setting),
        repeats=2 if setting.smoke else 10,
        others="same",
        test_fraction=None,
        seed=setting.seed,
    )
    means = bl.average_learning_curve(frame, by=("model", "group", "size"))
    means = means.rename(columns={"zero_one_loss_standard_error": "standard_error"})
    parts = [means.assign(accuracy=1.0 - means["zero_one_loss"], held_out=SEVERAL)]
    for name, found in predictions(models, setting).items():
        last = found.loss_by_group().dropna(subset="loss").reset_index(names="group")
        last = last.assign(model=name, size=last["num_rows"] - 1, accuracy=1.0 - last["loss"])
        parts.append(last.assign(held_out=ONE))
    columns = ["model", "group", "size", "held_out", "accuracy", "standard_error"]
    found = pd.concat([part[columns] for part in parts], ignore_index=True)
    return found.drop_duplicates(["model", "group", "size"], keep="last", ignore_index=True)


def mean_accuracy(curves: pd.DataFrame, model: Any) -> pd.Series:
    """Accuracy averaged over the groups, by size; the last entry is leave-one-out."""
    own = curves[curves["model"] == model.name]
    several = own[own["held_out"] == SEVERAL].groupby("size")["accuracy"].mean()
    several[ONE] = own.loc[own["held_out"] == ONE, "accuracy"].mean()
    return several


def leave_one_out_accuracy(curves: pd.DataFrame, model: Any) -> pd.Series:
    """Leave-one-out accuracy of each group."""
    own = curves[(curves["model"] == model.name) & (curves["held_out"] == ONE)]
    return own.set_index("group")["accuracy"]


def early_and_late(curves: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each model and group on the first and the last quarter of its sizes.

    Leave-one-out aside. ``falls`` says whether it is lower late than early by more than two
    standard errors; those of neighbouring sizes are taken to be as good as one, since they share
    most of their rows.
    """
    rows = []
    several = curves[curves["held_out"] == SEVERAL]
    for (model, group), own in several.groupby(["model", "group"], sort=False):
        quarter = max(len(own) // 4, 1)
        first, last = own.iloc[:quarter], own.iloc[-quarter:]
        early, late = first["accuracy"].mean(), last["accuracy"].mean()
        error = np.hypot(first["standard_error"].mean(), last["standard_error"].mean())
        rows.append((model, group, early, late, bool(late < early - 2 * error)))
    return pd.DataFrame(rows, columns=["model", "group", "early", "late", "falls"])


def average_table(name: str, curves: pd.DataFrame, models: Sequence[Any], most: int = 9) -> Table:
    """Accuracy averaged over the groups, for some of the sizes and leave-one-out."""
    wide = pd.DataFrame({model.name: mean_accuracy(curves, model) for model in models})
    shown = np.append(np.unique(np.linspace(0, len(wide) - 2, most).astype(int)), len(wide) - 1)
    rows = [(wide.index[at], *map(float, wide.iloc[at])) for at in shown]
    title = "Accuracy on rows held out, mean of all groups"
    return Table(name, title, ("training rows of each group", *wide.columns), rows)
