"""Reading part after part, training on each, and looking whether it is enough."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayes_lcs.classification.benefits import (
    check_benefit_labels,
    column_names,
    explain_label,
    find_no_amount,
    unknown_labels,
)
from bayes_lcs.classification.drift import PartMeans, neighbour_p_value, smoothest_p_value
from bayes_lcs.classification.scan import Scan, guarantee_of
from bayes_lcs.classification.scan_parts import PartSource, RowPart
from bayes_lcs.classification.scan_rows import take_rows
from bayes_lcs.classification.scan_training import ScanPlan, trained_parts
from bayes_lcs.classification.settling import BatchRows, SequentialRows
from bayes_lcs.core.errors import DataWarning, InterruptedWarning
from bayes_lcs.core.progress import progress_bar
from bayes_lcs.data.checkpoints import work
from bayes_lcs.io.column_types import sort_values, typed_array

__all__ = ["DriftWarning", "Ensemble", "scan"]

SUSPICIOUS = 1e-3
"""The order of the parts is said to matter below this probability."""
LOOKS_ONE_BY_ONE = 32
"""So many parts are each followed by a look; then parts are, by which their number grows by 5 %."""


_UNMET = object()
"""Any label that has not been met yet."""


class DriftWarning(UserWarning):
    """The order of the rows matters: a part of them does not stand for the whole."""


class Ensemble(NamedTuple):
    """Models of the parts that were read, which parts those are, all labels met, and the story.

    ``texts`` are the distinct texts of each part in columns that hold text.
    """

    models: list[Any]
    parts: list[int]
    classes: list[Any]
    scan: Scan
    texts: list[Mapping[Any, Sequence[str]]]


def scan(
    plan: ScanPlan,
    source: PartSource,
    classes: Sequence[Any] | None,
    validation: Any = None,
    progress: bool | None = False,
) -> Ensemble:
    """Train on parts until the ensemble decides as that of all parts would.

    Parameters
    ----------
    plan
        What to train, and when to stop.
    source
        The parts.
    classes
        All labels, if they are known.
    validation
        Rows to compare ensembles on; None draws them from the part that is read first, whose model
        is then not bet on.
    progress
        Whether to show a bar.
    """
    run = _Run(plan, source, classes, validation)
    try:
        # Of a text file the number of parts may not be known before the first is read.
        with (
            work("scan", plan.base, plan.seed, source.where, classes) as written,
            progress_bar("Scanning", max(source.num_parts, 1), progress) as tick,
        ):
            for part, model in trained_parts(plan, source, written):
                look = run.take(part, model)
                tick(1, f"{run.settled:.0%} settled")
                if look:
                    break
            written.end()
    except KeyboardInterrupt:
        if not run.models:
            raise
        run.reason = "interrupted"
        warnings.warn(
            f"interrupted after {len(run.models)} of {source.num_parts} parts: the classifier is "
            "that of these parts",
            InterruptedWarning,
            stacklevel=3,
        )
    return run.ensemble()


class _Run:
    """A scan under way."""

    def __init__(
        self, plan: ScanPlan, source: PartSource, classes: Sequence[Any] | None, validation: Any
    ) -> None:
        self._plan, self._source, self._fixed = plan, source, classes is not None
        self.classes: list[Any] = [] if classes is None else list(classes)
        self.models: list[Any] = []
        self.reason = ""
        self.settled = 0.0
        self._parts: list[RowPart] = []  # without their rows
        self._label_counts: list[dict[Any, int]] = []
        self._means = PartMeans()
        self._given, self._rule = validation, plan.rule
        self._rows: BatchRows | SequentialRows | None = None
        self._trace: list[tuple[Any, ...]] = []
        self._drift, self._next_look, self._began = 1.0, 0, time.perf_counter()
        self._is_drifting = False
        self._stopped_by_rule = False

    def take(self, part: RowPart, model: Any) -> bool:
        """One more part with its model; whether it is enough."""
        if not self.models and self._plan.early_stop:
            self._rows = self._validation(part)
        self._meet(part)
        self._check_benefits(part)
        if self._asks_for_drift:
            self._means.add(part.X)
        self.models.append(model)
        self._parts.append(part._replace(X=None, y=part.y[:0]))
        done, benefit, number = False, np.nan, len(self.models)
        if number == self._source.num_parts:
            self.settled = 1.0
        elif self._rows is not None and number >= self._next_look and self._can_compare():
            look = self._rows.look(self.models, self._possible_classes(), len(self.classes))
            self.settled, benefit, done = look.settled, look.benefit, look.is_done
            one_by_one = number < LOOKS_ONE_BY_ONE or self._plan.rule.bound != "betting"
            self._next_look = number + (1 if one_by_one else number // 20)
        now = time.perf_counter()
        self._trace.append(
            (
                part.number,
                self._source.rows_read,
                self._source.bytes_read,
                self._source.fraction,
                self.settled,
                benefit,
                now - self._began,
            )
        )
        if done:
            self._is_drifting = self._order_matters()
            self._stopped_by_rule = not (self._is_drifting and self._plan.reads_on)
            # Where parts are no random sample they hardly are one a part later.
            self._next_look = math.ceil(1.25 * number)
        return self._stopped_by_rule

    def ensemble(self) -> Ensemble:
        """All of it, and what may be said."""
        plan, source = self._plan, self._source
        if not self.models:
            raise ValueError(f"{source.where} has no rows")
        num_rows = 0 if self._rows is None else self._rows.num_rows
        promised = False
        if self.reason:
            guarantee = "nothing: reading was interrupted"
        elif self._stopped_by_rule:
            self.reason = (
                f"{self.settled:.1%} of {num_rows:,} validation rows were settled after "
                f"{len(self.models)} of {source.num_parts} parts (rule {plan.rule.rule!r}, bound "
                f"{plan.rule.bound!r})"
            )
            guarantee, promised = guarantee_of(
                self._rule, plan.validation, num_rows, source.is_shuffled, source.where
            )
            if not self._fixed and not self._knows_new_labels:
                guarantee += "; and if there are no labels but those met"
        else:
            self.reason = "all parts were read"
            guarantee, promised = "nothing was left out", True
        # Ctrl-C may have come in the middle of a part.
        if not self._stopped_by_rule and self.reason != "interrupted":
            self._is_drifting = self._order_matters()
        if self._is_drifting:
            if self._stopped_by_rule:
                guarantee, promised = "nothing for sure: the order of the rows matters", False
            warnings.warn(
                f"the order of the rows in {source.where} matters (p = {self._drift:.2g}): "
                "neighbouring parts are more alike than others, so that those read first do not "
                "stand for the rest. Shuffle the rows once, let parts come in random order, or set "
                "on_drift='read_on'",
                DriftWarning,
                stacklevel=4,
            )
        columns = ["part", "rows", "bytes", "fraction", "settled", "benefit", "seconds"]
        story = Scan(
            source.num_parts,
            len(self.models),
            source.rows_read,
            source.bytes_read,
            source.fraction,
            self.reason,
            guarantee,
            promised,
            num_rows,
            self._drift,
            pd.DataFrame(self._trace, columns=columns),
        )
        self._check_benefit_labels()
        numbers, texts = zip(*((part.number, part.texts) for part in self._parts), strict=True)
        return Ensemble(self.models, list(numbers), self.classes, story, list(texts))

    def _check_benefit_labels(self) -> None:
        """Check the labels that the benefit names against those that were met."""
        benefit = self._plan.benefit
        if self.reason == "all parts were read" and not self._fixed:
            check_benefit_labels(benefit, self.classes)
        elif unknown := unknown_labels(benefit, self.classes):
            warnings.warn(
                f"benefit names {', '.join(map(repr, unknown))}, which the rows that were read do "
                f"not have as a label: {explain_label(unknown[0], self.classes)}",
                DataWarning,
                stacklevel=4,
            )

    def _validation(self, first: RowPart) -> BatchRows | SequentialRows:
        plan, rows, known = self._plan, self._given, 0
        if rows is None:
            rng = np.random.default_rng(plan.seed)
            size = min(plan.validation_size, len(first.y))
            rows = take_rows(first.X, np.sort(rng.choice(len(first.y), size, replace=False)))
            known = 1
        self._rule = replace(plan.rule, num_parts=self._source.num_parts, num_known=known)
        kind = BatchRows if plan.validation == "batch" else SequentialRows
        return kind(rows, plan.features, plan.benefit, self._rule)

    def _can_compare(self) -> bool:
        """Whether there is another label that all parts might decide for."""
        return self._fixed or self._knows_new_labels or len(self.classes) > 1

    def _possible_classes(self) -> list[Any]:
        """Labels that were met, those that the benefit names, and any other, unless all are known.

        What has not been met may still be what all parts would decide for.
        """
        if self._fixed or not self._knows_new_labels:
            return self.classes
        named = dict.fromkeys(label for pair in self._named_pairs for label in pair)
        return [*self.classes, *(name for name in named if name not in self.classes), _UNMET]

    @property
    def _named_pairs(self) -> list[Any]:
        """Pairs of labels that the benefit names."""
        return list(self._plan.benefit) if isinstance(self._plan.benefit, Mapping) else []

    @property
    def _knows_new_labels(self) -> bool:
        """Whether the benefit says what a label brings that has not been met."""
        return self._plan.benefit is None or isinstance(self._plan.benefit, Mapping)

    def _meet(self, part: RowPart) -> None:
        """Labels of a part: counted, and added to those known, or refused."""
        labels, first, counts = np.unique(part.y, return_index=True, return_counts=True)
        new = [label for label in labels.tolist() if label not in self.classes]
        if new and self._fixed:
            row = int(first[labels.tolist().index(new[0])])
            raise self._source.error(
                part,
                row,
                None,
                f"the label {new[0]!r} is none of classes={self.classes!r:.200}"
                + _hint_of_type(new[0], self.classes),
            )
        if new:
            merged = typed_array([*self.classes, *new])
            self.classes = merged[sort_values(merged)].tolist()
        if not self.models:
            named = {label for pair in self._named_pairs for label in pair}
            if named and len(unknown_labels(self._plan.benefit, self.classes)) == len(named):
                check_benefit_labels(self._plan.benefit, self.classes)
        self._label_counts.append(dict(zip(labels.tolist(), counts.tolist(), strict=True)))

    def _check_benefits(self, part: RowPart) -> None:
        for name in column_names(self._plan.benefit):
            if not isinstance(part.X, pd.DataFrame) or name not in part.X.columns:
                continue  # said where benefits are made
            row, message = find_no_amount(part.X, name)
            if message:
                raise self._source.error(part, row, name, message)

    @property
    def _asks_for_drift(self) -> bool:
        return self._plan.early_stop and not self._source.is_shuffled

    def _order_matters(self) -> bool:
        if not self._asks_for_drift:
            return False
        rng = np.random.default_rng(self._plan.seed)
        shares = np.array(
            [[counts.get(label, 0) for label in self.classes] for counts in self._label_counts],
            np.float64,
        )
        shares /= shares.sum(axis=1, keepdims=True)
        tests = [smoothest_p_value(np.hstack([shares, self._means.columns()]), rng)]
        if self._rows is not None:
            tests.append(neighbour_p_value(self._rows.predictions(self.classes), rng))
        self._drift = min(1.0, len(tests) * min(tests))
        return self._drift < SUSPICIOUS


def _hint_of_type(label: Any, classes: Sequence[Any]) -> str:
    """Return a hint if a class has the same name as a label and another type."""
    meant = [one for one in classes if str(one) == str(label)]
    return f"; write {label!r}, not {meant[0]!r}" if meant else ""
