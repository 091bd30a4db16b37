"""Tables of results, and the clocks they are filled with."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text


class Scale(Enum):
    """How large a benchmark should be."""

    SMOKE = "smoke"  # seconds: does it still run?
    NORMAL = "normal"  # minutes
    FULL = "full"  # as far as the machine goes


@dataclass(frozen=True)
class Table:
    """One table: rows of cells in the order of the columns; None is "not measured"."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    notes: list[str] = field(default_factory=list)

    def show(self, console: Console) -> None:
        table = RichTable(title=Text(self.title), title_justify="left")
        for column in self.columns:
            table.add_column(Text(column), justify="right")
        for row in self.rows:
            table.add_row(*(Text(cell(value)) for value in row))
        console.print(table)
        for note in self.notes:
            console.print(Text(note))

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", f"| {' | '.join(self.columns)} |"]
        lines.append(f"|{'---:|' * len(self.columns)}")
        lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in self.rows]
        lines += [f"\n{note}" for note in self.notes]
        return "\n".join([*lines, ""])


def cell(value: Any) -> str:
    """A number with three significant digits; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def write(tables: list[Table], folder: Path) -> None:
    """All tables as ``benchmarks.md`` and ``benchmarks.json``, and each as a CSV file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(table.markdown() for table in tables)
    (folder / "benchmarks.md").write_text(text, encoding="utf-8")
    data = json.dumps([asdict(table) for table in tables], indent=2)
    (folder / "benchmarks.json").write_text(data + "\n", encoding="utf-8")
    for table in tables:
        with (folder / f"{table.name}.csv").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([table.columns, *table.rows])


def fastest(work: Callable[[], Any], repeats: int = 3, enough: float = 2.0) -> float:
    """Smallest wall time of some repeats, fewer if they take longer than ``enough`` seconds."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < enough:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
