"""``bayes-lcs cluster``: mixture clustering on as many rows as are worth it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from bayes_lcs.cli.manners import LARGEST_SEED, announce_files, print_json, say, writable_folder

__all__ = ["cluster"]


def cluster(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of categories.")],
    clusters: Annotated[int, typer.Option("-k", min=1, help="Number of clusters.")],
    alpha: Annotated[
        str, typer.Option(help="What waiting is worth: benefit per hour, or '1% per 10 minutes'.")
    ] = "0.2",
    abbreviated: Annotated[
        str | None, typer.Option(help="Stages cut short: fixed-1, thresh-0.01.")
    ] = None,
    initial: Annotated[int, typer.Option(min=1, help="Rows of the first sample.")] = 10_000,
    holdout: Annotated[int, typer.Option(min=1, help="Rows never trained on.")] = 10_000,
    ignore: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="Columns have no names: column_1, column_2, …")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of samples and starts.")
    ] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("cluster-output"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Cluster rows of categories, training on no more of them than pays.

    Example: bayes-lcs cluster visits.parquet -k 25 --alpha "1% per 10 minutes" --out results
    """
    from bayes_lcs.report.mixture_files import cluster_file, save_clusters

    folder = writable_folder(out)
    rate: float | str = alpha
    with suppress(ValueError):  # words, such as 1% per 10 minutes
        rate = float(alpha)
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
    )
    written = save_clusters(result, file, folder, header=not no_header)
    if as_json:
        print_json(
            {
                "sample_size": result.sample_size,
                "num_rows": source.num_rows,
                "benefit": result.benefit,
                "speedup": result.speedup,
                "files": [str(path) for path in written],
            }
        )
        return
    say(result.explain())
    announce_files(written)
