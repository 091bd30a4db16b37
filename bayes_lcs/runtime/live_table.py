"""Show the stages of a long computation as a live table, or as plain lines without a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from bayes_lcs.runtime.progress import (
    bar_columns,
    can_show,
    prints_plain_lines,
    share_display,
    write_line,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["AddRow", "live_table"]

BAR_WIDTH = 20
"""Length of the longest bar, in characters."""
OTHER_LINES = 5
"""Lines of the terminal reserved for the header, the progress bar and margins."""


class AddRow(Protocol):
    """Function that adds a row to a live table."""

    def __call__(
        self, cells: Sequence[str], amount: float, *, steps: int = 1, status: str = ""
    ) -> None:
        """Add a row, advance the progress bar, and show a status beside it.

        The ``amount`` is drawn as a bar after the first two cells, relative to the largest so far.
        """


def _silent(cells: Sequence[str], amount: float, *, steps: int = 1, status: str = "") -> None:
    """Do nothing: there is no table."""


@contextmanager
def live_table(
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
        Description and number of steps of the progress bar.
    columns
        Names of the columns; the third is that of the bars, which have no cell.
    status
        Text beside the progress bar at the beginning.
    enabled
        True or False, or None for "when standard error is a terminal". If it is not, and inside
        `bayes_lcs.runtime.progress.plain_lines`, every row is printed as a line.
    """
    if not can_show(enabled):
        yield (
            _line_by_line(description, columns)
            if enabled is None and prints_plain_lines()
            else _silent
        )
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

        with share_display(progress):
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
        del amount, steps, status  # lines have no bars
        text = ", ".join(f"{name} {cell}" for name, cell in zip(names, cells, strict=True) if cell)
        write_line(f"{description}: {text}")

    return add


def _table(
    columns: Sequence[str], rows: Sequence[tuple[Sequence[str], float]], console: Console
) -> Table:
    """Build a table of the last rows, as many as fit on the terminal."""
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
    """Return a bar of block characters, in steps of an eighth.

    Examples
    --------
    >>> _bar(0.5, 1.0), _bar(1.0, 64.0), _bar(-1.0, 1.0)
    ('██████████', '▎', '')
    """
    if not 0.0 < amount <= largest:
        return ""
    whole, eighths = divmod(round(8 * BAR_WIDTH * amount / largest), 8)
    return "█" * whole + ("", *"▏▎▍▌▋▊▉")[eighths]
