"""Keep Ctrl-C responsive while XLA compiles or runs, and end workers with their parent process.

Python handles signals between its own instructions only, and only in the main thread: a program
that XLA compiles or runs for ten seconds delays Ctrl-C for ten seconds. If it runs in another
thread, the main thread can handle Ctrl-C at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "PartialResultInterrupt",
    "block_sigint",
    "exit_with_parent",
    "kill_children",
    "run_interruptibly",
]

T = TypeVar("T")

POLL_SECONDS = 0.5
"""Seconds between checks whether the parent is alive, where there is no sentinel to wait for."""

_watched: set[int] = set()
"""Parent processes that are watched."""


class PartialResultInterrupt(KeyboardInterrupt):
    """`KeyboardInterrupt` with the log weights ``(runs, parts)`` of the finished runs."""

    def __init__(self, log_weights: NDArray[np.float64]) -> None:
        super().__init__()
        self.log_weights = log_weights


@contextmanager
def block_sigint() -> Iterator[None]:
    """Block SIGINT in the processes and threads started inside, and delay it here until the end.

    A terminal sends Ctrl-C to all of its processes; only the main process should handle it. Child
    processes inherit the mask of blocked signals.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    # Python starts the tracker with the first process, and unblocks the signal after that.
    resource_tracker.ensure_running()
    # The mask is that of this thread only. If another thread receives the signal, Python still
    # calls the handler in the main thread, while a process is being started.
    handler = signal.getsignal(signal.SIGINT)
    is_held = callable(handler) and threading.current_thread() is threading.main_thread()
    received: list[int] = []
    if is_held:
        signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if is_held:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if received:
            signal.raise_signal(signal.SIGINT)


def run_interruptibly(work: Callable[[], T]) -> T:
    """Return ``work()``, called in another thread if this is the main thread.

    After Ctrl-C the other thread runs to the end of ``work`` and its result is discarded. So
    ``work`` must have no side effects that matter, and its arguments must not be changed later.

    Examples
    --------
    >>> run_interruptibly(lambda: 6 * 7)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="interruptible").start()
    return done.result()


def exit_with_parent(parent: int) -> None:
    """Exit this process as soon as its parent ends, even in the middle of a task.

    A thread waits for the parent. A second call, or a call in the parent itself, does nothing.

    Parameters
    ----------
    parent
        Identifier (pid) of the parent process.
    """
    if parent in (os.getpid(), *_watched):
        return
    _watched.add(parent)
    threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()


def _end_with(parent: int) -> None:
    known = multiprocessing.parent_process()
    if known is None or known.sentinel is None:  # processes started by joblib have no sentinel
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
    else:
        known.join()
    os._exit(1)


def kill_children() -> None:
    """Kill all child processes that `multiprocessing` started."""
    for child in multiprocessing.active_children():
        child.kill()
