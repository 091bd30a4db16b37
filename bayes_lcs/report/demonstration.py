"""The demonstration: four models on simulated meeting requests whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.meetings import meeting_requests
from bayes_lcs.data.table import GroupedTable
from bayes_lcs.evaluation.evidence import LogEvidence, evidence, evidence_of
from bayes_lcs.inference.exact import exact
from bayes_lcs.inference.exact_posterior import ExactPosterior
from bayes_lcs.models.clustered import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from bayes_lcs.report.datatree import exact_datatree
from bayes_lcs.report.plots import plot_coclustering, plot_evidence, plot_num_clusters
from bayes_lcs.report.storage import save_datatree, write_atomically

__all__ = ["Demonstration", "demonstrate", "save_demonstration"]


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration found.

    Attributes
    ----------
    data
        The simulated table.
    truth : (U,)
        The partition it was drawn from.
    results
        Log evidence of the four models, the best first.
    posterior
        Exact posterior of clustered naive Bayes.
    found : (U,)
        Its most probable partition.
    """

    data: GroupedTable
    truth: NDArray[np.int64]
    results: list[LogEvidence]
    posterior: ExactPosterior
    found: NDArray[np.int64]


def demonstrate(
    seed: int = 0, rows_per_person: int = 180, progress: bool | None = None
) -> Demonstration:
    """Compare the four models on 21 simulated people, and find who decides alike.

    Examples
    --------
    >>> shown = demonstrate(rows_per_person=20)  # doctest: +SKIP
    >>> shown.results[0].model  # doctest: +SKIP
    'Clustered naive Bayes'
    """
    data, truth = meeting_requests(seed=seed, rows_per_person=rows_per_person)
    posterior = exact(ClusteredNaiveBayes(), data, progress=progress)
    others = [
        evidence(model, data, seed=seed, progress=progress)
        for model in (NoSharing(), CompleteSharing(), Prototype())
    ]
    results = sorted([evidence_of(posterior), *others], key=lambda result: -result.value)
    return Demonstration(data, truth.partition, results, posterior, posterior.map_partition())


def save_demonstration(shown: Demonstration, folder: str | Path, seed: int = 0) -> list[Path]:
    """Write the pictures and the netCDF file; returns their paths."""
    from matplotlib.figure import Figure

    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    names = shown.posterior.group_names
    paths = []
    for name, size in (("coclustering", (8.5, 7.2)), ("num_clusters", (5, 3.2)), ("evidence", (7, 3))):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        if name == "coclustering":
            plot_coclustering(shown.posterior.coclustering(), shown.found, names, axes)
        elif name == "num_clusters":
            plot_num_clusters(shown.posterior.num_clusters(), axes)
        else:
            plot_evidence(shown.results, axes)
        path = out / f"{name}.png"
        paths.append(
            write_atomically(path, lambda part, fig=figure: fig.savefig(part, format="png", dpi=150))
        )
    tree = exact_datatree(shown.posterior, seed=seed)
    paths.append(save_datatree(tree, out / "posterior.nc"))
    return paths
