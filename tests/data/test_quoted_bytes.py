"""Which bytes lie within quotes, against one byte after the other."""

from __future__ import annotations

import csv
import io
import random

import numpy as np
import pytest

from bayes_lcs.data import quoted_bytes
from bayes_lcs.data.csv_cut import last_record_end
from bayes_lcs.data.quoted_bytes import within_quotes

CELLS = ['"a""b"', '"x\ny"', "z", '""', '"a,b"', '""""', '"\r\n"', "long and plain", '5" pipe']


def one_by_one(text: str) -> list[bool]:
    """A cell that begins with a quote ends with one that is followed by no other."""
    found, within, begins, just_closed = [], False, True, False
    for letter in text:
        if letter == '"' and (begins or within or just_closed):
            within, just_closed = not within, within
        else:
            just_closed = False
        found.append(within)
        begins = not within and letter in ",\r\n"
    return found


def made(rng: random.Random, cells: list[str], longest: int) -> str:
    cut = rng.randrange(1, longest)
    words = [rng.choice(cells) + rng.choice([",", "\n", "\r\n"]) for _ in range(longest)]
    return "".join(words)[:cut]


@pytest.mark.parametrize("step", [64, 128, 1 << 18])
@pytest.mark.parametrize("cells", [CELLS[:-1], CELLS], ids=["regular", "with quotes in cells"])
def test_every_byte_is_told(monkeypatch, step, cells):
    monkeypatch.setattr(quoted_bytes, "_STEP", step)
    rng = random.Random(step)
    for _ in range(400):
        text = made(rng, cells, rng.choice([10, 64, 65, 129, 700]))
        is_within = within_quotes(text.encode(), ",")
        # Halves of a doubled quote may be told either way: the cell goes on after them.
        other = [place for place, letter in enumerate(text) if letter != '"']
        expected = one_by_one(text)
        assert [is_within(place) for place in other] == [expected[place] for place in other]


def test_regular_text_needs_no_search(monkeypatch):
    """The exact search is slow: only quotes within plain cells may need it."""

    def refuse(*_: object) -> None:
        raise AssertionError("was searched")

    monkeypatch.setattr(quoted_bytes, "_exactly", refuse)
    rng = random.Random(0)
    for _ in range(200):
        within_quotes(made(rng, CELLS[:-1], 500).encode(), ",")
    with pytest.raises(AssertionError, match="was searched"):
        within_quotes(b'5" pipe,"x', ",")


def test_a_cut_is_where_a_record_ends():
    rng = random.Random(1)
    for _ in range(400):
        text = made(rng, CELLS, 300)
        end, is_open = last_record_end(text.encode(), ",")
        assert is_open == one_by_one(text)[-1]
        head = list(csv.reader(io.StringIO(text[:end], newline="")))
        whole = list(csv.reader(io.StringIO(text, newline="")))
        assert head == whole[: len(head)]
        # No later line break ends a record: all that are left lie within quotes.
        left = np.array([letter == "\n" for letter in text[end:]], dtype=bool)
        assert np.all(np.array(one_by_one(text)[end:], dtype=bool)[left])
