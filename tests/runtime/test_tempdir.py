"""A folder that is gone in the end, whoever writes there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bayes_lcs.runtime.tempdir import temporary_folder


def test_it_is_gone_although_somebody_still_writes(tmp_path: Path) -> None:
    began, is_over, written = threading.Event(), threading.Event(), []
    threads: list[threading.Thread] = []

    def write(folder: Path) -> None:
        while not is_over.is_set():
            try:
                for name in range(50):
                    (folder / str(name)).write_text("x")
                    written.append(name)
            except FileNotFoundError:
                break
            finally:
                began.set()

    def fail() -> None:
        with temporary_folder(tmp_path) as folder:
            for _ in range(3):
                threads.append(threading.Thread(target=write, args=(folder,)))
                threads[-1].start()
            began.wait(20)
            raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        fail()
    is_over.set()
    for thread in threads:
        thread.join()
    assert written
    assert not list(tmp_path.iterdir())
