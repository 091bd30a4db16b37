"""Posteriors as ArviZ trees: the only module that calls ArviZ.

Groups ``posterior``, ``sample_stats``, ``observed_data`` and ``constant_data``; partitions are
``z(chain, draw, group)`` as first-occurrence labels in uint16. Attributes are strings (JSON).
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs._version import __version__
from bayes_lcs.inference.exact_posterior import ExactPosterior

if TYPE_CHECKING:
    import xarray as xr

    from bayes_lcs.data.table import GroupedTable

__all__ = ["exact_datatree", "provenance"]

_LIBRARIES = ("jax", "numpyro", "numpy", "scipy", "arviz-base")


def provenance(model: Any, data: GroupedTable, method: str, seed: int) -> dict[str, str]:
    """How a result was obtained, as strings: model, data hash, seed, method, versions."""
    versions = {"bayes_lcs": __version__, "python": platform.python_version()}
    versions.update({name: version(name) for name in _LIBRARIES})
    return {
        "model": json.dumps({"name": model.name, **asdict(model)}),
        "data_sha256": data.content_hash(),
        "seed": str(seed),
        "method": method,
        "versions": json.dumps(versions),
    }


def exact_datatree(posterior: ExactPosterior, draws: int = 1000, seed: int = 0) -> xr.DataTree:
    """Independent exact draws of the partition as an ArviZ tree.

    Parameters
    ----------
    posterior
        From :func:`bayes_lcs.exact`.
    draws
        Number of independent draws, in one chain.
    seed
        Seed of the draws.
    """
    import arviz_base

    data = posterior.data
    z = posterior.sample(draws, seed)
    unique, inverse = np.unique(z, axis=0, return_inverse=True)
    log_probability = np.array([posterior.log_probability(row) for row in unique])
    names = {
        "values": dict(zip(data.feature_names, data.values, strict=True)),
        "labels": data.label_values,
        "label_name": data.label_name,
        "group_name": data.group_name,
    }
    attributes = provenance(posterior.model, data, "exact", seed)
    attributes |= {"log_evidence": repr(posterior.log_evidence), "names": json.dumps(names)}
    return arviz_base.from_dict(
        {
            "posterior": {
                "z": z.astype(np.uint16)[None],
                "num_clusters": (z.max(axis=1) + 1)[None],
            },
            "sample_stats": {"log_probability": log_probability[inverse.reshape(-1)][None]},
            "observed_data": {"label": data.labels, "value": data.features},
            "constant_data": {
                "group_of_row": data.groups,
                "coclustering": posterior.coclustering(),
                "num_clusters_probability": posterior.num_clusters(),
            },
        },
        coords={
            "group": list(data.group_names),
            "other_group": list(data.group_names),
            "feature": list(data.feature_names),
        },
        dims={
            "z": ["group"],
            "label": ["row"],
            "value": ["row", "feature"],
            "group_of_row": ["row"],
            "coclustering": ["group", "other_group"],
            "num_clusters_probability": ["cluster_count"],
        },
        attrs={"/": attributes},
    )
