"""``bayes-lcs compare``: four ways of sharing, their evidence, and who is alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.asked import as_asked
from bayes_lcs.cli.keeping import Resume, resumable
from bayes_lcs.cli.manners import (
    LARGEST_SEED,
    announce_files,
    plain_table,
    print_json,
    say,
    shown_name,
    writable_folder,
)

if TYPE_CHECKING:
    from bayes_lcs.report.comparison_files import TableComparison

__all__ = ["compare"]


def compare(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of grouped rows.")],
    group: Annotated[str, typer.Option(help="The column that says whose row it is.")],
    label: Annotated[str, typer.Option(help="The column to be predicted.")],
    ignore: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    bins: Annotated[list[str] | None, typer.Option(help="Bins of numbers: age=4.")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns whose numbers are names.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of a chain, if sampled.")] = 1000,
    chains: Annotated[int, typer.Option(min=1, help="Chains, if sampled.")] = 4,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="Columns have no names: column_1, column_2, …")
    ] = False,
    precision: Annotated[
        float | None, typer.Option(min=0.0, help="Standard error of log evidences to aim at.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of all that is drawn.")
    ] = 0,
    resume: Resume = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("compare-output"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Compare no, complete, prototype and clustered sharing, and find groups that are alike.

    Rows without a label are left out of the comparison and predicted.

    Example: bayes-lcs compare meetings.csv --group user --label decision --out results
    """
    asked = as_asked(locals())
    from bayes_lcs.data.reader import read_grouped
    from bayes_lcs.report.comparison_files import (
        ComparisonInterrupted,
        compare_table,
        save_comparison,
        save_evidence,
    )
    from bayes_lcs.report.comparison_page import save_page
    from bayes_lcs.report.page import Origin

    data = read_grouped(
        file,
        group=group,
        label=label,
        ignore=ignore or (),
        bins=_bins(bins or ()),
        categorical=categorical or (),
        header=not no_header,
    )
    folder = writable_folder(out)
    settings = {**asked, "seed": seed}
    with resumable(folder / ".checkpoint", resume, file, settings):
        try:
            found = compare_table(data, seed=seed, draws=draws, chains=chains, precision=precision)
        except ComparisonInterrupted as cut:
            kept = save_evidence(cut.comparison, folder)
            said = f"evidence of the models that were finished is in {kept}"
            raise KeyboardInterrupt(said) from None
        page = save_page(found, folder, Origin("compare", file, seed, asked))
        written = [page, *save_comparison(found, folder)]
        _show(found, written, as_json)
        if found.interrupted:
            raise KeyboardInterrupt("the results are those of the draws that were made")


def _show(found: TableComparison, written: list[Path], as_json: bool) -> None:
    from rich.console import Console

    table = found.comparison.table()
    if as_json:
        print_json(
            {
                "verdict": found.comparison.verdict(),
                "models": table.to_dict("records"),
                "partition": found.partition_by_group(),
                "method": found.method,
                "interrupted": found.interrupted,
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
