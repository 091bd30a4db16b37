"""``bayes-lcs coreset``: a few weighted rows that stand for many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayes_lcs.cli.asked import as_asked
from bayes_lcs.cli.keeping import Resume, resumable
from bayes_lcs.cli.manners import (
    LARGEST_SEED,
    announce_files,
    print_json,
    readable,
    say,
    writable_folder,
)

__all__ = ["coreset"]


def coreset(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of numbers, or a folder.")],
    clusters: Annotated[int, typer.Option("-k", min=1, help="Clusters that it is made for.")],
    size: Annotated[int, typer.Option(min=1, help="Rows to draw.")] = 1000,
    method: Annotated[
        str, typer.Option(help="sensitivity, adaptive, lightweight or uniform.")
    ] = "sensitivity",
    stream: Annotated[
        bool, typer.Option("--stream", help="Merge and reduce: memory does not grow with the file.")
    ] = False,
    ignore: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="Columns have no names: column_1, column_2, …")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the draws.")] = 0,
    resume: Resume = False,
    out: Annotated[Path, typer.Option(help="CSV or Parquet file to write.")] = Path("coreset.csv"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Draw weighted rows on which clusterings cost about what they cost on all rows.

    Example: bayes-lcs coreset points.parquet -k 10 --size 1000 --out small.parquet
    """
    asked = as_asked(locals())
    from bayes_lcs.report.coreset_files import coreset_of_file, save_coreset
    from bayes_lcs.report.coreset_page import save_coreset_page
    from bayes_lcs.report.page import Origin

    readable(file)
    folder = writable_folder(out.absolute().parent)
    settings = {**asked, "seed": seed}
    with resumable(folder / f".{out.name}.checkpoint", resume, file, settings):
        small, names = coreset_of_file(
            file,
            clusters,
            size,
            method=method,
            stream=stream,
            ignore=ignore or (),
            header=not no_header,
            seed=seed,
        )
        table = save_coreset(small, names, out)
        origin = Origin("coreset", file, seed, asked)
        written = [save_coreset_page(small, names, out, origin), table]
    if as_json:
        print_json(
            {
                "rows": small.num_rows,
                "points": len(small),
                "method": small.method,
                "distortions": small.distortions,
                "files": [str(path) for path in written],
            }
        )
        return
    say(f"{small}.")
    announce_files(written)
