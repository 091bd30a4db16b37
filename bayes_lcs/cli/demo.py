"""``bayes-lcs demo``: compare models on simulated data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.errors import writable_folder
from bayes_lcs.cli.options import Force, Seed
from bayes_lcs.cli.output import Output

if TYPE_CHECKING:
    from rich.table import Table

    from bayes_lcs.workflows.demo import Demonstration

__all__ = ["demo"]

RESULTS = (
    "report.html",
    "coclustering.png",
    "num_clusters.png",
    "evidence.png",
    "posterior.nc",
    "posterior.nc.sha256",
)
"""Files that the command writes."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the netCDF file.")] = Path(
        "demo-output"
    ),
    seed: Seed = 0,
    rows: Annotated[int, typer.Option(min=1, help="Number of meeting requests per person.")] = 180,
    force: Force = False,
) -> None:
    """Compare four models of sharing on 21 simulated people, and cluster similar people.

    The command needs no data and takes about half a minute.

    For example:

      bayes-lcs demo --out demo-output
      bayes-lcs demo --out demo-output --seed 1 --force
    """
    from rich.console import Console

    from bayes_lcs.workflows.demo import demonstrate, save_demonstration

    output = Output.in_folder(out, RESULTS)
    output.check((), force=force)
    writable_folder(out)
    output.remove_unfinished_files()
    console = Console()
    console.print(
        f"21 simulated people answer {rows} meeting requests each. Which of them decide alike?\n"
        "Computing the exact sum over all 474,869,816,156,751 partitions: about half a minute.",
        highlight=False,
    )
    shown = demonstrate(seed=seed, rows_per_person=rows)
    console.print(_evidence_table(shown))
    console.print(_partition_table(shown))
    is_correct = (shown.found == shown.truth).all()
    probability = shown.posterior.num_clusters()
    console.print(
        f"The most probable partition {'equals' if is_correct else 'differs from'} the true one. "
        f"Most probable number of clusters: {probability.argmax()} "
        f"(probability {probability.max():.3f}).\n",
        highlight=False,
    )
    console.print("Written:")
    settings = {"command": "demo", "seed": str(seed), "rows": str(rows)}
    for path in output.write(lambda: save_demonstration(shown, out, seed), settings):
        console.print(f"  {path}", markup=False, highlight=False)


def _evidence_table(shown: Demonstration) -> Table:
    from rich.table import Table

    table = Table(title="Log evidence", title_justify="left")
    for heading in ("model", "log evidence", "95 % interval", "below the best", "method"):
        table.add_column(heading, justify="left" if heading in ("model", "method") else "right")
    best = shown.results[0].value
    for result in shown.results:
        interval = "exact" if result.is_exact else f"[{result.lower:,.2f}, {result.upper:,.2f}]"
        table.add_row(
            result.model,
            f"{result.value:,.2f}",
            interval.replace("[", r"\["),
            f"{best - result.value:,.2f}",
            result.method,
        )
    return table


def _partition_table(shown: Demonstration) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from bayes_lcs.core.partitions import blocks

    names = shown.posterior.group_names
    table = Table(title="Clusters of people", title_justify="left", show_lines=True)
    table.add_column("most probable partition (exact)")
    table.add_column("true partition")
    columns = [blocks(shown.found), blocks(shown.truth)]
    for row in range(max(map(len, columns))):
        cells = [
            escape(", ".join(names[u] for u in column[row])) if row < len(column) else ""
            for column in columns
        ]
        table.add_row(*cells)
    return table
