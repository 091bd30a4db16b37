"""Train models of parts: in this process, in parallel with joblib, or on an executor.

If parts can be read in any order, the worker that trains a part also reads it. The first part is
read in this process, since it contains the validation rows.
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

from bayes_lcs.classification.partial_scan.base_learners import fit_base_learner, max_single_rows
from bayes_lcs.classification.partial_scan.payoff import benefit_columns
from bayes_lcs.classification.partial_scan.shards import (
    PartSource,
    RowPart,
    check_finite,
    part_from_shard,
    sample_part,
)
from bayes_lcs.classification.partial_scan.stopping_bound import AgreementTest
from bayes_lcs.core.errors import plural
from bayes_lcs.io.shards import ReadCount, ShardReader
from bayes_lcs.runtime.checkpoints import CheckpointedTask, fingerprint
from bayes_lcs.runtime.estimator_io import model_from_arrays, model_to_arrays
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.interrupts import exit_with_parent, run_interruptibly

__all__ = ["ScanPlan", "train_parts"]


@dataclass(frozen=True)
class ScanPlan:
    """Configuration of a scan: base learner, benefit and stopping rule."""

    base: Any
    features: Callable[[Any], Any]
    benefit: Any
    early_stop: bool
    rule: AgreementTest
    validation: str
    validation_size: int
    n_jobs: int | None
    reads_on: bool
    seed: int
    executor: Executor | None = None


class _TrainedPart(NamedTuple):
    """A part (without rows if a worker read it), its model, its checksum, and what was read."""

    part: RowPart
    model: Any
    digest: str
    read_count: ReadCount


def train_parts(
    plan: ScanPlan, source: PartSource, written: CheckpointedTask
) -> Iterator[tuple[RowPart, Any]]:
    """Yield parts with their models, first those of the checkpoint, then newly trained ones."""
    parts = iter(source)
    known = list(written.pieces)
    last: RowPart | None = None
    for part, piece in zip(islice(parts, len(known)), known, strict=False):
        if str(piece["part"]) != _digest(part):
            raise source.error(
                part, 0, None, "these rows have changed since the scan began; start a new scan"
            )
        yield part, model_from_arrays(piece, plan.base)
        last = part
    is_kept = written.is_active
    for trained in _train_remaining(plan, source, parts, last, is_kept):
        yield trained.part, trained.model
        kept = model_to_arrays(trained.model) if is_kept else None
        # Checkpoints are read in order: after a gap the rest would be useless.
        is_kept = kept is not None
        if kept is not None:
            written.update(dict, {**kept, "part": np.asarray(trained.digest)})


def _train_remaining(
    plan: ScanPlan,
    source: PartSource,
    parts: Iterator[RowPart],
    last: RowPart | None,
    is_kept: bool,
) -> Iterator[_TrainedPart]:
    """Yield newly trained parts after ``last``, the last part of the checkpoint."""
    together = effective_n_jobs(plan.n_jobs) if plan.executor is None else plan.executor.num_workers
    reader = None
    if plan.executor is not None and not benefit_columns(
        plan.benefit
    ):  # their cells are checked here
        reader = source.reader()
    if reader is None or plan.executor is None:
        while batch := list(islice(parts, together)):
            yield from _train_batch(plan, batch, is_kept)
        return
    if last is None:
        (last,) = islice(parts, 1)
        yield from _train_batch(plan, [last], is_kept)
    columns = list(plan.features(last.X.head(0)).columns)
    numbers = iter(range(last.number + 1, reader.shards.num_shards))
    train = partial(_read_and_train, reader, columns, plan.base, plan.seed, is_kept)
    while tasks := list(islice(numbers, together)):
        for trained in plan.executor.run(train, tasks):
            source.count_more(trained.read_count)
            if len(trained.part.y):
                yield trained


def _train_batch(plan: ScanPlan, batch: list[RowPart], is_kept: bool) -> Iterator[_TrainedPart]:
    features = [plan.features(part.X) for part in batch]
    if plan.executor is not None:
        # Only the features are sent; other columns are not needed for training.
        tasks = [(X, part._replace(X=None)) for X, part in zip(features, batch, strict=True)]
        models = plan.executor.run(partial(_train_task, plan.base, plan.seed), tasks)
    elif len(batch) == 1:
        models = [run_interruptibly(partial(_train, plan.base, features[0], batch[0], plan.seed))]
    else:
        models = Parallel(len(batch))(
            delayed(_train_in_process)(os.getpid(), plan.base, X, part, plan.seed)
            for X, part in zip(features, batch, strict=True)
        )
    for part, model in zip(batch, models, strict=True):
        yield _TrainedPart(part, model, _digest(part) if is_kept else "", ReadCount())


def _read_and_train(
    reader: ShardReader,
    columns: list[str],
    base: Any,
    seed: int,
    is_kept: bool,
    number: int,
) -> _TrainedPart:
    count = ReadCount()
    part = part_from_shard(reader.read(number, count))
    check_finite(part, reader.error)
    count.num_empty += not len(part.y)
    model = _train(base, part.X[columns], part, seed) if len(part.y) else None
    digest = _digest(part) if is_kept else ""
    # A sample of the rows is returned for the single model.
    part = sample_part(part, max_single_rows(base) // (number + 1), seed)
    return _TrainedPart(part, model, digest, count)


def _digest(part: RowPart) -> str:
    X = pd.util.hash_pandas_object(part.X) if isinstance(part.X, pd.DataFrame) else part.X
    return fingerprint(part.number, X, part.y)


def _train(base: Any, X: Any, part: RowPart, seed: int) -> Any:
    try:
        return fit_base_learner(base, X, part.y, (seed + part.number) % np.iinfo(np.int32).max)
    except Exception as error:
        raise ValueError(
            f"{type(base).__name__} cannot be trained on part {part.number + 1}, which has "
            f"{plural(len(part.y), 'row')}: {error}"
        ) from error


def _train_in_process(parent: int, base: Any, X: Any, part: RowPart, seed: int) -> Any:
    """Train in a joblib process that exits when its parent is killed."""
    exit_with_parent(parent)
    return _train(base, X, part, seed)


def _train_task(base: Any, seed: int, task: tuple[Any, RowPart]) -> Any:
    return _train(base, *task, seed)
