"""Learning from categorical data that comes in groups or in bulk.

Names are loaded when they are first used: importing the package costs little and does not import
JAX, pandas or SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayes_lcs._version import __version__

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan import (
        PartialScanClassifier as PartialScanClassifier,
    )
    from bayes_lcs.classification.scan import Scan as Scan
    from bayes_lcs.classification.scanning import DriftWarning as DriftWarning
    from bayes_lcs.classification.shared_naive_bayes import (
        SharedNaiveBayesClassifier as SharedNaiveBayesClassifier,
    )
    from bayes_lcs.clustering.generalized import GeneralizedClusterer as GeneralizedClusterer
    from bayes_lcs.clustering.kmeans import KMeans as KMeans
    from bayes_lcs.clustering.mixture import MixtureClusterer as MixtureClusterer
    from bayes_lcs.clustering.online_kmeans import OnlineKMeans as OnlineKMeans
    from bayes_lcs.core.errors import CheckpointWarning as CheckpointWarning
    from bayes_lcs.core.errors import DataError as DataError
    from bayes_lcs.core.errors import DataNote as DataNote
    from bayes_lcs.core.errors import DataWarning as DataWarning
    from bayes_lcs.core.errors import ExecutorError as ExecutorError
    from bayes_lcs.core.errors import InterruptedWarning as InterruptedWarning
    from bayes_lcs.core.errors import NotExactError as NotExactError
    from bayes_lcs.core.priors import Gamma as Gamma
    from bayes_lcs.core.schema import Schema as Schema
    from bayes_lcs.data.array_sampler import row_source as row_source
    from bayes_lcs.data.checkpoints import checkpoints as checkpoints
    from bayes_lcs.data.count_reader import read_counts as read_counts
    from bayes_lcs.data.counted_table import CountedTable as CountedTable
    from bayes_lcs.data.datasets import load_dataset as load_dataset
    from bayes_lcs.data.encoded_dataset import CodedFiles as CodedFiles
    from bayes_lcs.data.encoded_dataset import code_files as code_files
    from bayes_lcs.data.meetings import meeting_requests as meeting_requests
    from bayes_lcs.data.min_hash import min_hash as min_hash
    from bayes_lcs.data.reader import read_grouped as read_grouped
    from bayes_lcs.data.table import GroupedTable as GroupedTable
    from bayes_lcs.evaluation.cluster_accuracy import clustering_accuracy as clustering_accuracy
    from bayes_lcs.evaluation.cluster_accuracy import (
        clustering_learning_curve as clustering_learning_curve,
    )
    from bayes_lcs.evaluation.comparison import Comparison as Comparison
    from bayes_lcs.evaluation.comparison import compare as compare
    from bayes_lcs.evaluation.cross_validation import cross_validate as cross_validate
    from bayes_lcs.evaluation.evidence import conditional_evidence as conditional_evidence
    from bayes_lcs.evaluation.evidence import evidence as evidence
    from bayes_lcs.evaluation.evidence_curve import evidence_curve as evidence_curve
    from bayes_lcs.evaluation.learning_curves import (
        average_learning_curve as average_learning_curve,
    )
    from bayes_lcs.evaluation.learning_curves import learning_curve as learning_curve
    from bayes_lcs.evaluation.leave_out import LeaveOutWarning as LeaveOutWarning
    from bayes_lcs.evaluation.leave_out import LeftOut as LeftOut
    from bayes_lcs.evaluation.leave_out import leave_one_out as leave_one_out
    from bayes_lcs.evaluation.log_evidence import EvidenceWarning as EvidenceWarning
    from bayes_lcs.evaluation.log_evidence import LogEvidence as LogEvidence
    from bayes_lcs.evaluation.losses import MeanLoss as MeanLoss
    from bayes_lcs.evaluation.losses import asymmetric_loss_curve as asymmetric_loss_curve
    from bayes_lcs.evaluation.losses import mean_loss as mean_loss
    from bayes_lcs.evaluation.losses import row_losses as row_losses
    from bayes_lcs.inference.diagnostics import SamplingWarning as SamplingWarning
    from bayes_lcs.inference.exact import exact as exact
    from bayes_lcs.inference.exact_posterior import ExactPosterior as ExactPosterior
    from bayes_lcs.io.sampler import RowSource as RowSource
    from bayes_lcs.io.sampler import number_blocks as number_blocks
    from bayes_lcs.models.clustered import ClusteredNaiveBayes as ClusteredNaiveBayes
    from bayes_lcs.models.complete_sharing import CompleteSharing as CompleteSharing
    from bayes_lcs.models.no_sharing import NoSharing as NoSharing
    from bayes_lcs.models.prototype import Prototype as Prototype
    from bayes_lcs.report.evidence_plots import plot_evidence as plot_evidence
    from bayes_lcs.report.evidence_plots import plot_evidence_curve as plot_evidence_curve
    from bayes_lcs.report.mixture_plots import plot_em_trace as plot_em_trace
    from bayes_lcs.report.mixture_plots import plot_mixture_profiles as plot_mixture_profiles
    from bayes_lcs.report.performance_plots import plot_learning_curves as plot_learning_curves
    from bayes_lcs.report.performance_plots import plot_loss_curve as plot_loss_curve
    from bayes_lcs.report.plots import plot_coclustering as plot_coclustering
    from bayes_lcs.report.plots import plot_num_clusters as plot_num_clusters
    from bayes_lcs.report.posterior import Posterior as Posterior
    from bayes_lcs.report.posterior import sample as sample
    from bayes_lcs.report.profile_plots import plot_cluster_profiles as plot_cluster_profiles
    from bayes_lcs.report.sampling_plots import plot_convergence_curves as plot_convergence_curves
    from bayes_lcs.report.sampling_plots import plot_iterations as plot_iterations
    from bayes_lcs.report.sampling_plots import plot_sampling_curve as plot_sampling_curve
    from bayes_lcs.report.sampling_plots import plot_stopping_line as plot_stopping_line
    from bayes_lcs.report.saved import load as load
    from bayes_lcs.report.scan_plots import plot_scan as plot_scan
    from bayes_lcs.scaling.convergence import convergence_curves as convergence_curves
    from bayes_lcs.scaling.coreset_stream import CoresetStream as CoresetStream
    from bayes_lcs.scaling.coreset_tree import coreset_tree as coreset_tree
    from bayes_lcs.scaling.coresets import Coreset as Coreset
    from bayes_lcs.scaling.coresets import coreset as coreset
    from bayes_lcs.scaling.executors.factory import executor as executor
    from bayes_lcs.scaling.learning_curve import learning_curve_sample as learning_curve_sample
    from bayes_lcs.scaling.result import LearningCurveResult as LearningCurveResult

_HOMES = {
    "CheckpointWarning": "bayes_lcs.core.errors",
    "ClusteredNaiveBayes": "bayes_lcs.models.clustered",
    "CodedFiles": "bayes_lcs.data.encoded_dataset",
    "Comparison": "bayes_lcs.evaluation.comparison",
    "CompleteSharing": "bayes_lcs.models.complete_sharing",
    "Coreset": "bayes_lcs.scaling.coresets",
    "CoresetStream": "bayes_lcs.scaling.coreset_stream",
    "CountedTable": "bayes_lcs.data.counted_table",
    "DataError": "bayes_lcs.core.errors",
    "DataNote": "bayes_lcs.core.errors",
    "DataWarning": "bayes_lcs.core.errors",
    "DriftWarning": "bayes_lcs.classification.scanning",
    "EvidenceWarning": "bayes_lcs.evaluation.log_evidence",
    "ExactPosterior": "bayes_lcs.inference.exact_posterior",
    "ExecutorError": "bayes_lcs.core.errors",
    "Gamma": "bayes_lcs.core.priors",
    "GeneralizedClusterer": "bayes_lcs.clustering.generalized",
    "GroupedTable": "bayes_lcs.data.table",
    "InterruptedWarning": "bayes_lcs.core.errors",
    "KMeans": "bayes_lcs.clustering.kmeans",
    "LearningCurveResult": "bayes_lcs.scaling.result",
    "LeaveOutWarning": "bayes_lcs.evaluation.leave_out",
    "LeftOut": "bayes_lcs.evaluation.leave_out",
    "LogEvidence": "bayes_lcs.evaluation.log_evidence",
    "MeanLoss": "bayes_lcs.evaluation.losses",
    "MixtureClusterer": "bayes_lcs.clustering.mixture",
    "NoSharing": "bayes_lcs.models.no_sharing",
    "NotExactError": "bayes_lcs.core.errors",
    "OnlineKMeans": "bayes_lcs.clustering.online_kmeans",
    "PartialScanClassifier": "bayes_lcs.classification.partial_scan",
    "Posterior": "bayes_lcs.report.posterior",
    "Prototype": "bayes_lcs.models.prototype",
    "RowSource": "bayes_lcs.io.sampler",
    "SamplingWarning": "bayes_lcs.inference.diagnostics",
    "Scan": "bayes_lcs.classification.scan",
    "Schema": "bayes_lcs.core.schema",
    "SharedNaiveBayesClassifier": "bayes_lcs.classification.shared_naive_bayes",
    "asymmetric_loss_curve": "bayes_lcs.evaluation.losses",
    "average_learning_curve": "bayes_lcs.evaluation.learning_curves",
    "checkpoints": "bayes_lcs.data.checkpoints",
    "clustering_accuracy": "bayes_lcs.evaluation.cluster_accuracy",
    "clustering_learning_curve": "bayes_lcs.evaluation.cluster_accuracy",
    "code_files": "bayes_lcs.data.encoded_dataset",
    "compare": "bayes_lcs.evaluation.comparison",
    "conditional_evidence": "bayes_lcs.evaluation.evidence",
    "convergence_curves": "bayes_lcs.scaling.convergence",
    "coreset": "bayes_lcs.scaling.coresets",
    "coreset_tree": "bayes_lcs.scaling.coreset_tree",
    "cross_validate": "bayes_lcs.evaluation.cross_validation",
    "evidence": "bayes_lcs.evaluation.evidence",
    "evidence_curve": "bayes_lcs.evaluation.evidence_curve",
    "exact": "bayes_lcs.inference.exact",
    "executor": "bayes_lcs.scaling.executors.factory",
    "learning_curve": "bayes_lcs.evaluation.learning_curves",
    "learning_curve_sample": "bayes_lcs.scaling.learning_curve",
    "leave_one_out": "bayes_lcs.evaluation.leave_out",
    "load": "bayes_lcs.report.saved",
    "load_dataset": "bayes_lcs.data.datasets",
    "mean_loss": "bayes_lcs.evaluation.losses",
    "meeting_requests": "bayes_lcs.data.meetings",
    "min_hash": "bayes_lcs.data.min_hash",
    "number_blocks": "bayes_lcs.io.sampler",
    "plot_cluster_profiles": "bayes_lcs.report.profile_plots",
    "plot_coclustering": "bayes_lcs.report.plots",
    "plot_convergence_curves": "bayes_lcs.report.sampling_plots",
    "plot_em_trace": "bayes_lcs.report.mixture_plots",
    "plot_evidence": "bayes_lcs.report.evidence_plots",
    "plot_evidence_curve": "bayes_lcs.report.evidence_plots",
    "plot_iterations": "bayes_lcs.report.sampling_plots",
    "plot_learning_curves": "bayes_lcs.report.performance_plots",
    "plot_loss_curve": "bayes_lcs.report.performance_plots",
    "plot_mixture_profiles": "bayes_lcs.report.mixture_plots",
    "plot_num_clusters": "bayes_lcs.report.plots",
    "plot_sampling_curve": "bayes_lcs.report.sampling_plots",
    "plot_scan": "bayes_lcs.report.scan_plots",
    "plot_stopping_line": "bayes_lcs.report.sampling_plots",
    "read_counts": "bayes_lcs.data.count_reader",
    "read_grouped": "bayes_lcs.data.reader",
    "row_losses": "bayes_lcs.evaluation.losses",
    "row_source": "bayes_lcs.data.array_sampler",
    "sample": "bayes_lcs.report.posterior",
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
