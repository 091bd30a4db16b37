"""Pictures of mixtures: the numbers drawn, and names drawn as they are written."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl

mpl.use("Agg")


@pytest.fixture(scope="module")
def clusterer():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 4, 300) == 0
    cells = [np.where(rng.random(300) < 0.1, ~z, z) for _ in range(5)]
    noise = rng.integers(0, 2, 300)
    frame = pd.DataFrame(np.column_stack([*cells, noise]).astype(int))
    frame.columns = ["$x$", "<b>", "c", "d", "e", "noise"]
    frame["$x$"] = np.where(frame["$x$"], "$1_2$", "no")
    return bl.MixtureClusterer(2, n_init=2, random_state=0).fit(frame)


def test_profiles(clusterer):
    import matplotlib.pyplot as plt

    axes = bl.plot_mixture_profiles(clusterer)
    picture = np.asarray(axes.images[0].get_array())
    weights = clusterer.weights_
    largest = int(weights.argmax())
    expected = np.log(clusterer.probabilities_[1] / (weights @ clusterer.probabilities_[1]))
    # A heading and two values a feature; the largest cluster first.
    np.testing.assert_allclose(picture[4:6, 0], expected[largest], rtol=1e-12)
    np.testing.assert_allclose(picture[4:6, 1], expected[1 - largest], rtol=1e-12)
    texts = [label.get_text() for label in axes.get_yticklabels()]
    assert texts[0] == r"\$x\$"
    assert len(texts) == 18
    axes.figure.canvas.draw()
    few = bl.plot_mixture_profiles(clusterer, max_features=5)
    assert "noise" not in [label.get_text() for label in few.get_yticklabels()]
    with pytest.raises(ValueError, match="max_features"):
        bl.plot_mixture_profiles(clusterer, max_features=0)
    plt.close("all")


def test_traces(clusterer):
    import matplotlib.pyplot as plt

    axes = bl.plot_em_trace(clusterer)
    assert len(axes.lines) == 2
    best = max(result.trace.max() for result in clusterer.results_)
    drawn = axes.lines[0].get_ydata()
    np.testing.assert_allclose(drawn[:5], (best - clusterer.results_[0].trace)[:5])
    plt.close("all")
