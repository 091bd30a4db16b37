"""Damaged and odd tables: how they are made, and what Python's csv module takes them for."""

from __future__ import annotations

import csv
import gzip
import io
import random

import pyarrow as pa
import pyarrow.parquet as pq

CELLS = (
    *(
        "a",
        "b",
        "c",
        "yes",
        "no",
        "1",
        "2",
        "10",
        "-3.5",
        "007",
        "NA",
        "nan",
        "None",
        "",
        " ",
        "x y",
    ),
    *(
        "1e308",
        "1e999",
        "-1e999",
        "9" * 400,
        "0x10",
        "1_000",
        "+1",
        "١٢",
        "1,5",
        "inf",
        "-0",
        "1e-400",
    ),
    *(
        '""',
        '"a,b"',
        '"a;b"',
        '"a\nb"',
        '"a\r\nb"',
        '"a\rb"',
        '"say ""hi"""',
        '"\n"',
        '"  "',
        '""""',
    ),
    *(
        '5" pipe',
        'a"b',
        '"',
        '"open',
        '"a"b',
        "'",
        "\\",
        '\\"',
        "é",
        "日本",
        "\u202e",
        "😀",
        "e\u0301",
    ),
    *(
        "\ufeff",
        "\x00",
        "\x1b[31m",
        "\x85",
        "\u2028",
        "\x0b",
        "\x0c",
        "\x1c",
        "\t",
        "=1+1",
        "a" * 70,
    ),
)
PLAIN = ("a", "b", "c", "yes", "no", "1", "2", "10", "é")
HUGE = ("1e308", "-1e308", "1e200", "1e-320", "-0", "0", "1")
NUMBERS = ("1", "2", "10", "-3.5", "0", "1e10", "0.001")
NAMES = ("g", "x", "y", "label", "name", "1", '"q"', '"a,b"', "é", "x", "", " ", "NA", '"a\nb"')
ENDS = ("\n", "\r\n", "\r")
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16", "cp1252")


def odd_csv(rng: random.Random) -> bytes:
    """A text table that is nearly right, or not at all."""
    delimiter = rng.choice((",", ",", ",", ";", "\t", "|", ":"))
    width = rng.randint(1, 4)
    end = rng.choice(ENDS)
    oddness = rng.choice((0.0, 0.02, 0.2, 1.0))

    def chance(scale: float = 1.0) -> bool:
        return rng.random() < oddness * scale

    usual = rng.choice((PLAIN, PLAIN, NUMBERS))
    odd_ends = chance(0.5)
    lines = [[rng.choice(NAMES) if chance() else f"c{i}" for i in range(width)]]
    for _ in range(rng.choice((0, 1, 2, 5, 12, 40))):
        cells = rng.choice((PLAIN, CELLS, HUGE))
        size = width if not chance(0.1) else rng.randint(0, width + 2)
        lines.append([rng.choice(cells if chance() else usual) for _ in range(size)])
    text = ""
    for line in lines:
        text += delimiter.join(line) + (rng.choice(ENDS) if odd_ends else end)
        if chance(0.05):
            text += rng.choice(("\n", "\r\n", " \n", ",\n"))
    if rng.random() < 0.3:
        text = text[: -len(end)]
    if chance(0.1):
        text = rng.choice(("\ufeff", "\n", "\r", "\n\n", "sep=,\n", "#\n")) + text
    content = text.encode(rng.choice(ENCODINGS) if chance(0.3) else "utf-8", "replace")
    return gzip.compress(content, mtime=0) if chance(0.1) else content


def good_rows(rng: random.Random, rows: int = 30) -> dict[str, list[str]]:
    """Columns of a table with nothing wrong about it."""
    return {
        "who": [rng.choice(("ann", "bob", "eve")) for _ in range(rows)],
        "size": [rng.choice(("s", "m", "l")) for _ in range(rows)],
        "age": [str(rng.randint(1, 9)) for _ in range(rows)],
        "buys": [rng.choice(("yes", "no")) for _ in range(rows)],
    }


def good_csv(rng: random.Random, rows: int = 30) -> bytes:
    columns = good_rows(rng, rows)
    lines = [",".join(columns)] + [",".join(row) for row in zip(*columns.values(), strict=True)]
    return ("\n".join(lines) + "\n").encode()


def good_parquet(rng: random.Random, rows: int = 30) -> bytes:
    columns: dict[str, object] = dict(good_rows(rng, rows))
    columns["age"] = [int(age) for age in columns["age"]]  # type: ignore[attr-defined]
    sink = io.BytesIO()
    pq.write_table(
        pa.table(columns),
        sink,
        row_group_size=rng.choice((5, 1000)),
        compression=rng.choice(("none", "snappy", "gzip", "zstd")),
        use_dictionary=rng.random() < 0.5,
        write_page_checksum=rng.random() < 0.5,
    )
    return sink.getvalue()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Bytes that were flipped, cut, doubled, moved or lost."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(data) + 1)
        size = rng.choice((1, 1, 2, 8, 64))
        kind = rng.randrange(7)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            data[place:place] = rng.randbytes(size)
        elif kind == 3:
            del data[place : place + size]
        elif kind == 4:
            other = rng.randrange(len(data) + 1)
            data[place:place] = data[other : other + size]
        elif kind == 5:
            data[place : place + size] = bytes(len(data[place : place + size]))
        else:
            data[place:place] = rng.choice(
                (b'"', b",", b"\n", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf")
            )
    return bytes(data)


def strict_table(content: bytes, delimiter: str) -> list[list[str]] | None:
    """The records of a text that can only be read one way, else None.

    That is UTF-8 without NUL, strictly quoted, rectangular, with distinct names in its header and
    at least one row. Blank lines do not count, as everywhere in the package.
    """
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
        records = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (UnicodeError, csv.Error, EOFError, OSError, ValueError):
        return None
    except Exception as error:  # zlib.error is no OSError
        if type(error).__name__ != "error":
            raise
        return None
    records = [record for record in records if record]
    if len(records) < 2 or "\x00" in text:
        return None
    header = records[0]
    if any(len(record) != len(header) for record in records):
        return None
    if len(set(header)) != len(header) or not all(name.strip() for name in header):
        return None
    return records
