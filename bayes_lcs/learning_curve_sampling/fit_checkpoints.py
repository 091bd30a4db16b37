"""Training runs as plain arrays, to be written down with a checkpoint, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayes_lcs.learning_curve_sampling.training_run import Fit
from bayes_lcs.runtime.checkpoints import Arrays
from bayes_lcs.runtime.estimator_io import model_arrays, model_from_arrays

__all__ = ["fit_arrays", "fit_from_arrays"]

_NUMBERS = ("score", "iterations", "fit_seconds", "score_seconds", "read_seconds")


def fit_arrays(fit: Fit) -> Arrays:
    """A run and its model; without its model if that cannot be kept."""
    rows = {} if fit.row_scores is None else {"row_scores": fit.row_scores}
    return {
        **(model_arrays(fit.model) or {}),
        **rows,
        "size": np.asarray(fit.size),
        "mode": np.asarray(fit.mode),
        "components": np.asarray(-1 if fit.components is None else fit.components),
        "numbers": np.asarray([getattr(fit, name) for name in _NUMBERS]),
    }


def fit_from_arrays(written: Arrays, like: Any) -> Fit | None:
    """The run that `fit_arrays` wrote, with a model of the class of ``like``; None without one."""
    if "model" not in written:
        return None
    components = int(written["components"])
    mode: Any = str(written["mode"])
    return Fit(
        int(written["size"]),
        mode,
        **dict(zip(_NUMBERS, written["numbers"].tolist(), strict=True)),
        components=None if components < 0 else components,
        model=model_from_arrays(written, like),
        row_scores=written.get("row_scores"),
    )
