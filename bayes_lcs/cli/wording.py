"""Messages that were written for callers of functions, in the words of the command."""

from __future__ import annotations

import re
import shlex

__all__ = ["for_the_command"]

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
    >>> print(for_the_command("pass encoding='latin-1'"))
    pass encoding='latin-1' (what is written with = is for the Python functions, which can do ...
    """
    message = message.replace("missing_values=", "--missing")
    message = re.sub(r" or edges=\{.*?: \[\.\.\.\]\}", "", message)  # of Python only
    message = re.sub(
        r"(ignore|categorical)=\[(['\"])(.*?)\2\]",
        lambda found: f"--{found.group(1)} {shlex.quote(found.group(3))}",
        message,
    )
    message = re.sub(
        r"bins=\{(['\"])(.*?)\1: (\d+)\}",
        lambda found: f"--bins {shlex.quote(found.group(2) + '=' + found.group(3))}",
        message,
    )
    message = re.sub(rf"(?<![-\w'\"])({'|'.join(_OPTIONS)})=(?![\w\[{{])", r"--\1", message)
    return f"{message} ({_NOTE})" if _ONLY_IN_PYTHON.search(message) else message
