"""Model comparison by evidence: Bayes factors, posterior probabilities, and a verdict.

An estimated evidence has an interval, and so have all quantities derived from it. If the intervals
of the two best models overlap, there is no verdict.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayes_lcs.core.errors import InterruptedWarning
from bayes_lcs.data.grouped_table import GroupedTable, require_table
from bayes_lcs.inference.condition import condition
from bayes_lcs.inference.diagnostics import judge, warn_of_fits
from bayes_lcs.model_evidence.evidence import conditional_evidence, evidence
from bayes_lcs.model_evidence.log_evidence import EvidenceWarning, LogEvidence
from bayes_lcs.runtime.checkpoints import checkpointed_task
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.progress import prints_plain_lines, progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["Comparison", "LogBayesFactor", "compare", "predict_in_batches"]

FloatArray = NDArray[np.float64]

STRENGTHS = ((5.0, "very strongly"), (3.0, "strongly"), (1.0, "positively"), (0.0, "barely"))
"""Log Bayes factors in words (Kass and Raftery 1995, whose scale is twice the logarithm)."""

NEGLIGIBLE = 1e-6
"""Models whose probability cannot exceed this are left out of averaged predictions."""

DRAWS, CHAINS = 500, 2
"""Posterior draws and chains for averaged predictions, if a model has to be sampled."""


class LogBayesFactor(NamedTuple):
    """Log ratio of two evidences, with its interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of models on one table.

    Attributes
    ----------
    models
        The models, in the order in which they were given.
    data
        The table.
    evidences
        Log evidence of each model, or of the labels given the features.
    prior
        Prior probability of each model, ``(M,)``.
    conditional
        True if the evidences are ``log P(Y | X)``.
    seed
        Seed of all draws, including those of later predictions.
    interrupted
        True if Ctrl-C left out models or interrupted the estimate of the last one.
    """

    models: tuple[Any, ...]
    data: GroupedTable
    evidences: tuple[LogEvidence, ...]
    prior: FloatArray
    conditional: bool
    seed: int
    interrupted: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models, or their full representations if two names are equal."""
        names = [model.name for model in self.models]
        if len(set(names)) == len(names):
            return tuple(names)
        return tuple(repr(model) for model in self.models)

    @property
    def order(self) -> list[int]:
        """Indices of the models by decreasing evidence."""
        return sorted(range(len(self.models)), key=lambda i: -self.evidences[i].value)

    def log_bayes_factor(self, one: int, other: int) -> LogBayesFactor:
        """Return the log evidence of one model minus that of another, given by their indices."""
        a, b = self.evidences[one], self.evidences[other]
        return LogBayesFactor(a.value - b.value, a.lower - b.upper, a.upper - b.lower)

    def probabilities(self) -> FloatArray:
        """Return the posterior probability of each model, ``(M,)``."""
        return self._probabilities([found.value for found in self.evidences])

    def probability_intervals(self) -> FloatArray:
        """Return the lowest and highest probability of each model, ``(M, 2)``.

        The extremes are over all evidences within their intervals.
        """
        lower = [found.lower for found in self.evidences]
        upper = [found.upper for found in self.evidences]
        result = np.empty((len(self.models), 2))
        for i in range(len(self.models)):
            for end, (own, others) in enumerate(((lower, upper), (upper, lower))):
                values = list(others)
                values[i] = own[i]
                result[i, end] = self._probabilities(values)[i]
        return result

    def _probabilities(self, logs: Sequence[float]) -> FloatArray:
        with np.errstate(divide="ignore"):
            joint = np.asarray(logs) + np.log(self.prior)
        result: FloatArray = np.exp(joint - logsumexp(joint))
        return result

    def table(self) -> pd.DataFrame:
        """Return one row per model, best first: evidence, Bayes factor to the best, probability."""
        import pandas as pd

        best = self.order[0]
        probability, intervals = self.probabilities(), self.probability_intervals()
        rows = []
        for i in self.order:
            found, factor = self.evidences[i], self.log_bayes_factor(i, best)
            rows.append(
                {
                    "model": self.names[i],
                    "log_evidence": found.value,
                    "lower": found.lower,
                    "upper": found.upper,
                    "standard_error": found.standard_error,
                    "log_bayes_factor": factor.value,
                    "probability": probability[i],
                    "probability_lower": intervals[i, 0],
                    "probability_upper": intervals[i, 1],
                    "method": found.method,
                }
            )
        return pd.DataFrame(rows)

    def verdict(self) -> str:
        """Return a sentence that names the model that the data support, if they support one."""
        if len(self.models) == 1:
            return f"There is no other model to compare {self.names[0]} with."
        best, *others = self.order
        # The strongest rival is the one with the highest upper end, not the second best value.
        second = max(others, key=lambda i: self.evidences[i].upper)
        factor = self.log_bayes_factor(best, second)
        shaky = [
            self.names[i]
            for i in (best, second)
            if (ends := self.evidences[i].bracket) is not None and not ends.agrees
        ]
        if factor.lower <= 0.0:
            return (
                f"No verdict: the intervals of {self.names[best]} and {self.names[second]} overlap "
                f"(log Bayes factor {factor.value:.2f}, between {factor.lower:.2f} and "
                f"{factor.upper:.2f})."
            )
        word = next(word for least, word in STRENGTHS if factor.lower >= least)
        doubt = (
            f" However, lower and upper estimates for {', '.join(shaky)} disagree." if shaky else ""
        )
        what = "labels, given the features," if self.conditional else "data"
        return (
            f"The {what} support {self.names[best]} {word}: at least e^{factor.lower:.1f} to one "
            f"against {self.names[second]}.{doubt}"
        )

    def predict_proba(
        self, rows: Any, *, unseen: Literal["missing", "error"] = "missing"
    ) -> FloatArray:
        """Return the label probabilities of each row, averaged over the models, eq. (3.8).

        Models whose probability cannot exceed a millionth are left out.

        Parameters
        ----------
        rows
            New rows of known or new groups: a pandas, polars or Arrow frame, a table, or the path
            of a CSV or Parquet file.
        unseen : {"missing", "error"}
            Treatment of feature values that do not occur in the training data.

        Warns
        -----
        SamplingWarning
            If models had to be sampled and their chains did not converge; one warning for all.
        """
        probability, highest = self.probabilities(), self.probability_intervals()[:, 1]
        kept = [i for i in range(len(self.models)) if highest[i] > NEGLIGIBLE]
        weights = probability[kept] / probability[kept].sum()
        total: Any = 0.0
        fits = {}
        rows = self.data.encode(rows, unseen=unseen)  # once for all models
        for weight, i in zip(weights, kept, strict=True):
            posterior = condition(
                self.models[i], self.data, draws=DRAWS, chains=CHAINS, seed=self.seed
            )
            fits[self.names[i]] = judge(posterior)
            total = total + weight * predict_in_batches(posterior, rows, unseen)
        warn_of_fits(fits, DRAWS, CHAINS, remedy="predict with bl.sample(model, data, draws=...)")
        result: FloatArray = np.asarray(total)
        return result

    def __str__(self) -> str:
        table = self.table()[["model", "log_evidence", "standard_error", "probability", "method"]]
        return f"{table.to_string(index=False)}\n{self.verdict()}"


