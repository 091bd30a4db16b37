"""``bayes-lcs cluster``: mixture clustering on as many rows as are worth it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.asked import as_asked
from bayes_lcs.cli.keeping import resumable
from bayes_lcs.cli.manners import (
    announce_files,
    print_json,
    readable,
    remove_others,
    say,
    writable_folder,
)
from bayes_lcs.cli.options import (
    METHOD,
    AsJson,
    ExecutorKind,
    Folder,
    Ignore,
    NoHeader,
    Resume,
    Scheduler,
    Seed,
    Workers,
)
from bayes_lcs.cli.workers import asked_executor, layout_of

if TYPE_CHECKING:
    from bayes_lcs.scaling.result import LearningCurveResult

__all__ = ["cluster"]


def cluster(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of categories.")],
    clusters: Annotated[
        int, typer.Option("-k", min=1, help="Number of clusters.", rich_help_panel=METHOD)
    ],
    alpha: Annotated[
        str,
        typer.Option(
            help="What waiting is worth: benefit per hour, or '1% per 10 minutes'.",
            rich_help_panel=METHOD,
        ),
    ] = "0.2",
    abbreviated: Annotated[
        str | None,
        typer.Option(help="Stages cut short: fixed-1, thresh-0.01.", rich_help_panel=METHOD),
    ] = None,
    initial: Annotated[
        int, typer.Option(min=1, help="Rows of the first sample.", rich_help_panel=METHOD)
    ] = 10_000,
    holdout: Annotated[
        int, typer.Option(min=1, help="Rows never trained on.", rich_help_panel=METHOD)
    ] = 10_000,
    ignore: Ignore = None,
    no_header: NoHeader = False,
    seed: Seed = 0,
    resume: Resume = False,
    executor: ExecutorKind = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    out: Folder = Path("cluster-output"),
    as_json: AsJson = False,
) -> None:
    """Cluster rows of categories, training on no more of them than pays.

    Samples of growing size are trained on until more rows are not expected
    to be worth their time. The cluster of every row is written.

    For example:

      bayes-lcs cluster visits.parquet -k 25 --out results
      bayes-lcs cluster visits.csv -k 25 --alpha "1% per 10 minutes" --ignore id
      bayes-lcs cluster visits.csv -k 25 --abbreviated fixed-1 --json
      bayes-lcs cluster visits.parquet -k 25 --scheduler tcp://scheduler:8786
    """
    asked = as_asked(locals())
    from bayes_lcs.core.memory import require_memory
    from bayes_lcs.data.extent import table_extent
    from bayes_lcs.data.needs import cluster_disk, cluster_memory
    from bayes_lcs.report.mixture_files import cluster_file, save_clusters

    rate: float | str = alpha
    with suppress(ValueError):  # words, such as 1% per 10 minutes
        rate = float(alpha)
    extent = table_extent(readable(file), ignore or ())
    require_memory(
        cluster_memory(extent, clusters, initial + holdout),
        f"clustering {extent.rows:,} rows of {extent.columns:,} columns, even a sample of them,",
        "Take smaller samples (--initial, --holdout) or fewer clusters, leave columns out with "
        "--ignore, write a Parquet file with smaller row groups, or use a larger machine",
    )
    folder = writable_folder(out, cluster_disk(extent))
    settings = {
        **asked,
        "seed": seed,
        "rows, as --executor cuts them,": layout_of(executor, scheduler),
    }
    with (
        resumable(folder / ".checkpoint", resume, file, settings),
        asked_executor(executor, scheduler, workers) as runner,
    ):
        result, source = cluster_file(
            file,
            clusters,
            alpha=rate,
            abbreviated=abbreviated,
            initial_size=initial,
            holdout_size=holdout,
            ignore=ignore or (),
            header=not no_header,
            seed=seed,
            executor=runner,
        )
        written = save_clusters(result, file, folder, header=not no_header, options=asked)
        _show(result, source.num_rows, written, as_json)
        if result.interrupted:
            remove_others(folder, ("assignments.csv", "assignments.parquet"), written)
            raise KeyboardInterrupt("the results are those of the stages that were finished")


def _show(result: LearningCurveResult, num_rows: int, written: list[Path], as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "sample_size": result.sample_size,
                "num_rows": num_rows,
                "benefit": result.benefit,
                "speedup": result.speedup,
                "interrupted": result.interrupted,
                "files": [str(path) for path in written],
            }
        )
        return
    say(result.explain())
    announce_files(written)
