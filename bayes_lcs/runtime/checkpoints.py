"""Save checkpoints of long computations, so that an interrupted run can be resumed.

Inside ``with checkpoints(folder)`` every long computation of this package saves its state at least
every half minute, when it ends, and at Ctrl-C. If the same program runs again with the same folder,
it makes the same computations in the same order, and each resumes from its saved state. Keys of
random numbers depend on seeds and counts only, so the results are those of an uninterrupted run.

A computation (a *task*) is identified by its position in the order, its kind, and a fingerprint of
everything that determines its result (its *cache key*). If these differ, the folder belongs to
another run, and an error is raised. Files contain arrays without pickle and are written atomically,
with checksums. If the disk fills up, checkpointing stops with a warning and the run continues.
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
from bayes_lcs.runtime.atomic_files import verify_checksum, write_with_checksum

__all__ = [
    "Arrays",
    "CheckpointedTask",
    "Checkpoints",
    "checkpointed_task",
    "checkpoints",
    "content_addressed_task",
    "find_difference",
    "fingerprint",
    "holds_run",
    "is_checkpointing",
    "is_left_over",
    "remove_checkpoints",
    "saved_tasks",
    "source_task",
]

Arrays = Mapping[str, NDArray[Any]]

SECONDS_BETWEEN_SAVES = 10.0
"""Minimum time between two saves of a task."""
MAX_UNSAVED_SECONDS = 5.0
"""Maximum total duration of finished tasks that are not saved, because each was short."""
MAX_SHARE_OF_TIME = 0.1
"""Maximum share of the time for saving; the interval grows up to the next constant."""
MAX_SECONDS_BETWEEN_SAVES = 25.0

RUN = "run.json"
"""File of a run's settings, written first and removed first: without it there is no run."""

FORCED = "forced"
"""Empty file that marks a command's run as allowed to replace existing results."""

_OWN = re.compile(
    r"\.?(run\.json|(\d{4,}-[\w-]+|[\w-]+-[0-9a-f]{16})\.(state|\d{4,})\.npz)"
    r"(\.sha256)?(\.\d+\.part)?"
)
"""Names of checkpoint files."""

_current: Checkpoints | None = None


