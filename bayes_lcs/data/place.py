"""How far a source of several files was read, so that reading can go on from there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bayes_lcs.data.columns import BEGINNING, Mark

__all__ = ["START", "Place"]


class Place(NamedTuple):
    """How far a source was read: files that were, how far the next one was, and bytes before it."""

    files: int = 0
    mark: Mark = BEGINNING
    bytes: int = 0

    @classmethod
    def of_numbers(cls, numbers: Iterable[int]) -> Place:
        """From `numbers`."""
        files, *mark, size = (int(number) for number in numbers)
        return cls(files, Mark(*mark), size)

    @property
    def numbers(self) -> tuple[int, ...]:
        """To be written down."""
        return (self.files, *self.mark, self.bytes)


START = Place()
