"""Where the bytes of a text table can be cut, so that no record is cut in two."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

__all__ = ["last_record_end"]

_QUOTE = ord('"')


def last_record_end(text: bytes, delimiter: str) -> tuple[int, bool]:
    r"""Where the last whole record ends, 0 if none does, and whether the text ends within quotes.

    The text must begin with a record. As in pyarrow and in Python's csv module, a quote counts
    only if its cell begins with it, and a line break within such quotes belongs to the cell.

    Examples
    --------
    >>> last_record_end(b'a,b\n1,"x\ny', ",")
    (4, True)
    >>> last_record_end(b'5" pipe,b\n1,2\n3', ",")
    (14, False)
    """
    if b'"' not in text:
        return _line_end(text, 0, len(text)), False
    begins, ends = _quoted(text, delimiter)
    stop, is_open = len(text), len(ends) < len(begins)
    if is_open:
        stop, begins = int(begins[-1]), begins[:-1]
    for begin, end in zip(reversed(begins), reversed(ends), strict=True):
        if place := _line_end(text, int(end), stop):
            return place, is_open
        stop = int(begin)
    return _line_end(text, 0, stop), is_open


def _line_end(text: bytes, start: int, stop: int) -> int:
    """The place after the last line break between two places, 0 if there is none."""
    if place := text.rfind(b"\n", start, stop) + 1:
        return place
    # A carriage return at the very end may be the first half of a line break.
    return text.rfind(b"\r", start, min(stop, len(text) - 1)) + 1


def _quoted(text: bytes, delimiter: str) -> tuple[Sequence[int], Sequence[int]]:
    """Where quoted pieces begin and end; the last one lacks an end if nothing closes it."""
    codes = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    opening = quotes[::2]
    # Every other quote opens if it begins a cell, or is the second half of a doubled quote.
    may_precede = np.zeros(256, dtype=bool)
    may_precede[[ord(delimiter), ord("\n"), ord("\r"), _QUOTE]] = True
    if np.all(may_precede[codes[opening - 1]] | (opening == 0)):
        return opening, quotes[1::2] + 1  # type: ignore[return-value]
    return _quoted_exactly(text, delimiter)


def _quoted_exactly(text: bytes, delimiter: str) -> tuple[list[int], list[int]]:
    """The same for texts with quotes in the midst of cells that have none around them."""
    border = re.escape(delimiter.encode())
    pattern = rb'(?<![^\r\n%b])"[^"]*+(?:""[^"]*+)*+("?)' % border
    found = list(re.finditer(pattern, text))
    return [m.start() for m in found], [m.end() for m in found if m.group(1)]
