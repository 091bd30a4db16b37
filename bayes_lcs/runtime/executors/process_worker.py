"""Run the main loop of a worker process of `bayes_lcs.runtime.executors.process_pool`."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from typing import Any

from threadpoolctl import threadpool_limits

from bayes_lcs.runtime.interrupts import end_with_parent

__all__ = ["serve"]


def serve(connection: Connection, parent: int) -> None:
    """Answer until the other end is closed.

    A message is a pair of a header and a parcel. Programs and blocks are kept under a number until
    they are forgotten; ``run``, ``load`` and ``each`` are answered with number and outcome.
    """
    # Ctrl-C is for the process that began this one, also where signals cannot be blocked.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    # Workers share the cores: libraries begin no threads of their own, neither those that are
    # loaded later nor those that the user's script has loaded, which is imported before this;
    # unless the user has said how many.
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    if not any(name in os.environ for name in names):
        threadpool_limits(1)
    for name in names:
        os.environ.setdefault(name, "1")
    worker = _Worker()
    while True:
        try:
            parcel = connection.recv_bytes()
            answer = worker.answer(parcel)
            if answer is not None:
                connection.send_bytes(answer)
        except (EOFError, OSError):  # nobody listens any more
            return


class _Worker:
    """Programs and blocks, by number.

    Attributes
    ----------
    programs
        Parcels, opened when they are first needed, so that what is wrong with one is an answer.
    """

    def __init__(self) -> None:
        self.programs: dict[int, Any] = {}
        self.blocks: dict[tuple[int, int], Any] = {}

    def answer(self, parcel: bytes) -> bytes | None:
        from bayes_lcs.runtime.executors.pickling import opened, packed, packed_error

        what, program, number, value = opened(parcel)
        if what == "program":
            self.programs[program] = value
            return None
        if what == "forget":
            self.programs.pop(program, None)
            self.blocks = {key: b for key, b in self.blocks.items() if key[0] != program}
            return None
        try:
            found = packed(self._do(what, program, number, value))
        except BaseException as error:
            return packed((program, number, what, False, packed_error(error)))
        return packed((program, number, what, True, found))

    def _do(self, what: str, program: int, number: int, value: Any) -> Any:
        from bayes_lcs.runtime.executors.pickling import opened

        held = self.programs[program]
        if isinstance(held, bytes):
            head, *more = opened(held)
            held = self.programs[program] = (opened(head), *more)
        if what == "run":
            return held[0](opened(value))
        if what == "load":
            self.blocks[program, number] = held[0](opened(value))
            return None
        return held[0](held[1], self.blocks[value, number])
