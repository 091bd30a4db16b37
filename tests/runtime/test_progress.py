"""Progress on a terminal, and where there is none."""

import inspect
import sys
import time

from bayes_lcs.runtime.progress import plain_lines, progress_bar
from tests.terminal import on_a_terminal


def work(seconds):
    with plain_lines(seconds), progress_bar("Working", 4) as tick:
        for number in range(4):
            tick(1, f"step {number}")


def test_plain_lines_are_said_only_where_asked_for(capsys):
    with progress_bar("Working", 4) as tick:
        tick()
    assert capsys.readouterr().err == ""
    work(0.0)
    assert capsys.readouterr().err.splitlines() == [
        "Working: 25% step 0",
        "Working: 50% step 1",
        "Working: 75% step 2",
        "Working: 100% step 3",
    ]
    work(60.0)
    with progress_bar("Working", 4) as tick:
        tick()
    assert capsys.readouterr().err == ""


def work_within_work():
    with progress_bar("outside", 2) as tick:
        with progress_bar("inside", 2) as inner:
            inner(1, "half")
            time.sleep(1.0)
        tick()
        time.sleep(1.0)
    sys.stderr.write("the end")


def shown(before):
    program = f"""
import sys, time
from bayes_lcs.runtime import progress
from bayes_lcs.runtime.progress import progress_bar
progress.SECONDS_BEFORE_BAR = {before}
{inspect.getsource(work_within_work)}
work_within_work()
"""
    return on_a_terminal(program)[0]


def test_bars_of_work_within_work_stand_together_and_go():
    whole = shown(0.1)
    assert whole.count("\x1b[?25l") == 1  # one display hides the cursor
    both, _, after = whole.rpartition("inside")
    assert "outside" in both
    assert "50%" in both
    assert "half" in after  # the last time that it was shown
    assert "outside" in after
    assert "\x1b[?25h" in after  # the cursor is there again


def test_short_work_shows_nothing():
    assert shown(60) == "the end"
