"""Work that is kept while it is done, so that a run which was killed goes on where it was.

Inside ``with checkpoints(folder)`` every long computation of this package writes down how far it
has come: at least every half minute, when it ends, and at Ctrl-C. Run again over the same folder,
the same program makes the same computations in the same order; each of them finds what it wrote,
and goes on from there. As keys of random numbers depend on seeds and counts only, the numbers are
those of a run that was never stopped.

A computation is known by its place in the order, its kind, and a fingerprint of everything that
decides its result: where these differ the folder belongs to another run, which is refused. Files
are arrays without pickle, written atomically, with checksums. A disk that is full interrupts the
keeping, with a warning, and not the work.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs._version import __version__
from bayes_lcs.core.errors import CheckpointWarning, DataError
from bayes_lcs.runtime.atomic_files import check_whole, write_with_checksum

__all__ = [
    "Arrays",
    "Checkpoints",
    "Work",
    "checkpoints",
    "find_difference",
    "fingerprint",
    "holds_run",
    "is_keeping",
    "is_left_over",
    "kept_works",
    "named_work",
    "remove_checkpoints",
    "source_work",
    "work",
]

Arrays = Mapping[str, NDArray[Any]]

SECONDS = 10.0
"""Between two writings of one computation."""
MOST_UNKEPT = 5.0
"""Seconds of computations that ended without being written, all together."""
MOST_OF_TIME = 0.1
"""Share of the time that writing may take, unless it would be rarer than every half minute."""
RAREST = 25.0

RUN = "run.json"
"""Settings of a run. Written first and removed first: without this file there is no run."""

FORCED = "forced"
"""An empty file in the folder of a command's run that may replace the results it finds."""

_OWN = re.compile(
    r"\.?(run\.json|(\d{4,}-[\w-]+|[\w-]+-[0-9a-f]{16})\.(state|\d{4,})\.npz)"
    r"(\.sha256)?(\.\d+\.part)?"
)
"""Names of the files that are written here."""

_current: Checkpoints | None = None


