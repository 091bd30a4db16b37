"""Models and tables as JSON and arrays, and back: no pickle on any path."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

import bayes_lcs
from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.counted_table import CountedTable
from bayes_lcs.data.table import GroupedTable
from bayes_lcs.models.feature_prior import NaiveBayesPrior

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["model_from_json", "model_to_json", "table_from_tree", "table_to_json"]

_ARRAYS = ("features", "labels", "groups", "new_groups", "counted")


def model_to_json(model: Any) -> str:
    """A model's class and hyper-parameters.

    Examples
    --------
    >>> model_to_json(bayes_lcs.NoSharing(label_prior=2.0))
    '{"model": "NoSharing", "label_prior": 2.0, "feature_prior": 1.0}'
    """
    return json.dumps({"model": type(model).__name__, **asdict(model)})


def model_from_json(text: str) -> Any:
    """The model that :func:`model_to_json` described: a public name, and a model's.

    Examples
    --------
    >>> model_from_json('{"model": "Prototype", "strength_prior": {"shape": 2.0, "rate": 0.1}}')
    Prototype(label_prior=1.0, feature_prior=1.0, strength_prior=Gamma(shape=2.0, rate=0.1))
    >>> model_from_json('{"model": "GroupedTable"}')
    Traceback (most recent call last):
        ...
    ValueError: the file holds a posterior of 'GroupedTable', which is no public model of bayes_lcs
    """
    described = json.loads(text)
    name = described.pop("model")
    model = getattr(bayes_lcs, name) if name in bayes_lcs.__all__ else None
    if not (isinstance(model, type) and issubclass(model, NaiveBayesPrior)):
        raise ValueError(
            f"the file holds a posterior of {name!r}, which is no public model of bayes_lcs"
        )

    def restore(value: Any) -> Any:
        return Gamma(**value) if isinstance(value, dict) else value

    return model(**{key: restore(value) for key, value in described.items()})


def table_to_json(table: GroupedTable) -> str:
    """Everything about a table but its codes."""
    described = {f.name: getattr(table, f.name) for f in fields(table) if f.name not in _ARRAYS}
    return json.dumps(described)


def table_from_tree(tree: xr.DataTree) -> GroupedTable:
    """The table behind a tree: its codes from the arrays, the rest from the attributes."""

    def tuples(value: Any) -> Any:
        return tuple(tuples(item) for item in value) if isinstance(value, list) else value

    described = {key: tuples(value) for key, value in json.loads(tree.attrs["table"]).items()}
    constant = tree["constant_data"]
    codes: dict[str, Any] = {
        "features": np.asarray(tree["observed_data"]["value"]),
        "labels": np.asarray(tree["observed_data"]["label"]),
        "groups": np.asarray(constant["group_of_row"]),
    }
    if "label_count" not in constant:
        return GroupedTable(**codes, **described)
    schema = Schema(len(described["label_values"]), [len(own) for own in described["values"]])
    counted = GroupCounts(
        schema, np.asarray(constant["label_count"]), np.asarray(constant["value_count"])
    )
    return CountedTable(**codes, **described, counted=counted)
