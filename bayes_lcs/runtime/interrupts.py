"""Ctrl-C that is heard while compiled code runs, and workers that end with whoever began them.

Python looks at signals between its own instructions only, and only in the main thread: a program
that XLA compiles or runs for ten seconds makes Ctrl-C wait for ten seconds. Work that is done in
another thread leaves the main thread free to hear it.
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
    "RunsInterrupted",
    "children_do_not_hear",
    "end_children",
    "end_with_parent",
    "interruptible",
]

T = TypeVar("T")

LOOK = 0.5
"""Seconds between looks at whether the parent is still there, where the system does not tell."""

_watched: set[int] = set()
"""Processes with which this one ends."""


class RunsInterrupted(KeyboardInterrupt):
    """Ctrl-C, with the log weights ``(runs, parts)`` of the runs that had come to their end."""

    def __init__(self, log_weights: NDArray[np.float64]) -> None:
        super().__init__()
        self.log_weights = log_weights


@contextmanager
def children_do_not_hear() -> Iterator[None]:
    """Start processes and threads that ignore Ctrl-C, and hold it back until they are started.

    A terminal sends Ctrl-C to all of its processes, and the one that the user started decides.
    Blocked signals are inherited. A signal that arrives meanwhile is handled at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    # Python starts the tracker with the first process, and then unblocks the signal.
    resource_tracker.ensure_running()
    # Only this thread blocks the signal. If another one receives it, Python calls the handler in
    # the main thread nevertheless, in the middle of the start of a process.
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


def interruptible(work: Callable[[], T]) -> T:
    """The result of ``work``, called in another thread if this is the main one.

    After Ctrl-C the other thread goes on to the end of ``work``, whose result is thrown away: give
    it nothing that must not be finished, and nothing that somebody else will change meanwhile.

    Examples
    --------
    >>> interruptible(lambda: 6 * 7)
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


def end_with_parent(parent: int) -> None:
    """End this process when the one that began it ends, whatever it is doing then.

    A worker in the middle of a long task would not notice before the task is done. Called again,
    or in the parent itself, this does nothing.

    Parameters
    ----------
    parent
        The number of the process that began this one.
    """
    if parent in (os.getpid(), *_watched):
        return
    _watched.add(parent)
    threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()


def _end_with(parent: int) -> None:
    known = multiprocessing.parent_process()
    if known is None or known.sentinel is None:  # joblib hands over nothing to wait for
        while os.getppid() == parent:
            time.sleep(LOOK)
    else:
        known.join()
    os._exit(1)


def end_children() -> None:
    """End all processes that this one has begun by `multiprocessing`, at once."""
    for child in multiprocessing.active_children():
        child.kill()
