"""Learning from categorical data that comes in groups or in bulk.

Names are loaded when they are first used: importing the package costs little and does not import
JAX, pandas or SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayes_lcs._version import __version__

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan.estimator import (
        PartialScanClassifier as PartialScanClassifier,
    )
    from bayes_lcs.classification.partial_scan.loop import DriftWarning as DriftWarning
    from bayes_lcs.classification.partial_scan.result import Scan as Scan
    from bayes_lcs.classification.shared_naive_bayes import (
        SharedNaiveBayesClassifier as SharedNaiveBayesClassifier,
    )
    from bayes_lcs.clustering.coresets.coreset import Coreset as Coreset
    from bayes_lcs.clustering.coresets.coreset import coreset as coreset
    from bayes_lcs.clustering.coresets.stream import CoresetStream as CoresetStream
    from bayes_lcs.clustering.coresets.tree import coreset_tree as coreset_tree
    from bayes_lcs.clustering.generalized.estimator import (
        GeneralizedClusterer as GeneralizedClusterer,
    )
    from bayes_lcs.clustering.kmeans.estimator import KMeans as KMeans
    from bayes_lcs.clustering.kmeans.online import OnlineKMeans as OnlineKMeans
    from bayes_lcs.clustering.mixture.estimator import MixtureClusterer as MixtureClusterer
    from bayes_lcs.core.errors import CheckpointWarning as CheckpointWarning
    from bayes_lcs.core.errors import DataError as DataError
    from bayes_lcs.core.errors import DataNote as DataNote
    from bayes_lcs.core.errors import DataWarning as DataWarning
    from bayes_lcs.core.errors import ExecutorError as ExecutorError
    from bayes_lcs.core.errors import InterruptedWarning as InterruptedWarning
    from bayes_lcs.core.errors import NotExactError as NotExactError
    from bayes_lcs.core.priors import Gamma as Gamma
    from bayes_lcs.core.schema import Schema as Schema
    from bayes_lcs.data.counts_table import CountedTable as CountedTable
    from bayes_lcs.data.datasets import load_dataset as load_dataset
    from bayes_lcs.data.grouped_table import GroupedTable as GroupedTable
    from bayes_lcs.data.read_counts import read_counts as read_counts
    from bayes_lcs.data.read_grouped import read_grouped as read_grouped
    from bayes_lcs.data.rows.array_sampler import row_source as row_source
    from bayes_lcs.data.rows.encoded_dataset import CodedFiles as CodedFiles
    from bayes_lcs.data.rows.encoded_dataset import code_files as code_files
    from bayes_lcs.data.rows.minhash import min_hash as min_hash
    from bayes_lcs.data.simulated_meetings import meeting_requests as meeting_requests
    from bayes_lcs.evaluation.cluster_accuracy import clustering_accuracy as clustering_accuracy
    from bayes_lcs.evaluation.cluster_accuracy import (
        clustering_learning_curve as clustering_learning_curve,
    )
    from bayes_lcs.evaluation.cross_validation import cross_validate as cross_validate
    from bayes_lcs.evaluation.learning_curves import (
        average_learning_curve as average_learning_curve,
    )
    from bayes_lcs.evaluation.learning_curves import learning_curve as learning_curve
    from bayes_lcs.evaluation.loo import LeaveOutWarning as LeaveOutWarning
    from bayes_lcs.evaluation.loo import LeftOut as LeftOut
    from bayes_lcs.evaluation.loo import leave_one_out as leave_one_out
    from bayes_lcs.evaluation.losses import MeanLoss as MeanLoss
    from bayes_lcs.evaluation.losses import asymmetric_loss_curve as asymmetric_loss_curve
    from bayes_lcs.evaluation.losses import mean_loss as mean_loss
    from bayes_lcs.evaluation.losses import row_losses as row_losses
    from bayes_lcs.inference.diagnostics import SamplingWarning as SamplingWarning
    from bayes_lcs.inference.exact.exact import exact as exact
    from bayes_lcs.inference.exact.posterior import ExactPosterior as ExactPosterior
    from bayes_lcs.inference.posterior import Posterior as Posterior
    from bayes_lcs.inference.posterior import sample as sample
    from bayes_lcs.io.sampler import RowSource as RowSource
    from bayes_lcs.io.sampler import number_blocks as number_blocks
    from bayes_lcs.learning_curve_sampling.convergence import (
        convergence_curves as convergence_curves,
    )
    from bayes_lcs.learning_curve_sampling.result import LearningCurveResult as LearningCurveResult
    from bayes_lcs.learning_curve_sampling.sample import (
        learning_curve_sample as learning_curve_sample,
    )
    from bayes_lcs.model_evidence.compare import Comparison as Comparison
    from bayes_lcs.model_evidence.compare import compare as compare
    from bayes_lcs.model_evidence.evidence import conditional_evidence as conditional_evidence
    from bayes_lcs.model_evidence.evidence import evidence as evidence
    from bayes_lcs.model_evidence.evidence_curve import evidence_curve as evidence_curve
    from bayes_lcs.model_evidence.log_evidence import EvidenceWarning as EvidenceWarning
    from bayes_lcs.model_evidence.log_evidence import LogEvidence as LogEvidence
    from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes as ClusteredNaiveBayes
    from bayes_lcs.models.complete_sharing import CompleteSharing as CompleteSharing
    from bayes_lcs.models.no_sharing import NoSharing as NoSharing
    from bayes_lcs.models.prototype import Prototype as Prototype
    from bayes_lcs.plots.cluster_profiles import plot_cluster_profiles as plot_cluster_profiles
    from bayes_lcs.plots.evidence import plot_evidence as plot_evidence
    from bayes_lcs.plots.evidence import plot_evidence_curve as plot_evidence_curve
    from bayes_lcs.plots.learning_curve import plot_convergence_curves as plot_convergence_curves
    from bayes_lcs.plots.learning_curve import plot_iterations as plot_iterations
    from bayes_lcs.plots.learning_curve import plot_sampling_curve as plot_sampling_curve
    from bayes_lcs.plots.learning_curve import plot_stopping_line as plot_stopping_line
    from bayes_lcs.plots.losses import plot_learning_curves as plot_learning_curves
    from bayes_lcs.plots.losses import plot_loss_curve as plot_loss_curve
    from bayes_lcs.plots.mixture import plot_em_trace as plot_em_trace
    from bayes_lcs.plots.mixture import plot_mixture_profiles as plot_mixture_profiles
    from bayes_lcs.plots.partitions import plot_coclustering as plot_coclustering
    from bayes_lcs.plots.partitions import plot_num_clusters as plot_num_clusters
    from bayes_lcs.plots.scan import plot_scan as plot_scan
    from bayes_lcs.runtime.checkpoints import checkpoints as checkpoints
    from bayes_lcs.runtime.executors.factory import executor as executor
    from bayes_lcs.workflows.load import load as load

_HOMES = {
    "CheckpointWarning": "bayes_lcs.core.errors",
    "ClusteredNaiveBayes": "bayes_lcs.models.clustered_naive_bayes",
    "CodedFiles": "bayes_lcs.data.rows.encoded_dataset",
    "Comparison": "bayes_lcs.model_evidence.compare",
    "CompleteSharing": "bayes_lcs.models.complete_sharing",
    "Coreset": "bayes_lcs.clustering.coresets.coreset",
    "CoresetStream": "bayes_lcs.clustering.coresets.stream",
    "CountedTable": "bayes_lcs.data.counts_table",
    "DataError": "bayes_lcs.core.errors",
    "DataNote": "bayes_lcs.core.errors",
    "DataWarning": "bayes_lcs.core.errors",
    "DriftWarning": "bayes_lcs.classification.partial_scan.loop",
    "EvidenceWarning": "bayes_lcs.model_evidence.log_evidence",
    "ExactPosterior": "bayes_lcs.inference.exact.posterior",
    "ExecutorError": "bayes_lcs.core.errors",
    "Gamma": "bayes_lcs.core.priors",
    "GeneralizedClusterer": "bayes_lcs.clustering.generalized.estimator",
    "GroupedTable": "bayes_lcs.data.grouped_table",
    "InterruptedWarning": "bayes_lcs.core.errors",
    "KMeans": "bayes_lcs.clustering.kmeans.estimator",
    "LearningCurveResult": "bayes_lcs.learning_curve_sampling.result",
    "LeaveOutWarning": "bayes_lcs.evaluation.loo",
    "LeftOut": "bayes_lcs.evaluation.loo",
    "LogEvidence": "bayes_lcs.model_evidence.log_evidence",
    "MeanLoss": "bayes_lcs.evaluation.losses",
    "MixtureClusterer": "bayes_lcs.clustering.mixture.estimator",
    "NoSharing": "bayes_lcs.models.no_sharing",
    "NotExactError": "bayes_lcs.core.errors",
    "OnlineKMeans": "bayes_lcs.clustering.kmeans.online",
    "PartialScanClassifier": "bayes_lcs.classification.partial_scan.estimator",
    "Posterior": "bayes_lcs.inference.posterior",
    "Prototype": "bayes_lcs.models.prototype",
    "RowSource": "bayes_lcs.io.sampler",
    "SamplingWarning": "bayes_lcs.inference.diagnostics",
    "Scan": "bayes_lcs.classification.partial_scan.result",
    "Schema": "bayes_lcs.core.schema",
    "SharedNaiveBayesClassifier": "bayes_lcs.classification.shared_naive_bayes",
    "asymmetric_loss_curve": "bayes_lcs.evaluation.losses",
    "average_learning_curve": "bayes_lcs.evaluation.learning_curves",
    "checkpoints": "bayes_lcs.runtime.checkpoints",
    "clustering_accuracy": "bayes_lcs.evaluation.cluster_accuracy",
    "clustering_learning_curve": "bayes_lcs.evaluation.cluster_accuracy",
    "code_files": "bayes_lcs.data.rows.encoded_dataset",
    "compare": "bayes_lcs.model_evidence.compare",
    "conditional_evidence": "bayes_lcs.model_evidence.evidence",
    "convergence_curves": "bayes_lcs.learning_curve_sampling.convergence",
    "coreset": "bayes_lcs.clustering.coresets.coreset",
    "coreset_tree": "bayes_lcs.clustering.coresets.tree",
    "cross_validate": "bayes_lcs.evaluation.cross_validation",
    "evidence": "bayes_lcs.model_evidence.evidence",
    "evidence_curve": "bayes_lcs.model_evidence.evidence_curve",
    "exact": "bayes_lcs.inference.exact.exact",
    "executor": "bayes_lcs.runtime.executors.factory",
    "learning_curve": "bayes_lcs.evaluation.learning_curves",
    "learning_curve_sample": "bayes_lcs.learning_curve_sampling.sample",
    "leave_one_out": "bayes_lcs.evaluation.loo",
    "load": "bayes_lcs.workflows.load",
    "load_dataset": "bayes_lcs.data.datasets",
    "mean_loss": "bayes_lcs.evaluation.losses",
    "meeting_requests": "bayes_lcs.data.simulated_meetings",
    "min_hash": "bayes_lcs.data.rows.minhash",
    "number_blocks": "bayes_lcs.io.sampler",
    "plot_cluster_profiles": "bayes_lcs.plots.cluster_profiles",
    "plot_coclustering": "bayes_lcs.plots.partitions",
    "plot_convergence_curves": "bayes_lcs.plots.learning_curve",
    "plot_em_trace": "bayes_lcs.plots.mixture",
    "plot_evidence": "bayes_lcs.plots.evidence",
    "plot_evidence_curve": "bayes_lcs.plots.evidence",
    "plot_iterations": "bayes_lcs.plots.learning_curve",
    "plot_learning_curves": "bayes_lcs.plots.losses",
    "plot_loss_curve": "bayes_lcs.plots.losses",
    "plot_mixture_profiles": "bayes_lcs.plots.mixture",
    "plot_num_clusters": "bayes_lcs.plots.partitions",
    "plot_sampling_curve": "bayes_lcs.plots.learning_curve",
    "plot_scan": "bayes_lcs.plots.scan",
    "plot_stopping_line": "bayes_lcs.plots.learning_curve",
    "read_counts": "bayes_lcs.data.read_counts",
    "read_grouped": "bayes_lcs.data.read_grouped",
    "row_losses": "bayes_lcs.evaluation.losses",
    "row_source": "bayes_lcs.data.rows.array_sampler",
    "sample": "bayes_lcs.inference.posterior",
}

__all__ = [
    "CheckpointWarning",
    "ClusteredNaiveBayes",
    "CodedFiles",
    "Comparison",
    "CompleteSharing",
    "Coreset",
    "CoresetStream",
    "CountedTable",
    "DataError",
    "DataNote",
    "DataWarning",
    "DriftWarning",
    "EvidenceWarning",
    "ExactPosterior",
    "ExecutorError",
    "Gamma",
    "GeneralizedClusterer",
    "GroupedTable",
    "InterruptedWarning",
    "KMeans",
    "LearningCurveResult",
    "LeaveOutWarning",
    "LeftOut",
    "LogEvidence",
    "MeanLoss",
    "MixtureClusterer",
    "NoSharing",
    "NotExactError",
    "OnlineKMeans",
    "PartialScanClassifier",
    "Posterior",
    "Prototype",
    "RowSource",
    "SamplingWarning",
    "Scan",
    "Schema",
    "SharedNaiveBayesClassifier",
    "__version__",
    "asymmetric_loss_curve",
    "average_learning_curve",
    "checkpoints",
    "clustering_accuracy",
    "clustering_learning_curve",
    "code_files",
    "compare",
    "conditional_evidence",
    "convergence_curves",
    "coreset",
    "coreset_tree",
    "cross_validate",
    "evidence",
    "evidence_curve",
    "exact",
    "executor",
    "learning_curve",
    "learning_curve_sample",
    "leave_one_out",
    "load",
    "load_dataset",
    "mean_loss",
    "meeting_requests",
    "min_hash",
    "number_blocks",
    "plot_cluster_profiles",
    "plot_coclustering",
    "plot_convergence_curves",
    "plot_em_trace",
    "plot_evidence",
    "plot_evidence_curve",
    "plot_iterations",
    "plot_learning_curves",
    "plot_loss_curve",
    "plot_mixture_profiles",
    "plot_num_clusters",
    "plot_sampling_curve",
    "plot_scan",
    "plot_stopping_line",
    "read_counts",
    "read_grouped",
    "row_losses",
    "row_source",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'bayes_lcs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
