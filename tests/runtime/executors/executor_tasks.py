"""Functions that workers of any executor can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np


def square(number):
    return number * number


def slow_square(number):
    """Later tasks are done sooner."""
    time.sleep(0.2 / (1 + number))
    return number * number


def fail_at_three(number):
    if number == 3:
        raise ValueError("three is too many")
    return number


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def raise_unpicklable(number):
    raise Unpicklable("not", "sendable")


def load_slice(key):
    return np.asarray(key, float)


def load_counted(key):
    """Leaves a mark each time that it loads."""
    folder, number = key
    marks = len(list(Path(folder).glob(f"{number}-*")))
    Path(folder, f"{number}-{marks}-{os.getpid()}").touch()
    return number


def load_file(path):
    return np.load(path)


def total(factor, block):
    return factor * float(np.sum(block))


def process_of(_params, block):
    return (int(np.asarray(block).flat[0]), os.getpid())


def die_once(task):
    """SIGKILL in the middle, unless the mark is already there."""
    mark, number = task
    if mark is not None and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_die(_task):
    os.kill(os.getpid(), signal.SIGKILL)


def die_once_in_block(mark, number):
    if number == 1 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 10


def slow_in_first(seconds, number):
    if number == 0:
        time.sleep(seconds)
    return number


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def mark_and_sleep(mark):
    Path(mark).touch()
    time.sleep(3600)
