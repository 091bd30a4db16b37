"""States of the disk between two file operations, as a killed run can leave them."""

import builtins
import io
import os
import shutil
from contextlib import contextmanager
from unittest import mock

REMOVALS = {"unlink", "remove", "rmdir"}
HOOKED = [(os, name) for name in ("rename", "replace", "mkdir", "open", *sorted(REMOVALS))]
HOOKED += [(io, "open"), (builtins, "open")]


def changes(module, name, path, arguments, options):
    """Return whether a call changes the disk."""
    if name in REMOVALS:
        return os.path.lexists(path)
    if name != "open":
        return True
    if module is os:
        return bool(arguments[0] & os.O_CREAT)
    mode = arguments[0] if arguments else options.get("mode", "r")
    return any(letter in mode for letter in "wax+")


@contextmanager
def before_each_change(folder, call):
    """Call a function before anything changes in a folder; it is not called for what it does."""
    watching = [True]

    def hook(module, name):
        real = getattr(module, name)

        def hooked(path, *arguments, **options):
            is_inside = isinstance(path, str | os.PathLike) and str(path).startswith(str(folder))
            if watching[0] and is_inside and changes(module, name, path, arguments, options):
                watching[0] = False
                try:
                    call(name, path)
                finally:
                    watching[0] = True
            return real(path, *arguments, **options)

        return mock.patch.object(module, name, hooked)

    hooks = [hook(module, name) for module, name in HOOKED]
    for one in hooks:
        one.start()
    try:
        yield
    finally:
        for one in hooks:
            one.stop()


@contextmanager
def keep_states(folder, states):
    """Copy a folder to ``states/0000``, ``states/0001`` and so on, before each of its changes."""
    states.mkdir()

    def copy(*_):
        shutil.copytree(folder, states / f"{len(list(states.iterdir())):04d}", symlinks=True)

    with before_each_change(folder, copy):
        yield
