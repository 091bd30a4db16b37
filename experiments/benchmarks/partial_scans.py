"""Less than one scan of a file: seconds, bytes read and accuracy against reading all of it.

Flights of 2001 in the order in which they left, if the environment variable names a folder that has
them, else made rows: is a flight late by more than a quarter of an hour? Files are written anew and
lie in the memory of the machine, so that reading a byte costs next to nothing. Every contestant is
judged on the same rows, which are not in the files. Peers that are not installed are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import bayes_lcs as bl
from bayes_lcs.classification.partial_scan.base_learners import fit_base_learner, make_base_learner
from bayes_lcs.classification.partial_scan.loop import DriftWarning
from experiments.benchmarks.flight_files import LABEL, NAMES, write_files
from experiments.benchmarks.tables import Scale, Table


class Size(NamedTuple):
    rows: int
    test: int
    parts: tuple[int, ...]
    river: int


SIZES = {
    Scale.SMOKE: Size(4_000, 500, (8, 16), 200),
    Scale.NORMAL: Size(2_000_000, 10_000, (64, 256), 50_000),
    Scale.FULL: Size(2_900_000, 10_000, (64, 256), 50_000),
}
LEARNERS, CLASSES = ("tree", "naive_bayes"), ["no", "yes"]


class Contest(NamedTuple):
    """A file to learn from, rows to be judged on, and the time of whoever reads it whole."""

    path: Path
    size: Size
    test: pd.DataFrame


class Result(NamedTuple):
    who: str
    learner: str
    seconds: float
    bytes_read: int | None
    model: Any
    warned: bool = False


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def single(contest: Contest, learner: str) -> Result:
    began = time.perf_counter()
    frame = read(contest.path)
    labels = frame.pop(LABEL).to_numpy(object)
    model = fit_base_learner(make_base_learner(learner, 0), frame, labels, 0)
    seconds = time.perf_counter() - began
    return Result("pandas, one model", learner, seconds, contest.path.stat().st_size, model)


def ours(contest: Contest, learner: str, parts: int, early_stop: bool) -> Result:
    model = bl.PartialScanClassifier(learner, parts, early_stop=early_stop, random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model.fit_file(contest.path, label=LABEL, progress=False)
        seconds = time.perf_counter() - began
    who = f"ours, {'less than one' if early_stop else 'one'} scan of {parts} parts"
    warned = any(issubclass(w.category, DriftWarning) for w in said)
    return Result(who, learner, seconds, model.scan_.bytes_read, model, warned)


def dask_ml(contest: Contest) -> Result:
    import dask
    import dask.dataframe as dd
    from dask_ml.ensemble import BlockwiseVotingClassifier

    one_hot = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), NAMES),
        remainder="passthrough",
    )
    tree = make_pipeline(one_hot, DecisionTreeClassifier(criterion="entropy", random_state=0))
    model = BlockwiseVotingClassifier(tree, voting="soft", classes=CLASSES)
    parts, bytes_read = contest.size.parts[0], contest.path.stat().st_size
    began = time.perf_counter()
    with dask.config.set({"dataframe.convert-string": False, "scheduler": "synchronous"}):
        if contest.path.suffix == ".parquet":
            frame = dd.read_parquet(contest.path, split_row_groups=contest.size.parts[-1] // parts)
        else:
            frame = dd.read_csv(contest.path, blocksize=-(-bytes_read // parts))
        frame = frame.persist()  # or columns are read apart, in blocks of other sizes
        model.fit(frame.drop(columns=LABEL), frame[LABEL])
    seconds = time.perf_counter() - began
    return Result(f"dask-ml, {parts} blocks vote", "tree", seconds, bytes_read, Votes(model))


class Votes(NamedTuple):
    """Soft votes of dask-ml, which answers with the places of labels."""

    model: Any

    def predict(self, X: pd.DataFrame) -> Any:
        return np.array(CLASSES, object)[np.asarray(self.model.predict(X))]


class River:
    """A Hoeffding tree of the first rows, which are read with pandas."""

    def __init__(self, contest: Contest) -> None:
        from river.tree import HoeffdingTreeClassifier

        self._tree = HoeffdingTreeClassifier(nominal_attributes=NAMES)
        frame = read(contest.path).iloc[: contest.size.river]
        self.began = time.perf_counter()
        for row in frame.to_dict("records"):
            label = row.pop(LABEL)
            self._tree.learn_one(row, label)

    def predict(self, X: pd.DataFrame) -> Any:
        return np.array([self._tree.predict_one(row) for row in X.to_dict("records")])


def river(contest: Contest) -> Result:
    model = River(contest)
    seconds = time.perf_counter() - model.began
    return Result(f"river, {contest.size.river:,} rows only", "tree", seconds, None, model)


def results(contest: Contest) -> Iterator[Result]:
    for learner in LEARNERS:
        yield single(contest, learner)
        yield ours(contest, learner, contest.size.parts[0], early_stop=False)
        for parts in contest.size.parts:
            yield ours(contest, learner, parts, early_stop=True)
    peers: dict[str, Callable[[Contest], Result]] = {"dask_ml": dask_ml, "river": river}
    for package, peer in peers.items():
        if find_spec(package):
            yield peer(contest)


def table(contest: Contest, title: str) -> Table:
    X, y = contest.test.drop(columns=LABEL), contest.test[LABEL].to_numpy(object)
    whole: dict[str, float] = {}
    rows: list[tuple[Any, ...]] = []
    for found in results(contest):
        whole.setdefault(found.learner, found.seconds)
        share = None if found.bytes_read is None else found.bytes_read / contest.path.stat().st_size
        right = float(np.mean(np.asarray(found.model.predict(X)) == y))
        # Who has read some rows only is not compared with who has read all.
        faster = None if found.bytes_read is None else whole[found.learner] / found.seconds
        size = None if found.bytes_read is None else found.bytes_read / 2**20
        numbers = (found.seconds, size, f"{100.0 * right:.2f}", faster, share)
        rows.append((found.who, found.learner, *numbers, "yes" if found.warned else ""))
    columns = ("who", "learner", "seconds", "MiB read", "% right", "times faster")
    common = float(pd.Series(y).value_counts(normalize=True).iloc[0])
    return Table(
        f"partial_scans_{contest.path.stem}",
        f"{contest.size.rows:,} rows, {title}",
        (*columns, "share of the bytes", "order matters"),
        rows,
        [f"The commoner label alone: {100.0 * common:.2f} % right."],
    )


def run(scale: Scale) -> list[Table]:
    size = SIZES[scale]
    with TemporaryDirectory() as folder:
        test, files = write_files(
            Path(folder), size.rows, size.test, size.parts[-1], is_made=scale is Scale.SMOKE
        )
        return [table(Contest(path, size, test), title) for title, path in files.items()]
