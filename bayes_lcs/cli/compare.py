"""``bayes-lcs compare``: four ways of sharing, their evidence, and who is alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayes_lcs.cli.manners import (
    LARGEST_SEED,
    announce_files,
    plain_table,
    print_json,
    say,
    shown_name,
    writable_folder,
)

__all__ = ["compare"]


def compare(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of grouped rows.")],
    group: Annotated[str, typer.Option(help="The column that says whose row it is.")],
    label: Annotated[str, typer.Option(help="The column to be predicted.")],
    ignore: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    bins: Annotated[list[str] | None, typer.Option(help="Bins of numbers: age=4.")] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of a chain, if sampled.")] = 1000,
    chains: Annotated[int, typer.Option(min=1, help="Chains, if sampled.")] = 4,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="Columns have no names: column_1, column_2, …")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of all that is drawn.")
    ] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("compare-output"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Compare no, complete, prototype and clustered sharing, and find groups that are alike.

    Rows without a label are left out of the comparison and predicted.

    Example: bayes-lcs compare meetings.csv --group user --label decision --out results
    """
    from rich.console import Console

    from bayes_lcs.data.reader import read_grouped
    from bayes_lcs.report.comparison_files import compare_table, save_comparison
    from bayes_lcs.report.comparison_page import save_page

    folder = writable_folder(out)
    data = read_grouped(
        file,
        group=group,
        label=label,
        ignore=ignore or (),
        bins=_bins(bins or ()),
        header=not no_header,
    )
    found = compare_table(data, seed=seed, draws=draws, chains=chains)
    written = [save_page(found, folder, file.name), *save_comparison(found, folder)]
    table = found.comparison.table()
    if as_json:
        print_json(
            {
                "verdict": found.comparison.verdict(),
                "models": table.to_dict("records"),
                "partition": found.partition_by_group(),
                "method": found.method,
                "files": [str(path) for path in written],
            }
        )
        return
    console = Console()
    console.print(
        plain_table(
            "Log evidence", table[["model", "log_evidence", "lower", "upper", "probability"]]
        )
    )
    say(found.comparison.verdict())
    say(f"Who is alike ({found.method}):")
    for members in found.blocks():
        say(f"  {', '.join(map(shown_name, members))}")
    announce_files(written)


def _bins(given: list[str] | tuple[()]) -> dict[str, int] | None:
    found = {}
    for entry in given:
        name, _, number = entry.rpartition("=")
        if not name or not number.isdigit():
            raise ValueError(f"--bins wants COLUMN=NUMBER, such as age=4; got {entry!r}")
        found[name] = int(number)
    return found or None
