"""Learning curves at several convergence thresholds, made once for Figures 2 and 3."""

from __future__ import annotations

from functools import cache

import pandas as pd

from experiments.learning_curve.convergence import convergence_curves
from experiments.learning_curve.setting import Setting, load, make_estimator

THRESHOLDS = (1e-2, 1e-3, 1e-4, 1e-5)


@cache
def curves(setting: Setting) -> pd.DataFrame:
    """Score and iterations by data set, threshold and size."""
    found = []
    for name in setting.data_sets:
        data = load(name, setting.scale, setting.seed)
        frame = convergence_curves(
            make_estimator(setting.components, setting.seed),
            data,
            thresholds=THRESHOLDS,
            initial_size=setting.initial_size(name, data.shape[0]),
            holdout_size=setting.holdout_size(data.shape[0]),
            random_state=setting.seed,
            progress=False,
            clock=setting.ticker(),
        )
        found.append(frame.assign(data=name))
    return pd.concat(found, ignore_index=True)
