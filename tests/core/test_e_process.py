"""Bets without replacement: nobody can expect to win, and nobody too often."""

from itertools import permutations

import numpy as np
import pytest

from bayes_lcs.core.e_process import STAKES, log_e_value


@pytest.mark.parametrize("mean", [0.5, 0.3])
@pytest.mark.parametrize("num_known", [0, 1])
def test_wealth_is_at_most_one_on_average_over_all_orders(mean, num_known):
    """Whatever came first, if what is known is given: each number of parts, all 720 orders."""
    numbers = np.array([0.9, 0.1, 0.0, 0.4, 0.65, 0.35])
    numbers = numbers * (6 * mean / numbers.sum())
    orders = np.array(list(permutations(numbers))).T
    for drawn in range(1, 6):
        wealth = np.exp(log_e_value(orders[:drawn], 6, mean, num_known))
        for first in np.unique(orders[0]) if num_known else (None,):
            given = slice(None) if first is None else orders[0] == first
            assert wealth[given].mean() <= 1.0 + 1e-12
    assert wealth.max() > 1.5


def test_wealth_by_hand():
    drawn, all_, mean = [0.8, 0.3], 5, 0.4
    first, second = (5 * 0.4) / 5, (5 * 0.4 - 0.8) / 4
    by_hand = np.mean([(1 + f * (0.8 / first - 1)) * (1 + f * (0.3 / second - 1)) for f in STAKES])
    found = log_e_value(np.array(drawn), all_, mean)
    assert float(np.exp(found)) == pytest.approx(by_hand, rel=1e-12)


def test_what_is_sure_is_infinite_and_what_is_not_is_not():
    assert np.isinf(log_e_value(np.ones(6), 10, 0.5))
    assert np.isfinite(log_e_value(np.ones(5), 10, 0.5))
    assert log_e_value(np.zeros(5), 10, 0.5) < 0.0


@pytest.mark.parametrize("level", [0.3, 0.1])
def test_the_bound_is_crossed_no_more_often_than_stated_at_any_time(level):
    """5,000 orders of 64 votes that tie: looks after every one."""
    rng = np.random.default_rng(0)
    votes = np.repeat([0.0, 1.0], 32)
    orders = rng.permuted(np.tile(votes, (5000, 1)), axis=1).T
    crossed = np.zeros(5000, bool)
    for k in range(1, 64):
        crossed |= log_e_value(orders[:k], 64, 0.5) >= np.log(1.0 / level)
    error = np.sqrt(level * (1.0 - level) / 5000)
    assert crossed.mean() < level + 3.0 * error
    assert crossed.mean() > 0.3 * level  # not so careful as to be of no use


def test_many_at_once_are_each_alone():
    rng = np.random.default_rng(1)
    drawn = rng.random((11, 4, 3))
    means = rng.random((4, 3))
    together = log_e_value(drawn, 20, means)
    alone = [[log_e_value(drawn[:, i, j], 20, means[i, j]) for j in range(3)] for i in range(4)]
    np.testing.assert_allclose(together, np.array(alone, float), rtol=1e-12)
