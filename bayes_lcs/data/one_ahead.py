"""Read the next piece while one is worked on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["one_ahead"]

T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Generator[T]:
    """The same items, each made in another thread while the one before is worked on.

    pyarrow leaves Python free while it parses and unpacks, so that a second core has work. No more
    than one item waits. None ends them.

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
