"""Workflow of ``bayes-lcs compare``: compare the four models on a table and write the results."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_lcs.core.errors import DataError, NotExactError
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.inference.datatree import exact_datatree
from bayes_lcs.inference.exact.exact import exact
from bayes_lcs.inference.exact.posterior import ExactPosterior
from bayes_lcs.inference.posterior import Posterior, sample
from bayes_lcs.model_evidence.compare import Comparison, compare
from bayes_lcs.model_evidence.evidence import evidence_from_posterior
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from bayes_lcs.plots.evidence import plot_evidence
from bayes_lcs.plots.figure import save_figure
from bayes_lcs.plots.partitions import plot_coclustering, plot_num_clusters
from bayes_lcs.report.compare import MAX_HEATMAP_GROUPS, TableComparison
from bayes_lcs.report.safe_csv import free_name, write_csv
from bayes_lcs.runtime.atomic_files import save_datatree
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import fits
from bayes_lcs.workflows.resource_estimates import partitions_memory

__all__ = [
    "ComparisonInterrupted",
    "compare_table",
    "save_comparison",
    "save_evidence",
]

FOUR_MODELS = (NoSharing(), CompleteSharing(), Prototype(), ClusteredNaiveBayes())


class ComparisonInterrupted(KeyboardInterrupt):
    """Ctrl-C before all evidences were computed; carries the models that were finished."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__()
        self.comparison = comparison


def compare_table(
    data: GroupedTable,
    *,
    seed: int = 0,
    draws: int = 1000,
    chains: int = 4,
    precision: float | None = None,
    executor: Executor | None = None,
) -> TableComparison:
    """Compare the four models on the rows with a label, and predict the other rows.

    Parameters
    ----------
    draws, chains
        Posterior draws and chains of clustered naive Bayes, if it has to be sampled.
    precision
        Target standard error of the evidences; see :func:`bayes_lcs.evidence`.
    executor
        Executor of the chains; None runs them in this process.

    Raises
    ------
    ComparisonInterrupted
        After Ctrl-C, with the models that were finished.
    """
    known, unknown = data.labelled(), data.unlabelled()
    if not known.num_rows:
        raise DataError("no row has a label; models cannot be compared without labelled rows")
    *_, clustered = FOUR_MODELS
    summed: ExactPosterior | None = None
    if fits(partitions_memory(known.num_groups)):
        with suppress(NotExactError):
            summed = exact(clustered, known)
    evidences = None if summed is None else {clustered: evidence_from_posterior(summed)}
    comparison = compare(
        FOUR_MODELS, known, seed=seed, precision=precision, known=evidences, executor=executor
    )
    if comparison.interrupted:
        raise ComparisonInterrupted(comparison)
    posterior: ExactPosterior | Posterior
    if summed is not None:
        posterior, partition, method = summed, summed.map_partition(), "exact"
    else:
        posterior = sample(
            clustered, known, draws=draws, chains=chains, seed=seed, executor=executor
        )
        made = posterior.datatree["posterior"].sizes["draw"]
        partition, method = posterior.partition(), f"{chains} chains of {made} draws"
    predictions = None
    if unknown.num_rows and not (isinstance(posterior, Posterior) and posterior.interrupted):
        predictions = unknown.to_frame()
        added = [f"P({name})" for name in data.label_values]
        taken = {*added, *predictions.columns}
        predictions = predictions.rename(
            columns={name: free_name(name, taken) for name in predictions if name in added}
        )
        for name, column in zip(added, comparison.predict_proba(unknown).T, strict=True):
            predictions[name] = column
    return TableComparison(comparison, posterior, partition, method, predictions, seed)


def save_evidence(comparison: Comparison, folder: Path) -> Path:
    """Write the table of evidences; interrupted ones are marked."""
    table = comparison.table()
    if comparison.interrupted:
        table["interrupted"] = [comparison.evidences[i].interrupted for i in comparison.order]
        table["models_left_out"] = len(FOUR_MODELS) - len(comparison.models)
    return write_csv(table, folder / "evidence.csv")


def save_comparison(result: TableComparison, folder: Path) -> list[Path]:
    """Write tables, figures and the netCDF file; return their paths."""
    posterior: Any = result.posterior
    written = [save_evidence(result.comparison, folder)]
    groups = pd.DataFrame(
        {"group": list(posterior.group_names), "cluster": result.partition.astype(int)}
    )
    written.append(write_csv(groups, folder / "partition.csv"))
    if result.predictions is not None:
        written.append(write_csv(result.predictions, folder / "predictions.csv"))
    results = [result.comparison.evidences[i] for i in result.comparison.order]
    written.append(
        save_figure(folder / "evidence.png", (7, 3), lambda ax: plot_evidence(results, ax))
    )
    written.append(
        save_figure(
            folder / "num_clusters.png",
            (5, 3.2),
            lambda ax: plot_num_clusters(posterior.num_clusters(), ax),
        )
    )
    names = posterior.group_names
    if len(names) <= MAX_HEATMAP_GROUPS:
        matrix = np.asarray(posterior.coclustering())
        written.append(
            save_figure(
                folder / "coclustering.png",
                (8.5, 7.2),
                lambda ax: plot_coclustering(matrix, result.partition, names, ax),
            )
        )
    if isinstance(posterior, Posterior):
        written.append(posterior.save(folder / "posterior.nc"))
    else:
        tree = exact_datatree(posterior, seed=result.seed)
        written.append(save_datatree(tree, folder / "posterior.nc"))
    return written
