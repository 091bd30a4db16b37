"""The picture of a scan shows its numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bayes_lcs as bl


@pytest.mark.parametrize("early_stop", [True, False])
def test_the_picture_of_a_scan(early_stop):
    X = np.random.default_rng(0).normal(size=(4000, 2))
    classifier = bl.PartialScanClassifier(n_partitions=32, early_stop=early_stop, random_state=0)
    classifier.fit(X, X[:, 0] > 0)
    ax = bl.plot_scan(classifier)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), classifier.scan_.trace["fraction"])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), classifier.scan_.trace["settled"])
    drawn = {text.get_text() for text in ax.texts}
    assert ("not read" in drawn) == (classifier.scanned_fraction_ < 0.85)
    _, other = plt.subplots()
    assert bl.plot_scan(classifier.scan_, other) is other
    plt.close("all")
