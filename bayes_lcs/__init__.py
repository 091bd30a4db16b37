"""Learning from categorical data that comes in groups or in bulk.

Names are loaded when they are first used: importing the package costs little and does not import
JAX, pandas or SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayes_lcs._version import __version__

if TYPE_CHECKING:
    from bayes_lcs.core.errors import NotExactError as NotExactError
    from bayes_lcs.core.priors import Gamma as Gamma
    from bayes_lcs.core.schema import Schema as Schema
    from bayes_lcs.data.datasets import load_dataset as load_dataset
    from bayes_lcs.data.errors import DataError as DataError
    from bayes_lcs.data.meetings import meeting_requests as meeting_requests
    from bayes_lcs.data.reader import read_grouped as read_grouped
    from bayes_lcs.data.table import GroupedTable as GroupedTable
    from bayes_lcs.evaluation.evidence import EvidenceWarning as EvidenceWarning
    from bayes_lcs.evaluation.evidence import LogEvidence as LogEvidence
    from bayes_lcs.evaluation.evidence import evidence as evidence
    from bayes_lcs.inference.exact import exact as exact
    from bayes_lcs.inference.exact_posterior import ExactPosterior as ExactPosterior
    from bayes_lcs.models.clustered import ClusteredNaiveBayes as ClusteredNaiveBayes
    from bayes_lcs.models.complete_sharing import CompleteSharing as CompleteSharing
    from bayes_lcs.models.no_sharing import NoSharing as NoSharing
    from bayes_lcs.models.prototype import Prototype as Prototype
    from bayes_lcs.report.posterior import Posterior as Posterior
    from bayes_lcs.report.posterior import SamplingWarning as SamplingWarning
    from bayes_lcs.report.posterior import load as load
    from bayes_lcs.report.posterior import sample as sample

_HOMES = {
    "ClusteredNaiveBayes": "bayes_lcs.models.clustered",
    "CompleteSharing": "bayes_lcs.models.complete_sharing",
    "DataError": "bayes_lcs.data.errors",
    "EvidenceWarning": "bayes_lcs.evaluation.evidence",
    "ExactPosterior": "bayes_lcs.inference.exact_posterior",
    "Gamma": "bayes_lcs.core.priors",
    "GroupedTable": "bayes_lcs.data.table",
    "LogEvidence": "bayes_lcs.evaluation.evidence",
    "NoSharing": "bayes_lcs.models.no_sharing",
    "NotExactError": "bayes_lcs.core.errors",
    "Posterior": "bayes_lcs.report.posterior",
    "Prototype": "bayes_lcs.models.prototype",
    "SamplingWarning": "bayes_lcs.report.posterior",
    "Schema": "bayes_lcs.core.schema",
    "evidence": "bayes_lcs.evaluation.evidence",
    "exact": "bayes_lcs.inference.exact",
    "load": "bayes_lcs.report.posterior",
    "load_dataset": "bayes_lcs.data.datasets",
    "meeting_requests": "bayes_lcs.data.meetings",
    "read_grouped": "bayes_lcs.data.reader",
    "sample": "bayes_lcs.report.posterior",
}

__all__ = [
    "ClusteredNaiveBayes",
    "CompleteSharing",
    "DataError",
    "EvidenceWarning",
    "ExactPosterior",
    "Gamma",
    "GroupedTable",
    "LogEvidence",
    "NoSharing",
    "NotExactError",
    "Posterior",
    "Prototype",
    "SamplingWarning",
    "Schema",
    "__version__",
    "evidence",
    "exact",
    "load",
    "load_dataset",
    "meeting_requests",
    "read_grouped",
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
