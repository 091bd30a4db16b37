"""Files in their own order, sorted by label and shuffled: accuracy, share read, guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.io import arff
from sklearn.metrics import accuracy_score, balanced_accuracy_score

import bayes_lcs as bl
from bayes_lcs.classification.partial_scan.base_learners import fit_base_learner, make_base_learner
from bayes_lcs.data.datasets import dataset_path
from experiments.benchmarks.tables import Table
from experiments.papers.outcome import Outcome
from experiments.partial_scan.data_sets import problem
from experiments.partial_scan.files import adult, frauds
from experiments.partial_scan.setting import Setting

LABEL = "the label"
ORDERS = ("file", "label", "random")
"""The order of the file, sorted by label, and a random one."""


def _plain(name: str, file: str, label: int = -1, drop: tuple[int, ...] = ()) -> pd.DataFrame:
    """A comma-separated file without header; some columns left out."""
    path = dataset_path(name, file)
    frame = pd.read_csv(path, header=None, skipinitialspace=True, keep_default_na=False, dtype=str)
    labels = frame.iloc[:, label]
    frame = frame.drop(columns=[frame.columns[label], *drop]).rename(columns="x{}".format)
    return frame.assign(**{LABEL: labels})


def _promoters() -> pd.DataFrame:
    frame = _plain("promoters", "promoters.data", 0, (1,))
    letters = frame.pop("x2").str.strip().map(list)
    bases = pd.DataFrame(letters.tolist()).rename(columns="base{}".format)
    return bases.assign(**{LABEL: frame[LABEL]})


def _arff(name: str, file: str) -> pd.DataFrame:
    rows, meta = arff.loadarff(dataset_path(name, file))
    frame = pd.DataFrame(rows).map(lambda cell: cell.decode() if isinstance(cell, bytes) else cell)
    return frame.rename(columns={meta.names()[-1]: LABEL})


def _table(name: str, file: str, label: str, drop: tuple[str, ...] = ()) -> pd.DataFrame:
    path = dataset_path(name, file)
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return frame.drop(columns=list(drop)).rename(columns={label: LABEL})


def _labelled(read: Callable[[], Any]) -> pd.DataFrame:
    rows = read()
    return rows.X.assign(**{LABEL: rows.y})


DATA: dict[str, Callable[[], pd.DataFrame]] = {
    "promoters": _promoters,
    "iris": lambda: _plain("iris", "iris.data"),
    "votes": lambda: _plain("votes", "house-votes-84.data", 0),
    "tic-tac-toe": lambda: _plain("tic-tac-toe", "tic-tac-toe.data"),
    "car": lambda: _plain("car", "car.data"),
    "kr-vs-kp": lambda: _arff("kr-vs-kp", "kr-vs-kp.arff"),
    "mushroom": lambda: _plain("mushroom", "agaricus-lepiota.data", 0),
    "nursery": lambda: _plain("nursery", "nursery.data"),
    "nltcs": lambda: _nltcs(),
    "default_credit": lambda: _credit(),
    "adult": lambda: _labelled(adult),
    "ucsd_fico2009": lambda: _labelled(frauds),
    "acs_ma_employment": lambda: _table(
        "acs_ma_employment", "acs_ma_employment.parquet", "employed", ("id", "year")
    ),
    "kddcup99_10pct": lambda: _plain("kddcup99_10pct", "kddcup.data_10_percent.gz"),
}


def _nltcs() -> pd.DataFrame:
    frame = pd.read_csv(dataset_path("nltcs", "nltcs.csv"))
    return frame.rename(columns={frame.columns[-1]: LABEL})


def _credit() -> pd.DataFrame:
    path = dataset_path("default_credit", "default_of_credit_card_clients.csv.gz")
    frame = pd.read_csv(path)
    return frame.drop(columns=frame.columns[0]).rename(columns={frame.columns[-1]: LABEL})


def run(setting: Setting) -> Outcome:
    found = pd.DataFrame(list(_rows(setting)))
    columns = ("data", "rows", "labels", "order", "accuracy", "balanced", "majority", "one tree")
    shown = [
        (
            row["data"],
            f"{row['rows']:,}",
            row["labels"],
            row["order"],
            *(f"{row[name]:.3f}" for name in columns[4:]),
            row["parts"],
            f"{100 * row['read']:.0f} %",
            "yes" if row["guaranteed"] else "no",
        )
        for row in found.to_dict("records")
    ]
    table = Table(
        "orders",
        "Accuracy on held-out rows, of files in three orders",
        (*columns, "parts", "read", "guaranteed"),
        shown,
        [],
    )
    return Outcome([table], found, {"": _figure(found)}, {})


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    """A row for each data set and order; a quarter of the rows is for testing."""
    rng = np.random.default_rng(setting.seed)
    for name in setting.data_sets if setting.smoke else DATA:
        if setting.smoke:
            data = problem(setting, name)
            frame = data.X.assign(**{LABEL: data.y})
        else:
            frame = DATA[name]()
        is_test = rng.permutation(len(frame)) < len(frame) // 4
        train, test = frame[~is_test].reset_index(drop=True), frame[is_test]
        with TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            one = None
            for order in ORDERS:
                rows = train
                if order == "label":
                    rows = train.sort_values(LABEL, kind="stable")
                elif order == "random":
                    rows = train.iloc[rng.permutation(len(train))]
                rows.to_csv(path, index=False)
                # As files have no types, those of the file are what all others are read with.
                test.to_csv(Path(folder) / "test.csv", index=False)
                if one is None:
                    one = _single(setting, path, Path(folder) / "test.csv")
                yield {"data": name, "order": order, **_scan(setting, path, folder), **one}


def _scan(setting: Setting, path: Path, folder: str) -> dict[str, Any]:
    model = bl.PartialScanClassifier("tree", random_state=setting.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_file(path, label=LABEL, progress=False)
        test = pd.read_csv(Path(folder) / "test.csv", keep_default_na=False)
        decided = model.predict(Path(folder) / "test.csv")
        true = test[LABEL].to_numpy()
        return {
            "accuracy": accuracy_score(true, decided),
            "balanced": balanced_accuracy_score(true, decided),
            "parts": f"{model.scan_.parts_read} of {model.n_partitions_}",
            "read": model.scanned_fraction_,
            "guaranteed": model.scan_.is_guaranteed,
        }


def _single(setting: Setting, train: Path, test: Path) -> dict[str, Any]:
    """One tree of all training rows, and the commonest label."""
    rows, others = (pd.read_csv(path, keep_default_na=False) for path in (train, test))
    y, true = rows.pop(LABEL).to_numpy(), others.pop(LABEL).to_numpy()
    texts = [name for name in rows if rows[name].dtype.kind not in "biuf"]
    rows[texts], others[texts] = rows[texts].astype(object), others[texts].astype(object)
    tree = fit_base_learner(make_base_learner("tree", 0), rows, y, setting.seed)
    values, counts = np.unique(y, return_counts=True)
    return {
        "rows": len(y),
        "labels": len(values),
        "majority": float((true == values[counts.argmax()]).mean()),
        "one tree": accuracy_score(true, tree.predict(others)),
    }


def _figure(found: pd.DataFrame) -> Figure:
    wide = found.pivot_table(index="data", columns="order", values="accuracy", sort=False)
    figure, axes = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    one = found.groupby("data", sort=False)["one tree"].first()
    for order in ORDERS:
        axes.plot(one, wide[order], "o", alpha=0.6, label=f"order: {order}")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    axes.set_xlabel("accuracy of one tree of all rows")
    axes.set_ylabel("accuracy of the scan")
    axes.legend(frameon=False)
    return figure
