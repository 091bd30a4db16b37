"""Resume the run of a command: location and lifetime of its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from bayes_lcs.cli.errors import echo, print_json
from bayes_lcs.cli.output import INSTEAD, Output, refuse

if TYPE_CHECKING:
    from bayes_lcs.runtime.checkpoints import Checkpoints

__all__ = ["Run", "prepare"]

NO_EFFECT_ON_FIT = frozenset({"jobs", "predict"})
"""Options that do not affect the fit."""
NO_EFFECT = frozenset({"jobs"})
"""Options that do not affect the results."""


def _has_saved_tasks(folder: Path) -> bool:
    from bayes_lcs.runtime.checkpoints import saved_tasks

    return bool(saved_tasks(folder))


def _has_results(folder: Path) -> bool:
    """Return whether more than reading is saved."""
    from bayes_lcs.runtime.checkpoints import saved_tasks

    return any(not name.startswith("reading-") for name in saved_tasks(folder))


def _file_state(path: Path) -> str:
    """Return name, size and time of an input file, or of the files of a folder."""
    files = [path]
    if path.is_dir():
        files = [f for f in sorted(path.iterdir()) if f.is_file() and f.name[0] not in "._"]
    states = [(file.name, file.stat()) for file in files]
    return "; ".join(f"{name}, {s.st_size} bytes, {s.st_mtime_ns}" for name, s in states)


@dataclass
class Run:
    """Run of a command, which can be resumed.

    Attributes
    ----------
    output
        Location of the results and checkpoints.
    fit_settings
        Settings that affect the fit, by name.
    settings
        Settings that affect the results, by name.
    resume, force
        The options of these names.
    has_written
        Whether writing the results has begun, so that earlier results may be replaced already.
    """

    output: Output
    fit_settings: Mapping[str, str]
    settings: Mapping[str, str]
    resume: bool
    force: bool
    has_written: bool = False

    def check(self, inputs: Mapping[str, Path], *, as_json: bool) -> None:
        """Raise an error if files would be lost; exit if the run is already finished."""
        output = self.output
        output.check_kind()
        output.check_inputs(inputs.values())
        if self.force:
            return
        if self._is_begun():
            self._check_unfinished()
        elif self.resume and self._is_finished():
            self._report_finished(as_json)
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
                "this is the output of an unfinished run. Resume it with --resume, or "
                f"{INSTEAD} start again",
            )
        folder = output.checkpoint if holds_run(output.checkpoint) else output.earlier_checkpoint
        if (folder / FORCED).exists():
            return
        known = output.record().files
        for path in output.existing_results():
            if path.name not in known:
                refuse(
                    path,
                    "this file does not belong to the unfinished run; move it away, or pass "
                    "--force together with --resume to replace it",
                )

    def _is_finished(self) -> bool:
        """Return whether the results of this run exist; raise an error for another run's."""
        from bayes_lcs.runtime.checkpoints import find_difference

        record, output = self.output.record(), self.output
        there = {path.name for path in output.existing_results()}
        if not record.is_finished or not record.files or not there.issuperset(record.files):
            return False
        difference = find_difference(record.settings or {}, self.settings)
        if difference is not None:
            refuse(
                output.path,
                f"the results here belong to another run, which is finished: {difference}; "
                f"{INSTEAD} replace them",
            )
        return True

    def _report_finished(self, as_json: bool) -> NoReturn:
        from bayes_lcs.runtime.checkpoints import remove_checkpoints

        remove_checkpoints(self.output.checkpoint)
        remove_checkpoints(self.output.earlier_checkpoint)
        if as_json:
            files = [str(path) for path in self.output.existing_results()]
            print_json({"finished": True, "files": files})
        echo(
            f"note: this run is finished and its results are in {self.output.path}; there is "
            "nothing to do. To run it again, pass --force instead of --resume",
            err=True,
        )
        raise typer.Exit

    def write(self, save: Callable[[], list[Path]], *, is_finished: bool = True) -> list[Path]:
        """Write the results with `Output.write`."""

        def save_and_mark() -> list[Path]:
            self.has_written = True
            return save()

        return self.output.write(save_and_mark, self.settings, is_finished=is_finished)

    def _begin(self) -> None:
        """Resume, move or remove the checkpoints of earlier runs."""
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
                path = self.output.path
                echo(f"note: there is nothing to resume in {path}; a new run starts", err=True)
            elif not _has_saved_tasks(folder):
                echo("note: the earlier run had saved nothing yet; it starts again", err=True)
            record = self.output.record()
            self.has_written = bool(record.files) and not record.is_finished
        elif _has_results(folder):
            remove_checkpoints(before)
            echo(f"note: the checkpoints of an earlier run are moved to {before}", err=True)
            folder.rename(before)
        else:
            remove_checkpoints(folder)
        if self.force and self.output.existing_results():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FORCED).touch()

    @contextmanager
    def checkpointing(self) -> Iterator[None]:
        """Save checkpoints of the computations inside, and remove them at the end."""
        from bayes_lcs.runtime.atomic_files import UnwritableError
        from bayes_lcs.runtime.checkpoints import checkpoints, remove_checkpoints

        folder = self.output.checkpoint
        self._begin()
        saved: Checkpoints | None = None
        try:
            with checkpoints(folder, self.fit_settings) as saved:
                yield
        except KeyboardInterrupt as interruption:
            details = f"{interruption}; " if str(interruption) else ""
            message = f"interrupted; {details}{self._advice_after_interrupt()}"
            self._clean_up(saved, _has_saved_tasks(folder))
            raise KeyboardInterrupt(message) from None
        except UnwritableError as error:
            message = f"{error}. {self._advice_after_write_error(saved)}"
            self._clean_up(saved, _has_saved_tasks(folder))
            raise OSError(message) from error
        except Exception:  # invalid input, or not enough memory
            self._clean_up(saved, _has_results(folder))
            raise
        remove_checkpoints(folder)
        remove_checkpoints(self.output.earlier_checkpoint)

    def _clean_up(self, saved: Checkpoints | None, is_worth_saving: bool) -> None:
        """Remove checkpoints that are of no use after a failure, and keep all others."""
        from bayes_lcs.runtime.checkpoints import holds_run, remove_checkpoints

        folder, before = self.output.checkpoint, self.output.earlier_checkpoint
        if saved is None and holds_run(folder):  # the checkpoints belong to another run
            return
        if is_worth_saving or self.has_written:
            return
        remove_checkpoints(folder)
        if holds_run(before) and not self.resume:
            before.rename(folder)

    def _advice_after_interrupt(self) -> str:
        """Return what was saved before Ctrl-C, and how to resume."""
        if _has_saved_tasks(self.output.checkpoint):
            where = self.output.checkpoint
            return f"progress is saved in {where}: run the same command with --resume"
        if self.has_written:
            return "no checkpoint was saved: the same command with --resume starts again"
        return "no checkpoint was saved yet"

    def _advice_after_write_error(self, saved: Checkpoints | None) -> str:
        """Return what was saved if the results could not be written, and how to resume."""
        folder = self.output.checkpoint
        if not _has_saved_tasks(folder):
            again = " with --resume" if self.has_written else ""
            return f"Free some space and run the same command{again}, or choose another --out"
        if saved is not None and saved.failed:
            return (
                f"A part of the progress is saved in {folder}: free some space and run the same "
                "command with --resume"
            )
        return (
            f"The progress is saved in {folder}: free some space and run the same command with "
            "--resume, which only writes the results"
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
    """Return the run of a command; raise an error if files would be lost.

    Parameters
    ----------
    output
        Location of the results.
    inputs
        Input files, identified by name, size and time. Only the first affects the fit.
    settings
        All options that affect the results.
    resume
        Whether to resume an unfinished run. If the run is finished, the command prints a note and
        exits.
    force
        Whether to replace existing results.
    as_json
        Whether to print JSON for a finished run.
    """
    from bayes_lcs._version import __version__

    described = {name: _file_state(path) for name, path in inputs.items()}
    first = next(iter(inputs))
    given = {name: str(value) for name, value in settings.items()}
    run = Run(
        output,
        {n: v for n, v in given.items() if n not in NO_EFFECT_ON_FIT} | {first: described[first]},
        {n: v for n, v in given.items() if n not in NO_EFFECT}
        | described
        | {"bayes_lcs": __version__},
        resume,
        force,
    )
    run.check(inputs, as_json=as_json)
    return run
