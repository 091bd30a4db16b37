"""The posterior of each model on a setting: exact up to 21 groups, else draws."""

from __future__ import annotations

from typing import Any

import bayes_lcs as bl
from bayes_lcs.inference.condition import condition
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from experiments.clustered_naive_bayes.setting import NUM_GROUPS, Setting


def posterior(model: Any, setting: Setting) -> bl.ExactPosterior | PosteriorDraws:
    """The model given the setting's data."""
    small = setting.data.num_groups <= NUM_GROUPS
    return condition(
        model,
        setting.data,
        method="exact" if small and not isinstance(model, bl.Prototype) else "auto",
        draws=100 if setting.smoke else 1000,
        chains=2,
        seed=setting.seed,
        progress=False,
    )
