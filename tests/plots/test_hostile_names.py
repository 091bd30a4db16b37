"""Hostile names in every public plot: drawn as they are written, none read as mathematics."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.text import Text

import bayes_lcs as bl
from bayes_lcs.plots.figure import plain_text, save_figure
from tests.hostile_names import NAMES, UNSEEN

pytestmark = pytest.mark.filterwarnings("ignore:Glyph .* missing from:UserWarning")


def grouped() -> bl.GroupedTable:
    rng = np.random.default_rng(0)
    names = np.array(NAMES, dtype=object)
    frame = pd.DataFrame({name: rng.choice(names[:3], len(NAMES)) for name in NAMES[:20]})
    frame[NAMES[20]] = rng.permutation(names)
    frame["group"], frame["label"] = names, np.resize(names[-2:], len(NAMES))
    return bl.GroupedTable.from_frame(
        frame, group="group", label="label", categorical=True, missing_values=()
    )


def curve(column: str, *values: str) -> pd.DataFrame:
    """A frame with a line for every name."""
    frame = pd.DataFrame({"model": [name for name in NAMES[:30] for _ in range(2)]})
    frame["group"], frame["repeat"] = NAMES[0], 0
    frame[column] = [1, 2] * 30
    for value in values:
        frame[value] = np.linspace(0.1, 1.0, 60)
    return frame


def profiles(ax: Any) -> Any:
    data = grouped()
    partition = np.arange(data.num_groups)
    label = data.label_values[0]
    return bl.plot_cluster_profiles(bl.ClusteredNaiveBayes(), data, partition, ax, label=label)


def mixture(ax: Any) -> Any:
    rows = pd.DataFrame({name: list(NAMES[i : i + 2]) * 5 for i, name in enumerate(NAMES[:-1])})
    clusterer = bl.MixtureClusterer(2, random_state=0).fit(rows)
    return bl.plot_mixture_profiles(clusterer, ax, max_features=100)


def evidence(ax: Any) -> Any:
    results = [
        SimpleNamespace(model=name, value=-1.0, lower=-1.0, upper=-1.0, is_exact=True, method="a")
        for name in NAMES
    ]
    return bl.plot_evidence(results, ax)


def learning_curves(ax: Any) -> Any:
    frame = curve("size", "zero_one_loss", "log_loss", "num_test")
    return bl.plot_learning_curves(frame, ax, group=NAMES[0])


def loss_curve(ax: Any) -> Any:
    frame = curve("exponent", "relative_loss", "relative_standard_error")
    frame["relative_to"] = NAMES[0]
    return bl.plot_loss_curve(frame, ax)


def coclustering(ax: Any) -> Any:
    size = len(NAMES)
    ax.figure.set_size_inches(20, 20)  # room for all of them
    return bl.plot_coclustering(np.eye(size), np.arange(size), NAMES, ax)


PLOTS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "coclustering": (coclustering, NAMES),
    "cluster_profiles": (profiles, NAMES[20:]),
    "mixture_profiles": (mixture, NAMES),
    "evidence": (evidence, NAMES),
    "learning_curves": (learning_curves, NAMES[:30]),
    "loss_curve": (loss_curve, NAMES[:30]),
}


@pytest.mark.parametrize("name", PLOTS)
def test_names_are_drawn_as_they_are_written(name: str) -> None:
    plot, shown = PLOTS[name]
    figure, axes = plt.subplots(figsize=(8, 8))
    plot(axes)
    figure.savefig(io.BytesIO(), format="svg")
    texts = [text.get_text() for text in figure.findobj(Text)]
    ours = [text for text in texts if not text.startswith("$\\mathdefault{")]
    assert not [text for text in ours if is_math_text(text)]
    assert not UNSEEN & set("".join(texts))
    drawn = "\n".join(texts)
    for own in shown:
        assert plain_text(own, longest=18)[:-1] in drawn
    plt.close(figure)


def test_every_plot_with_names_is_here() -> None:
    """Those that are left out draw numbers only."""
    numbers = {
        *("em_trace", "num_clusters", "sampling_curve", "scan", "stopping_line"),
    }
    assert {f"plot_{name}" for name in {*PLOTS, *numbers}} == {
        name for name in bl.__all__ if name.startswith("plot_")
    }


def test_pictures_are_saved_without_a_word_about_fonts(tmp_path: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(tmp_path / "a.png", (3, 3), lambda ax: ax.set_title("😀 日本 \U0001f9ff"))
    assert (tmp_path / "a.png").stat().st_size


def test_dollars_and_underscores_with_tex_off() -> None:
    assert not mpl.rcParams["text.usetex"]
    for name in ("$x$", "a$b$c", "\\$x$", "$$"):
        assert Text()._preprocess_math(plain_text(name)) == (name, False)  # type: ignore[attr-defined]
