"""The picture of the scaling: seconds against rows, and what workers gain on the largest job."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bayes_lcs.runtime.memory import num_cores
from experiments.benchmarks.tables import Table

__all__ = ["figure"]

STYLES = {1: "o-", 2: "s--", 4: "^:"}


def figure(tables: list[Table]) -> Any:
    """From the table ``executor_scaling``."""
    from matplotlib.figure import Figure

    (table,) = [table for table in tables if table.name == "executor_scaling"]
    names = [name.strip() for name in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    kinds = list(dict.fromkeys(row["executor"] for row in rows))
    colors = {kind: f"C{i}" for i, kind in enumerate(kinds)}
    found = Figure(figsize=(10, 7), layout="constrained")
    axes = found.subplots(2, 2)
    for column, algorithm in enumerate(dict.fromkeys(row["algorithm"] for row in rows)):
        own = _plain([row for row in rows if row["algorithm"] == algorithm])
        _times(axes[0, column], own, colors)
        _gains(axes[1, column], own, colors)
        axes[0, column].set_title("EM" if algorithm == "em" else algorithm)
    return found


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the small blocks and many values that are there for the cost model."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["executor"], row["workers"], row["rows"]
        if row["values"] in (4, None) and row["blocks"] <= found.get(key, row)["blocks"]:
            found[key] = row
    return sorted(found.values(), key=lambda row: (row["rows"], row["workers"]))


def _times(axes: Any, rows: list[dict[str, Any]], colors: dict[str, str]) -> None:
    for kind in colors:
        for workers, style in STYLES.items():
            own = [row for row in rows if (row["executor"], row["workers"]) == (kind, workers)]
            if own:
                axes.plot(
                    [row["rows"] for row in own],
                    [row["ms a pass"] for row in own],
                    style,
                    color=colors[kind],
                    label=f"{kind}, {workers}",
                )
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="ms a pass")
    axes.legend(fontsize=7)


def _gains(axes: Any, rows: list[dict[str, Any]], colors: dict[str, str]) -> None:
    largest = max(row["rows"] for row in rows)
    for kind, color in colors.items():
        own = [row for row in rows if row["executor"] == kind and row["rows"] == largest]
        if len(own) > 1:
            gains = [row["gain by workers"] for row in own]
            axes.plot([row["workers"] for row in own], gains, "o-", color=color, label=kind)
    ends = [1, 2, 4]
    axes.plot(ends, ends, color="0.7", label="as many times")
    for few, many in pairwise(ends):
        if few >= num_cores():  # more workers than cores
            axes.axvspan(few, many, color="0.95")
    axes.set(xlabel="workers or devices", ylabel=f"gain, {largest:,} rows", xticks=ends)
    axes.legend(fontsize=7)
