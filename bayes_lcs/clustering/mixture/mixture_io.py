"""Save and load fitted mixtures as netCDF files of arrays and JSON, without pickle."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs._version import __version__
from bayes_lcs.clustering.mixture.fit import make_model
from bayes_lcs.core.errors import DataError
from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.em.online import StepwiseState
from bayes_lcs.runtime.atomic_files import load_datatree, save_datatree
from bayes_lcs.runtime.checksums import as_data_errors

if TYPE_CHECKING:
    import xarray as xr

    from bayes_lcs.clustering.mixture.estimator import MixtureClusterer

__all__ = ["load_mixture", "mixture_from_tree", "save_mixture"]

KIND = "MixtureClusterer"
SCALARS = (str, int, float, bool)


def save_mixture(clusterer: MixtureClusterer, path: str | PathLike[str]) -> None:
    """Write parameters, categories, settings, trace and the state of `partial_fit`."""
    import xarray as xr

    state = clusterer._stepwise_state()
    dataset = xr.Dataset(
        {
            "weights": ("component", clusterer.weights_),
            "cells": (("cell", "component"), clusterer._parameters.cells),
            "trace": ("iteration", clusterer.trace_),
            "mean_components": ("component", state.mean.components),
            "mean_cells": (("cell", "component"), state.mean.cells),
        }
    )
    described = {
        "kind": KIND,
        "version": __version__,
        "settings": _settings(clusterer),
        "categories": [_array_to_json(values) for values in clusterer.categories_],
        "n_features_in": clusterer.n_features_in_,
        "feature_names": list(map(str, getattr(clusterer, "feature_names_in_", []))),
        "n_iter": clusterer.n_iter_,
        "converged": bool(clusterer.converged_),
        "gap": clusterer.gap_ if np.isfinite(clusterer.gap_) else None,
        "interrupted": bool(getattr(clusterer, "interrupted_", False)),
        "log_posterior": clusterer.log_posterior_,
        "log_likelihood": clusterer.log_likelihood_,
        "mean_log_likelihood": state.mean.log_likelihood,
        "weight": state.weight,
        "num_batches": state.num_batches,
    }
    dataset.attrs["mixture"] = json.dumps(described)
    save_datatree(xr.DataTree(dataset), Path(path))


def load_mixture(kind: type[MixtureClusterer], path: str | PathLike[str]) -> MixtureClusterer:
    """Load the clusterer that :func:`save_mixture` wrote."""
    tree = load_datatree(Path(path))
    if "mixture" not in tree.attrs:
        raise DataError("this file holds no MixtureClusterer", file=str(path))
    with as_data_errors(path, KIND):
        return mixture_from_tree(kind, tree)


def mixture_from_tree(kind: type[MixtureClusterer], tree: xr.DataTree) -> MixtureClusterer:
    """Build the clusterer that a tree with an attribute ``mixture`` describes."""
    described = json.loads(tree.attrs["mixture"])
    settings = described["settings"]
    if not isinstance(settings["categories"], str):
        settings["categories"] = [_array_from_json(values) for values in settings["categories"]]
    # Files without this setting come from versions that had only this rule.
    settings.setdefault("stopping", "relative")
    clusterer = kind(**settings)
    clusterer.categories_ = [_array_from_json(values) for values in described["categories"]]
    clusterer.n_features_in_ = described["n_features_in"]
    if described["feature_names"]:
        clusterer.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    arrays = {name: np.asarray(tree[name]) for name in ("weights", "cells", "trace")}
    schema = Schema(1, [max(len(values), 1) for values in clusterer.categories_])
    parameters = MixtureParameters(arrays["weights"], arrays["cells"])
    model = make_model(clusterer, schema, len(parameters.weights))
    clusterer._set_parameters(model, parameters)
    clusterer.trace_ = arrays["trace"]
    for name in ("n_iter", "converged", "interrupted", "log_posterior", "log_likelihood"):
        setattr(clusterer, f"{name}_", described[name])
    gap = described.get("gap")
    clusterer.gap_ = np.inf if gap is None else gap
    mean = MixtureStatistics(
        np.asarray(tree["mean_components"]),
        np.asarray(tree["mean_cells"]),
        described["mean_log_likelihood"],
    )
    clusterer._stepwise = StepwiseState(mean, described["weight"], described["num_batches"])
    clusterer._fitted_weight = described["weight"]
    return clusterer


def _settings(clusterer: MixtureClusterer) -> dict[str, Any]:
    """Return the constructor arguments; those that JSON cannot hold become their defaults."""
    settings = clusterer.get_params(deep=False)
    settings["executor"] = None  # workers cannot be saved
    if not isinstance(settings["init"], str):
        settings["init"] = "perturbed"  # the fitted parameters are in the file
    if not isinstance(settings["random_state"], int):
        settings["random_state"] = None
    if not isinstance(settings["n_components"], int | str):
        settings["n_components"] = [int(number) for number in settings["n_components"]]
    if not isinstance(settings["categories"], str):
        settings["categories"] = [_array_to_json(np.asarray(v)) for v in settings["categories"]]
    return {name: _to_plain(value) for name, value in settings.items()}


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    return value


def _array_to_json(values: Any) -> dict[str, Any]:
    items = [_to_plain(value) for value in values.tolist()]
    for item in items:
        if not isinstance(item, SCALARS):
            raise TypeError(
                f"the category {item!r} is neither text nor a number and cannot be saved; turn "
                "the column into strings first"
            )
    kind = values.dtype.str if values.dtype.kind in "biuf" else "object"
    return {"dtype": kind, "values": items}


def _array_from_json(described: dict[str, Any]) -> Any:
    return np.array(described["values"], dtype=np.dtype(described["dtype"]))
