"""Main loop of a partial scan: read a part, train a model on it, test whether to stop."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.classification.partial_scan.base_learners import (
    fit_base_learner,
    max_single_rows,
    probabilities,
)
from bayes_lcs.classification.partial_scan.exchangeability import (
    PartMeans,
    neighbour_p_value,
    smoothest_p_value,
)
from bayes_lcs.classification.partial_scan.payoff import (
    benefit_columns,
    check_benefit_labels,
    explain_label,
    find_invalid_amount,
    unknown_labels,
)
from bayes_lcs.classification.partial_scan.result import (
    MIN_VALIDATION,
    Performance,
    Scan,
    describe_guarantee,
    measure,
)
from bayes_lcs.classification.partial_scan.shards import (
    VALIDATION_SHARE,
    PartSource,
    RowPart,
    sample_part,
    select_rows,
)
from bayes_lcs.classification.partial_scan.train import ScanPlan, train_parts
from bayes_lcs.classification.partial_scan.validate_input import take_rows
from bayes_lcs.classification.partial_scan.validation import (
    BatchRows,
    SequentialRows,
    mean_probabilities,
)
from bayes_lcs.core.errors import DataWarning, InterruptedWarning, plural
from bayes_lcs.io.column_types import sort_values, typed_array
from bayes_lcs.runtime.checkpoints import checkpointed_task
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["DriftWarning", "Ensemble", "scan"]

FloatArray = NDArray[np.float64]

DRIFT_LEVEL = 1e-3
"""Level of the test for drift; below it the order of the parts matters."""
LABEL_LEVEL = 1e-6
"""Level of the test for equal label frequencies in all parts."""
MAX_PARTS_CHECKED_EACH = 32
"""The stopping test runs after each of the first parts; then whenever their number grew by 5 %."""

_UNSEEN_LABEL = object()
"""Stands for any label that has not been seen yet."""


class DriftWarning(UserWarning):
    """The order of the rows matters, so that a part of them does not represent the whole."""


class Ensemble(NamedTuple):
    """Models, the numbers of their parts, all labels seen, and the record of the scan.

    ``texts`` are the distinct texts of each part in text columns; ``is_shuffled`` is true if the
    parts were read in random order.
    """

    models: list[Any]
    parts: list[int]
    classes: list[Any]
    scan: Scan
    texts: list[Mapping[Any, Sequence[str]]]
    is_shuffled: bool


def scan(
    plan: ScanPlan,
    source: PartSource,
    classes: Sequence[Any] | None,
    progress: bool | None = False,
) -> Ensemble:
    """Train on parts until the ensemble decides like that of all parts.

    Parameters
    ----------
    plan
        Base learner and stopping rule.
    source
        The parts and the validation rows.
    classes
        All labels, if they are known.
    progress
        Whether to show a progress bar.
    """
    run = _Run(plan, source, classes)
    try:
        # The number of parts of a text file may be unknown until the first part is read.
        with (
            checkpointed_task("scan", plan.base, plan.seed, source.where, classes) as written,
            progress_bar("Scanning", 100, progress) as tick,
        ):
            shown = 0
            for part, model in train_parts(plan, source, written):
                is_enough = run.add_part(part, model)
                percent = 100 * len(run.models) // source.num_parts
                tick(percent - shown, f"{run.settled:.0%} settled")
                shown = percent
                if is_enough:
                    break
            written.finish()
    except KeyboardInterrupt:
        if not run.models:
            raise
        run.reason = "interrupted"
        warnings.warn(
            f"interrupted after {len(run.models)} of {source.num_parts} parts; the classifier uses "
            "the models of these parts",
            InterruptedWarning,
            stacklevel=3,
        )
    return run.result()


class _Run:
    """State of a scan."""

    def __init__(self, plan: ScanPlan, source: PartSource, classes: Sequence[Any] | None) -> None:
        self._plan, self._source, self._fixed = plan, source, classes is not None
        self.classes: list[Any] = [] if classes is None else list(classes)
        self.models: list[Any] = []
        self.reason = ""
        self.settled = 0.0
        self._parts: list[RowPart] = []  # without their rows
        self._label_counts: list[dict[Any, int]] = []
        self._first_seen: dict[Any, int] = {}
        self._means = PartMeans()
        self._rule = plan.rule
        self._rows: BatchRows | SequentialRows | None = None
        # For the single model: sampled X and y, and the number of rows of each part
        self._samples: list[tuple[Any, Any, int]] = []
        self._share = 1.0  # of the first part: rows that are not validation rows
        self._validation_part: RowPart | None = None
        self._stand_in: Any = None  # for the first model, if its part has the validation rows
        self._trace: list[tuple[Any, ...]] = []
        self._drift, self._next_look, self._began = 1.0, 0, time.perf_counter()
        self._is_drifting = False
        self._stopped_by_rule = False

    def add_part(self, part: RowPart, model: Any) -> bool:
        """Add a part with its model; return whether to stop."""
        if not self.models:
            self._validation_part = self._source.validation
            if self._validation_part is not None:
                self._register_labels(self._validation_part)
                self._check_benefits(self._validation_part)
                self._rows = self._make_validation_rows(self._validation_part)
        self._register_labels(part)
        self._check_benefits(part)
        self._label_counts.append(_count_labels(part))
        if self._tests_for_drift:
            self._means.add(part.X)
        self._sample_part(part)
        self.models.append(model)
        self._parts.append(part._replace(X=None, y=part.y[:0], blocks=None, sample=None))
        done, benefit, number = False, np.nan, len(self.models)
        if number == self._source.num_parts:
            self.settled = 1.0
        elif self._rows is not None and number >= self._next_look and self._can_compare():
            status = self._rows.update(self.models, self._possible_classes(), len(self.classes))
            self.settled, benefit, done = status.settled, status.benefit, status.is_done
            one_by_one = number < MAX_PARTS_CHECKED_EACH or self._plan.rule.bound != "betting"
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
            self._is_drifting = self._find_drift()
            self._stopped_by_rule = not (self._is_drifting and self._plan.reads_on)
            # Drifting parts will hardly pass the test one part later.
            self._next_look = math.ceil(1.25 * number)
        return self._stopped_by_rule

    def result(self) -> Ensemble:
        """Return the ensemble with the record of the scan and its guarantee."""
        source = self._source
        if not self.models:
            raise ValueError(f"{source.where} contains no rows")
        # Ctrl-C may have come in the middle of a part.
        if not self._stopped_by_rule and self.reason != "interrupted":
            self._is_drifting = self._find_drift()
        guarantee = self._finish()
        caveats = self._caveats()
        is_one_model = source.num_parts == 1 and not caveats
        if caveats:
            guarantee = f"nothing: {'; '.join(caveats)}"
        performance, remarks = self._measure()
        self._warn(remarks)
        columns = ["part", "rows", "bytes", "fraction", "settled", "benefit", "seconds"]
        story = Scan(
            source.num_parts,
            len(self.models),
            source.rows_read,
            source.bytes_read,
            source.fraction,
            self.reason,
            guarantee,
            not caveats and not is_one_model,
            0 if self._rows is None else self._rows.num_rows,
            self._drift,
            pd.DataFrame(self._trace, columns=columns),
            tuple(caveats),
            performance,
            tuple(remarks),
        )
        self._check_benefit_labels()
        numbers, texts = zip(*((part.number, part.texts) for part in self._parts), strict=True)
        return Ensemble(
            self.models, list(numbers), self.classes, story, list(texts), source.is_shuffled
        )

    def _finish(self) -> str:
        """Set the reason for stopping; return the guarantee that holds without caveats."""
        plan, source = self._plan, self._source
        if self.reason:
            return ""
        if source.num_parts == 1:
            self.reason = "all rows were read"
            return "nothing was left out; one model needs no guarantee about others"
        if not self._stopped_by_rule:
            self.reason = "all parts were read"
            return "nothing was left out"
        assert self._rows is not None
        num_rows = self._rows.num_rows
        self.reason = (
            f"{self.settled:.1%} of {plural(num_rows, 'validation row')} were settled after "
            f"{len(self.models)} of {source.num_parts} parts (rule {plan.rule.rule!r}, bound "
            f"{plan.rule.bound!r})"
        )
        guarantee = describe_guarantee(
            self._rule, plan.validation, num_rows, source.is_shuffled, source.where
        )
        if not self._fixed:
            guarantee += (
                "; labels that occur only in unread rows are unknown"
                if self._knows_new_labels
                else "; and if unread rows have no other labels"
            )
        return guarantee

    def _caveats(self) -> list[str]:
        """Return the reasons why nothing is guaranteed."""
        plan, source = self._plan, self._source
        number, found = len(self.models), []
        if self.reason == "interrupted":
            found.append("reading was interrupted")
        if len(self._first_seen) == 1:
            (label,) = self._first_seen
            found.append(f"only one label, {label!r}, was found, and it is predicted for every row")
        if self._is_drifting:
            found.append(f"the order of the rows matters (p = {self._drift:.2g})")
        if source.is_shuffled and (chance := self._label_chance()) < LABEL_LEVEL:
            found.append(
                f"the label frequencies of the parts differ by more than chance "
                f"(p = {chance:.2g}): the rows of {source.where} are ordered, and a part consists "
                "of few blocks of it"
            )
        late = [label for label, first in self._first_seen.items() if first > max(number / 2, 1)]
        if late and (self._stopped_by_rule or not source.is_shuffled):
            found.append(
                f"the label {late[0]!r} first occurred in part {self._first_seen[late[0]]} of "
                f"{number} that were read"
                + (", so that unread rows may have other labels" if self._stopped_by_rule else "")
            )
        if self._stopped_by_rule and not source.is_shuffled:
            found.append(
                f"parts were read in the order of {source.where}: rows that were not read may "
                "differ from those that were"
            )
        if self._validation_part is not None and len(self._first_seen) > 1:
            tested = np.unique(self._validation_part.y).tolist()
            if len(tested) == 1:
                found.append(f"all validation rows have the label {tested[0]!r}")
        if self._stopped_by_rule and plan.rule.bound != "betting":
            found.append(
                f"Hoeffding's bound holds with {plan.rule.confidence:.1%} for a single test of a "
                "single row, but it was applied after every part and to every row"
            )
        if self._stopped_by_rule and source.num_empty:
            found.append(f"{plural(source.num_empty, 'part')} had no labelled rows")
        num_rows = 0 if self._rows is None else self._rows.num_rows
        if plan.early_stop and source.num_parts > 1 and num_rows < MIN_VALIDATION:
            found.append(
                f"only {plural(num_rows, 'validation row')} (at least {MIN_VALIDATION} are needed)"
            )
        return found

    def _label_chance(self) -> float:
        """Return the p-value of the label counts, if every part is a random sample of the rows."""
        from scipy.stats import chi2_contingency

        labels = list(self._first_seen)
        counts = np.array([[own.get(label, 0) for label in labels] for own in self._label_counts])
        # The test needs expected counts of about five; rarer labels are merged.
        rare = counts.sum(axis=0) < 5 * len(counts)
        table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) < 2:
            return 1.0
        return float(chi2_contingency(table).pvalue)

    def _warn(self, remarks: Sequence[str]) -> None:
        where = self._source.where
        if self._is_drifting:
            warnings.warn(
                f"the order of the rows in {where} matters (p = {self._drift:.2g}): "
                "neighbouring parts are more similar than others, so that the parts read first do "
                "not represent the rest. Read rows or parts in random order (shuffle='auto'), or "
                "set on_drift='read_on'",
                DriftWarning,
                stacklevel=5,
            )
        if len(self._first_seen) == 1:
            (label,) = self._first_seen
            warnings.warn(
                f"only one label, {label!r}, was found in {where}: the classifier predicts it for "
                "every row",
                DataWarning,
                stacklevel=5,
            )
            return
        for remark in remarks:
            warnings.warn(f"{where}: {remark}", DataWarning, stacklevel=5)

    def _sample_part(self, part: RowPart) -> None:
        """Sample rows of a part for the single model; hold out rows of the first part if needed."""
        plan, source = self._plan, self._source
        num_rows, most = len(part.y), max_single_rows(plan.base)
        if source.num_parts == 1:  # the single model is a stand-in for the only one
            most = num_rows
        if not self.models:
            if self._validation_part is None:
                part = self._hold_out(part)
            elif source.num_known:
                num_rows += len(self._validation_part.y)
            self._share = len(part.y) / num_rows
        kept = sample_part(part, most // (len(self.models) + 1), plan.seed)
        self._samples.append((kept.X, kept.y[kept.sample], num_rows))
        if self._num_sampled > 2 * most:
            self._subsample()

    def _subsample(self) -> None:
        """Reduce the sample to its maximum size, with the same share of the rows of every part.

        If validation rows were taken out of the first part, it has fewer rows left. A larger share
        of other parts would put the single model at a disadvantage near the validation rows.
        """
        most = max_single_rows(self._plan.base)
        share = min(most / sum(number for *_, number in self._samples), self._share)
        sizes = [max(round(share * number), 1) for *_, number in self._samples]
        self._samples = [
            (take_rows(X, slice(size)), y[:size], number)
            for size, (X, y, number) in zip(sizes, self._samples, strict=True)
        ]

    @property
    def _num_sampled(self) -> int:
        return sum(len(y) for _, y, _ in self._samples)

    def _hold_out(self, part: RowPart) -> RowPart:
        """Hold out up to half of a part as validation rows; return the rest and train on it.

        The models of other parts alone do not represent the ensemble: in a sorted file, rows are
        similar to their neighbours, which are in the same part.
        """
        plan, num_parts = self._plan, self._source.num_parts
        share = VALIDATION_SHARE if num_parts == 1 else 0.5
        size = min(plan.validation_size, int(share * len(part.y)))
        rows = np.random.default_rng(plan.seed).permutation(len(part.y))
        self._validation_part, rest = select_rows(part, rows[:size]), select_rows(part, rows[size:])
        if size and num_parts > 1:
            self._stand_in = _try_to_fit(plan, rest.X, rest.y)
        return rest

    def _measure(self) -> tuple[Performance | None, list[str]]:
        """Compare with the most frequent label and a single model on the validation rows."""
        plan, tested = self._plan, self._validation_part
        # If the source held out no rows, the model of the first part was trained on these rows.
        models = self.models
        if self._rows is None:
            models = [*([self._stand_in] if self._stand_in else []), *self.models[1:]]
        is_one_model = self._source.num_parts == 1
        if self.reason == "interrupted" or tested is None or not len(tested.y):
            return None, []
        if len(self._first_seen) == 1 or not (models or is_one_model):
            return None, []
        if not is_one_model:
            self._subsample()
        single = self._single()
        if is_one_model and single is None:
            return None, []
        proba = None
        if isinstance(self._rows, BatchRows):
            proba = self._rows.mean_probabilities(models, self.classes)
        elif not is_one_model:
            proba = mean_probabilities(tested.X, plan.features, models, self.classes)
        totals: Counter[Any] = Counter()
        for counts in self._label_counts:
            totals.update(counts)
        return measure(
            tested.X,
            tested.y,
            self.classes,
            plan.benefit,
            max(totals, key=lambda label: totals[label]),
            proba,
            single,
            self._num_sampled,
            tested.blocks,
            is_random=is_one_model or self._source.is_shuffled or self._is_held_out_of_array,
        )

    @property
    def _is_held_out_of_array(self) -> bool:
        """True if the validation rows are random rows of an array, in whatever order it is read."""
        return self._rows is not None and self._source.bytes_read is None

    def _single(self) -> FloatArray | None:
        """Return a single model's probabilities of the validation rows; None if training fails."""
        plan, tested = self._plan, self._validation_part
        assert tested is not None
        tables, labels, _ = zip(*self._samples, strict=True)
        is_frame = isinstance(tables[0], pd.DataFrame)
        X = pd.concat(tables, ignore_index=True) if is_frame else np.concatenate(tables)
        model = _try_to_fit(plan, X, np.concatenate(labels))
        return (
            None if model is None else probabilities(model, plan.features(tested.X), self.classes)
        )

    def _check_benefit_labels(self) -> None:
        """Check the labels that the benefit names against those of the rows read."""
        benefit = self._plan.benefit
        if self.reason.startswith("all ") and not self._fixed:
            check_benefit_labels(benefit, self.classes)
        elif unknown := unknown_labels(benefit, self.classes):
            warnings.warn(
                f"benefit names {', '.join(map(repr, unknown))}, which is not a label of the rows "
                f"that were read: {explain_label(unknown[0], self.classes)}",
                DataWarning,
                stacklevel=4,
            )

    def _make_validation_rows(self, rows: RowPart) -> BatchRows | SequentialRows:
        plan, source = self._plan, self._source
        self._rule = replace(plan.rule, num_parts=source.num_parts, num_known=source.num_known)
        kind = BatchRows if plan.validation == "batch" else SequentialRows
        return kind(rows.X, plan.features, plan.benefit, self._rule)

    def _can_compare(self) -> bool:
        """Return whether two labels were seen; with one, all decisions would agree trivially."""
        return len(self._first_seen) > 1

    def _possible_classes(self) -> list[Any]:
        """Return labels seen, labels that the benefit names, and any other, unless all are known.

        The full ensemble might decide for a label that has not been seen yet.
        """
        if self._fixed or not self._knows_new_labels:
            return self.classes
        named = dict.fromkeys(label for pair in self._named_pairs for label in pair)
        return [*self.classes, *(name for name in named if name not in self.classes), _UNSEEN_LABEL]

    @property
    def _named_pairs(self) -> list[Any]:
        """Pairs of labels that the benefit names."""
        return list(self._plan.benefit) if isinstance(self._plan.benefit, Mapping) else []

    @property
    def _knows_new_labels(self) -> bool:
        """True if the benefit is defined for labels that have not been seen."""
        return self._plan.benefit is None or isinstance(self._plan.benefit, Mapping)

    def _register_labels(self, part: RowPart) -> None:
        """Add the labels of a part to those seen; raise an error if ``classes`` lacks one."""
        labels, first = np.unique(part.y, return_index=True)
        new = [label for label in labels.tolist() if label not in self.classes]
        if new and self._fixed:
            row = int(first[labels.tolist().index(new[0])])
            raise self._source.error(
                part,
                row,
                None,
                f"the label {new[0]!r} is not in classes={self.classes!r:.200}"
                + _hint_of_type(new[0], self.classes),
            )
        if new:
            merged = typed_array([*self.classes, *new])
            self.classes = merged[sort_values(merged)].tolist()
        if not self.models:
            named = {label for pair in self._named_pairs for label in pair}
            if named and len(unknown_labels(self._plan.benefit, self.classes)) == len(named):
                check_benefit_labels(self._plan.benefit, self.classes)
        for label in labels.tolist():
            self._first_seen.setdefault(label, len(self.models) + 1)

    def _check_benefits(self, part: RowPart) -> None:
        for name in benefit_columns(self._plan.benefit):
            if not isinstance(part.X, pd.DataFrame) or name not in part.X.columns:
                continue  # build_benefits reports it
            row, message = find_invalid_amount(part.X, name)
            if message:
                raise self._source.error(part, row, name, message)

    @property
    def _tests_for_drift(self) -> bool:
        return self._plan.early_stop and not self._source.is_shuffled

    def _find_drift(self) -> bool:
        """Test for drift; return whether the order of the parts matters."""
        if not self._tests_for_drift:
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
        # Bonferroni correction
        self._drift = min(1.0, len(tests) * min(tests))
        return self._drift < DRIFT_LEVEL


def _count_labels(part: RowPart) -> dict[Any, int]:
    labels, counts = np.unique(part.y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _try_to_fit(plan: ScanPlan, X: Any, y: NDArray[Any]) -> Any:
    """Return a model, or None if the learner fails; the user did not ask for this model."""
    try:
        return fit_base_learner(plan.base, plan.features(X), y, plan.seed) if len(y) else None
    except Exception:
        return None


def _hint_of_type(label: Any, classes: Sequence[Any]) -> str:
    """Return a hint if a class has the same text as a label but another type."""
    names = {str(label), f"{label:g}" if isinstance(label, float) else str(label)}
    meant = [one for one in classes if str(one) in names and type(one) is not type(label)]
    return f"; write {label!r}, not {meant[0]!r}" if meant else ""
