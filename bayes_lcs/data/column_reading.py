"""Whole columns of a file, read piece by piece; what was read is kept on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.checkpoints import Arrays, Work, named_work
from bayes_lcs.data.columns import BEGINNING, Mark, RawColumn, ReadsBlocks, Source
from bayes_lcs.data.vocabulary import AnyNames

__all__ = ["read_columns"]


def read_columns(
    blocks: ReadsBlocks, source: Source, wanted: Sequence[str], stamp: str
) -> dict[str, RawColumn]:
    """Columns as codes, with names in the order in which they are met.

    Parameters
    ----------
    blocks
        Reads the file piece by piece.
    source
        Names it in errors.
    wanted
        The columns.
    stamp
        Changes with the file: what was kept of another one is not taken up. If empty, nothing is.
    """
    names = {name: AnyNames(name, frozenset()) for name in wanted}
    with named_work("reading", stamp, list(wanted)) if stamp else Work(None) as kept:
        pieces: list[Arrays] = list(kept.each_piece())
        mark = BEGINNING if kept.state is None else _go_on(kept.state, names)
        for block in blocks(wanted, mark, coded=wanted):
            start, mark = mark.rows, block.mark
            piece = {
                str(i): _compact(names[name].code(block.table.column(name), source, start))
                for i, name in enumerate(wanted)
            }
            pieces.append(piece)
            kept.keep(partial(_reached, names, mark), piece)
        kept.end(partial(_reached, names, mark))
    return {name: _column(name, i, pieces, names[name]) for i, name in enumerate(wanted)}


def _column(name: str, number: int, pieces: list[Arrays], names: AnyNames) -> RawColumn:
    codes = np.concatenate([np.zeros(0, np.int32), *(piece[str(number)] for piece in pieces)])
    known, is_fixed = names.kept
    return RawColumn(name, codes, tuple(known), is_fixed)


def _compact(codes: NDArray[np.int32]) -> NDArray[Any]:
    """The same codes in as few bytes as they fit into."""
    return codes.astype(np.min_scalar_type(-int(codes.max(initial=0)) - 1))


def _reached(names: dict[str, AnyNames], mark: Mark) -> Arrays:
    """How far reading has come; names that were met later do no harm."""
    text = json.dumps([entry.kept for entry in names.values()])
    return {"mark": np.array(mark), "names": np.frombuffer(text.encode(), np.uint8)}


def _go_on(state: Arrays, names: dict[str, AnyNames]) -> Mark:
    for entry, kept in zip(names.values(), json.loads(state["names"].tobytes()), strict=True):
        entry.go_on(*kept)
    return Mark(*state["mark"].tolist())
