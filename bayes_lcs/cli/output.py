"""Write the results of a command, without overwriting other files.

``--out`` is a folder or a file. Existing files are not replaced unless ``--force`` is given; input
files are never replaced. A hidden JSON file beside the results lists the files of the last run and
its settings, so that later runs can distinguish them from files of the user.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

__all__ = ["Output", "Record", "refuse"]

INSTEAD = "choose another --out, or pass --force to"
"""Advice in errors about existing files."""
MOVE = "move it away, or choose another --out"
"""Advice in errors about hidden files."""
MAX_NAMES = 3
"""Maximum number of files of a folder that a message lists."""


def refuse(path: Path, why: str) -> NoReturn:
    """Raise a `FileExistsError`: an existing file would be replaced."""
    raise FileExistsError(f"{path}: {why}")


@dataclass(frozen=True)
class Record:
    """Record of the run that wrote the results.

    Attributes
    ----------
    files
        Names of the result files.
    settings
        Settings of the run.
    is_finished
        Whether all of its results were written.
    """

    files: tuple[str, ...] = ()
    settings: Mapping[str, str] | None = None
    is_finished: bool = False


@dataclass(frozen=True)
class Output:
    """Location of a command's results.

    Attributes
    ----------
    path
        The path given by ``--out``.
    results
        Every file that the command may write.
    is_folder
        Whether ``path`` is a folder of results (and not one file).
    """

    path: Path
    results: tuple[Path, ...]
    is_folder: bool

    @classmethod
    def in_folder(cls, path: Path, names: Iterable[str]) -> Output:
        """Return an output folder in which the command writes files of these names."""
        return cls(path, tuple(path / name for name in names), is_folder=True)

    @classmethod
    def at_file(cls, path: Path, *beside: Path) -> Output:
        """Return an output file, with other files that the command writes beside it."""
        return cls(path, (path, *beside), is_folder=False)

    def hidden_path(self, name: str) -> Path:
        """Return the path of a hidden file, in the output folder or beside the output file."""
        if self.is_folder:
            return self.path / f".{name}"
        return self.path.absolute().with_name(f".{self.path.name}.{name}")

    @property
    def checkpoint(self) -> Path:
        """Folder of the checkpoints."""
        return self.hidden_path("checkpoint")

    @property
    def earlier_checkpoint(self) -> Path:
        """Folder of the checkpoints of an earlier unfinished run, during a run with ``--force``."""
        return self.hidden_path("checkpoint.before")

    @property
    def record_path(self) -> Path:
        """File of the `Record`."""
        return self.hidden_path("results.json")

    def record(self) -> Record:
        """Return the record of the last run, or an empty one if it cannot be read."""
        return self._read_record() or Record()

    def _read_record(self) -> Record | None:
        try:
            found = json.loads(self.record_path.read_text(encoding="utf-8"))
            files, settings = tuple(map(str, found["files"])), dict(found["settings"])
            return Record(files, settings, found["finished"] is True)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def existing_results(self) -> list[Path]:
        """Return the result files that exist, including links."""
        return [path for path in self.results if os.path.lexists(path)]

    def check(self, inputs: Iterable[Path], *, force: bool) -> None:
        """Raise an error if writing the results would replace other files.

        Parameters
        ----------
        inputs
            Input files and folders, which are never written to.
        force
            Whether existing files with the names of results may be replaced.
        """
        self.check_kind()
        self.check_inputs(inputs)
        if not force:
            self.check_nothing_is_there()

    def check_kind(self) -> None:
        """Raise an error if the output or a result is not of the right type (file or folder)."""
        path = self.path
        for folder in (path, *path.parents):
            # After the folder before ".." is created, the path may lead elsewhere.
            if folder.name == ".." and not folder.exists():
                raise FileNotFoundError(
                    f"{path}: {folder.parent} is not a folder; write --out without '..'"
                )
        if self.is_folder and os.path.lexists(path) and not path.is_dir():
            link = f"a symbolic link to {path.readlink()}, which is " if path.is_symlink() else ""
            refuse(path, f"this is {link}not a folder, but --out must be one; choose another --out")
        if not self.is_folder and path.is_dir():
            raise IsADirectoryError(f"{path}: this is a folder; --out must be the path of a file")
        for path in self.existing_results():
            if not path.is_symlink() and not path.is_file():
                refuse(
                    path, "this is not a regular file and cannot be replaced; choose another --out"
                )
        self._check_hidden()

    def _check_hidden(self) -> None:
        """Raise an error if the record or the checkpoints are links or files of the user.

        A link could lead to a file of the user, even to the input.
        """
        for path in (self.checkpoint, self.earlier_checkpoint):
            if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
                refuse(path, f"this name is reserved for a folder of checkpoints; {MOVE}")
        path = self.record_path
        if os.path.lexists(path) and (path.is_symlink() or self._read_record() is None):
            refuse(path, f"this name is reserved for the list of results; {MOVE}")

    def check_inputs(self, inputs: Iterable[Path]) -> None:
        """Raise an error if a result is an input file, or would be written to an input folder."""
        for given in inputs:
            for path in self.results:
                if given.is_dir():
                    if path.parent.exists() and path.parent.samefile(given):
                        raise ValueError(
                            f"{self.path}: the results would be written to the input folder "
                            f"{given}; choose another --out"
                        )
                elif path.exists() and path.samefile(given):
                    raise ValueError(
                        f"{path}: this is the input file ({given}), which is never replaced. "
                        "Choose another --out"
                    )

    def check_nothing_is_there(self) -> None:
        """Raise an error if the folder is not empty, or a file would be replaced."""
        existing = self.existing_results()
        if existing and self.is_folder:
            why = f"this folder already contains results ({_list_names(existing)})"
            refuse(self.path, f"{why}; {INSTEAD} replace them")
        elif existing and existing[0].is_symlink():
            why = f"this is a symbolic link to {existing[0].readlink()}"
            refuse(existing[0], f"{why}; {INSTEAD} replace the link (not its target)")
        elif existing:
            refuse(existing[0], f"this file already exists; {INSTEAD} replace it")
        elif self.is_folder and (others := self._other_files()):
            refuse(
                self.path,
                f"this folder is not empty ({_list_names(others)}); {INSTEAD} write into it. "
                "Results replace files with the same names; other files stay",
            )

    def _other_files(self) -> list[Path]:
        """Return the files in the folder, except for those that a finished run may leave."""
        from bayes_lcs.runtime.checkpoints import is_left_over

        if not self.path.is_dir():
            return []
        folders = (self.checkpoint, self.earlier_checkpoint)
        own = {self.record_path, *filter(is_left_over, folders)}
        return [path for path in sorted(self.path.iterdir()) if path not in own]

    def write(
        self,
        save: Callable[[], list[Path]],
        settings: Mapping[str, str],
        *,
        is_finished: bool = True,
    ) -> list[Path]:
        """Write the results, and remove results of the last run that are not replaced.

        Parameters
        ----------
        save
            Function that writes the results and returns their paths.
        settings
            Settings of the run.
        is_finished
            Whether these are all results of the run.
        """
        known = {*self.record().files}
        # Only files that this or the last run wrote may be removed later.
        own = [p for p in self.results if p.name in known or not os.path.lexists(p)]
        self._write_record(own, settings, is_finished=False)
        for path in self.results:
            if path.is_symlink():  # the link was named, not what it leads to
                path.unlink()
        written = save()
        new = {*written, *(path.with_name(f"{path.name}.sha256") for path in written)}
        for path in own:
            if path not in new:
                path.unlink(missing_ok=True)
        results = [path for path in self.existing_results() if path in new]
        self._write_record(results, settings, is_finished=is_finished)
        return written

    def _write_record(
        self, files: Iterable[Path], settings: Mapping[str, str], *, is_finished: bool
    ) -> None:
        from bayes_lcs.runtime.atomic_files import write_atomically

        record = {
            "finished": is_finished,
            "settings": dict(settings),
            "files": [path.name for path in files],
        }
        text = json.dumps(record, indent=2) + "\n"

        def write(part: Path) -> None:
            part.write_text(text, encoding="utf-8")

        write_atomically(self.record_path, write)

    def remove_unfinished_files(self) -> None:
        """Remove temporary files of a run that was killed while writing."""
        folder = self.record_path.parent
        if not folder.is_dir():
            return
        names = "|".join(re.escape(path.name) for path in (*self.results, self.record_path))
        part = re.compile(rf"\.({names})\.\d+\.part")
        for path in list(folder.iterdir()):
            if part.fullmatch(path.name):
                path.unlink(missing_ok=True)


def _list_names(paths: list[Path]) -> str:
    shown = ", ".join(path.name for path in paths[:MAX_NAMES])
    more = len(paths) - MAX_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
