"""Which bytes of a text table lie within quotes.

A quote that opens and one that closes take turns, so that a byte lies within quotes if an odd
number of them has come so far. The parities of 64 bytes at a time are found by shifting words of
one bit a byte (Langdale and Lemire, "Parsing gigabytes of JSON per second", 2019).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["within_quotes"]

_QUOTE, _RETURN, _NEWLINE = b'"\r\n'

_STEP = 1 << 18
"""Bytes that are looked at together: their bits stay in the processor's cache."""

_ONE, _LAST = np.uint64(1), np.uint64(63)


def within_quotes(text: bytes, delimiter: str) -> Callable[[int], bool]:
    """A function that says of a place in the text whether its byte lies within quotes.

    The text must begin with a record. The quote that opens a cell lies within, that which closes it
    does not; of two that stand for one within a cell, this is not said. As in pyarrow and in
    Python's csv module, a quote counts only if its cell begins with it.

    Examples
    --------
    >>> is_within = within_quotes(b'5" pipe,"a,b",c', ",")
    >>> [place for place in range(15) if is_within(place)]
    [8, 9, 10, 11]
    """
    ends = [ord(delimiter), _NEWLINE, *([_RETURN] if b"\r" in text else [])]
    bits = _alternating(np.frombuffer(text, np.uint8), ends)
    if bits is None:
        return _exactly(text, delimiter)
    return lambda place: bool(bits[place >> 3] >> (place & 7) & 1)


def _alternating(codes: NDArray[np.uint8], ends: list[int]) -> NDArray[np.uint8] | None:
    """A bit for each byte that is within quotes, if all quotes open and close in turn.

    Each that opens must follow the end of a cell, or be the second half of a doubled quote; else
    None.
    """
    found = np.zeros(-(-len(codes) // 64), np.uint64)
    is_within, is_border = np.uint64(0), _ONE  # of the byte before; a text begins with a cell
    for start in range(0, len(codes), _STEP):
        part = codes[start : start + _STEP]
        border = part == ends[0]
        for code in ends[1:]:
            border |= part == code
        quotes = _words(part == _QUOTE)
        within = _parities(quotes, is_within)
        before = quotes | _words(border)
        precedes = before << _ONE
        precedes[1:] |= before[:-1] >> _LAST
        precedes[0] |= is_border
        if np.any(quotes & within & ~precedes):
            return None
        is_within, is_border = within[-1] >> _LAST, before[-1] >> _LAST
        found[start // 64 :][: len(within)] = within
    return found.view(np.uint8)


def _words(marks: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Bits in words of 64, the first byte's the lowest."""
    packed = np.packbits(marks, bitorder="little")
    if len(packed) % 8:
        packed = np.concatenate([packed, np.zeros(-len(packed) % 8, np.uint8)])
    return packed.view("<u8").astype(np.uint64, copy=False)


def _parities(bits: NDArray[np.uint64], before: np.uint64) -> NDArray[np.uint64]:
    """Whether the number of bits up to each, that one and ``before`` included, is odd."""
    found = bits.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        found ^= found << np.uint64(shift)
    odd = np.bitwise_xor.accumulate(found >> _LAST)
    carried = np.concatenate([[before], odd[:-1] ^ before])
    found ^= np.uint64(0) - carried  # all bits are turned where the words before were odd
    return found


def _exactly(text: bytes, delimiter: str) -> Callable[[int], bool]:
    """The same for texts with quotes in the midst of cells that have none around them."""
    border = re.escape(delimiter.encode())
    pattern = rb'(?<![^\r\n%b])"[^"]*+(?:""[^"]*+)*+("?)' % border
    found = list(re.finditer(pattern, text))
    begins = [m.start() for m in found]
    ends = [m.end() - len(m.group(1)) for m in found]

    def is_within(place: int) -> bool:
        number = bisect_right(begins, place) - 1
        return number >= 0 and place < ends[number]

    return is_within
