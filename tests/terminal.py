"""Programs run with a terminal as standard error."""

import contextlib
import os
import pty
import subprocess
import sys
import threading

__all__ = ["on_a_terminal"]


def on_a_terminal(program, *words):
    """What a program says with a terminal as standard error: the terminal, and standard output."""
    ours, theirs = pty.openpty()
    seen = []

    def read():
        with contextlib.suppress(OSError):  # the other end was closed
            while piece := os.read(ours, 65536):
                seen.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "140", "LINES": "30", "TERM": "xterm-256color"},
        check=False,
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(seen).decode(), done.stdout.decode()
