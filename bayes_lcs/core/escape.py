"""Escape control characters in text for terminals, logs and figures."""

from __future__ import annotations

import json
import unicodedata

__all__ = ["visible", "visible_json"]

_JOINERS = "\u200c\u200d"
"""Zero-width joiners, which emoji and several scripts need."""

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


class _Escapes(dict[int, str]):
    """Table for `str.translate` that escapes invisible control and format characters."""

    def __init__(self, keep: str, in_json: bool) -> None:
        super().__init__()
        self._keep, self._in_json = frozenset(keep + _JOINERS), in_json

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character not in self._keep and unicodedata.category(character) in _UNSEEN:
            escape = json.dumps(character) if self._in_json else repr(character)
            character = escape[1:-1]
        self[code] = character
        return character


def visible(text: str, longest: int | None = None, keep: str = "") -> str:
    r"""Return a text with control and format characters escaped, truncated to a maximum length.

    Parameters
    ----------
    text
        Any text, such as a name from a data file.
    longest
        Maximum number of characters, including the ellipsis at the end; None keeps all.
    keep
        Control characters that are not escaped.

    Examples
    --------
    >>> print(visible("\x1b[31mred\n\u202etxt.exe"))
    \x1b[31mred\n\u202etxt.exe
    >>> visible("ä 😀 日本", longest=4)
    'ä 😀…'
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    return text if text.isprintable() else text.translate(_Escapes(keep, in_json=False))


def visible_json(text: str) -> str:
    r"""Return equivalent JSON in which control and format characters are escaped.

    Examples
    --------
    >>> print(visible_json(json.dumps("\x9b1m\u202eä", ensure_ascii=False)))
    "\u009b1m\u202eä"
    """
    return text.translate(_Escapes("\n", in_json=True))
