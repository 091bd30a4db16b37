"""``bayes-lcs coreset``: weighted sample of rows that represents a large file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayes_lcs.cli.errors import check_exists, echo, print_files, print_json, writable_folder
from bayes_lcs.cli.executor_options import open_executor
from bayes_lcs.cli.options import (
    METHOD,
    RUN,
    AsJson,
    ExecutorKind,
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

__all__ = ["coreset"]

OTHER_FORMATS = (
    ".xlsx",
    ".xls",
    ".ods",
    ".json",
    ".jsonl",
    ".html",
    ".feather",
    ".nc",
    ".zip",
    ".gz",
)
"""Suffixes of other formats, which are refused because CSV would be written."""


def coreset(
    file: Annotated[
        Path, typer.Argument(help="A CSV or Parquet file of numeric columns, or a folder.")
    ],
    clusters: Annotated[
        int,
        typer.Option(
            "-k",
            min=1,
            help="Number of clusters to be fitted to the coreset.",
            rich_help_panel=METHOD,
        ),
    ],
    size: Annotated[
        int, typer.Option(min=1, help="Number of rows to draw.", rich_help_panel=METHOD)
    ] = 1000,
    method: Annotated[
        str,
        typer.Option(help="sensitivity, lightweight or uniform.", rich_help_panel=METHOD),
    ] = "sensitivity",
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Merge and reduce in constant memory.",
            rich_help_panel=METHOD,
        ),
    ] = False,
    ignore: Ignore = None,
    missing: Missing = None,
    no_header: NoHeader = False,
    seed: Seed = 0,
    resume: Resume = False,
    executor: ExecutorKind = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    out: Annotated[
        Path,
        typer.Option(help="CSV or Parquet file to write; it must not exist.", rich_help_panel=RUN),
    ] = Path("coreset.csv"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Draw weighted rows on which any clustering has about the same cost as on all rows.

    All rows are read into memory, unless --stream or --executor is given. The
    workers of an executor reduce one block at a time.

    For example:

      bayes-lcs coreset points.parquet -k 10 --size 1000 --out small.parquet
      bayes-lcs coreset folder-of-files -k 10 --stream --ignore id
      bayes-lcs coreset folder-of-files -k 10 --executor processes --workers 2
    """
    options = report_options(locals())
    if not out.name:
        raise IsADirectoryError(f"{out}: this is a folder; --out must be the path of a file")
    if out.suffix.lower() in OTHER_FORMATS:
        raise ValueError(f"{out}: a coreset is written as .csv or .parquet; change --out")
    from bayes_lcs.io.size_estimate import table_extent
    from bayes_lcs.report.coreset import report_path, save_coreset_page
    from bayes_lcs.report.html import Provenance
    from bayes_lcs.runtime.memory import require_memory
    from bayes_lcs.workflows.coreset import coreset_of_file, save_coreset
    from bayes_lcs.workflows.resource_estimates import coreset_disk, coreset_memory

    stream = stream or executor is not None or scheduler is not None
    run = prepare(
        Output.at_file(out, report_path(out)),
        {"the input": check_exists(file)},
        {"command": "coreset", **options, "seed": seed},
        resume=resume,
        force=force,
        as_json=as_json,
    )
    extent = table_extent(file, ignore or ())
    require_memory(
        coreset_memory(extent, size, stream),
        f"a coreset of {extent.rows:,} rows with {extent.columns:,} columns",
        "Ignore columns with --ignore, "
        + ("use a smaller --size" if stream else "read them with --stream")
        + ", or use a larger machine",
    )
    writable_folder(out.absolute().parent, coreset_disk(extent, size, stream))
    with run.checkpointing(), open_executor(executor, scheduler, workers) as runner:
        small, names = coreset_of_file(
            file,
            clusters,
            size,
            method=method,
            stream=stream,
            ignore=ignore or (),
            missing_values=missing,
            header=not no_header,
            seed=seed,
            executor=runner,
        )
        origin = Provenance("coreset", file, seed, options)
        written = run.write(
            lambda: [
                save_coreset_page(small, names, out, origin),
                save_coreset(small, names, out),
            ]
        )
    if as_json:
        print_json(
            {
                "rows": small.num_rows,
                "points": len(small),
                "method": small.method,
                "distortions": small.distortions,
                "checked_on": small.checked_on,
                "files": [str(path) for path in written],
            }
        )
        return
    echo(f"{small}.")
    print_files(written)