def compare(
    models: Sequence[Any],
    data: GroupedTable,
    conditional: bool = False,
    *,
    prior: Sequence[float] | None = None,
    precision: float | None = None,
    max_chains: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    known: Mapping[Any, LogEvidence] | None = None,
    executor: Executor | None = None,
) -> Comparison:
    """Compare models by their evidence on one table.

    Parameters
    ----------
    models
        Any of the four models, with any hyper-parameters.
    conditional
        If True, compare by ``log P(Y | X)``, the prediction of the labels from the features,
        instead of ``log P(X, Y)``, the description of both.
    prior
        Prior odds of the models, not necessarily normalised; uniform by default.
    precision, max_chains, seed
        See :func:`bayes_lcs.evidence`.
    known
        Evidences that have already been computed, by model; they are not computed again.
    executor
        See :func:`bayes_lcs.evidence`.

    Warns
    -----
    InterruptedWarning
        After Ctrl-C, if the evidence of at least one model was finished.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0, rows_per_person=60)
    >>> data = data.select_groups(range(8))
    >>> found = bl.compare([bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes()], data)
    >>> found.table()["model"][0]
    'Clustered Naive Bayes'
    >>> found.verdict()[:50]
    'The data support Clustered Naive Bayes very strong'
    """
    require_table(data)
    given = tuple(models)
    if not given:
        raise ValueError("give at least one model to compare")
    odds = np.ones(len(given)) if prior is None else np.asarray(prior, dtype=np.float64)
    if odds.shape != (len(given),) or not (np.isfinite(odds) & (odds >= 0)).all() or not odds.any():
        raise ValueError(
            f"prior must have one non-negative number for each of the {len(given)} models, not all "
            f"of them zero; got {prior!r}"
        )
    compute = conditional_evidence if conditional else evidence
    options: dict[str, Any] = {"precision": precision, "max_chains": max_chains, "seed": seed}
    options["executor"] = executor
    found: list[LogEvidence] = []
    interrupted = False
    for model in given:
        if known is not None and model in known:
            found.append(known[model])
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found.append(compute(model, data, progress=progress, **options))
            except KeyboardInterrupt:
                if not found:
                    raise
                interrupted = True
        for warning in caught:
            about = EvidenceWarning if issubclass(warning.category, EvidenceWarning) else None
            message = f"{model.name}: {warning.message}" if about else str(warning.message)
            warnings.warn(message, about or warning.category, stacklevel=2)
        interrupted |= found[-1].interrupted
        if interrupted:
            warnings.warn(
                f"interrupted: only {len(found)} of {len(given)} models are compared",
                InterruptedWarning,
                stacklevel=2,
            )
            break
    kept, odds = given[: len(found)], odds[: len(found)]
    prior_kept = odds / odds.sum() if odds.any() else np.full(len(odds), 1.0 / len(odds))
    return Comparison(kept, data, tuple(found), prior_kept, conditional, seed, interrupted)


