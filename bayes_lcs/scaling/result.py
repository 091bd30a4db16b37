"""What learning-curve sampling found, and how."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.data.storage import write_atomically
from bayes_lcs.scaling.controller import Run, Stage
from bayes_lcs.scaling.forecast import forecast
from bayes_lcs.scaling.rates import rate_text, seconds_text
from bayes_lcs.scaling.stages import Fit
from bayes_lcs.scaling.utility import Preferences, relative_benefit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LearningCurveResult"]


@dataclass(frozen=True)
class LearningCurveResult:
    """The sample size chosen, the model, and the curve that led there.

    Benefit is relative to full training on all rows, which was spared: unless that is known
    (``reference``), benefit, utility and speedup are estimates from the fitted curve and the
    measured costs, and say so.

    Attributes
    ----------
    run
        Stages, decisions and every training run.
    preferences
        Benefit and cost.
    method, abbreviated
        The rule, and how stages were cut short.
    total_rows, holdout_size
        Rows there were to train on, and rows held out.
    random_state
        Seed of the order of the rows.
    reading
        Passes over files and rows read.
    reference
        Score and seconds of full training on all rows, if known.
    """

    run: Run
    preferences: Preferences
    method: str
    abbreviated: str | None
    total_rows: int
    holdout_size: int
    random_state: int
    reading: dict[str, int]
    reference: tuple[float, float] | None = None

    # What was chosen ---------------------------------------------------------------------------

    @property
    def _final(self) -> Fit:
        assert self.run.final is not None
        return self.run.final

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self._final.model

    @property
    def sample_size(self) -> int:
        """The number of rows chosen, ``N_lc``."""
        return self._final.size

    @property
    def initial_size(self) -> int:
        """The number of rows of the first sample."""
        return self.stages[0].fit.size

    @property
    def components(self) -> int | None:
        """The number of components, if it was chosen too."""
        return self._final.components

    @property
    def score(self) -> float:
        """The model's score on the hold-out."""
        return self._final.score

    @property
    def baseline_score(self) -> float:
        """The baseline's score on the hold-out."""
        return self.run.base

    @property
    def stages(self) -> list[Stage]:
        """The stages, in order."""
        return self.run.stages

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return bool(self.run.interrupted)

    @property
    def stop_reason(self) -> str:
        """Why it ended, in a sentence."""
        if self.run.interrupted:
            return self.run.interrupted
        decision = self.stages[-1].decision
        return "" if decision is None else decision.reason

    # The scale of benefit ----------------------------------------------------------------------

    @property
    def is_estimate(self) -> bool:
        """Whether the score of full training on all rows is estimated."""
        return self.reference is None and not self._all_rows

    @property
    def _all_rows(self) -> bool:
        return self.sample_size == self.total_rows and self._final.mode != "abbreviated"

    @cached_property
    def full_score(self) -> tuple[float, float]:
        """Score of full training on all rows, with its standard deviation; NaN if unknown."""
        if self.reference is not None:
            return self.reference[0], 0.0
        if self._all_rows:
            return self.score, 0.0
        sizes = [stage.fit.size for stage in self.stages]
        scores = [stage.score for stage in self.stages]
        if max(scores) <= self.baseline_score:
            return float("nan"), float("nan")
        ahead = forecast(sizes, scores, self.baseline_score, [], self.total_rows)
        return ahead.mean_and_sd(self.total_rows)

    @property
    def benefit(self) -> float:
        """Benefit relative to full training on all rows (equation 1); NaN if that adds nothing."""
        return self._benefit_if(self.full_score[0])

    def _benefit_if(self, full: float) -> float:
        base = self.baseline_score
        return float("nan") if full == base else relative_benefit(self.score, base, full)

    @property
    def benefit_interval(self) -> tuple[float, float]:
        """Benefit if full training scored two standard deviations more, or less, than estimated."""
        score, sd = self.full_score
        ends = (score + 2 * sd, score - 2 * sd)
        low, high = (self._benefit_if(end) for end in ends)
        return low, high

    # Time ----------------------------------------------------------------------------------------

    @property
    def runtime_seconds(self) -> float:
        """All seconds: reading, baseline, every stage, deciding, and the last training."""
        return self.run.spent

    @property
    def utility(self) -> float:
        """Worth of the benefit less the cost of the time (equation 3)."""
        return self.preferences.utility(self.benefit, self.runtime_seconds)

    @property
    def full_seconds(self) -> float:
        """Seconds of full training on all rows: measured, or by the cost model."""
        if self.reference is not None:
            return self.reference[1]
        return self._training_seconds(self.total_rows)

    @property
    def speedup(self) -> float:
        """Seconds of full training on all rows over those of this run."""
        return self.full_seconds / self.runtime_seconds

    @property
    def overhead(self) -> float:
        """Seconds of this run over those of full training on the rows chosen alone."""
        return self.runtime_seconds / self._training_seconds(self.sample_size)

    def _training_seconds(self, size: int) -> float:
        """Full training on so many rows from the start: as measured, or by the cost model."""
        own = self.components
        full = [fit for fit in self.run.fits if fit.mode == "full" and fit.components == own]
        for fit in full:
            if fit.size == size:
                return fit.seconds
        iterations = sum(fit.iterations for fit in full) / len(full)
        return self.run.cost.seconds(size, iterations, own)

    def compared_with(self, full: LearningCurveResult) -> LearningCurveResult:
        """The same result with benefit and speedup against a run with ``method="full"``."""
        if full.sample_size != full.total_rows or full.total_rows != self.total_rows:
            raise ValueError("the other result must come from full training on all the same rows")
        return replace(self, reference=(full.score, full.runtime_seconds))

    # Showing and keeping -------------------------------------------------------------------------

    @cached_property
    def curve(self) -> pd.DataFrame:
        """One row a stage: scores, times, and what was expected and decided after it."""
        import pandas as pd

        full = self.full_score[0]
        rows = []
        for number, stage in enumerate(self.stages, start=1):
            fit, decision = stage.fit, stage.decision
            scale = full - self.baseline_score  # zero where all rows are alike, or not known
            benefit = (stage.score - self.baseline_score) / scale if scale else float("nan")
            row: dict[str, Any] = {
                "stage": number,
                "size": fit.size,
                "components": fit.components,
                "mode": fit.mode,
                "score": stage.score,
                "measured_score": fit.score,
                "benefit": benefit,
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
                    "expected_cost": decision.expected_cost,
                    "expected_seconds": decision.expected_seconds,
                    "rule": decision.rule,
                    "stop": decision.stop,
                    "reason": decision.reason,
                }
            rows.append(row)
        return pd.DataFrame(rows)

    def summary(self) -> dict[str, Any]:
        """All figures of the result by name, without the model."""
        low, high = self.benefit_interval
        return {
            "method": self.method,
            "abbreviated": self.abbreviated,
            "sample_size": self.sample_size,
            "total_rows": self.total_rows,
            "components": self.components,
            "score": self.score,
            "baseline_score": self.baseline_score,
            "full_score": self.full_score[0],
            "full_score_sd": self.full_score[1],
            "benefit": self.benefit,
            "benefit_low": low,
            "benefit_high": high,
            "runtime_seconds": self.runtime_seconds,
            "utility": self.utility,
            "speedup": self.speedup,
            "overhead": self.overhead,
            "estimated": self.is_estimate,
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
        """Write figures and curve as JSON, or the curve alone as CSV; the model is not in it.

        Which of the two, the ending of the name says.
        """
        target = Path(path)
        if target.suffix not in (".json", ".csv"):
            raise ValueError(f"the name must end in .json or .csv, got {target.name!r}")

        def write(temporary: Path) -> None:
            if target.suffix == ".csv":
                self.curve.to_csv(temporary, index=False)
                return
            curve = json.loads(self.curve.to_json(orient="records"))
            content = {"result": _without_nan(self.summary()), "curve": curve}
            temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", "utf-8")

        return write_atomically(target, write)

    def explain(self) -> str:
        """The course of the run, a line a stage, and both scales."""
        scale = self.full_score[0] - self.baseline_score
        end = f"{self.full_score[0]:.6g} (all rows{', estimated' if self.is_estimate else ''})"
        rows = f"{self.total_rows:,} rows to train on, {self.holdout_size:,} held out"
        of_benefit = (
            f"benefit 1 is {scale:.4g} of score, from {self.baseline_score:.6g} (base) to {end}"
            if scale > 0.0
            else "benefit means nothing here: no model is better than the base, which scores "
            f"{self.baseline_score:.6g}"
        )
        lines = [f"{rows}; α = {rate_text(self.preferences.alpha)}", of_benefit]
        for stage in self.stages:
            reason = "" if stage.decision is None else stage.decision.reason
            lines.append(
                f"{stage.fit.size:>10,} rows: score {stage.score:.6g}, "
                f"{seconds_text(stage.elapsed)} so far; {reason}"
            )
        lines.append(repr(self))
        return "\n".join(lines)

    def __repr__(self) -> str:
        about = "about " if self.is_estimate else ""
        is_better = self.full_score[0] > self.baseline_score
        benefit = f"{about}{self.benefit:.3f}, " if is_better else "none above the base, "
        utility = f"utility {about}{self.utility:.3f}, " if is_better else ""
        name = self.method if self.abbreviated is None else f"{self.method}, {self.abbreviated}"
        text = (
            f"LearningCurveResult({name}: {self.sample_size:,} of {self.total_rows:,} rows, "
            f"benefit {benefit}{seconds_text(self.runtime_seconds)}, "
            f"{utility}speedup {about}{self.speedup:.1f}"
        )
        return f"{text}, interrupted)" if self.interrupted else f"{text})"


def _without_nan(figures: dict[str, Any]) -> dict[str, Any]:
    return {key: None if value != value else value for key, value in figures.items()}
