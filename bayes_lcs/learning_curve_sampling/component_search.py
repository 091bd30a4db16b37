"""The number of components, chosen together with the sample size.

Beyond the paper, which fixes it. More rows carry more clusters, so the question is put again at
every stage: after training with the number at hand the next larger one is tried on the same sample,
and taken if what it adds on the hold-out is worth more than the time by which its runs are longer;
then the next. Runs cut short cannot tell numbers of components apart (after one step of EM all are
nearly one cluster), so full training is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bayes_lcs.learning_curve_sampling.training_run import Fit, Trainer
from bayes_lcs.learning_curve_sampling.utility import Preferences

__all__ = ["ComponentSearch"]


class ComponentSearch:
    """Climbs a ladder of numbers of components as the sample grows.

    Parameters
    ----------
    ladder
        Numbers of components to consider, in growing order.
    """

    def __init__(self, ladder: Sequence[int]) -> None:
        self.ladder = tuple(int(k) for k in ladder)
        if not self.ladder or list(self.ladder) != sorted(set(self.ladder)) or self.ladder[0] < 1:
            raise ValueError(f"components must be growing numbers from 1 up, got {list(ladder)}")
        self._place = 0

    def stage(
        self, trainer: Trainer, size: int, base: float, preferences: Preferences
    ) -> tuple[Fit, list[Fit]]:
        """The run that is kept at this size, and all runs that were made."""
        best = trainer.fit(size, "full", components=self.ladder[self._place])
        tried = [best]
        while not best.interrupted and self._place + 1 < len(self.ladder):
            larger = trainer.fit(size, "full", components=self.ladder[self._place + 1])
            tried.append(larger)
            if larger.interrupted:
                return replace(best, interrupted=True), tried
            if not _pays(best, larger, base, preferences):
                break
            best, self._place = larger, self._place + 1
        return best, tried


def _pays(smaller: Fit, larger: Fit, base: float, preferences: Preferences) -> bool:
    """Whether more components add more benefit than their longer run costs."""
    gain = larger.score - smaller.score
    scale = max(larger.score, smaller.score) - base
    if scale <= 0:
        return gain > 0
    longer = preferences.price(larger.seconds) - preferences.price(smaller.seconds)
    return gain / scale > max(longer, 0.0)
