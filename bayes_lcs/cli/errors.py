"""How all commands behave: one message on bad input, exit codes, JSON for machines.

Exit code 2 is bad input, with one message that says where and what to do; 130 is Ctrl-C, with what
was kept; 1 is anything else. ``BAYES_LCS_TRACEBACK=1`` shows where an error came from.
"""

from __future__ import annotations

import _thread
import errno
import functools
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayes_lcs.core.errors import DataNote, ExecutorError
from bayes_lcs.core.escape import visible, visible_json
from bayes_lcs.runtime.memory import human_bytes
from bayes_lcs.runtime.progress import plain_lines, write_line

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

__all__ = [
    "plain_table",
    "polite",
    "print_files",
    "print_json",
    "readable",
    "say",
    "shown_name",
    "to_command_options",
    "writable_folder",
]

_NAME = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
"""A column name as ``repr`` writes it."""
_OPTIONS = ("bins", "categorical", "ignore", "draws")
_ONLY_IN_PYTHON = re.compile(
    r"\b(delimiter|edges|encoding|features|kind|label_values|"
    r"split_merge|values|warmup)="
)
_NOTE = "what is written with = is for the Python functions, which can do more than the command"


def to_command_options(message: str) -> str:
    """Name options as the command has them, and say so of those that it has not.

    Examples
    --------
    >>> to_command_options("leave it out with ignore=['x y'] or bin it with bins={'x y': 4}")
    "leave it out with --ignore 'x y' or bin it with --bins 'x y=4'"
    >>> to_command_options("to leave out both: ignore=['a', 'b c']")
    "to leave out both: --ignore a --ignore 'b c'"
    >>> print(to_command_options("pass encoding='latin-1'"))
    pass encoding='latin-1' (what is written with = is for the Python functions, which can do ...
    """
    message = message.replace("missing_values=", "--missing")
    message = re.sub(r" or edges=\{.*?: \[\.\.\.\]\}", "", message)  # of Python only
    message = re.sub(
        rf"(ignore|categorical)=\[({_NAME}(?:, {_NAME})*)\]",
        lambda found: " ".join(
            f"--{found.group(1)} {shlex.quote(name[1:-1])}"
            for name in re.findall(_NAME, found.group(2))
        ),
        message,
    )
    message = message.replace("pass header=False", "pass --no-header")
    message = re.sub(
        r"bins=\{(['\"])(.*?)\1: (\d+)\}",
        lambda found: f"--bins {shlex.quote(found.group(2) + '=' + found.group(3))}",
        message,
    )
    message = re.sub(rf"(?<![-\w'\"])({'|'.join(_OPTIONS)})=(?![\w\[{{])", r"--\1", message)
    return f"{message} ({_NOTE})" if _ONLY_IN_PYTHON.search(message) else message


BAD_INPUT, INTERRUPTED = 2, 130
BAD_ERRORS = (ValueError, TypeError, FileNotFoundError, FileExistsError, IsADirectoryError)
"""Errors of what the user gave."""
EXPLAINED = (ValueError, TypeError, OSError, ImportError, MemoryError, ExecutorError)
"""Errors whose own words say what happened; any other should not have."""
SECONDS_BETWEEN_LINES = 10.0
MAX_MESSAGE_LENGTH = 1000
LONGEST_NAME = 100
"""Characters that are shown of a name on the terminal; files have all of it."""

_made: list[Path] = []
"""Folders that were made by this run, the innermost first."""


