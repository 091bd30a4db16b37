"""Error messages, exit codes and printed output of all commands.

The exit code is 2 for invalid input, with one message that says where and what to do; 130 after
Ctrl-C, with a message about what was saved; and 1 for all other errors. ``BAYES_LCS_TRACEBACK=1``
shows the traceback.
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
    "check_exists",
    "display_name",
    "echo",
    "plain_table",
    "print_files",
    "print_json",
    "to_command_options",
    "with_error_handling",
    "writable_folder",
]

_NAME = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
"""Pattern of a column name in the form of its ``repr``."""
_OPTIONS = ("bins", "categorical", "ignore", "draws")
_ONLY_IN_PYTHON = re.compile(
    r"\b(delimiter|edges|encoding|features|kind|label_values|"
    r"split_merge|values|warmup)="
)
_NOTE = "arguments written with = exist in the Python functions only, not in the command"


def to_command_options(message: str) -> str:
    """Rewrite Python arguments in a message as command options; mark those without an option.

    Examples
    --------
    >>> to_command_options("leave it out with ignore=['x y'] or bin it with bins={'x y': 4}")
    "leave it out with --ignore 'x y' or bin it with --bins 'x y=4'"
    >>> to_command_options("to leave out both: ignore=['a', 'b c']")
    "to leave out both: --ignore a --ignore 'b c'"
    >>> print(to_command_options("pass encoding='latin-1'"))
    pass encoding='latin-1' (arguments written with = exist in the Python functions only, not ...
    """
    message = message.replace("missing_values=", "--missing")
    message = re.sub(r" or edges=\{.*?: \[\.\.\.\]\}", "", message)  # has no option
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
INPUT_ERRORS = (ValueError, TypeError, FileNotFoundError, FileExistsError, IsADirectoryError)
"""Errors caused by the input; exit code 2."""
EXPECTED_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError, ExecutorError)
"""Errors whose messages are written for users; all others are bugs."""
SECONDS_BETWEEN_LINES = 10.0
MAX_MESSAGE_LENGTH = 1000
MAX_NAME_LENGTH = 100
"""Maximum number of characters of a name on the terminal; files contain the whole name."""

_created_folders: list[Path] = []
"""Folders that this run created, innermost first."""


def with_error_handling(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that errors and warnings are printed as single messages."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        _created_folders.clear()
        guard = _SigintGuard()
        try:
            _cache_compiled_programs()
            with guard, _warnings_as_lines(), plain_lines(SECONDS_BETWEEN_LINES):
                command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt as interruption:
            _fail(str(interruption) or "interrupted; nothing was written", INTERRUPTED)
        except Exception as error:
            if guard.is_interrupted and isinstance(error, ImportError | SystemError):
                # A library that was being imported turned KeyboardInterrupt into another error.
                _fail("interrupted; nothing was written", INTERRUPTED)
            if os.environ.get("BAYES_LCS_TRACEBACK"):
                raise
            bad = isinstance(error, INPUT_ERRORS) or (
                isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
            )
            message = str(error) or type(error).__name__
            if not isinstance(error, EXPECTED_ERRORS):
                message = (
                    f"unexpected error ({type(error).__name__}: {message}). This is a bug: please "
                    "report it. BAYES_LCS_TRACEBACK=1 shows the traceback"
                )
            _fail(message, BAD_INPUT if bad else 1)

    return run


def _interrupt_again() -> None:
    """Send SIGINT to the main thread again, so that it stops waiting."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


class _SigintGuard:
    """SIGINT handler that raises `KeyboardInterrupt` and remembers it.

    Python ignores an exception that is raised in a finalizer or a callback; then the signal is sent
    again.
    """

    def __init__(self) -> None:
        self.is_interrupted = False

    def _handle(self, *_: Any) -> None:
        if not self.is_interrupted:
            write_line("\nInterrupted: saving progress …")
        self.is_interrupted = True
        raise KeyboardInterrupt

    def _on_ignored_exception(self, ignored: Any) -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            threading.Timer(0.05, _interrupt_again).start()
        else:
            self._hook(ignored)

    def __enter__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            self._before = signal.signal(signal.SIGINT, self._handle)
            self._hook, sys.unraisablehook = (
                sys.unraisablehook,
                self._on_ignored_exception,
            )

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._before)
            sys.unraisablehook = self._hook


def _cache_compiled_programs() -> None:
    """Enable JAX's cache of compiled programs, before JAX is imported."""
    if "jax" in sys.modules or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    import pooch

    folder = Path(pooch.os_cache("bayes-lcs")) / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # without a cache, only the start is slower
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def _fail(message: str, code: int) -> None:
    _remove_empty_folders()
    message = to_command_options(message)
    if len(message) > MAX_MESSAGE_LENGTH:  # location first, advice last
        half = MAX_MESSAGE_LENGTH // 2
        message = f"{message[:half]} … {message[-half:]}"
    echo(f"bayes-lcs: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        kind = "note" if issubclass(category, DataNote) else "warning"
        echo(f"{kind}: {to_command_options(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.showwarning = show
        yield


def check_exists(file: Path) -> Path:
    """Return the path of an input file or folder; raise an error if it does not exist."""
    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file")
    return file


def echo(text: str, *, err: bool = False) -> None:
    """Print text, with control characters (in names from files) escaped."""
    typer.echo(visible(text, keep="\n"), err=err)


def display_name(name: str) -> str:
    """Return a name from a file, escaped and truncated for the terminal."""
    return visible(name, MAX_NAME_LENGTH)


def writable_folder(path: Path, need: float = 0.0) -> Path:
    """Create the folder if necessary, and check that it is writable and has enough space.

    Parameters
    ----------
    need
        Estimated number of bytes that will be written.
    """
    _created_folders[:] = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path, buffering=0) as probe:  # it has no name
            probe.write(b"x")
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise OSError(
            f"{path}: this folder cannot be written to ({error.strerror or error}). Choose another "
            "one with --out"
        ) from error
    require_room(path, need, free)
    return path


def require_room(path: Path, need: float, free: int | None = None) -> None:
    """Raise an `OSError` if the disk has less free space than needed."""
    free = shutil.disk_usage(path).free if free is None else free
    if need > free:
        raise OSError(
            f"{path}: the results and checkpoints need about {human_bytes(need)} of "
            f"disk, and only {human_bytes(free)} are free. Free some space, or choose another "
            "folder with --out"
        )


def _remove_empty_folders() -> None:
    """Remove the empty folders that `writable_folder` created, after a failure."""
    with suppress(OSError):
        for folder in _created_folders:
            folder.rmdir()
    _created_folders.clear()


def print_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output; infinite numbers and NaN become null."""
    typer.echo(visible_json(json.dumps(_to_json(values), indent=2, ensure_ascii=False)))


def _to_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if hasattr(value, "tolist"):
        return _to_json(value.tolist())
    if isinstance(value, float) and not (abs(value) < float("inf")):
        return None
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


def plain_table(title: str, frame: pd.DataFrame) -> Table:
    """Return a data frame as a table for the terminal, without markup in names."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in frame.columns:
        numeric = frame[name].dtype.kind in "biuf"
        table.add_column(Text(display_name(str(name))), justify="right" if numeric else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(_format_cell(cell)) for cell in row))
    return table


def _format_cell(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1000 else f"{cell:,.2f}"
    return display_name(str(cell))


def print_files(paths: list[Path]) -> None:
    """Print the paths of the results."""
    typer.echo("Written:")
    for path in paths:
        echo(f"  {visible(str(path))}")
