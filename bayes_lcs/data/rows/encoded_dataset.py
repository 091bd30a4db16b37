"""Encode rows of files larger than memory as shards on disk.

One pass over the files encodes their rows and learns the values of every column. The final codes
are known only after the last file: the map to them is stored as JSON next to the shards, and is
applied when a shard is read. The folder can be opened again, and other files can be encoded with
the same codes.
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
    """Shard of encoded rows: its file, number of rows, and checksum."""

    file: str
    num_rows: int
    checksum: int


@dataclass(frozen=True)
class CodedFiles:
    """Tables as shards of codes on disk, created by `bayes_lcs.code_files`.

    Attributes
    ----------
    blocks
        The shards in the order of the rows.
    values
        Values of each column by name, in the order of their final codes.
    final_codes
        For each column, the map from stored codes to final codes; the last entry is for -1.
    """

    blocks: list[CodedBlock]
    values: dict[str, NDArray[Any]]
    final_codes: tuple[NDArray[np.int32], ...]

    @property
    def num_rows(self) -> int:
        """Number of rows of all shards."""
        return sum(block.num_rows for block in self.blocks)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> CodedFiles:
        """Open a folder written by `bayes_lcs.code_files`; it may have been moved."""
        path = Path(folder, DICTIONARY)
        try:
            written = json.loads(verify_checksum(path).read_text(encoding="utf-8"))
            blocks = [CodedBlock(str(path.parent / name), *rest) for name, *rest in written["rows"]]
            values = {name: _from_json(own) for name, own in written["values"].items()}
            codes = tuple(np.array(table, np.int32) for table in written["final_codes"])
        except FileNotFoundError:
            raise DataError(
                f"there is no {DICTIONARY}: the files were not encoded, or not completely; encode "
                "them again with code_files",
                file=str(folder),
            ) from None
        except DataError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(
                f"the dictionary of the codes is damaged ({error}); encode the files again",
                file=str(path),
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
        """Reader of a shard, which can be sent to a worker."""
        sizes = tuple(max(len(own), 1) for own in self.values.values())
        return partial(read_block, self.final_codes, sizes)


def code_files(
    source: Any,
    folder: str | PathLike[str],
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    block_rows: int = BLOCK_ROWS,
) -> CodedFiles:
    r"""Encode categorical rows as shards on disk, in one pass.

    Parameters
    ----------
    source
        Data that :func:`bayes_lcs.row_source` reads in batches (paths, Arrow data sets, Dask
        dataframes), or a source of categories that it returned, with its options.
    folder
        Folder for the shards and the dictionary of their codes; all workers need access to it.
    values
        The values of every column in the order of their codes, such as ``values`` of another
        encoded data set; any other value is an error with its position.
    block_rows
        Number of rows of each shard except the last.

    Returns
    -------
    CodedFiles
        Input of `MixtureClusterer.fit_file`; ``CodedFiles.load(folder)`` opens it again.

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
            f"there already is a {DICTIONARY} in this folder: open it with CodedFiles.load, or "
            "choose another folder",
            file=str(folder),
        )
    if not isinstance(source, FileSampler):
        source = FileSampler(source, values=values)
    elif values is not None:
        raise ValueError("this source has its own values; pass values= to row_source instead")
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
    """Return the rows of a shard with their final codes; a damaged shard is an error.

    ``sizes`` are the numbers of final values, which may be smaller than the numbers of stored
    codes: ``1`` and ``1.0`` are the same value.
    """
    try:
        codes = np.load(block.file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"a file of encoded rows cannot be read ({error}); all workers need "
            "access to the folder",
            file=block.file,
        ) from None
    if len(codes) != block.num_rows or _checksum(codes) != block.checksum:
        raise DataError(
            "a file of encoded rows is damaged; encode the files again", file=block.file
        )
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