BATCH_SIZE = 1 << 14


def predict_in_batches(
    posterior: Any, rows: Any, unseen: Literal["missing", "error"] = "missing"
) -> FloatArray:
    """Return ``posterior.predict_proba(rows)``, computed in batches for long tables.

    Parameters
    ----------
    posterior
        Posterior of any model.
    rows
        Frame or table. The prediction of a row does not depend on the other rows.
    unseen
        See ``predict_proba``.
    """
    if not isinstance(rows, GroupedTable) or rows.num_rows <= BATCH_SIZE:
        found: FloatArray = posterior.predict_proba(rows, unseen=unseen)
        return found
    table = (rows.features, rows.groups, rows.new_groups, rows.group_names)
    bar = progress_bar("predicting", rows.num_rows, None if prints_plain_lines() else False)
    with checkpointed_task("predictions", posterior.model, unseen, *table) as kept, bar as tick:
        pieces = [piece["chances"] for piece in kept.iter_pieces()]
        tick(len(pieces) * BATCH_SIZE)
        for start in range(len(pieces) * BATCH_SIZE, rows.num_rows, BATCH_SIZE):
            some = rows.take(slice(start, start + BATCH_SIZE))
            pieces.append(posterior.predict_proba(some, unseen=unseen))
            kept.update(dict, {"chances": pieces[-1]})
            tick(some.num_rows)
        kept.finish()
    return np.concatenate(pieces)
