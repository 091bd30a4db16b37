"""Runs of the command that can be resumed: where checkpoints are, and when they are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from bayes_lcs.cli.errors import print_json, say
from bayes_lcs.cli.output import INSTEAD, Output, refuse

if TYPE_CHECKING:
    from bayes_lcs.runtime.checkpoints import Checkpoints

__all__ = ["Run", "prepare"]

NOT_DECISIVE = frozenset({"jobs", "predict"})
"""Options of commands that do not change what is learned."""
WITHOUT_EFFECT = frozenset({"jobs"})
"""Options that do not change the results either."""


def _has_work(folder: Path) -> bool:
    from bayes_lcs.runtime.checkpoints import saved_tasks

    return bool(saved_tasks(folder))


def _has_results(folder: Path) -> bool:
    """Whether there is more than rows that were read."""
    from bayes_lcs.runtime.checkpoints import saved_tasks

    return any(not name.startswith("reading-") for name in saved_tasks(folder))


def _described(path: Path) -> str:
    """Name, size and time of a file, or of the files of a folder that are read."""
    files = [path]
    if path.is_dir():
        files = [f for f in sorted(path.iterdir()) if f.is_file() and f.name[0] not in "._"]
    states = [(file.name, file.stat()) for file in files]
    return "; ".join(f"{name}, {s.st_size} bytes, {s.st_mtime_ns}" for name, s in states)


@dataclass
class Run:
    """A run of a command, which writes results to one place and can be resumed.

    Attributes
    ----------
    output
        Where results and checkpoints are.
    decisive
        What decides the work, by name.
    settings
        What decides the results: the same, and what is done with them.
    resume, force
        As the options.
    has_written
        Whether results were begun to be written, and are not those of an earlier run any more.
    """

    output: Output
    decisive: Mapping[str, str]
    settings: Mapping[str, str]
    resume: bool
    force: bool
    has_written: bool = False

    def check(self, inputs: Mapping[str, Path], *, as_json: bool) -> None:
        """Refuse, before any work, to lose anything; end here if the run is finished already."""
        output = self.output
        output.check_kind()
        output.check_inputs(inputs.values())
        if self.force:
            return
        if self._is_begun():
            self._check_unfinished()
        elif self.resume and self._is_finished():
            self._tell_finished(as_json)
        else:
            output.check_nothing_is_there()

    def _is_begun(self) -> bool:
        from bayes_lcs.runtime.checkpoints import holds_run

        return holds_run(self.output.checkpoint) or holds_run(self.output.earlier_checkpoint)

    def _check_unfinished(self) -> None:
        from bayes_lcs.runtime.checkpoints import FORCED, holds_run

        output = self.output
        if not self.resume:
            refuse(
                output.path,
                "an unfinished run is kept here. Go on with it with --resume, or "
                f"{INSTEAD} begin anew",
            )
        begun = output.checkpoint if holds_run(output.checkpoint) else output.earlier_checkpoint
        if (begun / FORCED).exists():
            return
        known = output.record().files
        for path in output.existing_results():
            if path.name not in known:
                refuse(
                    path,
                    "this file is not of the unfinished run; move it away, or pass --force "
                    "together with --resume to replace it",
                )

    def _is_finished(self) -> bool:
        """Return whether the results of this run are there; refuse those of another one."""
        from bayes_lcs.runtime.checkpoints import find_difference

        record, output = self.output.record(), self.output
        there = {path.name for path in output.existing_results()}
        if not record.is_finished or not record.files or not there.issuperset(record.files):
            return False
        difference = find_difference(record.settings or {}, self.settings)
        if difference is not None:
            refuse(
                output.path,
                f"the results here are of another run, which is finished: {difference}; "
                f"{INSTEAD} replace them",
            )
        return True

    def _tell_finished(self, as_json: bool) -> NoReturn:
        from bayes_lcs.runtime.checkpoints import remove_checkpoints

        remove_checkpoints(self.output.checkpoint)
        remove_checkpoints(self.output.earlier_checkpoint)
        if as_json:
            files = [str(path) for path in self.output.existing_results()]
            print_json({"finished": True, "files": files})
        say(
            f"note: this run is finished and its results are in {self.output.path}; nothing was "
            "done. To make them again, pass --force instead of --resume",
            err=True,
        )
        raise typer.Exit

    def write(self, save: Callable[[], list[Path]], *, is_finished: bool = True) -> list[Path]:
        """Write the results, as `Output.write` does."""

        def save_noted() -> list[Path]:
            self.has_written = True
            return save()

        return self.output.write(save_noted, self.settings, is_finished=is_finished)

    def _begin(self) -> None:
        """Take up, set aside or remove what is kept of earlier runs."""
        from bayes_lcs.runtime.checkpoints import FORCED, holds_run, remove_checkpoints

        folder, before = self.output.checkpoint, self.output.earlier_checkpoint
        self.output.remove_unfinished_files()
        for old in (folder, before):
            if not holds_run(old):
                remove_checkpoints(old)
        if self.resume:
            if holds_run(before) and not holds_run(folder):
                before.rename(folder)
            if not holds_run(folder):
                place = self.output.path
                say(f"note: there is nothing to resume in {place}; this is the beginning", err=True)
            elif not _has_work(folder):
                say("note: the earlier run had kept nothing yet; it begins anew", err=True)
            record = self.output.record()
            self.has_written = bool(record.files) and not record.is_finished
        elif _has_results(folder):
            remove_checkpoints(before)
            say(f"note: the checkpoints of an earlier run are set aside in {before}", err=True)
            folder.rename(before)
        else:
            remove_checkpoints(folder)
        if self.force and self.output.existing_results():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FORCED).touch()

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Keep checkpoints of the work inside until it has ended; go on from them if asked to."""
        from bayes_lcs.runtime.atomic_files import UnwritableError
        from bayes_lcs.runtime.checkpoints import checkpoints, remove_checkpoints

        folder = self.output.checkpoint
        self._begin()
        kept: Checkpoints | None = None
        try:
            with checkpoints(folder, self.decisive) as kept:
                yield
        except KeyboardInterrupt as interruption:
            said = f"{interruption}; " if str(interruption) else ""
            message = f"interrupted; {said}{self._what_is_kept()}"
            self._tidy(kept, _has_work(folder))
            raise KeyboardInterrupt(message) from None
        except UnwritableError as error:
            message = f"{error}. {self._what_to_do(kept)}"
            self._tidy(kept, _has_work(folder))
            raise OSError(message) from error
        except Exception:  # what was read was wrong, or there is no room for it
            self._tidy(kept, _has_results(folder))
            raise
        remove_checkpoints(folder)
        remove_checkpoints(self.output.earlier_checkpoint)

    def _tidy(self, kept: Checkpoints | None, is_worth_saving: bool) -> None:
        """After a failure: leave nothing behind that is worth nothing, and lose nothing else."""
        from bayes_lcs.runtime.checkpoints import holds_run, remove_checkpoints

        folder, before = self.output.checkpoint, self.output.earlier_checkpoint
        if kept is None and holds_run(folder):  # it is of another run
            return
        if is_worth_saving or self.has_written:
            return
        remove_checkpoints(folder)
        if holds_run(before) and not self.resume:
            before.rename(folder)

    def _what_is_kept(self) -> str:
        """Say after Ctrl-C how to go on."""
        if _has_work(self.output.checkpoint):
            where = self.output.checkpoint
            return f"the work so far is kept in {where}: the same command with --resume goes on"
        if self.has_written:
            return "nothing else was worth keeping: the same command with --resume begins anew"
        return "nothing was done yet that is worth keeping"

    def _what_to_do(self, kept: Checkpoints | None) -> str:
        """Say what is left of the work where its results could not be written."""
        folder = self.output.checkpoint
        if not _has_work(folder):
            again = " with --resume" if self.has_written else ""
            return f"Make room, and run the same command{again}; or choose another --out"
        if kept is not None and kept.failed:
            return (
                f"What could be kept of the work is in {folder}: make room, and the same command "
                "with --resume goes on from there"
            )
        return (
            f"The work is kept in {folder}: make room, and the same command with --resume only "
            "writes the results"
        )


def prepare(
    output: Output,
    inputs: Mapping[str, Path],
    settings: Mapping[str, Any],
    *,
    resume: bool,
    force: bool,
    as_json: bool = False,
) -> Run:
    """Return the run of a command, after it was checked that nothing will be lost.

    Parameters
    ----------
    output
        Where results are written.
    inputs
        Files that are read; names, sizes and times are remembered. The first decides the work.
    settings
        Everything that the user chose and that decides the result.
    resume
        Whether to go on with an unfinished run; if it is finished, this is said, and the command
        ends.
    force
        Whether to replace what is there.
    as_json
        Whether a run that is finished is told as JSON, too.
    """
    from bayes_lcs._version import __version__

    described = {name: _described(path) for name, path in inputs.items()}
    first = next(iter(inputs))
    given = {name: str(value) for name, value in settings.items()}
    run = Run(
        output,
        {n: v for n, v in given.items() if n not in NOT_DECISIVE} | {first: described[first]},
        {n: v for n, v in given.items() if n not in WITHOUT_EFFECT}
        | described
        | {"bayes_lcs": __version__},
        resume,
        force,
    )
    run.check(inputs, as_json=as_json)
    return run
