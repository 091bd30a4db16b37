"""Encoded rows of files larger than memory, as blocks on disk.

One pass over the files encodes their rows block by block and learns the values of every column.
The final codes are known only when the last file has been read: the map to them is written beside
the blocks as JSON, and whoever reads a block applies it. The folder can be opened again, and other
files can be encoded alike.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.io.rebatch import rebatch
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.runtime.atomic_files import verify_checksum, write_with_checksum

__all__ = ["CodedBlock", "CodedFiles", "code_files", "read_block"]

DICTIONARY = "codes.json"
BLOCK_ROWS = 1 << 16


class CodedBlock(NamedTuple):
    """A block: its file, the number of its rows, and the checksum of its codes."""

    file: str
    num_rows: int
    checksum: int


@dataclass(frozen=True)
class CodedFiles:
    """Tables as blocks of codes, made by `bayes_lcs.code_files`.

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
    values: dict[str, NDArray[Any]]
    final_codes: tuple[NDArray[np.int32], ...]

    @property
    def num_rows(self) -> int:
        """Number of rows of all blocks."""
        return sum(block.num_rows for block in self.blocks)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> CodedFiles:
        """Open what `bayes_lcs.code_files` wrote into a folder, wherever that is now."""
        path = Path(folder, DICTIONARY)
        try:
            written = json.loads(verify_checksum(path).read_text(encoding="utf-8"))
            blocks = [CodedBlock(str(path.parent / name), *rest) for name, *rest in written["rows"]]
            values = {name: _from_json(own) for name, own in written["values"].items()}
            codes = tuple(np.array(table, np.int32) for table in written["final_codes"])
        except FileNotFoundError:
            raise DataError(
                f"there is no {DICTIONARY}: nothing was coded here, or not to the end; code anew",
                file=str(folder),
            ) from None
        except DataError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(
                f"the dictionary of the codes is damaged ({error}); code anew", file=str(path)
            ) from None
        return cls(blocks, values, codes)

    def _save(self, folder: Path) -> None:
        written = {
            "rows": [(Path(file).name, *rest) for file, *rest in self.blocks],
            "values": {name: _to_json(own) for name, own in self.values.items()},
            "final_codes": [table.tolist() for table in self.final_codes],
        }
        text = json.dumps(written, ensure_ascii=False)

        def write(part: Path) -> None:
            part.write_text(text, encoding="utf-8")

        write_with_checksum(folder / DICTIONARY, write)

    @property
    def reader(self) -> partial[DenseRows]:
        """Reader of a block, which can be sent to a worker."""
        sizes = tuple(max(len(own), 1) for own in self.values.values())
        return partial(read_block, self.final_codes, sizes)


def code_files(
    source: Any,
    folder: str | PathLike[str],
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    block_rows: int = BLOCK_ROWS,
) -> CodedFiles:
    r"""Code rows of categories into blocks on disk, in one pass over them.

    Parameters
    ----------
    source
        What :func:`bayes_lcs.row_source` reads in pieces (paths, Arrow data sets, Dask dataframes),
        or a source of categories that it made, which has options.
    folder
        Where blocks and the dictionary of their codes are written, in files of their own; it must
        be seen by whoever works on them.
    values
        The values of every column in the order of their codes, such as ``values`` of what was coded
        before; a value that is not among them is then an error that names its place.
    block_rows
        Rows of each block but the last.

    Returns
    -------
    CodedFiles
        For `MixtureClusterer.fit_file`; ``CodedFiles.load(folder)`` is the same again.

    Examples
    --------
    >>> import tempfile
    >>> import bayes_lcs as bl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("size,mood\n10,good\n2,bad\n")
    ...     coded = bl.code_files(f"{folder}/a.csv", folder)
    ...     again = bl.CodedFiles.load(folder)
    >>> coded.values["size"].tolist(), again.values["mood"].tolist(), again.num_rows
    ([2, 10], ['bad', 'good'], 2)
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / DICTIONARY).exists():
        raise DataError(
            f"there is a {DICTIONARY} here already: open it with CodedFiles.load, or choose "
            "another folder",
            file=str(folder),
        )
    if not isinstance(source, FileSampler):
        source = FileSampler(source, values=values)
    elif values is not None:
        raise ValueError("a source has values of its own: give values= where it is made")
    blocks = []
    for number, codes in enumerate(rebatch(source.code_blocks(), block_rows)):
        kind = np.min_scalar_type(-int(codes.max(initial=0)) - 1)
        compact = np.asfortranarray(codes.astype(kind))
        path = folder / f"rows-{number:06d}.npy"
        np.save(path, compact, allow_pickle=False)
        blocks.append(CodedBlock(str(path), len(compact), _checksum(compact)))
    final = source.final_categories()
    learned = {name: own.values for name, own in final.items()}
    coded = CodedFiles(blocks, learned, tuple(own.recode for own in final.values()))
    coded._save(folder)
    return coded


def read_block(
    final_codes: tuple[NDArray[np.int32], ...], sizes: tuple[int, ...], block: CodedBlock
) -> DenseRows:
    """Return the rows of a block with their final codes; a damaged block is an error.

    ``sizes`` are the numbers of final values, which may be fewer than there are codes: ``1`` and
    ``1.0`` are one value.
    """
    try:
        codes = np.load(block.file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"a block of coded rows cannot be read ({error}); all workers must see this folder",
            file=block.file,
        ) from None
    if len(codes) != block.num_rows or _checksum(codes) != block.checksum:
        raise DataError("a block of coded rows is damaged; fit again", file=block.file)
    rows = np.empty(codes.shape, np.min_scalar_type(-max(sizes, default=1) - 1), order="F")
    for f, table in enumerate(final_codes):
        rows[:, f] = table[codes[:, f]]
    return DenseRows(rows, sizes)


def _to_json(values: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": values.dtype.str, "values": values.tolist()}


def _from_json(written: dict[str, Any]) -> NDArray[Any]:
    return np.array(written["values"], dtype=np.dtype(written["dtype"]))


def _checksum(codes: NDArray[Any]) -> int:
    return zlib.crc32(codes.tobytes(order="A"))
