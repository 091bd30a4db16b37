"""Pieces that are made ahead come in their order, and no more of them than was said."""

from __future__ import annotations

import threading
import time

import pytest

from bayes_lcs.data.ahead import each_ahead, one_ahead


def test_order_is_kept_whatever_takes_long():
    def slow_first(number: int) -> int:
        time.sleep(0.02 if number % 3 == 0 else 0.0)
        return number

    assert list(each_ahead(slow_first, iter(range(20)), 4)) == list(range(20))
    assert list(each_ahead(slow_first, iter(()), 4)) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_few_are_taken_ahead(threads):
    taken = []

    def items():
        for number in range(20):
            taken.append(number)
            yield number

    for found in each_ahead(str, items(), threads):
        assert len(taken) <= int(found) + threads + 1


def test_calls_run_at_the_same_time():
    both = threading.Barrier(2, timeout=20)
    assert list(each_ahead(lambda _: both.wait() >= 0, iter(range(2)), 2)) == [True, True]


def test_the_first_fault_is_the_one_that_is_told():
    """Taking an item fails before one that was taken earlier has been worked on."""

    def items():
        yield 0
        yield 1
        raise OSError("later")

    def work(number: int) -> int:
        if number:
            time.sleep(0.05)
            raise ValueError("earlier")
        return number

    found = each_ahead(work, items(), 4)
    assert next(found) == 0
    with pytest.raises(ValueError, match="earlier"):
        next(found)
    found = each_ahead(abs, items(), 4)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(OSError, match="later"):
        next(found)


def test_nothing_is_begun_once_nobody_asks():
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        time.sleep(0.02)
        return number

    found = each_ahead(work, iter(range(100)), 1)
    next(found)
    found.close()
    number = len(begun)
    time.sleep(0.1)
    assert len(begun) == number <= 3
    assert list(one_ahead(iter("ab"))) == ["a", "b"]