class Checkpoints:
    """A folder in which the computations of one run are kept.

    Attributes
    ----------
    folder
        Made if need be.
    recalled
        Number of computations that found something to go on from.
    failed
        Whether something could not be written.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.recalled = 0
        self._under_way: list[str] = []
        self._counts = {"": 0}
        self._debt = 0.0
        self.failed = False
        folder.mkdir(parents=True, exist_ok=True)
        self._check_settings({"bayes_lcs": __version__, **(settings or {})})

    def _check_settings(self, settings: Mapping[str, str]) -> None:
        """What the run was begun with is written down; a run with anything else is another one."""
        note = self.folder / RUN
        if not note.exists():
            _remove_files(self.folder)  # what is left of a removal that was cut short
            write_with_checksum(note, lambda part: _write_json(part, settings))
            return
        try:
            known = dict(json.loads(check_whole(note).read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise DataError(
                "this folder of checkpoints is damaged; remove it and begin anew",
                file=str(self.folder),
            ) from error
        difference = find_difference(known, settings)
        if difference is not None:
            raise DataError(
                f"these checkpoints are of another run: {difference}. Begin anew, or go on as it "
                "was begun",
                file=str(self.folder),
            )

    def next_work(self, kind: str, identity: str) -> Work:
        """The next computation in the order of this run, or of the one that is under way."""
        above = self._under_way[-1] if self._under_way else ""
        self._counts[above] += 1
        return Work(self, f"{above}{self._counts[above]:04d}-{kind}", identity)

    def named_work(self, kind: str, identity: str) -> Work:
        """A computation that is known by what decides it, whenever it comes in the run."""
        return Work(self, f"{kind}-{identity[:16]}", identity)

    def begin(self, name: str) -> None:
        """Computations from now on are parts of this one, which is not asked if it is known."""
        self._under_way.append(f"{name}_")
        self._counts[f"{name}_"] = 0

    def end(self, name: str) -> None:
        """The parts of a computation are done; if it is written, they are not needed any more."""
        self._under_way.remove(f"{name}_")
        if (self.folder / f"{name}.state.npz").exists():
            for path in self.folder.glob(f"{name}_*"):
                path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Forget everything: the run has ended, and its result is kept elsewhere."""
        remove_checkpoints(self.folder)

    def write(self, name: str, arrays: Callable[[], Arrays]) -> bool:
        """Write some arrays, or say once that they cannot be kept; later ones are tried again."""

        def write(part: Path) -> None:
            plain: dict[str, Any] = {key: np.asarray(value) for key, value in arrays().items()}
            assert all(value.dtype.kind != "O" for value in plain.values())  # no pickle
            with part.open("wb") as stream:
                np.savez(stream, **plain)

        try:
            write_with_checksum(self.folder / f"{name}.npz", write)
        except OSError as error:
            if not self.failed:
                warnings.warn(
                    f"nothing can be written to {self.folder} ({error.strerror or error}): the "
                    "work goes on, but until there is room nothing more of it is kept",
                    CheckpointWarning,
                    stacklevel=3,
                )
            self.failed = True
            return False
        return True

    def read(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Arrays that were written under a name, or None if there are none."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        try:
            with np.load(io.BytesIO(check_whole(path).read_bytes()), allow_pickle=False) as found:
                return {key: found[key] for key in found.files}
        except Exception as error:
            raise DataError(
                f"this checkpoint is damaged ({error}); remove {self.folder} and begin anew",
                file=str(path),
            ) from error

    def is_worth_keeping(self, seconds: float) -> bool:
        """Whether work that ended after so long is written; short work is done again instead."""
        if self._debt + seconds > MOST_UNKEPT:
            return True
        self._debt += seconds
        return False


class Work:
    """One computation: what it wrote before, and what it writes.

    It has a state, of which the last is kept, and pieces, of which all are. Used as a context: at
    Ctrl-C what is known last is written down.

    Attributes
    ----------
    state
        As it was written last, or None.
    """

    def __init__(self, kept: Checkpoints | None, name: str = "", identity: str = "") -> None:
        self._kept, self._name, self._identity = kept, name, identity
        self.state: dict[str, NDArray[Any]] | None = None
        self._files = self._files_before = 0
        # Together, so that Ctrl-C never finds new pieces with an old state.
        self._unwritten: tuple[list[Arrays], Callable[[], Arrays] | None] = ([], None)
        self._began = self._last = time.monotonic()
        self._pause = SECONDS
        if kept is not None:
            self._recall(kept)

    def _recall(self, kept: Checkpoints) -> None:
        state = kept.read(f"{self._name}.state")
        if state is None:
            return
        if str(state.pop("identity")) != self._identity:
            raise DataError(
                "these checkpoints are of another run: its data, settings or program differ. "
                "Choose another folder, or remove this one and begin anew",
                file=str(kept.folder),
            )
        self._files = self._files_before = int(state.pop("files"))
        self.state = state
        kept.recalled += 1

    def each_piece(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Pieces that were written before this run, in their order; a file of them at a time."""
        for number in range(self._files_before):
            assert self._kept is not None
            found = self._kept.read(f"{self._name}.{number:04d}")
            if found is None:
                raise DataError(
                    f"a checkpoint is missing; remove {self._kept.folder} and begin anew",
                    file=f"{self._kept.folder}/{self._name}.{number:04d}.npz",
                )
            yield from _unpacked(found)

    @cached_property
    def pieces(self) -> list[dict[str, NDArray[Any]]]:
        """All of these."""
        return list(self.each_piece())

    @property
    def is_kept(self) -> bool:
        """Whether anything is written at all."""
        return self._kept is not None

    def keep(self, snapshot: Callable[[], Arrays] = dict, *pieces: Arrays) -> None:
        """Remember state and new pieces, and write them if the last writing is some seconds ago.

        ``snapshot`` is asked for the state when it is written, now or at Ctrl-C: let it hold on to
        what was true when it was made.
        """
        if self._kept is None:
            return
        self._unwritten = ([*self._unwritten[0], *pieces], snapshot)
        if time.monotonic() - self._last >= self._pause:
            self.flush()

    def flush(self) -> None:
        """Write state and pieces now, if there are any."""
        pieces, snapshot = self._unwritten
        if self._kept is None or snapshot is None:
            return
        began = time.monotonic()
        written = True
        if pieces:
            packed = partial(_packed, pieces)
            written = self._kept.write(f"{self._name}.{self._files:04d}", packed)
            if written:
                self._files, self._unwritten = self._files + 1, ([], snapshot)
        if written:  # no state is newer than the pieces before it
            own = {"identity": np.asarray(self._identity), "files": np.asarray(self._files)}
            self._kept.write(f"{self._name}.state", lambda: {**snapshot(), **own})
        self._last = time.monotonic()
        self._pause = float(np.clip((self._last - began) / MOST_OF_TIME, SECONDS, RAREST))

    def end(self, snapshot: Callable[[], Arrays] = dict, *pieces: Arrays) -> None:
        """The work is done: write it, unless it took so little that it is sooner done again."""
        if self._kept is None:
            return
        self._unwritten = ([*self._unwritten[0], *pieces], snapshot)
        if self._files or self._kept.is_worth_keeping(time.monotonic() - self._began):
            self.flush()

    def __enter__(self) -> Work:
        if self._kept is not None:
            self._kept.begin(self._name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._kept is None:
            return
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.flush()
        self._kept.end(self._name)


def _packed(pieces: list[Arrays]) -> dict[str, NDArray[Any]]:
    packed = {f"{i}.{key}": value for i, piece in enumerate(pieces) for key, value in piece.items()}
    return {**packed, "count": np.asarray(len(pieces))}


def _unpacked(found: dict[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    pieces: list[dict[str, NDArray[Any]]] = [{} for _ in range(int(found.pop("count")))]
    for key, value in found.items():
        number, _, name = key.partition(".")
        pieces[int(number)][name] = value
    return pieces


def find_difference(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Say which setting was another one before; None if none was."""
    for name in [*now, *before]:
        if before.get(name) != now.get(name):
            return f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
    return None


def holds_run(folder: Path) -> bool:
    """Return whether a run was begun in a folder, and its checkpoints are not removed."""
    return (folder / RUN).exists()


def kept_works(folder: Path) -> list[str]:
    """Return the names of the files in which computations of a run are kept."""
    if not holds_run(folder):
        return []
    return [path.name for path in folder.glob("*.npz") if _OWN.fullmatch(path.name)]


def is_left_over(folder: Path) -> bool:
    """Return whether a folder holds nothing but what is left of a run that was removed."""
    if holds_run(folder) or not folder.is_dir():
        return False
    return all(path.name == FORCED or _OWN.fullmatch(path.name) for path in folder.iterdir())


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints in a folder, and the folder unless it holds other files.

    A removal that is cut short counts as done: `RUN` goes first.
    """
    with suppress(OSError):
        (folder / RUN).unlink(missing_ok=True)
        (folder / FORCED).unlink(missing_ok=True)
        _remove_files(folder)
        folder.rmdir()


def _remove_files(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if _OWN.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _write_json(path: Path, described: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")


@contextmanager
def checkpoints(
    folder: str | Path, settings: Mapping[str, str] | None = None
) -> Iterator[Checkpoints]:
    """Keep the work that is done inside, in a folder, and go on from what is there.

    Parameters
    ----------
    folder
        Of this run alone. A program that was killed, run again over the same folder, goes on where
        it was and ends in the same numbers. ``remove()`` of what this yields forgets everything.
    settings
        What the run is made with, by name: another run is refused, saying what differs.

    Examples
    --------
    >>> import tempfile
    >>> import bayes_lcs as bl
    >>> X = [["a", "b"], ["b", "a"], ["a", "b"], ["b", "b"]]
    >>> with tempfile.TemporaryDirectory() as folder, bl.checkpoints(folder) as kept:
    ...     fitted = bl.MixtureClusterer(2, random_state=0).fit(X)
    ...     kept.recalled
    0
    """
    global _current
    before = _current
    _current = Checkpoints(Path(folder), settings)
    try:
        yield _current
    finally:
        _current = before


def is_keeping() -> bool:
    """Whether anything is written down at the moment."""
    return _current is not None


def work(kind: str, *decisive: Any) -> Work:
    """The next computation of the run, with what it wrote before; kept nowhere if nothing is.

    Parameters
    ----------
    kind
        A word for file names.
    decisive
        Everything that decides the result, as for :func:`fingerprint`.
    """
    if _current is None:
        return Work(None)
    return _current.next_work(kind, fingerprint(*decisive))


def source_work(source: Any, kind: str, *key: Any) -> Work:
    """Return a checkpointed computation over a source of rows, known by the rows and ``key``.

    Nothing is kept of a source of which it cannot be told whether its rows have changed.
    """
    rows = source.cache_key
    return Work(None) if rows is None or not is_keeping() else named_work(kind, *rows, *key)


def named_work(kind: str, *decisive: Any) -> Work:
    """The same for a computation that may come sooner, later, or not at all in a resumed run.

    It must be a function of what is decisive and of nothing else, and hold no other computations.
    """
    if _current is None:
        return Work(None)
    return _current.named_work(kind, fingerprint(*decisive))


def fingerprint(*things: Any) -> str:
    """A digest of arrays, sequences of them, and whatever else by its ``repr``.

    Examples
    --------
    >>> fingerprint(np.arange(3), "a") == fingerprint([np.arange(3), "a"])
    False
    >>> fingerprint(np.arange(3), 1.0) == fingerprint(np.arange(3), 1.0)
    True
    """
    digest = hashlib.sha256()

    def add(thing: Any) -> None:
        if isinstance(thing, list | tuple):
            digest.update(f"({len(thing)}".encode())
            for item in thing:
                add(item)
            digest.update(b")")
        elif hasattr(thing, "__array__"):
            array = np.asarray(thing)
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            if array.dtype.kind == "O":
                digest.update(repr(array.tolist()).encode())
            else:
                digest.update(np.ascontiguousarray(array).data)
        elif hasattr(thing, "__code__"):
            code = thing.__code__
            add((thing.__qualname__, code.co_code, code.co_consts, code.co_names))
            add(tuple(cell.cell_contents for cell in thing.__closure__ or ()))
        elif hasattr(thing, "get_params") and not isinstance(thing, type):
            # How much an estimator says on the way decides nothing.
            given = sorted(thing.get_params(deep=False).items())
            add((type(thing).__name__, [item for item in given if item[0] != "verbose"]))
        else:
            # Where an object lies in memory says nothing about it.
            text = re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
            digest.update(f"{type(thing).__name__}:{text};".encode())

    for thing in things:
        add(thing)
    return digest.hexdigest()
