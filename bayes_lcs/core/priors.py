"""Hyper-parameters as users give them (numbers, arrays or a Gamma prior), resolved to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.dirichlet import log_gamma_density
from bayes_lcs.core.schema import Schema

__all__ = [
    "Gamma",
    "fixed_value",
    "freeze",
    "resolve_feature_prior",
    "resolve_label_prior",
    "validate_prior",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Gamma:
    """Gamma prior (shape, rate) of a hyper-parameter that is learned instead of fixed.

    Examples
    --------
    >>> Gamma(2.0, 4.0).mean
    0.5
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("rate", self.rate)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"Gamma {name} must be positive and finite, got {value}")

    @property
    def mean(self) -> float:
        """Prior mean, the initial value of samplers."""
        return self.shape / self.rate

    def log_density(self, x: float | FloatArray) -> FloatArray:
        """Return the log prior density at ``x``."""
        return log_gamma_density(x, self.shape, self.rate)

    def log_density_of_log(self, t: FloatArray) -> FloatArray:
        """Return the log density of ``t = log x``, with Jacobian; valid where ``exp(t)`` is 0."""
        constant = log_gamma_density(1.0, self.shape, self.rate) + self.rate
        result: FloatArray = constant + self.shape * t - self.rate * np.exp(t)
        return result


def freeze(spec: Any) -> Any:
    """Convert arrays in a hyper-parameter to nested tuples, so that models compare and hash."""
    if isinstance(spec, Gamma) or np.isscalar(spec):
        return spec
    if isinstance(spec, np.ndarray):
        return freeze(spec.tolist())
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        return tuple(freeze(item) for item in spec)
    raise TypeError(
        "a prior must be a number, an array, a list with one entry per feature or a Gamma; "
        f"got {spec!r}"
    )


def validate_prior(spec: Any, name: str, *, learnable: bool = False) -> Any:
    """Check a hyper-parameter when a model is constructed, and return it as nested tuples.

    Every number must be positive and finite. The ``resolve_*`` functions check the shape later,
    when the schema of the data is known.

    Examples
    --------
    >>> validate_prior([1, [0.5, 0.5]], "feature_prior")
    (1.0, (0.5, 0.5))
    >>> validate_prior(0, "label_prior")
    Traceback (most recent call last):
        ...
    ValueError: label_prior must be positive and finite, got 0
    """
    if isinstance(spec, Gamma):
        if not learnable:
            raise TypeError(f"{name} cannot be learned: give numbers instead of {spec}")
        return spec

    def check(item: Any) -> Any:
        if isinstance(item, tuple):
            return tuple(check(part) for part in item)
        if isinstance(item, bool | np.bool) or not isinstance(item, Real):
            raise TypeError(f"{name} must consist of numbers, got {item!r}")
        value = float(item)
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive and finite, got {item}")
        return value

    return check(freeze(spec))


def fixed_value(spec: float | Gamma, name: str) -> float:
    """Return the number in ``spec``; raise an error if it is a Gamma prior."""
    if isinstance(spec, Gamma):
        raise ValueError(
            f"{name} has a Gamma prior, but this computation needs a fixed value; "
            f"use a model with {name}=<number>, for example {name}={spec.mean:g}"
        )
    return float(spec)


def _positive(values: FloatArray, name: str) -> FloatArray:
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{name} must be positive and finite everywhere")
    return values


def resolve_label_prior(spec: Any, schema: Schema) -> FloatArray:
    """Return Dirichlet parameters of the labels, ``(L,)``, from one number or one per label."""
    values = np.asarray(spec, dtype=np.float64)
    if values.shape not in {(), (schema.num_labels,)}:
        raise ValueError(
            f"label_prior has shape {values.shape}; give one number, or one for each of the "
            f"{schema.num_labels} labels"
        )
    return _positive(np.broadcast_to(values, (schema.num_labels,)).copy(), "label_prior")


def resolve_feature_prior(spec: Any, schema: Schema) -> FloatArray:
    """Return Dirichlet parameters ``beta_{y,f,x}`` on the flat cell axis, ``(L, C)``.

    ``spec`` is one number; a sequence with one entry per feature, each a number, an array of
    ``V_f`` numbers or an array ``(L, V_f)``; or an array of shape ``(L, C)``.
    """
    if isinstance(spec, Gamma):
        fixed_value(spec, "feature_prior")
    shape = (schema.num_labels, schema.num_cells)
    if np.isscalar(spec):
        return _positive(np.full(shape, float(spec)), "feature_prior")  # type: ignore[arg-type]
    try:
        flat = np.asarray(spec, dtype=np.float64)
    except ValueError:
        flat = None
    if flat is not None and flat.shape == shape:
        return _positive(flat.copy(), "feature_prior")
    if len(spec) != schema.num_features:
        raise ValueError(
            f"feature_prior has {len(spec)} entries; give one number, an array of shape {shape}, "
            f"or one entry for each of the {schema.num_features} features"
        )
    prior = np.empty(shape)
    for feature, entry in enumerate(spec):
        values = np.asarray(entry, dtype=np.float64)
        num_values = schema.num_values[feature]
        if values.shape not in {(), (num_values,), (schema.num_labels, num_values)}:
            raise ValueError(
                f"feature_prior of feature {feature} has shape {values.shape}; it may be one "
                f"number, {num_values} numbers, or shape ({schema.num_labels}, {num_values})"
            )
        prior[:, schema.cells_of(feature)] = values
    return _positive(prior, "feature_prior")
