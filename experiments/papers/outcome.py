"""What an experiment found: tables, numbers, pictures, and an answer to each claim."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from experiments.benchmarks.tables import Table


@dataclass(frozen=True)
class Finding:
    """Our answer to a claim; ``agrees`` is None where the two cannot be compared.

    A ``reason`` takes the place of the one in ``expected.toml``.
    """

    ours: str
    agrees: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """All that an experiment returns; pictures by the end of their file name, "" for the first."""

    tables: list[Table]
    numbers: pd.DataFrame
    figures: dict[str, Any]  # of matplotlib
    findings: dict[str, Finding]


def write(name: str, outcome: Outcome, comparison: pd.DataFrame, folder: Path) -> list[Path]:
    """The numbers and the comparison as CSV, the pictures as PNG; the paths written.

    Where nothing was published there is no comparison.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv"]
    outcome.numbers.to_csv(paths[0], index=False)
    if len(comparison):
        paths.append(folder / f"{name}_comparison.csv")
        comparison.to_csv(paths[-1], index=False)
    for ending, figure in outcome.figures.items():
        paths.append(folder / f"{name}{ending}.png")
        figure.savefig(paths[-1], dpi=130)
        plt.close(figure)
    return paths
