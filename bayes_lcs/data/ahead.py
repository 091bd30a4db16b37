"""Make the next pieces while one is worked on.

pyarrow leaves Python free while it parses and unpacks, so that other cores have work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["each_ahead", "one_ahead"]

T = TypeVar("T")
S = TypeVar("S")


def one_ahead(items: Iterator[T]) -> Generator[T]:
    """The same items, each made in another thread while the one before is worked on.

    No more than one item waits. None ends them.

    Examples
    --------
    >>> list(one_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as aside:
        coming = aside.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = aside.submit(next, items, None)
            yield item


def each_ahead(function: Callable[[S], T], items: Iterator[S], threads: int) -> Generator[T]:
    """``function(item)`` of all items in their order, made in threads ahead of being asked for.

    Items are taken in the thread that asks, and no more than ``threads + 1`` of them wait. If
    taking one fails, everything before it is given out first.

    Examples
    --------
    >>> list(each_ahead(str.upper, iter("abc"), 2))
    ['A', 'B', 'C']
    """
    waiting: deque[Future[T]] = deque()
    with _threads(threads) as pool:
        while True:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception:
                while waiting:
                    yield waiting.popleft().result()
                raise
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _threads(number: int) -> Generator[ThreadPoolExecutor]:
    """A pool in which nothing is begun any more once it is left."""
    pool = ThreadPoolExecutor(number)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
