"""Stepwise EM: parameters are updated with every batch of rows (Cappé and Moulines 2009).

The mean statistics of a row are a moving average, ``s <- (1 - g_t) s + g_t s(batch)`` with
``g_t = (t + 2)^-decay`` (their eq. 14, with the step of Liang and Klein 2009). The parameters are
the M-step at ``s`` times the weight of all rows so far, so that the influence of a prior decreases.
For ``1/2 < decay <= 1`` this converges to a stationary point of the likelihood of infinitely many
rows.
"""

from __future__ import annotations

from typing import NamedTuple

from bayes_lcs.core.model_protocols import MixtureModel, MixtureParameters, MixtureStatistics

__all__ = ["StepwiseState", "stepwise_init", "stepwise_step"]


class StepwiseState(NamedTuple):
    """Mean statistics of a row, the weight of the rows seen, and the number of batches."""

    mean: MixtureStatistics
    weight: float
    num_batches: int


def stepwise_init(statistics: MixtureStatistics, weight: float) -> StepwiseState:
    """Return the state after a first batch."""
    return StepwiseState(_scale(statistics, 1.0 / weight), weight, 1)


def stepwise_step(
    model: MixtureModel,
    state: StepwiseState,
    statistics: MixtureStatistics,
    weight: float,
    decay: float,
) -> tuple[StepwiseState, MixtureParameters]:
    """Update state and parameters with the statistics of one more batch at the parameters."""
    gain = (state.num_batches + 2.0) ** -decay
    old, new = _scale(state.mean, 1.0 - gain), _scale(statistics, gain / weight)
    mean = MixtureStatistics(
        old.components + new.components,
        old.cells + new.cells,
        old.log_likelihood + new.log_likelihood,
    )
    state = StepwiseState(mean, state.weight + weight, state.num_batches + 1)
    return state, model.update(_scale(mean, state.weight))


def _scale(statistics: MixtureStatistics, factor: float) -> MixtureStatistics:
    return MixtureStatistics(
        statistics.components * factor,
        statistics.cells * factor,
        statistics.log_likelihood * factor,
    )
