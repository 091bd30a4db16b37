"""Simulated tables with known parameters; shared by the ``simulate`` methods of all models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.models.base import NaiveBayesPrior

__all__ = [
    "Simulation",
    "Truth",
    "check_simulation",
    "draw_cells",
    "draw_crp",
    "draw_feature_prior",
    "draw_labels",
    "draw_number",
    "draw_table",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Truth(NamedTuple):
    """Parameters from which rows were drawn; None for parameters that the model does not have.

    Attributes
    ----------
    phi : (U, L)
        Label probabilities of each group.
    theta : (U, L, C)
        Feature probabilities of each group on the flat cell axis.
    partition : (U,)
        Cluster of each group; groups of one cluster share their ``theta``.
    feature_prior : (L, C)
        Dirichlet parameters of the features, drawn if they are learned.
    concentration
        Concentration of the Chinese restaurant process, drawn if it is learned.
    prototype : (L, C)
        Prototypical feature probabilities.
    strength : (L, F)
        Strength of the prototype: the larger, the closer the groups follow it.
    """

    phi: FloatArray
    theta: FloatArray
    partition: IntArray
    feature_prior: FloatArray
    concentration: float | None = None
    prototype: FloatArray | None = None
    strength: FloatArray | None = None


class Simulation(NamedTuple):
    """Simulated table and the parameters from which it was drawn."""

    table: GroupedTable
    truth: Truth


def draw_number(rng: np.random.Generator, spec: float | Gamma) -> float:
    """Return the hyper-parameter itself if it is a number, or a draw from its Gamma prior."""
    if not isinstance(spec, Gamma):
        return float(spec)
    return max(float(rng.gamma(spec.shape, 1.0 / spec.rate)), float(np.finfo(np.float64).tiny))


def draw_feature_prior(
    rng: np.random.Generator, model: NaiveBayesPrior, schema: Schema
) -> FloatArray:
    """Return Dirichlet parameters ``(L, C)``: as given, or all equal to one Gamma draw."""
    if isinstance(model.feature_prior, Gamma):
        value = draw_number(rng, model.feature_prior)
        return np.full((schema.num_labels, schema.num_cells), value)
    return model.feature_parameters(schema)


def draw_cells(rng: np.random.Generator, schema: Schema, prior: FloatArray) -> FloatArray:
    """Draw from a Dirichlet within each feature of the flat cell axis; ``(..., C)``.

    Gamma variates are drawn in logs by ``Gamma(a) = Gamma(a + 1) * uniform^(1/a)``, so that
    parameters far below one, as of a weak prototype, do not underflow to 0/0.
    """
    a = np.maximum(prior, np.finfo(np.float64).tiny)
    uniform = 1.0 - rng.random(a.shape)
    with np.errstate(over="ignore"):
        logs = np.log(rng.standard_gamma(a + 1.0)) + np.maximum(np.log(uniform) / a, -1e300)
    if schema.num_features:
        top = np.maximum.reduceat(logs, schema.offsets[:-1], axis=-1)
        logs = logs - top[..., schema.cell_feature]
    weights = np.exp(logs)
    result: FloatArray = weights / schema.sum_values(weights)[..., schema.cell_feature]
    return result


def draw_labels(rng: np.random.Generator, prior: FloatArray, num_groups: int) -> FloatArray:
    """Draw label probabilities ``(U, L)`` of ``num_groups`` groups from ``Dirichlet(prior)``."""
    return draw_cells(rng, Schema(1, prior.shape), np.broadcast_to(prior, (num_groups, len(prior))))


def draw_crp(
    rng: np.random.Generator, concentration: float, num_groups: int, num_draws: int | None = None
) -> IntArray:
    """Draw partitions from the Chinese restaurant process, in first-occurrence form.

    Group ``u`` (from 0) opens a cluster with probability ``a / (a + u)`` and otherwise joins the
    cluster of an earlier group chosen uniformly, which equals choosing a cluster by its size.
    The pointers to earlier groups are followed to the group that opened the cluster by pointer
    doubling.

    Returns
    -------
    (U,), or (num_draws, U)

    Examples
    --------
    >>> draw_crp(np.random.default_rng(0), 1.0, 6, 2).tolist()
    [[0, 1, 2, 3, 3, 2], [0, 0, 0, 0, 0, 1]]
    """
    shape = (1 if num_draws is None else num_draws, num_groups)
    order = np.arange(num_groups)
    opens = rng.random(shape) * (concentration + order) < concentration
    opens[:, :1] = True
    earlier = np.minimum((rng.random(shape) * order).astype(np.int64), np.maximum(order - 1, 0))
    leader = np.where(opens, order, earlier)
    # Each iteration doubles the number of pointers followed, until all point to an opener.
    while True:
        further = np.take_along_axis(leader, leader, axis=1)
        if np.array_equal(further, leader):
            break
        leader = further
    numbered = np.cumsum(opens, axis=1) - 1
    partition = np.take_along_axis(numbered, leader, axis=1).astype(np.int64)
    return partition[0] if num_draws is None else partition


def draw_table(
    rng: np.random.Generator,
    schema: Schema,
    group_sizes: Sequence[int] | IntArray,
    phi: FloatArray,
    theta: FloatArray,
    *,
    missing: float,
    missing_labels: float,
) -> GroupedTable:
    """Draw rows given ``phi`` ``(U, L)`` and ``theta`` ``(U, L, C)``, and remove cells and labels.

    Cells and labels are removed completely at random. The table keeps the whole schema, including
    values that occur in no row.
    """
    groups = np.repeat(np.arange(len(phi)), group_sizes)
    labels = _draw_categorical(rng, phi[groups])
    features = np.empty((len(groups), schema.num_features), dtype=np.int64)
    for feature in range(schema.num_features):
        probabilities = theta[groups, labels, schema.cells_of(feature)]
        features[:, feature] = _draw_categorical(rng, probabilities)
    features[rng.random(features.shape) < missing] = -1
    labels[rng.random(labels.shape) < missing_labels] = -1
    return GroupedTable.from_arrays(
        features,
        labels,
        groups,
        num_values=schema.num_values,
        num_labels=schema.num_labels,
        num_groups=len(phi),
    )


def check_simulation(
    group_sizes: Sequence[int] | IntArray, missing: float, missing_labels: float
) -> IntArray:
    """Check the arguments of ``simulate`` and return the group sizes as an array."""
    sizes = np.asarray(group_sizes)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(
            "group_sizes must list the number of rows of each group, for example [100, 50]; "
            f"got {group_sizes!r}"
        )
    for name, share in (("missing", missing), ("missing_labels", missing_labels)):
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must be a share between 0 and 1, got {share}")
    return sizes.astype(np.int64)


def _draw_categorical(rng: np.random.Generator, probabilities: FloatArray) -> IntArray:
    """Draw one value per row from probabilities ``(N, V)``."""
    upper = np.cumsum(probabilities, axis=1)
    codes = (rng.random((len(probabilities), 1)) * upper[:, -1:] >= upper).sum(axis=1)
    result: IntArray = np.minimum(codes, probabilities.shape[1] - 1).astype(np.int64)
    return result
