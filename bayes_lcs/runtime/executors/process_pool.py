"""Worker processes of our own on this machine.

Blocks stay with their worker: block ``i`` with worker ``i`` modulo their number. Tasks go to
whoever is idle. A worker that dies closes its pipe, which is noticed at once: another takes its
place, loads its blocks again, and is given what it was working on. What ends worker after worker is
given up with an error.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, cast

from bayes_lcs.core.errors import ExecutorError
from bayes_lcs.runtime.executors.base import BaseExecutor, Blocks
from bayes_lcs.runtime.executors.pickling import opened, packed, packed_function
from bayes_lcs.runtime.executors.process_worker import serve
from bayes_lcs.runtime.interrupts import children_do_not_hear
from bayes_lcs.runtime.memory import num_cores

__all__ = ["ProcessExecutor"]

PATIENCE = 5.0
"""Seconds that a worker is given to end by itself when the executor is closed."""


class _Item(NamedTuple):
    """A message that will be answered: what to do, by which program, on what."""

    what: str
    program: int
    number: int
    value: Any


class _Answer(NamedTuple):
    """What came back; ``parcel`` holds the result, or the error if it is not ``fine``."""

    program: int
    number: int
    what: str
    fine: bool
    parcel: bytes


class _Process:
    """A worker and what it knows.

    Attributes
    ----------
    doing
        What it was asked and has not answered yet.
    programs
        Numbers of the programs that it was sent.
    stale
        Those among them that it may forget.
    blocks
        Blocks that it has loaded, as pairs of the number of their program and their own.
    """

    def __init__(self, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, theirs = context.Pipe()
        name = f"bayes-lcs-worker-{number}"
        arguments = (theirs, os.getpid())
        self.process = context.Process(target=serve, args=arguments, name=name, daemon=True)
        try:
            with children_do_not_hear():
                self.process.start()
        except BaseException:
            self.connection.close()  # which ends a worker that was begun
            raise
        finally:
            # Only the worker holds this end, so that its death closes the pipe.
            theirs.close()
        self.doing: _Item | None = None
        self.has_answered = False
        self.programs: set[int] = set()
        self.stale: set[int] = set()
        self.blocks: set[tuple[int, int]] = set()

    def dismiss(self, *, at_once: bool) -> None:
        """Let it end when it has done what it is doing, or end it."""
        self.connection.close()
        if at_once:
            self.process.kill()

    def end(self, patience: float) -> int | None:
        """Let it end, or end it; its exit code."""
        self.connection.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        self.process.close()
        return code


class ProcessExecutor(BaseExecutor):
    """Processes on this machine, begun by ``spawn``.

    Parameters
    ----------
    workers
        Number of processes; one a core by default.
    retries
        How often a task or block is begun again after its worker died.
    timeout
        Seconds without any answer after which an error is raised; None waits.

    Notes
    -----
    As with every process that Python spawns, a script that makes one must do so under
    ``if __name__ == "__main__":``.
    """

    kind = "processes"

    def __init__(
        self, workers: int | None = None, *, retries: int = 2, timeout: float | None = None
    ) -> None:
        super().__init__()
        size = num_cores() if workers is None else int(workers)
        if size < 1 or retries < 0:
            raise ValueError("workers must be at least 1, and retries at least 0")
        self.retries = retries
        self.timeout = timeout
        self._programs: dict[int, bytes] = {}
        self._placed: dict[int, Blocks] = {}
        self._workers: list[_Process] = []
        try:
            for number in range(size):
                self._workers.append(_Process(number))
        except BaseException:
            self._hurries = True
            self.close()
            raise

    @property
    def num_workers(self) -> int:
        """Number of processes."""
        return len(self._workers)

    @property
    def process_ids(self) -> list[int]:
        """Of the workers, as the operating system knows them."""
        return [int(worker.process.pid or 0) for worker in self._workers]

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """``function(task)`` of all tasks, in their order."""
        self._check()
        program = self._next_number()
        self._programs[program] = packed_function(function)
        common = deque(_Item("run", program, i, packed(task)) for i, task in enumerate(tasks))
        try:
            return self._answers(program, [common] * self.num_workers, len(tasks))
        finally:
            self._forget(program)

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Blocks ``load(key)``, each in the worker that will work on it."""
        self._check()
        placed = Blocks(self, load, keys)
        self._programs[placed.number] = packed_function(load)
        self._placed[placed.number] = placed
        queues = self._queues(placed, lambda i: _Item("load", placed.number, i, None))
        try:
            self._answers(placed.number, queues, placed.num_blocks)
        except BaseException:
            placed.release()
            raise
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """``function(params, block)`` of all blocks, in their order."""
        self._check(placed)
        program = self._next_number()
        self._programs[program] = packed_function(function, params)
        queues = self._queues(placed, lambda i: _Item("each", program, i, placed.number))
        try:
            return self._answers(program, queues, placed.num_blocks)
        finally:
            self._forget(program)

    def close(self) -> None:
        """End the workers; those in the middle of something are not waited for."""
        if self._closed:
            return
        super().close()
        # All before any is waited for: after a second Ctrl-C nobody is left at work.
        for worker in self._workers:
            worker.dismiss(at_once=self._hurries or worker.doing is not None)
        for worker in self._workers:
            worker.end(PATIENCE)

    # Messages -------------------------------------------------------------------------------------

    def _queues(self, placed: Blocks, item: Callable[[int], _Item]) -> list[deque[_Item]]:
        size = self.num_workers
        return [deque(item(i) for i in range(w, placed.num_blocks, size)) for w in range(size)]

    def _answers(self, program: int, queues: list[deque[_Item]], size: int) -> list[Any]:
        """Hand out what is in the queues, and collect one answer for each item."""
        answers: list[Any] = [None] * size
        deaths: Counter[_Item] = Counter()
        left = size
        while left:
            for worker, queue in zip(self._workers, queues, strict=True):
                if worker.doing is None and queue:
                    self._hand_out(worker, queue)
            busy = {w.connection: i for i, w in enumerate(self._workers) if w.doing is not None}
            try:
                ready = cast("list[Connection]", wait(list(busy), self.timeout))
            except OSError:
                self._check()  # another thread has closed it
                raise
            if not ready:
                self.close()
                raise ExecutorError(
                    f"no worker answered within {self.timeout:g} s; the executor is closed"
                )
            for connection in ready:
                place = busy[connection]
                answer = self._receive(self._workers[place])
                if answer is None:
                    self._replace(place, queues[place], program, deaths)
                elif not answer.fine and answer.program in (program, *self._placed):
                    raise opened(answer.parcel)
                elif answer.program == program:
                    answers[answer.number] = opened(answer.parcel)
                    left -= 1
                # Others are late answers to a call that was given up, or blocks loaded again.
        return answers

    def _hand_out(self, worker: _Process, queue: deque[_Item]) -> None:
        """Send a worker the next item, or first the block that it lacks for it."""
        item = queue[0]
        if item.what == "each" and (item.value, item.number) not in worker.blocks:
            item = _Item("load", item.value, item.number, None)
        else:
            queue.popleft()
        worker.doing = item
        value = item.value
        if item.what == "load":
            value = packed(self._placed[item.program].keys[item.number])
        self.traffic.calls += 1
        try:
            for number in worker.stale:
                self._send(worker, ("forget", number, 0, None))
            worker.programs -= worker.stale
            worker.stale.clear()
            if item.program not in worker.programs:
                worker.programs.add(item.program)
                self._send(worker, ("program", item.program, 0, self._programs[item.program]))
            self._send(worker, (item.what, item.program, item.number, value))
        except OSError:
            pass  # that it died is noticed where its answer is waited for

    def _send(self, worker: _Process, message: tuple[str, int, int, Any]) -> None:
        parcel = packed(message)
        self.traffic.sent += len(parcel)
        worker.connection.send_bytes(parcel)

    def _receive(self, worker: _Process) -> _Answer | None:
        """What a worker answers; None if it died."""
        try:
            parcel = worker.connection.recv_bytes()
        except (EOFError, OSError):
            return None
        self.traffic.received += len(parcel)
        worker.doing, worker.has_answered = None, True
        answer = _Answer(*opened(parcel))
        if answer.what == "load" and answer.fine:
            worker.blocks.add((answer.program, answer.number))
        return answer

    def _replace(
        self, place: int, queue: deque[_Item], program: int, deaths: Counter[_Item]
    ) -> None:
        """Put another worker in the place of one that died, and give it back what it was doing."""
        self._check()  # those of a closed executor have no successors
        dead = self._workers[place]
        code = dead.end(PATIENCE)
        self._workers[place] = _Process(place)
        item = dead.doing
        if item is None or item.program not in (program, *self._placed):
            return  # nobody waits for it any more
        deaths[item] += 1
        if deaths[item] > self.retries:
            thing = "task" if item.what == "run" else "block"
            why = "was memory short, or is the function at fault?"
            if code == 1 and not dead.has_answered:
                why = 'in a script, make executors under if __name__ == "__main__":'
            raise ExecutorError(
                f"{thing} {item.number}: its worker died {deaths[item]} times, the last time with "
                f"exit code {code}; {why}"
            )
        self.traffic.repeated += 1
        if item.program == program:
            queue.appendleft(item)

    def _forget(self, program: int) -> None:
        self._programs.pop(program, None)
        for worker in self._workers:
            if program in worker.programs:
                worker.stale.add(program)
                worker.blocks = {key for key in worker.blocks if key[0] != program}

    def _release(self, placed: Blocks) -> None:
        self._placed.pop(placed.number, None)
        self._forget(placed.number)
