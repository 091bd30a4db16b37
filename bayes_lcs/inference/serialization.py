"""Write models and tables as JSON and arrays, and read tables back, without pickle."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.counts_table import CountedTable
from bayes_lcs.data.grouped_table import GroupedTable

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["model_to_json", "table_from_tree", "table_to_json"]

_ARRAYS = ("features", "labels", "groups", "new_groups", "counted")


def model_to_json(model: Any) -> str:
    """Return a model's class and hyper-parameters as JSON.

    Examples
    --------
    >>> import bayes_lcs
    >>> model_to_json(bayes_lcs.NoSharing(label_prior=2.0))
    '{"model": "NoSharing", "label_prior": 2.0, "feature_prior": 1.0}'
    """
    return json.dumps({"model": type(model).__name__, **asdict(model)})


def table_to_json(table: GroupedTable) -> str:
    """Return the metadata of a table, without its codes, as JSON."""
    described = {f.name: getattr(table, f.name) for f in fields(table) if f.name not in _ARRAYS}
    return json.dumps(described)


def table_from_tree(tree: xr.DataTree) -> GroupedTable:
    """Rebuild the table from a tree: its codes from the arrays, the rest from the attributes."""

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
