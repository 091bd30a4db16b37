"""Runs of the command that can be resumed: where checkpoints are, and when they are removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.cli.manners import say

if TYPE_CHECKING:
    from bayes_lcs.data.checkpoints import Checkpoints

__all__ = ["resumable"]

NOT_DECISIVE = frozenset({"jobs", "predict"})
"""Options of commands that do not change what is learned."""


def _has_work(folder: Path) -> bool:
    return any(folder.glob("*.npz"))


def _has_results(folder: Path) -> bool:
    """Whether there is more than rows that were read."""
    return any(not path.name.startswith("reading-") for path in folder.glob("*.npz"))


def _described(path: Path) -> str:
    """Name, size and time of a file, or of all files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    states = [(file.name, file.stat()) for file in files]
    return "; ".join(f"{name}, {s.st_size} bytes, {s.st_mtime_ns}" for name, s in states)


@contextmanager
def resumable(
    folder: Path, resume: bool, file: Path, settings: Mapping[str, Any]
) -> Iterator[None]:
    """Keep checkpoints of the work inside until it has ended, and go on from them if asked to.

    Parameters
    ----------
    folder
        Of the checkpoints alone.
    resume
        Whether to go on with what is there; it is removed otherwise.
    file
        The input, of which name, size and time are remembered.
    settings
        Everything that the user chose and that decides the result.
    """
    import shutil

    from bayes_lcs.data.checkpoints import RUN, checkpoints
    from bayes_lcs.data.storage import UnwritableError

    known = (folder / RUN).exists()
    aside = folder.with_name(f"{folder.name}.before")
    if folder.exists() and not resume:
        if _has_results(folder):
            shutil.rmtree(aside, ignore_errors=True)
            say(f"note: the checkpoints of an earlier run are set aside in {aside}", err=True)
            folder.rename(aside)
        else:
            shutil.rmtree(folder)
    if resume and not known:
        say(f"note: there is nothing to resume in {folder.parent}; this is the beginning", err=True)
    described = {name: str(value) for name, value in settings.items() if name not in NOT_DECISIVE}
    described["the input"] = _described(file)
    kept: Checkpoints | None = None
    try:
        with checkpoints(folder, described) as kept:
            yield
    except KeyboardInterrupt as interruption:
        said = f"{interruption}; " if str(interruption) else ""
        kept_in = f"the work so far is kept in {folder}: the same command with --resume goes on"
        if not _has_work(folder):
            kept_in = "nothing was done yet that is worth keeping"
        raise KeyboardInterrupt(f"interrupted; {said}{kept_in}") from None
    except UnwritableError as error:
        raise OSError(f"{error}. {_after_failing(folder, kept)}") from error
    except Exception:
        # What was read was wrong, or there is no room for it.
        if kept is not None and not _has_results(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if not _has_work(folder):  # after bad input nothing is left behind, and nothing lost
            shutil.rmtree(folder, ignore_errors=True)
            if aside.exists() and not resume:
                aside.rename(folder)
    kept.remove()
    shutil.rmtree(aside, ignore_errors=True)


def _after_failing(folder: Path, kept: Checkpoints | None) -> str:
    """What is left of the work where its results could not be written, and what to do."""
    if not _has_work(folder):
        return "Make room, or choose another folder with --out, and run the command again"
    if kept is not None and kept.failed:
        return (
            f"What could be kept of the work is in {folder}: make room, and the same command with "
            "--resume goes on from there"
        )
    return (
        f"The work is kept in {folder}: make room, and the same command with --resume only writes "
        "the results"
    )
