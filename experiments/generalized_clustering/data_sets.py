"""The paper's four natural data sets, four more, and its four made domains."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.data.datasets import dataset_path

PER_CLASS = 125
"""Rows of each class in a made domain, as in the paper."""


class Labelled(NamedTuple):
    """Rows, and the class of each."""

    X: pd.DataFrame
    y: NDArray[np.int64]


def _table(
    name: str, file: str | None, label: int, drop: tuple[int, ...], nominal: bool
) -> Labelled:
    frame = pd.read_csv(dataset_path(name, file), header=None, keep_default_na=False)
    y = pd.factorize(frame.pop(label), sort=True)[0]
    frame = frame.drop(columns=list(drop)).add_prefix("c")
    if nominal:
        frame = frame.astype(str)
    return Labelled(frame, y)


def _promoters() -> Labelled:
    frame = pd.read_csv(dataset_path("promoters"), header=None)
    letters = frame[2].str.strip().map(list)
    rows = pd.DataFrame(letters.tolist()).add_prefix("p")
    return Labelled(rows, pd.factorize(frame[0], sort=True)[0])


LOADERS: dict[str, Callable[[], Labelled]] = {
    "promoters": _promoters,
    "iris": partial(_table, "iris", None, 4, (), False),
    "hayes-roth": partial(_table, "hayes-roth", "hayes-roth.data", 5, (0,), True),
    # Two classes, with the column of row numbers: see README.
    "glass": partial(_table, "glass", "glass.data", 10, (), False),
    "glass without Id": partial(_table, "glass", "glass.data", 10, (0,), False),
    "zoo": partial(_table, "zoo", None, 17, (0,), True),
    "votes": partial(_table, "votes", None, 0, (), True),
    "balance-scale": partial(_table, "balance-scale", None, 0, (), False),
    "breast-cancer": partial(_table, "breast-cancer", None, 0, (), True),
}

PAPER = ("promoters", "iris", "hayes-roth", "glass")
MORE = ("glass without Id", "zoo", "votes", "balance-scale", "breast-cancer")
DOMAINS = ("prototype", "naive_bayes", "perceptron_list", "stump")


@cache
def natural(name: str) -> Labelled:
    """A data set of the folder that the environment names."""
    return LOADERS[name]()


def made(domain: str, separation: float, seed: int = 0, per_class: int = PER_CLASS) -> Labelled:
    """Two numbers, three classes, one region each, made for one learner.

    ``separation`` is the width of the empty space between regions, on a scale of 0 to 1.
    """
    rng = np.random.default_rng([seed, DOMAINS.index(domain)])
    kind = np.repeat(np.arange(3), per_class)
    u, v = rng.random((2, len(kind)))
    third = (1.0 - 2.0 * separation) / 3.0
    if domain == "stump":  # slices of the first number
        x, y = kind * (third + separation) + third * u, v
    elif domain == "perceptron_list":  # slices along a diagonal, each cut off by one line
        along = kind * (third + separation) + third * u
        x, y = along + 0.5 * (v - 0.5), along - 0.5 * (v - 0.5)
    elif domain == "prototype":  # discs around three points
        radius = (0.5 - separation) / 2.0 * np.sqrt(u)
        centers = np.array([[0.25, 0.25], [0.75, 0.25], [0.5, 0.75]])[kind]
        x, y = (
            centers + radius[:, None] * np.column_stack([np.cos(6.2832 * v), np.sin(6.2832 * v)])
        ).T
    else:  # normal clouds of different widths
        width = np.array([0.03, 0.08, 0.15])[kind] * (1.0 - separation)
        centers = np.array([[0.2, 0.2], [0.5, 0.6], [0.8, 0.3]])[kind]
        x, y = (centers + width[:, None] * rng.normal(size=(len(kind), 2))).T
    return Labelled(pd.DataFrame({"x": x, "y": y}), kind)
