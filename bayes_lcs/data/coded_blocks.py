"""Tables of files larger than memory, as blocks of codes on disk.

One pass over the files codes their rows, a block after the other, and learns the values of every
column. A block is an array file; whoever works on it reads it himself, checks it, and translates
its codes to the final ones, which are known only when the last file has been read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.coded import DenseRows
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.file_source import FileSource

__all__ = ["CodedBlock", "CodedFiles", "code_files", "read_block"]


class CodedBlock(NamedTuple):
    """A block: its file, the number of its rows, and the checksum of its codes."""

    file: str
    num_rows: int
    checksum: int


@dataclass(frozen=True)
class CodedFiles:
    """Tables as blocks of codes.

    Attributes
    ----------
    blocks
        In the order of the rows.
    values
        For each column, its name and its values in the order of their final codes.
    final_codes
        For each column, from the codes of the blocks to the final ones; the last is for -1.
    """

    blocks: list[CodedBlock]
    values: dict[str, tuple[str, ...]]
    final_codes: tuple[NDArray[np.int32], ...]

    @property
    def num_rows(self) -> int:
        """Rows of all blocks."""
        return sum(block.num_rows for block in self.blocks)

    @property
    def reader(self) -> partial[DenseRows]:
        """What reads a block; it can be sent to where blocks are worked on."""
        return partial(read_block, self.final_codes)


def code_files(source: FileSource, folder: Path, block_rows: int) -> CodedFiles:
    """Code the rows of files into blocks of ``block_rows`` rows, in a pass over them.

    Parameters
    ----------
    source
        The files.
    folder
        Where blocks are written; it must be seen by whoever works on them.
    block_rows
        Rows of each block but the last.
    """
    blocks = []
    for number, codes in enumerate(_cut(source.code_blocks(), block_rows)):
        kind = np.min_scalar_type(-int(codes.max(initial=0)) - 1)
        compact = np.asfortranarray(codes.astype(kind))
        path = folder / f"rows-{number:06d}.npy"
        np.save(path, compact, allow_pickle=False)
        blocks.append(CodedBlock(str(path), len(compact), _checksum(compact)))
    final = source.final_codes()
    return CodedFiles(blocks, source.final_values(), tuple(final.values()))


def read_block(final_codes: tuple[NDArray[np.int32], ...], block: CodedBlock) -> DenseRows:
    """The rows of a block with their final codes; damage is noticed and refused."""
    try:
        codes = np.load(block.file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"a block of coded rows cannot be read ({error}); all workers must see this folder",
            file=block.file,
        ) from None
    if len(codes) != block.num_rows or _checksum(codes) != block.checksum:
        raise DataError("a block of coded rows is damaged; fit again", file=block.file)
    sizes = tuple(max(len(table) - 1, 1) for table in final_codes)
    rows = np.empty(codes.shape, np.min_scalar_type(-max(sizes, default=1) - 1), order="F")
    for f, table in enumerate(final_codes):
        rows[:, f] = table[codes[:, f]]
    return DenseRows(rows, sizes)


def _cut(pieces: Iterator[NDArray[np.int32]], size: int) -> Iterator[NDArray[np.int32]]:
    """Pieces of any length as blocks of one length, and what is left."""
    waiting: list[NDArray[np.int32]] = []
    length = 0
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= size:
            rows = np.concatenate(waiting)
            for start in range(0, length - length % size, size):
                yield rows[start : start + size]
            waiting, length = [rows[length - length % size :]], length % size
    if length:
        yield np.concatenate(waiting)


def _checksum(codes: NDArray[Any]) -> int:
    return zlib.crc32(codes.tobytes(order="A"))
