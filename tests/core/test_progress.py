"""Progress where there is no terminal."""

from bayes_lcs.core.progress import plain_lines, progress_bar


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
