"""Names that somebody may put into a data file, by mistake or on purpose.

Every one can stand in a quoted cell of a UTF-8 text file: no NUL, no lone surrogate. What cannot is
tested where it is refused.
"""

from __future__ import annotations

import random
from pathlib import Path

NAMES: tuple[str, ...] = (
    # HTML and scripts
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- &lt; &amp;",
    "javascript:alert(1)",
    # rich's markup, templates, format strings
    "[bold red]x[/bold red]",
    "[/]",
    "[link=file:///etc/passwd]x[/link]",
    "{{ 7 * 7 }}{% raw %}",
    "%s %n {0} {x!r} ${HOME} `id`",
    # matplotlib's mathematics, TeX, backslashes
    "$x^2$",
    "$\\frac{",
    "\\",
    "\\n\\x1b[0m",
    "_hidden",
    # formulas of spreadsheets
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "'=1+1",
    # paths
    "../../x",
    "/etc/passwd",
    "C:\\Windows\\x",
    "CON",
    "~",
    "%00",
    "\\0",
    ".",
    # terminals
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "a\x08b\x7f",
    # Unicode
    "\u202egnp.exe",
    "\u2066a\u2069",
    "\ufeffmark",
    "zero\u200bwidth",
    "👩‍👩‍👧 😀",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢",
    "é",  # composed
    "e\u0301",  # and not
    "مرحبا",
    "line\u2028separator",
    # cells
    "two\nlines",
    "cr\rlf\r\n",
    "tab\tinside",
    'a "quoted" word',
    '"',
    "'",
    "a,b;c|d",
    " space ",
    # what readers take for something else
    "NA",
    "nan",
    "None",
    "null",
    "007",
    "1e5",
    "-0",
    "true",
    # equal but for case
    "Name",
    "name",
    # the rest
    "'; DROP TABLE names; --",
    "x" * 10_000,
    "__proto__",
    "constructor",
)

UNSEEN = frozenset(
    "".join(map(chr, (*range(0x20), 0x7F, *range(0x80, 0xA0)))) + "\u202e\u2066\u2069\ufeff\u2028"
) - {"\n"}
"""What must not come to a terminal as it is."""


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def write_table(path: Path, columns: dict[str, list[str | None]]) -> Path:
    """A CSV file in which every cell is quoted, None an empty cell."""
    lines = [",".join(map(quoted, columns))]
    for row in zip(*columns.values(), strict=True):
        lines.append(",".join("" if cell is None else quoted(cell) for cell in row))
    path.write_bytes(("\n".join(lines) + "\n").encode())
    return path


def grouped_table(names: tuple[str, ...], seed: int = 0) -> dict[str, list[str | None]]:
    """Rows in which every name is a column, a group and a value, and some are labels.

    The first name calls the group column, the last the label column; one label is missing.
    """
    rng = random.Random(seed)
    rows = 4 * len(names)
    columns: dict[str, list[str | None]] = {names[0]: list(names * 4)}
    for feature in names[1:-1]:
        pool = rng.sample(names, 3)
        columns[feature] = [rng.choice(pool) for _ in range(rows)]
    columns[names[1]] = rng.sample(names * 4, rows)
    labels = rng.sample(names, 4)
    columns[names[-1]] = [labels[i % 4] if i else None for i in range(rows)]
    return columns


def chunks(size: int = 17) -> list[tuple[str, ...]]:
    """All names, a few at a time; the last ones are filled up with the first."""
    places = range(0, len(NAMES), size)
    return [(NAMES + NAMES)[place : place + size] for place in places]
