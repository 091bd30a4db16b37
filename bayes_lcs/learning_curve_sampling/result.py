"""Result of learning-curve sampling: the best model, the curve, and confidence intervals.

All figures refer to trained models and held-out rows. Scores and gains have standard errors over
the rows of the hold-out. Benefit and utility are relative to full training on all rows: they are
known if the run included it, or after `LearningCurveResult.compared_with`. Otherwise they are NaN;
nothing is extrapolated.

The model is chosen as the best of several on the same hold-out. The intervals therefore hold for
all of these models at once (Bonferroni), and so for the chosen one.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.learning_curve_sampling.controller import Run, Stage
from bayes_lcs.learning_curve_sampling.time_cost import rate_text, seconds_text
from bayes_lcs.learning_curve_sampling.training_run import RowScores, TrainingRun, mean_error
from bayes_lcs.learning_curve_sampling.utility import Preferences, relative_benefit
from bayes_lcs.runtime.atomic_files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LEVEL", "LearningCurveResult"]

LEVEL = 0.95
"""Level of the confidence intervals, over random hold-outs."""

NAN = float("nan")


@dataclass(frozen=True)
class LearningCurveResult:
    """Best model of a learning curve, with its score, its gain and its cost.

    Attributes
    ----------
    run
        Stages, decisions and every training run.
    preferences
        Benefit and cost.
    method, abbreviated
        Stopping rule, and truncation of the stages.
    total_rows, holdout_size
        Number of rows for training, and of hold-out rows.
    random_state
        Seed of the order of the rows.
    reading
        Number of passes over files and of rows read.
    reference
        Full training on all rows, from another result; see `compared_with`.
    """

    run: Run
    preferences: Preferences
    method: str
    abbreviated: str | None
    total_rows: int
    holdout_size: int
    random_state: int
    reading: dict[str, int]
    reference: TrainingRun | None = None

    # The model ---------------------------------------------------------------------------------

    @property
    def _best(self) -> TrainingRun:
        return self.run.best

    @property
    def model(self) -> Any:
        """The fitted estimator with the best score on the hold-out, of all stages."""
        return self._best.model

    @property
    def sample_size(self) -> int:
        """The number of rows that the model was trained on."""
        return self._best.size

    @property
    def initial_size(self) -> int:
        """The number of rows of the first sample."""
        return self.stages[0].fit.size

    @property
    def components(self) -> int | None:
        """The number of components, if it was chosen by the search."""
        return self._best.components

    @property
    def stages(self) -> list[Stage]:
        """The stages, in order."""
        return self.run.stages

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended the run."""
        return bool(self.run.interrupted)

    @property
    def stop_reason(self) -> str:
        """Reason why the run ended, in one sentence."""
        if self.run.interrupted:
            return self.run.interrupted
        decision = self.stages[-1].decision
        return "" if decision is None else decision.reason

    # Measured on the hold-out --------------------------------------------------------------------

    @property
    def score(self) -> float:
        """The model's score on the hold-out."""
        return self._best.score

    @property
    def score_standard_error(self) -> float:
        """Standard error of the score over the rows of the hold-out; NaN if rows have no scores."""
        return mean_error(self._best.row_scores)

    @property
    def score_interval(self) -> tuple[float, float]:
        """95 % interval of the model's expected score on new rows; NaN if rows have no scores."""
        return self._interval(self.score, self.score_standard_error)

    @property
    def baseline_score(self) -> float:
        """The baseline's score on the hold-out."""
        return self.run.base

    @property
    def gain(self) -> float:
        """The model's score less that of the baseline."""
        return self.score - self.baseline_score

    @property
    def gain_interval(self) -> tuple[float, float]:
        """95 % interval of the gain on new rows, from the differences row by row."""
        return self._interval(self.gain, mean_error(self._best.row_scores, self._base_rows))

    def _interval(self, value: float, error: float) -> tuple[float, float]:
        half = self._quantile * error
        return value - half, value + half

    @property
    def _base_rows(self) -> RowScores | float:
        return self.run.base if self.run.base_rows is None else self.run.base_rows

    @property
    def _quantile(self) -> float:
        """Quantile of Student's distribution, Bonferroni-corrected for the number of candidates."""
        from scipy.stats import t

        tail = (1.0 - LEVEL) / 2 / len(self.run.candidates)
        return float(t.isf(tail, max(self.holdout_size - 1, 1)))

    # Relative to full training on all rows -------------------------------------------------------

    @property
    def _full(self) -> TrainingRun | None:
        """Training run of full training on all rows, if there is one."""
        if self.reference is not None:
            return self.reference
        done = (f for f in self.run.fits if f.mode == "full" and f.size == self.total_rows)
        whole = [fit for fit in done if not fit.interrupted and fit.components == self.components]
        return whole[0] if whole else None

    @property
    def benefit(self) -> float:
        """Gain as a share of that of full training on all rows (equation 1).

        NaN if there was no full training on all rows, or if it is no better than the baseline.
        """
        full = self._full
        if full is None or full.score <= self.baseline_score:
            return NAN
        return relative_benefit(self.score, self.baseline_score, full.score)

    @property
    def benefit_interval(self) -> tuple[float, float]:
        """95 % interval of the benefit on new rows, by Fieller's method.

        It is unbounded if the gain of full training is not significantly above zero, and NaN if
        the benefit is NaN or rows have no scores.
        """
        full, own = self._full, self._best
        if full is None or math.isnan(self.benefit):
            return NAN, NAN
        if full is own:
            return 1.0, 1.0
        if full.row_scores is None or own.row_scores is None:
            return NAN, NAN
        return _ratio_interval(
            own.row_scores - self._base_rows, full.row_scores - self._base_rows, self._quantile
        )

    @property
    def runtime_seconds(self) -> float:
        """Total time: reading, compiling, baseline, all stages, decisions, the last training."""
        return self.run.spent

    @property
    def utility(self) -> float:
        """Worth of the benefit less the cost of the time (equation 3); NaN if benefit is."""
        if math.isnan(self.benefit):
            return NAN
        return self.preferences.utility(self.benefit, self.runtime_seconds)

    @property
    def utility_interval(self) -> tuple[float, float]:
        """95 % interval of the utility on new rows: that of the benefit, less the cost."""
        low, high = self.benefit_interval
        if math.isnan(low):
            return NAN, NAN
        ends = []
        for benefit in (low, high):
            # A user's function may be undefined for an infinite or negative benefit.
            if self.preferences.benefit is not None and not 0.0 <= benefit < math.inf:
                return NAN, NAN
            ends.append(self.preferences.utility(benefit, self.runtime_seconds))
        return ends[0], ends[1]

    def compared_with(self, full: LearningCurveResult) -> LearningCurveResult:
        """Return the same result with benefit and utility relative to a run with ``method="full"``.

        Both runs must have the same rows, the same hold-out and the same ``random_state``.

        Examples
        --------
        >>> import numpy as np, bayes_lcs as bl
        >>> from sklearn.mixture import GaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(4000, 2)) + 4 * rng.integers(3, size=(4000, 1))
        >>> found, full = (
        ...     bl.learning_curve_sample(GaussianMixture(3, random_state=0), X, method=method)
        ...     for method in ("myopic", "full")
        ... )
        >>> known = found.compared_with(full)
        >>> known.benefit_interval[0] <= known.benefit <= known.benefit_interval[1]
        True
        """
        if full.sample_size != full.total_rows or full.total_rows != self.total_rows:
            raise ValueError("the other result must come from full training on all the same rows")
        if (full.holdout_size, full.random_state) != (self.holdout_size, self.random_state):
            raise ValueError(
                "the two results have different hold-outs; use the same holdout_size and "
                "random_state"
            )
        return replace(self, reference=full.run.best)

    # Output --------------------------------------------------------------------------------------

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Table of the stages: measurements, expectations and decisions.

        ``score`` is measured on the hold-out, and ``relative_gain`` is its gain over the baseline
        as a share of the model's. ``assumed_score`` is the estimated score of full training that
        the rule uses: the score, plus the offset of the first stage if stages are truncated.
        """
        import pandas as pd

        rows = []
        for number, stage in enumerate(self.stages, start=1):
            fit, decision = stage.fit, stage.decision
            row: dict[str, Any] = {
                "stage": number,
                "size": fit.size,
                "components": fit.components,
                "mode": fit.mode,
                "score": fit.score,
                "standard_error": mean_error(fit.row_scores),
                "relative_gain": (fit.score - self.baseline_score) / self.gain
                if self.gain > 0
                else NAN,
                "assumed_score": stage.score,
                "iterations": fit.iterations,
                "fit_seconds": fit.fit_seconds,
                "score_seconds": fit.score_seconds,
                "read_seconds": fit.read_seconds,
                "predicted_seconds": stage.predicted_seconds,
                "elapsed_seconds": stage.elapsed,
            }
            if decision is not None:
                row |= {
                    "expected_gain": decision.expected_gain,
                    "largest_gain": decision.largest_gain,
                    "expected_cost": decision.expected_cost,
                    "expected_seconds": decision.expected_seconds,
                    "rule": decision.rule,
                    "stop": decision.stop,
                    "reason": decision.reason,
                }
            rows.append(row)
        return pd.DataFrame(rows)

    def summary(self) -> dict[str, Any]:
        """Return all figures of the result by name, without the model."""
        intervals = {
            f"{name}_{end}": value
            for name in ("score", "gain", "benefit", "utility")
            for end, value in zip(("low", "high"), getattr(self, f"{name}_interval"), strict=True)
        }
        return {
            "method": self.method,
            "abbreviated": self.abbreviated,
            "sample_size": self.sample_size,
            "total_rows": self.total_rows,
            "components": self.components,
            "score": self.score,
            "score_standard_error": self.score_standard_error,
            "baseline_score": self.baseline_score,
            "gain": self.gain,
            "benefit": self.benefit,
            "runtime_seconds": self.runtime_seconds,
            "utility": self.utility,
            **intervals,
            "level": LEVEL,
            "alpha_per_hour": self.preferences.alpha,
            "holdout_size": self.holdout_size,
            "initial_size": self.initial_size,
            "random_state": self.random_state,
            "file_passes": self.reading["passes"],
            "file_rows_read": self.reading["rows"],
            "interrupted": self.interrupted,
            "stop_reason": self.stop_reason,
        }

    def save(self, path: str | PathLike[str]) -> Path:
        """Write figures and curve as JSON, or only the curve as CSV, depending on the extension.

        The model is not written. Numbers that are not finite become null. An existing file is
        replaced.
        """
        target = Path(path)
        if target.suffix not in (".json", ".csv"):
            raise ValueError(f"the file name must end in .json or .csv, got {target.name!r}")

        def write(temporary: Path) -> None:
            if target.suffix == ".csv":
                self.curve.to_csv(temporary, index=False)
                return
            curve = json.loads(self.curve.to_json(orient="records"))
            content = {"result": _nan_to_none(self.summary()), "curve": curve}
            temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", "utf-8")

        return write_atomically(target, write)

    def explain(self) -> str:
        """Return a text with one line per stage, and the units of benefit and time."""
        rows = f"{self.total_rows:,} rows to train on, {self.holdout_size:,} held out"
        scale = (
            "in the decisions, benefit 1 is the best gain so far over the baseline, which has the "
            f"score {self.baseline_score:.6g}; the final gain is {self.gain:.4g}"
            if self.gain > 0.0
            else "benefit is undefined: no model is better than the baseline, which has the score "
            f"{self.baseline_score:.6g}"
        )
        lines = [f"{rows}; α = {rate_text(self.preferences.alpha)}", scale]
        for stage in self.stages:
            reason = "" if stage.decision is None else stage.decision.reason
            lines.append(
                f"{stage.fit.size:>10,} rows: score {stage.fit.score:.6g}, "
                f"{seconds_text(stage.elapsed)} so far; {reason}"
            )
        if self.abbreviated is not None:
            lines += [
                f"{end.size:>10,} rows, full training: score {end.score:.6g}"
                for end in self.run.ends.values()
            ]
        if self._best is not self.run.end:
            lines.append(
                f"the best score is that of {self.sample_size:,} rows, not that of the last stage"
            )
        lines.append(repr(self))
        return "\n".join(lines)

    def __repr__(self) -> str:
        name = self.method if self.abbreviated is None else f"{self.method}, {self.abbreviated}"
        parts = [
            f"LearningCurveResult({name}: {self.sample_size:,} of {self.total_rows:,} rows",
            f"score {_format_error(self.score, self.score_standard_error)}",
            f"gain {_format_interval(self.gain, self.gain_interval)}"
            if self.gain > 0
            else "no gain over the baseline",
        ]
        if not math.isnan(self.benefit):
            parts.append(f"benefit {_format_interval(self.benefit, self.benefit_interval)}")
            parts.append(f"utility {self.utility:.3f}")
        parts.append(seconds_text(self.runtime_seconds))
        if self.interrupted:
            parts.append("interrupted")
        return ", ".join(parts) + ")"


def _ratio_interval(top: RowScores, bottom: RowScores, quantile: float) -> tuple[float, float]:
    """Return Fieller's interval of the ratio of two means over the same rows.

    It contains the ratios ``r`` for which the mean of ``top - r bottom`` is within ``quantile``
    standard errors of zero.
    """
    if top.size < 2:
        return -math.inf, math.inf
    x, y = float(top.mean()), float(bottom.mean())
    xx, xy, _, yy = (quantile**2 / top.size * np.cov(top, bottom)).ravel().tolist()
    a, b, c = y**2 - yy, x * y - xy, x**2 - xx
    if a <= 0:  # the denominator is not significantly different from zero
        return -math.inf, math.inf
    half = math.sqrt(max(b**2 - a * c, 0.0)) / a
    return b / a - half, b / a + half


def _format_error(value: float, error: float) -> str:
    return f"{value:.5g}" if math.isnan(error) else f"{value:.5g} ± {error:.2g}"


def _format_interval(value: float, interval: tuple[float, float]) -> str:
    low, high = interval
    if math.isnan(low) or low == high:
        return f"{value:.4g}"
    return f"{value:.4g} ({low:.4g} to {high:.4g})"


def _nan_to_none(figures: dict[str, Any]) -> dict[str, Any]:
    """Replace numbers that are not finite, which JSON cannot represent, by None."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in figures.items()
    }
