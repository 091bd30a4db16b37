"""Models of parts: here, side by side, or wherever an executor is.

Parts that can be read in any order are read by whoever trains on them, but for the first, whose
rows others are compared with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs

from bayes_lcs.classification.partial_scan.base_learners import fit_part, single_rows
from bayes_lcs.classification.partial_scan.payoff import column_names
from bayes_lcs.classification.partial_scan.shards import (
    PartSource,
    RowPart,
    check_finite,
    part_of_shard,
    thin,
)
from bayes_lcs.classification.partial_scan.stopping_bound import Agreement
from bayes_lcs.io.shards import ReadCount, ShardReader
from bayes_lcs.runtime.checkpoints import CheckpointedTask, fingerprint
from bayes_lcs.runtime.estimator_io import model_from_arrays, model_to_arrays
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.interrupts import exit_with_parent, run_interruptibly

__all__ = ["ScanPlan", "trained_parts"]


@dataclass(frozen=True)
class ScanPlan:
    """What to train, and when to stop."""

    base: Any
    features: Callable[[Any], Any]
    benefit: Any
    early_stop: bool
    rule: Agreement
    validation: str
    validation_size: int
    n_jobs: int | None
    reads_on: bool
    seed: int
    executor: Executor | None = None


class _Trained(NamedTuple):
    """A part, without its rows if it was read elsewhere; its model; what it is known again by."""

    part: RowPart
    model: Any
    digest: str
    taken: ReadCount


def trained_parts(
    plan: ScanPlan, source: PartSource, written: CheckpointedTask
) -> Iterator[tuple[RowPart, Any]]:
    """Parts with their models, some trained side by side, or as they were written down."""
    parts = iter(source)
    known = list(written.pieces)
    last: RowPart | None = None
    for part, piece in zip(islice(parts, len(known)), known, strict=False):
        if str(piece["part"]) != _digest(part):
            raise source.error(
                part, 0, None, "these rows are others than when the scan began; begin anew"
            )
        yield part, model_from_arrays(piece, plan.base)
        last = part
    is_kept = written.is_active
    for trained in _more(plan, source, parts, last, is_kept):
        yield trained.part, trained.model
        kept = model_to_arrays(trained.model) if is_kept else None
        # A gap would make what follows useless.
        is_kept = kept is not None
        if kept is not None:
            written.update(dict, {**kept, "part": np.asarray(trained.digest)})


def _more(
    plan: ScanPlan,
    source: PartSource,
    parts: Iterator[RowPart],
    last: RowPart | None,
    is_kept: bool,
) -> Iterator[_Trained]:
    """Parts after the last that is known."""
    together = effective_n_jobs(plan.n_jobs) if plan.executor is None else plan.executor.num_workers
    reader = None
    if plan.executor is not None and not column_names(plan.benefit):  # those are looked at here
        reader = source.reader()
    if reader is None or plan.executor is None:
        while batch := list(islice(parts, together)):
            yield from _read_here(plan, batch, is_kept)
        return
    if last is None:
        (last,) = islice(parts, 1)
        yield from _read_here(plan, [last], is_kept)
    columns = list(plan.features(last.X.head(0)).columns)
    numbers = iter(range(last.number + 1, reader.shards.num_shards))
    train = partial(_read_and_train, reader, columns, plan.base, plan.seed, is_kept)
    while tasks := list(islice(numbers, together)):
        for trained in plan.executor.run(train, tasks):
            source.count_more(trained.taken)
            if len(trained.part.y):
                yield trained


def _read_here(plan: ScanPlan, batch: list[RowPart], is_kept: bool) -> Iterator[_Trained]:
    features = [plan.features(part.X) for part in batch]
    if plan.executor is not None:
        # The features are what is learned from; other columns stay here.
        tasks = [(X, part._replace(X=None)) for X, part in zip(features, batch, strict=True)]
        models = plan.executor.run(partial(_train_task, plan.base, plan.seed), tasks)
    elif len(batch) == 1:
        models = [run_interruptibly(partial(_train, plan.base, features[0], batch[0], plan.seed))]
    else:
        models = Parallel(len(batch))(
            delayed(_train_beside)(os.getpid(), plan.base, X, part, plan.seed)
            for X, part in zip(features, batch, strict=True)
        )
    for part, model in zip(batch, models, strict=True):
        yield _Trained(part, model, _digest(part) if is_kept else "", ReadCount())


def _read_and_train(
    reader: ShardReader,
    columns: list[str],
    base: Any,
    seed: int,
    is_kept: bool,
    number: int,
) -> _Trained:
    count = ReadCount()
    part = part_of_shard(reader.read(number, count))
    check_finite(part, reader.error)
    count.num_empty += not len(part.y)
    model = _train(base, part.X[columns], part, seed) if len(part.y) else None
    digest = _digest(part) if is_kept else ""
    # A few rows come back for the single model.
    part = thin(part, single_rows(base) // (number + 1), seed)
    return _Trained(part, model, digest, count)


def _digest(part: RowPart) -> str:
    X = pd.util.hash_pandas_object(part.X) if isinstance(part.X, pd.DataFrame) else part.X
    return fingerprint(part.number, X, part.y)


def _train(base: Any, X: Any, part: RowPart, seed: int) -> Any:
    try:
        return fit_part(base, X, part.y, (seed + part.number) % np.iinfo(np.int32).max)
    except Exception as error:
        raise ValueError(
            f"{type(base).__name__} cannot be trained on part {part.number + 1}, which has "
            f"{len(part.y)} rows: {error}"
        ) from error


def _train_beside(parent: int, base: Any, X: Any, part: RowPart, seed: int) -> Any:
    """Train in a process of joblib, which would outlive a parent that is killed."""
    exit_with_parent(parent)
    return _train(base, X, part, seed)


def _train_task(base: Any, seed: int, task: tuple[Any, RowPart]) -> Any:
    return _train(base, *task, seed)
