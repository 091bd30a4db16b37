"""Files of flights for the benchmark of partial scans, real or made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bayes_lcs.core.errors import DatasetNotFound
from bayes_lcs.data.datasets import dataset_path

LATE = 15  # minutes
AIRPORTS = 20
"""The largest keep their names: a tree over two million rows gets a column for each name."""
NAMES, LABEL = ["origin", "destination"], "late"


def flights(num_rows: int) -> pd.DataFrame:
    """The first flights of 2001.

    The hour seems to be that in which a flight left, not that of its schedule: late flights leave
    at hours that are rare for their route. It tells something of the label, and whoever remembers
    schedules gains by it. Accuracies compare contestants, and say nothing about foreseeing delays.
    """
    frame = pd.read_parquet(dataset_path("flights3m")).iloc[:num_rows]
    late = np.where(frame["delay"] > LATE, "yes", "no")
    kept = {name: frame[name].value_counts().index[:AIRPORTS] for name in NAMES}
    names = {name: frame[name].where(frame[name].isin(kept[name]), "other") for name in NAMES}
    date = frame["date"].dt
    numbers = {"hour": date.hour, "weekday": date.dayofweek, "distance": frame["distance"]}
    return pd.DataFrame({**numbers, **names, LABEL: late}).astype({"hour": int, "weekday": int})


def made(num_rows: int) -> pd.DataFrame:
    """Rows with the columns of flights, in random order."""
    rng = np.random.default_rng(0)
    hour, weekday = rng.integers(24, size=num_rows), rng.integers(7, size=num_rows)
    places = np.array(["north", "south", "east", "west"])
    origin, destination = rng.choice(places, (2, num_rows))
    score = (hour - 16.0) / 3.0 + (origin == "north") + rng.normal(size=num_rows)
    return pd.DataFrame(
        {
            "hour": hour,
            "weekday": weekday,
            "distance": rng.integers(100, 3000, num_rows),
            "origin": origin,
            "destination": destination,
            LABEL: np.where(score > 0.0, "yes", "no"),
        }
    )


def write_files(
    folder: Path, num_rows: int, num_test: int, groups: int, *, is_made: bool
) -> tuple[pd.DataFrame, dict[str, Path]]:
    """Rows to be judged on, drawn at random, and files of all others, by what they are."""
    try:
        frame = made(num_rows + num_test) if is_made else flights(num_rows + num_test)
    except DatasetNotFound:
        frame = made(num_rows + num_test)
    is_test = np.random.default_rng(0).permutation(len(frame)) < num_test
    train, test = frame[~is_test], frame[is_test]
    files = {
        "CSV in natural order": folder / "natural.csv",
        "CSV, rows shuffled once": folder / "shuffled.csv",
        f"Parquet in natural order, {groups} row groups": folder / "groups.parquet",
    }
    natural, shuffled, parquet = files.values()
    train.to_csv(natural, index=False)
    train.sample(frac=1.0, random_state=0).to_csv(shuffled, index=False)
    train.to_parquet(parquet, index=False, row_group_size=-(-len(train) // groups))
    return test, files
