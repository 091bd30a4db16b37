"""``bayes-lcs compare``: four ways of sharing, their evidence, and who is alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.errors import (
    announce_files,
    plain_table,
    print_json,
    readable,
    require_room,
    say,
    shown_name,
    writable_folder,
)
from bayes_lcs.cli.executor_options import asked_executor
from bayes_lcs.cli.options import (
    DATA,
    METHOD,
    AsJson,
    ExecutorKind,
    Folder,
    Force,
    Ignore,
    Missing,
    NoHeader,
    Resume,
    Scheduler,
    Seed,
    Workers,
    as_asked,
)
from bayes_lcs.cli.output import Output
from bayes_lcs.cli.resume import prepare

if TYPE_CHECKING:
    from bayes_lcs.report.compare import TableComparison

__all__ = ["compare"]

RESULTS = (
    "report.html",
    "evidence.csv",
    "partition.csv",
    "predictions.csv",
    "evidence.png",
    "num_clusters.png",
    "coclustering.png",
    "posterior.nc",
    "posterior.nc.sha256",
)
"""Files that the command may write."""
MOST_NAMES = 30
"""Of a cluster that are said; all are in ``partition.csv``."""


def compare(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of grouped rows.")],
    group: Annotated[
        str, typer.Option(help="The column that says whose row it is.", rich_help_panel=DATA)
    ],
    label: Annotated[str, typer.Option(help="The column to be predicted.", rich_help_panel=DATA)],
    ignore: Ignore = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            help="Bins of a column of numbers: age=4; may be given again.", rich_help_panel=DATA
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="A column whose numbers are names; may be given again.", rich_help_panel=DATA
        ),
    ] = None,
    missing: Missing = None,
    draws: Annotated[
        int, typer.Option(min=1, help="Draws of a chain, if sampled.", rich_help_panel=METHOD)
    ] = 1000,
    chains: Annotated[
        int, typer.Option(min=1, help="Chains, if sampled.", rich_help_panel=METHOD)
    ] = 4,
    no_header: NoHeader = False,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Standard error of log evidences to aim at.", rich_help_panel=METHOD
        ),
    ] = None,
    seed: Seed = 0,
    resume: Resume = False,
    executor: ExecutorKind = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    out: Folder = Path("compare-output"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compare no, complete, prototype and clustered sharing, and find groups that are alike.

    Rows without a label are left out of the comparison and predicted. Rows without a group are left
    out with a warning.

    For example:

      bayes-lcs compare meetings.csv --group user --label decision --out results
      bayes-lcs compare people.parquet --group town --label buys --bins age=4
      bayes-lcs compare meetings.csv --group user --label decision --json --seed 7
    """
    asked = as_asked(locals())
    from bayes_lcs.data.read_grouped import read_grouped
    from bayes_lcs.inference.exact.exact import MAX_GROUPS
    from bayes_lcs.io.size_estimate import table_extent
    from bayes_lcs.report.compare import save_page
    from bayes_lcs.report.html import Provenance
    from bayes_lcs.runtime.memory import require_memory
    from bayes_lcs.workflows.compare import (
        ComparisonInterrupted,
        compare_table,
        save_comparison,
        save_evidence,
    )
    from bayes_lcs.workflows.resource_estimates import (
        compare_disk,
        compare_memory,
        reading_disk,
        table_memory,
    )

    run = prepare(
        Output.in_folder(out, RESULTS),
        {"the input": readable(file)},
        {"command": "compare", **asked, "seed": seed},
        resume=resume,
        force=force,
        as_json=as_json,
    )
    extent = table_extent(file, ignore or ())
    size = f"{extent.rows:,} rows of {extent.columns:,} columns"
    larger = "leave columns out with --ignore, or use a larger machine"
    require_memory(table_memory(extent), f"reading {size}", f"Take fewer rows, {larger}")
    cuts = _bins(bins or ())
    folder = writable_folder(out, reading_disk(extent))
    with run.keep(), asked_executor(executor, scheduler, workers) as runner:
        data = read_grouped(
            file,
            group=group,
            label=label,
            ignore=ignore or (),
            missing_values=missing,
            bins=cuts,
            categorical=categorical or (),
            header=not no_header,
        )
        made, groups = draws * chains, data.num_groups
        predicts = bool((data.labels < 0).any())
        cells = data.schema.num_labels * data.schema.num_cells
        ways = [made, None] if groups <= MAX_GROUPS else [made]
        require_memory(
            min(compare_memory(extent, groups, cells, way, predicts) for way in ways),
            f"comparing models on {groups:,} groups with {made:,} draws",
            f"Take fewer --draws or --chains, {larger}",
        )
        require_room(folder, compare_disk(extent, groups, made, groups <= MAX_GROUPS))
        try:
            found = compare_table(
                data, seed=seed, draws=draws, chains=chains, precision=precision, executor=runner
            )
        except ComparisonInterrupted as cut:
            partial = cut.comparison
            (kept,) = run.write(lambda: [save_evidence(partial, folder)], is_finished=False)
            if as_json:
                models = partial.table().to_dict("records")
                print_json({"interrupted": True, "models": models, "files": [str(kept)]})
            said = f"evidence of the models that were finished is in {kept}"
            raise KeyboardInterrupt(said) from None
        origin = Provenance("compare", file, seed, asked)
        written = run.write(
            lambda: [save_page(found, folder, origin), *save_comparison(found, folder)],
            is_finished=not found.interrupted,
        )
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
        more = len(members) - MOST_NAMES
        shown = ", ".join(map(shown_name, members[:MOST_NAMES]))
        say(f"  {shown}{f' and {more:,} more' if more > 0 else ''}")
    announce_files(written)


def _bins(given: list[str] | tuple[()]) -> dict[str, int] | None:
    found = {}
    for entry in given:
        name, _, number = entry.rpartition("=")
        if not name or not number.isdigit():
            raise ValueError(f"--bins wants COLUMN=NUMBER, such as age=4; got {entry!r}")
        found[name] = int(number)
    return found or None
