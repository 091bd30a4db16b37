"""Pictures of partitions: names of groups never overlap, however many there are."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bayes_lcs as bl


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("size", [(8.5, 7.2), (3, 6), (9, 3)])
@pytest.mark.parametrize("num_groups", [3, 30, 138, 200])
def test_names_of_groups_do_not_overlap(num_groups, size):
    figure, ax = plt.subplots(figsize=size)
    names = [f"group-{i}" for i in range(num_groups)]
    bl.plot_coclustering(np.eye(num_groups), np.arange(num_groups), names, ax)
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    tops = sorted((box.y0, box.y1) for box in boxes)
    assert all(above[0] >= below[1] for below, above in pairwise(tops))
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == names[:: -(-num_groups // len(shown))]
    assert ("one name in" in ax.get_xlabel()) == (len(shown) < num_groups)
    if num_groups <= 30 and min(size) > 7:
        assert len(shown) == num_groups


@pytest.mark.parametrize("most", [1, 2, 60])
def test_numbers_of_clusters_are_whole_and_few(most):
    probability = np.zeros(most + 2)
    probability[1 : most + 1] = 1 / most
    ax = bl.plot_num_clusters(probability)
    ax.figure.canvas.draw()
    shown = [label.get_text() for label in ax.get_xticklabels() if label.get_text()]
    assert 1 <= len(shown) <= 22
    assert all(text.replace("−", "-").lstrip("-").isdigit() for text in shown)


def test_large_differences_of_evidence_are_written_out():
    data, _ = bl.meeting_requests(seed=0, rows_per_person=5)
    found = [bl.evidence(model, data) for model in (bl.NoSharing(), bl.CompleteSharing())]
    ax = bl.plot_evidence(found)
    ax.set_xlim(0, 2.4e6)
    ax.figure.canvas.draw()
    shown = [label.get_text() for label in ax.get_xticklabels()]
    assert "2,000,000" in shown
    assert ax.xaxis.get_offset_text().get_text() == ""
