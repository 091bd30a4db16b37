"""Workflow of ``bayes-lcs demo``: compare the models on simulated data with a known partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.data.simulated_meetings import meeting_requests
from bayes_lcs.inference.datatree import exact_datatree
from bayes_lcs.inference.exact.exact import exact
from bayes_lcs.inference.exact.posterior import ExactPosterior
from bayes_lcs.model_evidence.compare import Comparison
from bayes_lcs.model_evidence.evidence import evidence, evidence_from_posterior
from bayes_lcs.model_evidence.log_evidence import LogEvidence
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from bayes_lcs.plots.evidence import plot_evidence
from bayes_lcs.plots.figure import save_figure
from bayes_lcs.plots.partitions import plot_coclustering, plot_num_clusters
from bayes_lcs.report.compare import TableComparison, save_page
from bayes_lcs.report.html import Provenance
from bayes_lcs.runtime.atomic_files import save_datatree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Demonstration", "demonstrate", "save_demonstration"]


@dataclass(frozen=True)
class Demonstration:
    """Results of the demonstration.

    Attributes
    ----------
    data
        The simulated table.
    truth : (U,)
        The true partition.
    results
        Log evidence of the four models, the best first.
    posterior
        Exact posterior of clustered naive Bayes.
    found : (U,)
        Most probable partition.
    """

    data: GroupedTable
    truth: NDArray[np.int64]
    results: list[LogEvidence]
    posterior: ExactPosterior
    found: NDArray[np.int64]

    @property
    def num_clusters(self) -> NDArray[np.float64]:
        """Posterior probability of each number of clusters."""
        return self.posterior.num_clusters()


def demonstrate(
    seed: int = 0, rows_per_person: int = 180, progress: bool | None = None
) -> Demonstration:
    """Compare the four models on 21 simulated people, and cluster people with equal behaviour."""
    data, truth = meeting_requests(seed=seed, rows_per_person=rows_per_person)
    posterior = exact(ClusteredNaiveBayes(), data, progress=progress)
    others = [
        evidence(model, data, seed=seed, progress=progress)
        for model in (NoSharing(), CompleteSharing(), Prototype())
    ]
    results = sorted(
        [evidence_from_posterior(posterior), *others], key=lambda result: -result.value
    )
    return Demonstration(data, truth.partition, results, posterior, posterior.map_partition())


def save_demonstration(shown: Demonstration, folder: str | Path, seed: int = 0) -> list[Path]:
    """Write the figures and the netCDF file; return their paths."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    posterior = shown.posterior
    matrix, names = posterior.coclustering(), posterior.group_names
    pictures: dict[str, tuple[tuple[float, float], Callable[[Axes], Axes]]] = {
        "coclustering": ((8.5, 7.2), lambda ax: plot_coclustering(matrix, shown.found, names, ax)),
        "num_clusters": ((5, 3.2), lambda ax: plot_num_clusters(shown.num_clusters, ax)),
        "evidence": ((7, 3), lambda ax: plot_evidence(shown.results, ax)),
    }
    paths = [save_figure(out / f"{name}.png", *how) for name, how in pictures.items()]
    origin = Provenance("demo", "simulated meeting requests", seed)
    paths.insert(0, save_page(_as_comparison(shown, seed), out, origin))
    tree = exact_datatree(shown.posterior, seed=seed)
    paths.append(save_datatree(tree, out / "posterior.nc"))
    return paths


def _as_comparison(shown: Demonstration, seed: int) -> TableComparison:
    models = (ClusteredNaiveBayes(), NoSharing(), CompleteSharing(), Prototype())
    by_name = {result.model: result for result in shown.results}
    evidences = tuple(by_name[model.name] for model in models)
    comparison = Comparison(models, shown.data, evidences, np.full(4, 0.25), False, seed)
    return TableComparison(comparison, shown.posterior, shown.found, "exact", None, seed)
