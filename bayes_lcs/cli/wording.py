"""Messages that were written for callers of functions, in the words of the command."""

from __future__ import annotations

import re
import shlex

__all__ = ["for_the_command"]

_NAME = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
"""A column name as ``repr`` writes it."""
_OPTIONS = ("bins", "categorical", "ignore", "draws")
_ONLY_IN_PYTHON = re.compile(
    r"\b(delimiter|edges|encoding|features|kind|label_values|"
    r"split_merge|values|warmup)="
)
_NOTE = "what is written with = is for the Python functions, which can do more than the command"


def for_the_command(message: str) -> str:
    """Name options as the command has them, and say so of those that it has not.

    Examples
    --------
    >>> for_the_command("leave it out with ignore=['x y'] or bin it with bins={'x y': 4}")
    "leave it out with --ignore 'x y' or bin it with --bins 'x y=4'"
    >>> for_the_command("to leave out both: ignore=['a', 'b c']")
    "to leave out both: --ignore a --ignore 'b c'"
    >>> print(for_the_command("pass encoding='latin-1'"))
    pass encoding='latin-1' (what is written with = is for the Python functions, which can do ...
    """
    message = message.replace("missing_values=", "--missing")
    message = re.sub(r" or edges=\{.*?: \[\.\.\.\]\}", "", message)  # of Python only
    message = re.sub(
        rf"(ignore|categorical)=\[({_NAME}(?:, {_NAME})*)\]",
        lambda found: " ".join(
            f"--{found.group(1)} {shlex.quote(name[1:-1])}"
            for name in re.findall(_NAME, found.group(2))
        ),
        message,
    )
    message = message.replace("pass header=False", "pass --no-header")
    message = re.sub(
        r"bins=\{(['\"])(.*?)\1: (\d+)\}",
        lambda found: f"--bins {shlex.quote(found.group(2) + '=' + found.group(3))}",
        message,
    )
    message = re.sub(rf"(?<![-\w'\"])({'|'.join(_OPTIONS)})=(?![\w\[{{])", r"--\1", message)
    return f"{message} ({_NOTE})" if _ONLY_IN_PYTHON.search(message) else message
