"""Row-level part of the NumPyro models: likelihood of labels and features given the parameters.

The models differ in the priors of ``phi`` and ``theta``. Given these, labels and features are
drawn, or conditioned on, in the same way. JAX is only imported inside the functions, so that a
model can be constructed without it.

Sites: ``label`` and ``x_0 .. x_{F-1}`` in the plate ``rows``. Missing values do not contribute to
the density: a missing feature (-1) is masked, and a missing label (-1) is summed out by the factor
``unlabelled``, so that NUTS needs no enumeration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayes_lcs.models.base import NaiveBayesPrior

__all__ = [
    "RowArguments",
    "check_rows",
    "log_row_terms",
    "sample_feature_prior",
    "sample_row_labels",
    "sample_rows",
    "sample_simplex",
]

IntArray = NDArray[np.int64]
Array = Any
"""A jax.Array; JAX is not imported here."""


class RowArguments(NamedTuple):
    """Validated arguments of a NumPyro model.

    Attributes
    ----------
    groups : (N,)
        Group of each row.
    num_groups
        Number of groups ``U``.
    features : (N, F), or None
        Codes, -1 missing; None means that the features are drawn.
    labels : (N,), or None
        Codes, -1 missing; None means that the labels are drawn as well.
    """

    groups: IntArray
    num_groups: int
    features: IntArray | None
    labels: IntArray | None


def check_rows(
    schema: Schema, groups: ArrayLike, features: ArrayLike | None, labels: ArrayLike | None
) -> RowArguments:
    """Check the arguments of a NumPyro model; features without labels have latent labels."""
    group = np.asarray(groups, dtype=np.int64)
    rows = len(group)
    x = None if features is None else np.asarray(features, dtype=np.int64)
    y = None if labels is None else np.asarray(labels, dtype=np.int64)
    if x is not None and x.shape != (rows, schema.num_features):
        raise ValueError(f"features have shape {x.shape}, not {(rows, schema.num_features)}")
    if y is not None and y.shape != (rows,):
        raise ValueError(f"labels have shape {y.shape}, not ({rows},)")
    if x is not None and y is None:
        y = np.full(rows, -1)
    if x is None and y is not None and (y < 0).any():
        raise ValueError("to draw features, give all labels or none: some are missing (-1)")
    return RowArguments(group, int(group.max(initial=-1)) + 1, x, y)


def sample_simplex(name: str, prior: Array, batch_shape: tuple[int, ...] = ()) -> Array:
    """Add a Dirichlet site in plates of the given shape; a single value is deterministic."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    if prior.shape[-1] == 1:
        return numpyro.deterministic(name, jnp.ones((*batch_shape, 1)))
    # Strength times a small probability may underflow, but Dirichlet parameters must be positive.
    positive = jnp.maximum(prior, np.finfo(np.float32).tiny)
    return numpyro.sample(name, dist.Dirichlet(positive))


def sample_feature_prior(model: NaiveBayesPrior, schema: Schema) -> list[Array]:
    """Return ``beta`` of each feature, ``(L, V_f)``; with a Gamma prior, add one site ``beta``."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    learned = model.feature_prior
    if isinstance(learned, Gamma):
        beta = numpyro.sample("beta", dist.Gamma(learned.shape, learned.rate))
        return [beta * jnp.ones((schema.num_labels, size)) for size in schema.num_values]
    prior = model.feature_parameters(schema)
    return [jnp.asarray(prior[:, schema.cells_of(f)]) for f in range(schema.num_features)]


def sample_rows(rows: RowArguments, phi: Array, theta: Sequence[Array], source: IntArray) -> None:
    """Draw the rows or condition on them.

    Parameters
    ----------
    phi : (S, L)
        Label probabilities of each source.
    theta : F arrays (S, L, V_f)
        Feature probabilities of each source.
    source : (N,)
        Source of each row: its group, or 0 if all groups share one.
    """
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    with numpyro.plate("rows", len(rows.groups)):
        labels = sample_row_labels(rows, phi[source])
        if rows.features is None:
            for f, table in enumerate(theta):
                numpyro.sample(f"x_{f}", dist.Categorical(probs=table[source, labels]))
            return
        known = np.asarray(rows.labels) >= 0
        for f, table in enumerate(theta):
            codes = rows.features[:, f]
            with numpyro.handlers.mask(mask=known & (codes >= 0)):
                numpyro.sample(
                    f"x_{f}",
                    dist.Categorical(probs=table[source, labels]),
                    obs=np.maximum(codes, 0),
                )
        if not known.all():
            terms = jnp.log(phi) + log_row_terms(rows.features, theta)
            own = terms[np.arange(len(known)), source]
            numpyro.factor(
                "unlabelled", jnp.where(known, 0.0, jax.scipy.special.logsumexp(own, axis=-1))
            )


def sample_row_labels(rows: RowArguments, phi: Array) -> Array:
    """Add the site ``label`` of each row given ``phi`` ``(N, L)``; a missing label becomes 0."""
    import numpyro
    import numpyro.distributions as dist

    distribution = dist.Categorical(probs=phi)
    if rows.labels is None:
        return numpyro.sample("label", distribution)
    with numpyro.handlers.mask(mask=rows.labels >= 0):
        return numpyro.sample("label", distribution, obs=np.maximum(rows.labels, 0))


def log_row_terms(features: IntArray, theta: Sequence[Array]) -> Array:
    """Return ``sum_f log theta_{s,y,f,x_f}`` of each row, source and label; ``(N, S, L)``."""
    import jax.numpy as jnp

    total = jnp.zeros((len(features), 1, 1))
    for f, table in enumerate(theta):
        codes = features[:, f]
        values = jnp.moveaxis(jnp.log(table)[:, :, np.maximum(codes, 0)], -1, 0)
        total = total + jnp.where((codes >= 0)[:, None, None], values, 0.0)
    return total
