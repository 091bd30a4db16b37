"""``bayes-lcs coreset``: a few weighted rows that stand for many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayes_lcs.cli.manners import LARGEST_SEED, announce_files, print_json, say, writable_folder

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
    out: Annotated[Path, typer.Option(help="CSV or Parquet file to write.")] = Path("coreset.csv"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Draw weighted rows on which clusterings cost about what they cost on all rows.

    Example: bayes-lcs coreset points.parquet -k 10 --size 1000 --out small.parquet
    """
    from bayes_lcs.report.coreset_files import coreset_of_file, save_coreset

    writable_folder(out.absolute().parent)
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
    written = save_coreset(small, names, out)
    if as_json:
        print_json(
            {
                "rows": small.num_rows,
                "points": len(small),
                "method": small.method,
                "distortions": small.distortions,
                "files": [str(written)],
            }
        )
        return
    say(f"{small}.")
    announce_files([written])
