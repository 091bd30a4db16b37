"""Text that does nothing to a terminal, a log or a picture but show itself."""

from __future__ import annotations

import json
import unicodedata

__all__ = ["visible", "visible_json"]

_JOINERS = "\u200c\u200d"
"""Emoji and several scripts are written with these."""

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


class _Escapes(dict[int, str]):
    """For `str.translate`: escapes for characters that are not seen but do something."""

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
    r"""A text whose control characters and the like are written out, cut off where it is long.

    Parameters
    ----------
    text
        Anything, such as a name from somebody's file.
    longest
        Characters to keep at most, the last of them an ellipsis.
    keep
        Control characters to leave as they are.

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
    r"""JSON in which no such character stands as itself; it means the same.

    Examples
    --------
    >>> print(visible_json(json.dumps("\x9b1m\u202eä", ensure_ascii=False)))
    "\u009b1m\u202eä"
    """
    return text.translate(_Escapes("\n", in_json=True))
