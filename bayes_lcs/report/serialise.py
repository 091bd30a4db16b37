"""Models and tables as JSON and arrays, and back: no pickle on any path."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.core.priors import Gamma
from bayes_lcs.data.table import GroupedTable
from bayes_lcs.models.clustered import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["model_from_json", "model_to_json", "table_from_tree", "table_to_json"]

_MODELS = {
    model.__name__: model for model in (NoSharing, CompleteSharing, Prototype, ClusteredNaiveBayes)
}
_ARRAYS = ("features", "labels", "groups", "new_groups")


def model_to_json(model: Any) -> str:
    """A model's class and hyper-parameters.

    Examples
    --------
    >>> model_to_json(NoSharing(label_prior=2.0))
    '{"model": "NoSharing", "label_prior": 2.0, "feature_prior": 1.0}'
    """
    return json.dumps({"model": type(model).__name__, **asdict(model)})


def model_from_json(text: str) -> Any:
    """The model that :func:`model_to_json` described."""
    described = json.loads(text)
    name = described.pop("model")
    if name not in _MODELS:
        raise ValueError(f"unknown model {name!r}; known are {', '.join(_MODELS)}")

    def restore(value: Any) -> Any:
        return Gamma(**value) if isinstance(value, dict) else value

    return _MODELS[name](**{key: restore(value) for key, value in described.items()})


def table_to_json(table: GroupedTable) -> str:
    """Everything about a table but its codes."""
    described = {f.name: getattr(table, f.name) for f in fields(table) if f.name not in _ARRAYS}
    return json.dumps(described)


def table_from_tree(tree: xr.DataTree) -> GroupedTable:
    """The table behind a tree: its codes from the arrays, the rest from the attributes."""

    def tuples(value: Any) -> Any:
        return tuple(tuples(item) for item in value) if isinstance(value, list) else value

    described = {key: tuples(value) for key, value in json.loads(tree.attrs["table"]).items()}
    return GroupedTable(
        features=np.asarray(tree["observed_data"]["value"]),
        labels=np.asarray(tree["observed_data"]["label"]),
        groups=np.asarray(tree["constant_data"]["group_of_row"]),
        **described,
    )
