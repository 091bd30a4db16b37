"""Where the bytes of a text table can be cut, so that no record is cut in two."""

from __future__ import annotations

from bayes_lcs.data.quoted_bytes import within_quotes

__all__ = ["last_record_end"]


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
    is_within = within_quotes(text, delimiter)
    is_open, stop = is_within(len(text) - 1), len(text)
    while (quote := text.rfind(b'"', 0, stop)) >= 0:
        if not is_within(quote) and (place := _line_end(text, quote + 1, stop)):
            return place, is_open
        stop = quote
    return _line_end(text, 0, stop), is_open


def _line_end(text: bytes, start: int, stop: int) -> int:
    """The place after the last line break between two places, 0 if there is none."""
    if place := text.rfind(b"\n", start, stop) + 1:
        return place
    # A carriage return at the very end may be the first half of a line break.
    return text.rfind(b"\r", start, min(stop, len(text) - 1)) + 1
