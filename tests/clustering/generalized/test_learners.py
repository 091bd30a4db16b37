"""The built-in learners on cases worked by hand."""

import numpy as np
import pytest

from bayes_lcs.clustering.generalized.learners.naive_bayes import NaiveBayesLearner
from bayes_lcs.clustering.generalized.learners.perceptron_list import PerceptronListLearner
from bayes_lcs.clustering.generalized.learners.prototype import PrototypeLearner
from bayes_lcs.clustering.generalized.learners.sklearn_adapter import ClassifierLearner
from bayes_lcs.clustering.generalized.learners.stump import StumpLearner, _information_gain
from bayes_lcs.clustering.generalized.mixed_columns import MixedRows

RNG = np.random.RandomState(0)


def numbers(*columns):
    values = np.array(columns, dtype=float).T
    return MixedRows(values, np.empty((len(values), 0), np.int64), ())


def names(codes, size):
    codes = np.array(codes)[:, None]
    return MixedRows(np.empty((len(codes), 0)), codes, (size,))


def test_prototypes_by_hand():
    rows = numbers([0.0, 2.0, 10.0])
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    fitted = PrototypeLearner().fit(rows, shares, RNG)
    # On the unit scale 0, 0.2, 1: means 0.1 / 1.5 and 1.1 / 1.5.
    np.testing.assert_allclose(fitted.means.ravel(), [0.1 / 1.5, 1.1 / 1.5])
    assert fitted.assign(rows).tolist() == [0, 0, 1]
    near, far = 0.2 - 0.1 / 1.5, 1.1 / 1.5 - 0.2
    expected = near**-2 / (near**-2 + far**-2)
    assert fitted.shares(rows)[1, 0] == pytest.approx(expected)


def test_a_row_at_a_mean_belongs_to_it_alone():
    rows = numbers([0.0, 1.0])
    fitted = PrototypeLearner().fit(rows, np.eye(2), RNG)
    np.testing.assert_array_equal(fitted.shares(rows), np.eye(2))


def test_naive_bayes_by_hand():
    rows = names([0, 0, 1], 2)
    shares = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    fitted = NaiveBayesLearner(prior=1.0).fit(rows, shares, RNG)
    joint = np.exp(fitted.log_joint(names([0, 1, -1], 2)))
    # Smoothed by one: classes have 3 and 2 of 5, the first name 3 of 4 and 1 of 3.
    np.testing.assert_allclose(joint[0], [3 / 5 * 3 / 4, 2 / 5 * 1 / 3])
    np.testing.assert_allclose(joint[1], [3 / 5 * 1 / 4, 2 / 5 * 2 / 3])
    np.testing.assert_allclose(joint[2], [3 / 5, 2 / 5])


def test_numbers_have_weighted_normal_distributions():
    rows = numbers([1.0, 3.0, 7.0])
    shares = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    fitted = NaiveBayesLearner(smoothing=1e-12).fit(rows, shares, RNG)
    mean = (0.5 * 1 + 3) / 1.5
    np.testing.assert_allclose(fitted.means[0, 0], mean)
    np.testing.assert_allclose(
        fitted.variances[0, 0], (0.5 * (1 - mean) ** 2 + (3 - mean) ** 2) / 1.5, rtol=1e-6
    )


def test_a_class_without_rows_is_no_reason_to_fail():
    rows = numbers([0.0, 1.0, 2.0, 3.0])
    shares = np.zeros((4, 3))
    shares[:2, 0] = shares[2:, 2] = 1.0
    for learner in (
        PrototypeLearner(),
        NaiveBayesLearner(),
        PerceptronListLearner(),
        StumpLearner(),
    ):
        fitted = learner.fit(rows, shares, np.random.RandomState(0))
        found = fitted.shares(rows)
        assert found.shape == (4, 3)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert set(fitted.assign(rows)) <= {0, 2}


def test_information_by_hand():
    assert _information_gain(np.array([[2.0, 0.0], [0.0, 2.0]])) == pytest.approx(1.0)
    assert _information_gain(np.array([[1.0, 1.0], [1.0, 1.0]])) == pytest.approx(0.0)
    # H(1/2) - 3/4 H(1/3)
    third = -(np.log2(1 / 3) / 3 + 2 * np.log2(2 / 3) / 3)
    assert _information_gain(np.array([[2.0, 1.0], [0.0, 1.0]])) == pytest.approx(
        1.0 - 0.75 * third
    )


def test_the_stump_takes_the_column_that_tells_most():
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    rows = numbers(rng.normal(size=60), 10.0 * kind + rng.normal(size=60), rng.normal(size=60))
    fitted = StumpLearner().fit(rows, np.eye(3)[kind], np.random.RandomState(0))
    assert fitted.column == 1
    np.testing.assert_array_equal(fitted.assign(rows), kind)


def test_branches_of_names_hold_weighted_shares():
    shares = np.array([[0.75, 0.25], [0.25, 0.75], [0.0, 1.0]])
    fitted = StumpLearner().fit(names([0, 0, 1], 3), shares, RNG)
    found = fitted.shares(names([0, 1, 2, -1], 3))
    np.testing.assert_allclose(found[:2], [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(found[2:], [[1 / 3, 2 / 3]] * 2)  # no row there: as all rows


def test_a_list_of_perceptrons_largest_class_first():
    rng = np.random.default_rng(1)
    kind = np.repeat([0, 1, 2], [20, 60, 30])
    centers = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    points = centers[kind] + rng.normal(size=(110, 2))
    rows = numbers(*points.T)
    fitted = PerceptronListLearner().fit(rows, np.eye(3)[kind], np.random.RandomState(0))
    assert fitted.order == (1, 2)
    assert fitted.default == 0
    assert (fitted.assign(rows) == kind).mean() > 0.97
    shares = fitted.shares(rows)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    normal, threshold = fitted.planes[0]
    total = fitted.space.points(rows) @ normal - threshold
    np.testing.assert_allclose(shares[:, 1], 1.0 / (1.0 + np.exp(-5.0 * total)))
    assert np.linalg.norm(normal) == pytest.approx(1.0)


def test_a_classifier_gets_every_share_as_a_weight():
    class Recorder:
        classes_ = np.array([0, 1])

        def get_params(self, deep=False):
            return {}

        def fit(self, X, y, sample_weight=None):
            self.got = (X.ravel().tolist(), y.tolist(), sample_weight.tolist())
            return self

        def __sklearn_clone__(self):
            return self

    rows = numbers([1.0, 2.0])
    fitted = ClassifierLearner(Recorder()).fit(rows, np.array([[0.25, 0.75], [0.0, 1.0]]), RNG)
    assert fitted.classifier.got == ([1.0, 1.0, 2.0], [0, 1, 1], [0.25, 0.75, 1.0])
