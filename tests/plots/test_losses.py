"""Plots of losses and of clusters: what is drawn where, and names taken literally."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.evaluation.cluster_log_ratios import cluster_log_ratios

mpl.use("Agg")
from matplotlib import pyplot as plt

HOSTILE = r"$\frac{1}{0}$"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return bl.meeting_requests(seed=0, rows_per_person=20)


@pytest.fixture(scope="module")
def frame(data):
    models = {"No-Sharing": bl.NoSharing(), HOSTILE: bl.CompleteSharing()}
    return bl.learning_curve(models, data[0], [2, 5, 10], repeats=3)


def test_learning_curves(frame):
    axes = bl.plot_learning_curves(frame, loss="log_loss")
    axes.figure.canvas.draw()
    means = bl.average_learning_curve(frame)
    for line, model in zip(axes.get_lines(), ["No-Sharing", HOSTILE], strict=True):
        own = means[means["model"] == model]
        np.testing.assert_allclose(line.get_xdata(), own["size"])
        np.testing.assert_allclose(line.get_ydata(), own["log_loss"])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "No-Sharing",
        r"\$\frac{1}{0}\$",
    ]
    band = axes.collections[0].get_datalim(axes.transData)
    first = means[means["model"] == "No-Sharing"]
    highest = (first["log_loss"] + 1.96 * first["log_loss_standard_error"]).max()
    assert band.y1 == pytest.approx(highest)


def test_learning_curve_of_one_group(frame):
    axes = bl.plot_learning_curves(frame, group="person-03")
    assert "person-03" in axes.get_title()
    own = frame[(frame["group"] == "person-03") & (frame["model"] == "No-Sharing")]
    expected = own.groupby("size")["zero_one_loss"].mean()
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), expected)


def test_a_column_or_group_that_is_not_there(frame):
    with pytest.raises(ValueError, match="no column"):
        bl.plot_learning_curves(frame, loss="absolute")
    with pytest.raises(ValueError, match="no group"):
        bl.plot_learning_curves(frame, group="nobody")


def test_loss_curve_on_given_axes(data):
    left_out = bl.leave_one_out(bl.exact(bl.NoSharing(), data[0]))
    curve = bl.asymmetric_loss_curve({HOSTILE: left_out.probabilities}, left_out.labels)
    figure, given = plt.subplots()
    axes = bl.plot_loss_curve(curve, given)
    figure.canvas.draw()
    assert axes is given
    level, line = axes.get_lines()
    assert set(level.get_ydata()) == {1.0}
    np.testing.assert_allclose(line.get_ydata(), curve["relative_loss"])
    assert axes.get_xticks().tolist() == list(range(-8, 9))
    assert axes.get_ylabel() == "loss relative to the best constant decision"


def test_cluster_profiles(data):
    table, truth = data
    model = bl.ClusteredNaiveBayes()
    hostile = replace(table, feature_names=(HOSTILE, *table.feature_names[1:]))
    axes = bl.plot_cluster_profiles(model, hostile, truth.partition)
    axes.figure.canvas.draw()
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert len(names) == 80 + 15
    assert names[:4] == [r"\$\frac{1}{0}\$", "morning", "afternoon", "early"]
    assert names[6:8] == ["duration", "15"]
    image = axes.get_images()[0]
    low, high = image.get_clim()
    assert low == -high
    shown = np.ma.filled(image.get_array(), np.nan)
    ratios = cluster_log_ratios(model, table, truth.partition)
    by_size = [0, 3, 4, 1, 2, 5, 6, 7, 8]  # Table 4.1: blocks of 6, 4, 3, 2, 2 and four of one
    assert np.isnan(shown[[0, 6]]).all()
    np.testing.assert_allclose(shown[1], ratios[by_size, 0])
    np.testing.assert_allclose(shown[-1], ratios[by_size, -1])
    assert [text.get_text() for text in axes.get_xticklabels()][:2] == [
        "person-01 and 5 more",
        "person-10 and 3 more",
    ]


def test_labels_are_not_cut_off(data):
    table, truth = data
    axes = bl.plot_cluster_profiles(bl.ClusteredNaiveBayes(), table, truth.partition)
    axes.figure.canvas.draw()
    page = axes.figure.bbox
    for text in (*axes.get_yticklabels(), *axes.get_xticklabels()):
        box = text.get_window_extent()
        assert box.x0 >= page.x0
        assert box.y1 <= page.y1
    boxes = [text.get_window_extent() for text in axes.get_yticklabels()]
    assert all(not a.overlaps(b) for a, b in zip(boxes, boxes[2:], strict=False))
