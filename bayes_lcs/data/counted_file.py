"""A file that counts what is read from it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CountedFile", "ReadCount"]


@dataclass
class ReadCount:
    """What was read so far, of all passes over a file together."""

    num_rows: int = 0
    num_bytes: int = 0


class CountedFile(io.FileIO):
    """A file without a buffer, so that it counts what the operating system was asked for.

    Parameters
    ----------
    path
        The file to read.
    count
        Where the bytes are counted.
    most
        A single `read` gives no more than this many bytes, for readers that ask for more than
        they need; without it, as many as are asked for.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> count = ReadCount()
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "letters.txt")
    ...     _ = path.write_text("abcdef")
    ...     with CountedFile(path, count, most=2) as file:
    ...         file.read(1), file.read(5), count.num_bytes
    (b'a', b'bc', 3)
    """

    def __init__(self, path: Path, count: ReadCount, *, most: int | None = None) -> None:
        super().__init__(path, "rb")
        self._count = count
        self._most = most

    def read(self, size: int | None = -1, /) -> Any:
        """Up to ``size`` bytes, empty at the end of the file."""
        if self._most is not None:
            size = self._most if size is None or size < 0 else min(size, self._most)
        return self._counted(super().read(-1 if size is None else size))

    def readall(self) -> Any:
        """All bytes that are left."""
        return self._counted(super().readall())

    def readinto(self, buffer: Any, /) -> Any:
        """Fill a buffer; the number of bytes that were there."""
        size = super().readinto(buffer)
        self._count.num_bytes += size or 0
        return size

    def _counted(self, content: bytes | None) -> bytes | None:
        self._count.num_bytes += len(content or b"")
        return content
