"""The commands with a small file for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayes_lcs as bl


def write_files(folder: Path) -> dict[str, list[Any]]:
    """Write a small file for each command, and return the words of each command."""
    data, _ = bl.meeting_requests(seed=0, rows_per_person=6)
    meetings = data.select_groups([0, 1, 2]).to_frame()
    meetings[["person", "duration", "decision"]].to_csv(folder / "m.csv", index=False)
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=(300, 1))
    codes = np.where(rng.random((300, 4)) < 0.8, kind, rng.integers(3, size=(300, 4)))
    pd.DataFrame(codes, columns=list("abcd")).to_csv(folder / "c.csv", index=False)
    return {
        "compare": ["compare", folder / "m.csv", "--group", "person", "--label", "decision"],
        "cluster": ["cluster", folder / "c.csv", "-k", 2, "--alpha", 0, "--initial", 200],
        "scan": ["scan", folder / "c.csv", "--label", "d", "--parts", 3],
        "coreset": ["coreset", folder / "c.csv", "-k", 2, "--size", 20],
        "demo": ["demo"],
        "stream": ["coreset", folder / "c.csv", "-k", 2, "--size", 20, "--stream"],
    }


def out_of(command: str, folder: Path) -> Path:
    """Return the place of the results of a command in a folder."""
    return folder / ("out.csv" if command in ("coreset", "stream") else "out")