class Checkpoints:
    """Folder of the checkpoints of one run.

    Attributes
    ----------
    folder
        The folder; it is created if necessary.
    recalled
        Number of tasks that were resumed from a saved state.
    failed
        Whether something could not be written.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.recalled = 0
        self._current_tasks: list[str] = []
        self._counts = {"": 0}
        self._unsaved_seconds = 0.0
        self.failed = False
        folder.mkdir(parents=True, exist_ok=True)
        self._check_settings({"bayes_lcs": __version__, **(settings or {})})

    def _check_settings(self, settings: Mapping[str, str]) -> None:
        """Write the settings of a new run; raise a `DataError` if those of an old run differ."""
        note = self.folder / RUN
        if not note.exists():
            _remove_files(self.folder)  # left over from an interrupted removal
            write_with_checksum(note, lambda part: _write_json(part, settings))
            return
        try:
            known = dict(json.loads(verify_checksum(note).read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise DataError(
                "this folder of checkpoints is damaged; remove it and start again",
                file=str(self.folder),
            ) from error
        difference = find_difference(known, settings)
        if difference is not None:
            raise DataError(
                f"these checkpoints belong to another run: {difference}. Start again, or resume "
                "with the old settings",
                file=str(self.folder),
            )

    def next_task(self, kind: str, identity: str) -> CheckpointedTask:
        """Return the next task in the order of this run, or of the current task's subtasks."""
        above = self._current_tasks[-1] if self._current_tasks else ""
        self._counts[above] += 1
        return CheckpointedTask(self, f"{above}{self._counts[above]:04d}-{kind}", identity)

    def content_addressed_task(self, kind: str, identity: str) -> CheckpointedTask:
        """Return a task that is identified by its cache key, not by its position in the run."""
        return CheckpointedTask(self, f"{kind}-{identity[:16]}", identity)

    def begin_subtasks(self, name: str) -> None:
        """Count the following tasks within this one, until `end_subtasks`."""
        self._current_tasks.append(f"{name}_")
        self._counts[f"{name}_"] = 0

    def end_subtasks(self, name: str) -> None:
        """Stop numbering within a task; if it is saved, remove the files of its subtasks."""
        self._current_tasks.remove(f"{name}_")
        if (self.folder / f"{name}.state.npz").exists():
            for path in self.folder.glob(f"{name}_*"):
                path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all checkpoints, after the results of the run are saved elsewhere."""
        remove_checkpoints(self.folder)

    def write(self, name: str, arrays: Callable[[], Arrays]) -> bool:
        """Write arrays and return whether this succeeded; warn at the first failure only."""

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
                    f"checkpoints cannot be written to {self.folder} ({error.strerror or error}): "
                    "the run continues, but nothing more is saved until there is space on the disk",
                    CheckpointWarning,
                    stacklevel=3,
                )
            self.failed = True
            return False
        return True

    def read(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays that were written under a name, or None."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        try:
            with np.load(
                io.BytesIO(verify_checksum(path).read_bytes()), allow_pickle=False
            ) as found:
                return {key: found[key] for key in found.files}
        except Exception as error:
            raise DataError(
                f"this checkpoint is damaged ({error}); remove {self.folder} and start again",
                file=str(path),
            ) from error

    def is_worth_saving(self, seconds: float) -> bool:
        """Return whether a task of this duration is saved; short ones are repeated instead."""
        if self._unsaved_seconds + seconds > MAX_UNSAVED_SECONDS:
            return True
        self._unsaved_seconds += seconds
        return False


class CheckpointedTask:
    """Checkpoint of one computation: its saved state, and methods to save a new one.

    A task has a state, of which the last one is saved, and pieces of results, which are all saved.
    As a context manager, it saves the last state at Ctrl-C.

    Attributes
    ----------
    state
        The state that was saved last, or None.
    """

    def __init__(self, checkpoints: Checkpoints | None, name: str = "", identity: str = "") -> None:
        self._checkpoints, self._name, self._identity = checkpoints, name, identity
        self.state: dict[str, NDArray[Any]] | None = None
        self._files = self._files_before = 0
        # One attribute for both, so that Ctrl-C never finds new pieces with an old state.
        self._unwritten: tuple[list[Arrays], Callable[[], Arrays] | None] = ([], None)
        self._began = self._last = time.monotonic()
        self._pause = SECONDS_BETWEEN_SAVES
        if checkpoints is not None:
            self._resume(checkpoints)

    def _resume(self, checkpoints: Checkpoints) -> None:
        state = checkpoints.read(f"{self._name}.state")
        if state is None:
            return
        if str(state.pop("identity")) != self._identity:
            raise DataError(
                "these checkpoints belong to another run: its data, settings or program differ. "
                "Choose another folder, or remove this one and start again",
                file=str(checkpoints.folder),
            )
        self._files = self._files_before = int(state.pop("files"))
        self.state = state
        checkpoints.recalled += 1

    def iter_pieces(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Iterate over the pieces that earlier runs saved, reading one file at a time."""
        for number in range(self._files_before):
            assert self._checkpoints is not None
            found = self._checkpoints.read(f"{self._name}.{number:04d}")
            if found is None:
                raise DataError(
                    f"a checkpoint is missing; remove {self._checkpoints.folder} and start again",
                    file=f"{self._checkpoints.folder}/{self._name}.{number:04d}.npz",
                )
            yield from _unpack(found)

    @cached_property
    def pieces(self) -> list[dict[str, NDArray[Any]]]:
        """The pieces that earlier runs saved."""
        return list(self.iter_pieces())

    @property
    def is_active(self) -> bool:
        """True if the task is saved at all."""
        return self._checkpoints is not None

    def update(self, snapshot: Callable[[], Arrays] = dict, *pieces: Arrays) -> None:
        """Set the state and add pieces, and save them if the last save is some seconds ago.

        ``snapshot`` returns the state. It is called later, at the next save or at Ctrl-C, and must
        return the state at the time of this call.
        """
        if self._checkpoints is None:
            return
        self._unwritten = ([*self._unwritten[0], *pieces], snapshot)
        if time.monotonic() - self._last >= self._pause:
            self.save()

    def save(self) -> None:
        """Save the state and the new pieces now, if there are any."""
        pieces, snapshot = self._unwritten
        if self._checkpoints is None or snapshot is None:
            return
        began = time.monotonic()
        written = True
        if pieces:
            arrays = partial(_pack, pieces)
            written = self._checkpoints.write(f"{self._name}.{self._files:04d}", arrays)
            if written:
                self._files, self._unwritten = self._files + 1, ([], snapshot)
        if written:  # a state must not be newer than the pieces before it
            own = {"identity": np.asarray(self._identity), "files": np.asarray(self._files)}
            self._checkpoints.write(f"{self._name}.state", lambda: {**snapshot(), **own})
        self._last = time.monotonic()
        self._pause = float(
            np.clip(
                (self._last - began) / MAX_SHARE_OF_TIME,
                SECONDS_BETWEEN_SAVES,
                MAX_SECONDS_BETWEEN_SAVES,
            )
        )

    def finish(self, snapshot: Callable[[], Arrays] = dict, *pieces: Arrays) -> None:
        """Save the final state, unless the task was so short that it can be repeated."""
        if self._checkpoints is None:
            return
        self._unwritten = ([*self._unwritten[0], *pieces], snapshot)
        if self._files or self._checkpoints.is_worth_saving(time.monotonic() - self._began):
            self.save()

    def __enter__(self) -> CheckpointedTask:
        if self._checkpoints is not None:
            self._checkpoints.begin_subtasks(self._name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._checkpoints is None:
            return
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.save()
        self._checkpoints.end_subtasks(self._name)


def _pack(pieces: list[Arrays]) -> dict[str, NDArray[Any]]:
    arrays = {f"{i}.{key}": value for i, piece in enumerate(pieces) for key, value in piece.items()}
    return {**arrays, "count": np.asarray(len(pieces))}


def _unpack(found: dict[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    pieces: list[dict[str, NDArray[Any]]] = [{} for _ in range(int(found.pop("count")))]
    for key, value in found.items():
        number, _, name = key.partition(".")
        pieces[int(number)][name] = value
    return pieces


def find_difference(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Describe the first setting that differs; None if all are equal."""
    for name in [*now, *before]:
        if before.get(name) != now.get(name):
            return f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
    return None


def holds_run(folder: Path) -> bool:
    """Return whether a folder contains the checkpoints of a run."""
    return (folder / RUN).exists()


def saved_tasks(folder: Path) -> list[str]:
    """Return the names of the files of saved tasks."""
    if not holds_run(folder):
        return []
    return [path.name for path in folder.glob("*.npz") if _OWN.fullmatch(path.name)]


def is_left_over(folder: Path) -> bool:
    """Return whether a folder contains only the rest of an interrupted removal."""
    if holds_run(folder) or not folder.is_dir():
        return False
    return all(path.name == FORCED or _OWN.fullmatch(path.name) for path in folder.iterdir())


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints in a folder, and the folder unless it contains other files.

    `RUN` is removed first, so that an interrupted removal counts as done.
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
    """Save checkpoints of the computations inside in a folder, and resume from those in it.

    Parameters
    ----------
    folder
        Folder of this run alone. A program that was killed resumes if it runs again with the same
        folder, and gives the same results. The yielded object has a method ``remove()`` that
        removes all checkpoints.
    settings
        Settings of the run by name. A folder of a run with other settings raises a `DataError` that
        names the difference.

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


def is_checkpointing() -> bool:
    """Return whether checkpoints are being saved."""
    return _current is not None


def checkpointed_task(kind: str, *cache_key: Any) -> CheckpointedTask:
    """Return the next task of the run with its saved state; inactive outside `checkpoints`.

    Parameters
    ----------
    kind
        Word for file names.
    cache_key
        Everything that determines the result, as for :func:`fingerprint`.
    """
    if _current is None:
        return CheckpointedTask(None)
    return _current.next_task(kind, fingerprint(*cache_key))


def source_task(source: Any, kind: str, *key: Any) -> CheckpointedTask:
    """Return a task over a source of rows, identified by the source's cache key and ``key``.

    It is inactive if the source has no cache key, because changes could not be detected.
    """
    rows = source.cache_key
    return (
        CheckpointedTask(None)
        if rows is None or not is_checkpointing()
        else content_addressed_task(kind, *rows, *key)
    )


def content_addressed_task(kind: str, *cache_key: Any) -> CheckpointedTask:
    """Return a task that a resumed run may reach earlier, later, or not at all.

    Its result must depend on ``cache_key`` only, and it must have no subtasks.
    """
    if _current is None:
        return CheckpointedTask(None)
    return _current.content_addressed_task(kind, fingerprint(*cache_key))


def fingerprint(*things: Any) -> str:
    """Return a digest of arrays, sequences of them, and other objects by their ``repr``.

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
            # The verbosity of an estimator does not change its result.
            given = sorted(thing.get_params(deep=False).items())
            add((type(thing).__name__, [item for item in given if item[0] != "verbose"]))
        else:
            # Memory addresses differ between runs.
            text = re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
            digest.update(f"{type(thing).__name__}:{text};".encode())

    for thing in things:
        add(thing)
    return digest.hexdigest()
