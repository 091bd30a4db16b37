"""Long work in stages: a table that grows on a terminal; elsewhere silence, or a line a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from bayes_lcs.runtime.progress import bar_columns, can_show, displayed, says_lines, write_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["AddRow", "growing_table"]

BAR_WIDTH = 20
"""Characters of the longest bar."""
OTHER_LINES = 5
"""Lines of a terminal that are not for rows: the header, the progress bar, and some air."""


class AddRow(Protocol):
    """Add a row to a table that grows."""

    def __call__(
        self, cells: Sequence[str], amount: float, *, steps: int = 1, status: str = ""
    ) -> None:
        """Add a row, advance the bar by some steps, and show a status beside it.

        The ``amount`` becomes a bar after the first two cells, the largest so far a whole one.
        """


def _silent(cells: Sequence[str], amount: float, *, steps: int = 1, status: str = "") -> None:
    """No table to add to."""


@contextmanager
def growing_table(
    description: str,
    total: int,
    columns: Sequence[str],
    status: str = "",
    enabled: bool | None = None,
) -> Iterator[AddRow]:
    """Yield a function that adds a row to a table above a progress bar.

    Parameters
    ----------
    description, total
        Of the bar.
    columns
        Names of the cells of a row; the third is that of the bar, and has no cell.
    status
        Beside the bar at the beginning.
    enabled
        True or False, or None for "when standard error is a terminal". Where it is none, and the
        command asked for `bayes_lcs.runtime.progress.plain_lines`, every row is a line at once.
    """
    if not can_show(enabled):
        yield _line_by_line(description, columns) if enabled is None and says_lines() else _silent
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import Progress

    console = Console(stderr=True)
    progress = Progress(*bar_columns(), console=console)
    task = progress.add_task(description, total=total, status=status)
    rows: list[tuple[Sequence[str], float]] = []
    with Live(progress, console=console, transient=True) as live:

        def add(cells: Sequence[str], amount: float, *, steps: int = 1, status: str = "") -> None:
            rows.append((cells, amount))
            progress.update(task, advance=steps, status=status)
            live.update(Group(_table(columns, rows, console), progress), refresh=True)

        with displayed(progress):
            yield add


def _line_by_line(description: str, columns: Sequence[str]) -> AddRow:
    names = [*columns[:2], *columns[3:]]

    def add(
        cells: Sequence[str],
        amount: float,
        *,
        steps: int = 1,
        status: str = "",
    ) -> None:
        del amount, steps, status  # a line has no bars
        said = ", ".join(f"{name} {cell}" for name, cell in zip(names, cells, strict=True) if cell)
        write_line(f"{description}: {said}")

    return add


def _table(
    columns: Sequence[str], rows: Sequence[tuple[Sequence[str], float]], console: Console
) -> Table:
    """The last rows, as many as the terminal has room for."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(columns):
        last = place == len(columns) - 1
        options: dict[str, Any] = {"justify": "left" if place == 2 or last else "right"}
        table.add_column(name, no_wrap=True, overflow="ellipsis", **options)
    largest = max(amount for _, amount in rows)
    for cells, amount in rows[-max(console.height - OTHER_LINES, 1) :]:
        shown = [Text(cell) for cell in cells]
        table.add_row(*shown[:2], Text(_bar(amount, largest)), *shown[2:])
    return table


def _bar(amount: float, largest: float) -> str:
    """Blocks, and eighths of one at the end.

    Examples
    --------
    >>> _bar(0.5, 1.0), _bar(1.0, 64.0), _bar(-1.0, 1.0)
    ('██████████', '▎', '')
    """
    if not 0.0 < amount <= largest:
        return ""
    whole, eighths = divmod(round(8 * BAR_WIDTH * amount / largest), 8)
    return "█" * whole + ("", *"▏▎▍▌▋▊▉")[eighths]
