"""``bayes-lcs compare``: evidence of four models of sharing, and the posterior partition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.errors import (
    check_exists,
    display_name,
    echo,
    plain_table,
    print_files,
    print_json,
    require_room,
    writable_folder,
)
from bayes_lcs.cli.executor_options import open_executor
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
    report_options,
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
MAX_NAMES = 30
"""Maximum number of names printed per cluster; ``partition.csv`` has all."""


def compare(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of grouped rows.")],
    group: Annotated[
        str,
        typer.Option(help="The column that identifies the group of a row.", rich_help_panel=DATA),
    ],
    label: Annotated[str, typer.Option(help="The column to be predicted.", rich_help_panel=DATA)],
    ignore: Ignore = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            help="Number of bins of a numeric column, as age=4; can be repeated.",
            rich_help_panel=DATA,
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="A numeric column to treat as categorical; can be repeated.", rich_help_panel=DATA
        ),
    ] = None,
    missing: Missing = None,
    draws: Annotated[
        int,
        typer.Option(
            min=1, help="Draws per chain, if the posterior is sampled.", rich_help_panel=METHOD
        ),
    ] = 1000,
    chains: Annotated[
        int,
        typer.Option(
            min=1, help="Number of chains, if the posterior is sampled.", rich_help_panel=METHOD
        ),
    ] = 4,
    no_header: NoHeader = False,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Target standard error of the log evidences.", rich_help_panel=METHOD
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
    """Compare no, complete, prototype and clustered sharing, and cluster similar groups.

    Rows without a label are excluded from the comparison, and their labels are predicted. Rows
    without a group are excluded with a warning.

    For example:

      bayes-lcs compare meetings.csv --group user --label decision --out results
      bayes-lcs compare people.parquet --group town --label buys --bins age=4
      bayes-lcs compare meetings.csv --group user --label decision --json --seed 7
    """
    options = report_options(locals())
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
        {"the input": check_exists(file)},
        {"command": "compare", **options, "seed": seed},
        resume=resume,
        force=force,
        as_json=as_json,
    )
    extent = table_extent(file, ignore or ())
    size = f"{extent.rows:,} rows with {extent.columns:,} columns"
    larger = "ignore columns with --ignore, or use a larger machine"
    require_memory(table_memory(extent), f"reading {size}", f"Use fewer rows, {larger}")
    num_bins = _bins(bins or ())
    folder = writable_folder(out, reading_disk(extent))
    with run.checkpointing(), open_executor(executor, scheduler, workers) as runner:
        data = read_grouped(
            file,
            group=group,
            label=label,
            ignore=ignore or (),
            missing_values=missing,
            bins=num_bins,
            categorical=categorical or (),
            header=not no_header,
        )
        num_draws, groups = draws * chains, data.num_groups
        predicts = bool((data.labels < 0).any())
        cells = data.schema.num_labels * data.schema.num_cells
        draw_counts = [num_draws, None] if groups <= MAX_GROUPS else [num_draws]
        require_memory(
            min(compare_memory(extent, groups, cells, count, predicts) for count in draw_counts),
            f"comparing models on {groups:,} groups with {num_draws:,} draws",
            f"Use fewer --draws or --chains, {larger}",
        )
        require_room(folder, compare_disk(extent, groups, num_draws, groups <= MAX_GROUPS))
        try:
            result = compare_table(
                data, seed=seed, draws=draws, chains=chains, precision=precision, executor=runner
            )
        except ComparisonInterrupted as interruption:
            partial = interruption.comparison
            (path,) = run.write(lambda: [save_evidence(partial, folder)], is_finished=False)
            if as_json:
                models = partial.table().to_dict("records")
                print_json({"interrupted": True, "models": models, "files": [str(path)]})
            raise KeyboardInterrupt(f"the evidence of the finished models is in {path}") from None
        origin = Provenance("compare", file, seed, options)
        written = run.write(
            lambda: [save_page(result, folder, origin), *save_comparison(result, folder)],
            is_finished=not result.interrupted,
        )
        _show(result, written, as_json)
        if result.interrupted:
            raise KeyboardInterrupt("the results are those of the draws so far")


def _show(result: TableComparison, written: list[Path], as_json: bool) -> None:
    from rich.console import Console

    table = result.comparison.table()
    if as_json:
        print_json(
            {
                "verdict": result.comparison.verdict(),
                "models": table.to_dict("records"),
                "partition": result.partition_by_group(),
                "method": result.method,
                "interrupted": result.interrupted,
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
    echo(result.comparison.verdict())
    echo(f"Clusters of similar groups ({result.method}):")
    for members in result.blocks():
        more = len(members) - MAX_NAMES
        shown = ", ".join(map(display_name, members[:MAX_NAMES]))
        echo(f"  {shown}{f' and {more:,} more' if more > 0 else ''}")
    print_files(written)


def _bins(given: list[str] | tuple[()]) -> dict[str, int] | None:
    result = {}
    for entry in given:
        name, _, number = entry.rpartition("=")
        if not name or not number.isdigit():
            raise ValueError(f"--bins must be COLUMN=NUMBER, such as age=4; got {entry!r}")
        result[name] = int(number)
    return result or None