def polite(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors are messages and whose warnings are lines on standard error."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        _made.clear()
        hears = _Interruptions()
        try:
            _cache_compiled_programs()
            with hears, _warnings_as_lines(), plain_lines(SECONDS_BETWEEN_LINES):
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt as interruption:
            _fail(str(interruption) or "interrupted; nothing was written", INTERRUPTED)
        except Exception as error:
            if hears.any and isinstance(error, ImportError | SystemError):
                # A library that was being imported made an error of it.
                _fail("interrupted; nothing was written", INTERRUPTED)
            if os.environ.get("BAYES_LCS_TRACEBACK"):
                raise
            bad = isinstance(error, BAD_ERRORS) or (
                isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
            )
            message = str(error) or type(error).__name__
            if not isinstance(error, EXPLAINED):
                message = (
                    f"this should not have happened ({type(error).__name__}: {message}); please "
                    "report it. BAYES_LCS_TRACEBACK=1 shows where"
                )
            _fail(message, BAD_INPUT if bad else 1)

    return run


def _interrupt_again() -> None:
    """Ctrl-C once more, which ends what the main thread waits for, where the system has that."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


class _Interruptions:
    """Remembers whether Ctrl-C was heard, and raises `KeyboardInterrupt` as ever.

    Raised in a finaliser or a callback, Python ignores it; then it is raised once more.
    """

    def __init__(self) -> None:
        self.any = False

    def _hear(self, *_: Any) -> None:
        if not self.any:
            write_line("\nstopping; what is done is written down")
        self.any = True
        raise KeyboardInterrupt

    def _not_raised(self, ignored: Any) -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            threading.Timer(0.05, _interrupt_again).start()
        else:
            self._hook(ignored)

    def __enter__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            self._before = signal.signal(signal.SIGINT, self._hear)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._not_raised

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._before)
            sys.unraisablehook = self._hook


def _cache_compiled_programs() -> None:
    """Let JAX keep what it compiles, so that a second run starts soon; before JAX is imported."""
    if "jax" in sys.modules or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    import pooch

    folder = Path(pooch.os_cache("bayes-lcs")) / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written to only makes the start slower
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def _fail(message: str, code: int) -> None:
    _remove_empty_folders()
    message = to_command_options(message)
    if (
        len(message) > MAX_MESSAGE_LENGTH
    ):  # the place stands at its beginning, the advice at its end
        half = MAX_MESSAGE_LENGTH // 2
        message = f"{message[:half]} … {message[-half:]}"
    say(f"bayes-lcs: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        kind = "note" if issubclass(category, DataNote) else "warning"
        say(f"{kind}: {to_command_options(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.showwarning = show
        yield


def readable(file: Path) -> Path:
    """The file or folder to be read; that it is there is found out before anything is made."""
    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file")
    return file


def say(text: str, *, err: bool = False) -> None:
    """Print lines; what names from a file hold besides text is written out, not carried out."""
    typer.echo(visible(text, keep="\n"), err=err)


def shown_name(name: str) -> str:
    """A name from a file as part of a line on the terminal."""
    return visible(name, LONGEST_NAME)


def writable_folder(path: Path, need: float = 0.0) -> Path:
    """The folder, made if need be; that it can be written to is found out before long work.

    Parameters
    ----------
    need
        Bytes that will roughly be written into it.
    """
    _made[:] = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path, buffering=0) as probe:  # it leaves no name behind
            probe.write(b"x")
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise OSError(
            f"{path}: this folder cannot be written to ({error.strerror or error}). Choose another "
            "with --out"
        ) from error
    require_room(path, need, free)
    return path


def require_room(path: Path, need: float, free: int | None = None) -> None:
    """Refuse work that would write more into a folder than the disk has room for."""
    free = shutil.disk_usage(path).free if free is None else free
    if need > free:
        raise OSError(
            f"{path}: the results and what is kept on the way need about {human_bytes(need)} of "
            f"disk, and only {human_bytes(free)} are free. Make room, or choose another folder "
            "with --out"
        )


def _remove_empty_folders() -> None:
    """After a failure: folders that `writable_folder` made and nothing was written into."""
    with suppress(OSError):
        for folder in _made:
            folder.rmdir()
    _made.clear()


def print_json(found: Mapping[str, Any]) -> None:
    """One JSON object on standard output; numbers that JSON cannot hold become null."""
    typer.echo(visible_json(json.dumps(_plain(found), indent=2, ensure_ascii=False)))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not (abs(value) < float("inf")):
        return None
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


def plain_table(title: str, frame: pd.DataFrame) -> Table:
    """A frame as a table of the terminal; names are shown as they are written."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in frame.columns:
        numeric = frame[name].dtype.kind in "biuf"
        table.add_column(Text(shown_name(str(name))), justify="right" if numeric else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(_shown(cell)) for cell in row))
    return table


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1000 else f"{cell:,.2f}"
    return shown_name(str(cell))


def print_files(paths: list[Path]) -> None:
    """Where everything is, a line each."""
    typer.echo("Written:")
    for path in paths:
        say(f"  {visible(str(path))}")
