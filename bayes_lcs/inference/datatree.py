"""Convert posteriors to ArviZ trees; the only module that calls ``arviz_base``.

The groups are ``posterior``, ``sample_stats``, ``observed_data`` and ``constant_data``. Partitions
are ``z(chain, draw, group)`` as first-occurrence labels in uint16, or uint32 beyond 65,536 groups.
Attributes are strings (JSON). ``arviz_stats`` is called on plain arrays, in
:mod:`bayes_lcs.inference.diagnostics`.
"""

from __future__ import annotations

import json
import platform
import warnings
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs._version import __version__
from bayes_lcs.data.counts_table import CountedTable
from bayes_lcs.inference.diagnostics import diagnose as diagnose_arrays
from bayes_lcs.inference.exact.posterior import ExactPosterior
from bayes_lcs.inference.serialization import model_to_json, table_to_json

if TYPE_CHECKING:
    import xarray as xr

    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.posterior_draws import PosteriorDraws

__all__ = ["diagnose", "draws_datatree", "exact_datatree"]

_LIBRARIES = ("jax", "numpyro", "numpy", "scipy", "arviz-base")


def _provenance(model: Any, data: GroupedTable, method: str, seed: int) -> dict[str, str]:
    """Return the provenance of a result as strings: model, data hash, seed, method, versions."""
    versions = {"bayes_lcs": __version__, "python": platform.python_version()}
    versions.update({name: version(name) for name in _LIBRARIES})
    return {
        "model": model_to_json(model),
        "table": table_to_json(data),
        "data_sha256": data.content_hash(),
        "seed": str(seed),
        "method": method,
        "versions": json.dumps(versions),
    }


def _tree(
    data: GroupedTable,
    posterior: dict[str, NDArray],
    sample_stats: dict[str, NDArray],
    constant_data: dict[str, NDArray],
    attributes: dict[str, str],
) -> xr.DataTree:
    import arviz_base

    counted = data.arrays() if isinstance(data, CountedTable) else {}
    with warnings.catch_warnings():
        # ArviZ warns if there are more chains than draws, which is intended here.
        warnings.filterwarnings("ignore", message="Found chain dimension")
        return arviz_base.from_dict(
            {
                "posterior": posterior,
                "sample_stats": sample_stats,
                "observed_data": {"label": data.labels, "value": data.features},
                "constant_data": {"group_of_row": data.groups, **counted, **constant_data},
            },
            coords={
                "group": list(data.group_names),
                "other_group": list(data.group_names),
                "feature": list(data.feature_names),
                "label_value": list(data.label_values),
                "cell": [
                    f"{name}={value}"
                    for name, values in zip(data.feature_names, data.values, strict=True)
                    for value in values
                ],
            },
            dims={
                "z": ["group"],
                "prototype": ["label_value", "cell"],
                "strength": ["label_value", "feature"],
                "latent_label": ["latent_row"],
                "latent_probability": ["latent_row", "label_value"],
                "label": ["row"],
                "value": ["row", "feature"],
                "group_of_row": ["row"],
                "label_count": ["group", "label_value"],
                "value_count": ["group", "label_value", "cell"],
                "coclustering": ["group", "other_group"],
                "num_clusters_probability": ["cluster_count"],
            },
            attrs={"/": attributes},
        )


def exact_datatree(posterior: ExactPosterior, draws: int = 1000, seed: int = 0) -> xr.DataTree:
    """Draw independent partitions from an exact posterior, as an ArviZ tree.

    Parameters
    ----------
    posterior
        From :func:`bayes_lcs.exact`.
    draws
        Number of independent draws, in one chain.
    seed
        Seed of the draws.
    """
    z = posterior.sample(draws, seed)
    unique, inverse = np.unique(z, axis=0, return_inverse=True)
    log_probability = np.array([posterior.log_probability(row) for row in unique])
    attributes = _provenance(posterior.model, posterior.data, "exact", seed)
    attributes["log_evidence"] = repr(posterior.log_evidence)
    return _tree(
        posterior.data,
        {"z": z.astype(np.uint16 if z.max(initial=0) < 2**16 else np.uint32)[None]},
        {
            "num_clusters": (z.max(axis=1) + 1)[None],
            "log_probability": log_probability[inverse.reshape(-1)][None],
        },
        {
            "coclustering": posterior.coclustering(),
            "num_clusters_probability": posterior.num_clusters(),
        },
        attributes,
    )


def draws_datatree(draws: PosteriorDraws, seed: int) -> xr.DataTree:
    """Convert the draws of a collapsed sampler to an ArviZ tree."""
    constant: dict[str, Any] = {}
    if draws.latent_probability is not None:
        constant["latent_probability"] = draws.latent_probability
    attributes = _provenance(draws.model, draws.data, "collapsed Gibbs", seed)
    attributes["interrupted"] = json.dumps(draws.interrupted)
    return _tree(draws.data, draws.unknown, draws.stats, constant, attributes)


def diagnose(tree: xr.DataTree) -> dict[str, dict[str, float]]:
    """Compute R-hat and effective sizes by :func:`bayes_lcs.inference.diagnostics.diagnose`."""
    groups = (tree["sample_stats"], tree["posterior"])
    return diagnose_arrays({name: np.asarray(v) for group in groups for name, v in group.items()})
