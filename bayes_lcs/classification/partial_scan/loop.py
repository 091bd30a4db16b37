"""Read part after part, train on each, and look whether it is enough."""

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

from bayes_lcs.classification.partial_scan.base_learners import fit_part, probabilities, single_rows
from bayes_lcs.classification.partial_scan.exchangeability import (
    PartMeans,
    neighbour_p_value,
    smoothest_p_value,
)
from bayes_lcs.classification.partial_scan.payoff import (
    check_benefit_labels,
    column_names,
    explain_label,
    find_no_amount,
    unknown_labels,
)
from bayes_lcs.classification.partial_scan.result import (
    MIN_VALIDATION,
    Performance,
    Scan,
    guarantee_of,
    measure,
)
from bayes_lcs.classification.partial_scan.shards import (
    VALIDATION_SHARE,
    PartSource,
    RowPart,
    rows_of_part,
    thin,
)
from bayes_lcs.classification.partial_scan.train import ScanPlan, trained_parts
from bayes_lcs.classification.partial_scan.validate_input import take_rows
from bayes_lcs.classification.partial_scan.validation import (
    BatchRows,
    SequentialRows,
    mean_probabilities,
)
from bayes_lcs.core.errors import DataWarning, InterruptedWarning
from bayes_lcs.io.column_types import sort_values, typed_array
from bayes_lcs.runtime.checkpoints import checkpointed_task
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["DriftWarning", "Ensemble", "scan"]

FloatArray = NDArray[np.float64]

SUSPICIOUS = 1e-3
"""The order of the parts is said to matter below this probability."""
UNLIKE = 1e-6
"""Parts are said to differ in their labels below this probability."""
LOOKS_ONE_BY_ONE = 32
"""So many parts are each followed by a look; then parts are, by which their number grows by 5 %."""


_UNMET = object()
"""Any label that has not been met yet."""


class DriftWarning(UserWarning):
    """The order of the rows matters: a part of them does not stand for the whole."""


class Ensemble(NamedTuple):
    """Models of the parts that were read, which parts those are, all labels met, and the story.

    ``texts`` are the distinct texts of each part in columns that hold text; ``is_shuffled`` says
    that the parts came in a random order.
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
    """Train on parts until the ensemble decides as that of all parts would.

    Parameters
    ----------
    plan
        What to train, and when to stop.
    source
        The parts, and the rows to compare ensembles on.
    classes
        All labels, if they are known.
    progress
        Whether to show a bar.
    """
    run = _Run(plan, source, classes)
    try:
        # Of a text file the number of parts may not be known before the first is read.
        with (
            checkpointed_task("scan", plan.base, plan.seed, source.where, classes) as written,
            progress_bar("Scanning", 100, progress) as tick,
        ):
            shown = 0
            for part, model in trained_parts(plan, source, written):
                look = run.take(part, model)
                percent = 100 * len(run.models) // source.num_parts
                tick(percent - shown, f"{run.settled:.0%} settled")
                shown = percent
                if look:
                    break
            written.finish()
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

    def __init__(self, plan: ScanPlan, source: PartSource, classes: Sequence[Any] | None) -> None:
        self._plan, self._source, self._fixed = plan, source, classes is not None
        self.classes: list[Any] = [] if classes is None else list(classes)
        self.models: list[Any] = []
        self.reason = ""
        self.settled = 0.0
        self._parts: list[RowPart] = []  # without their rows
        self._label_counts: list[dict[Any, int]] = []
        self._first_met: dict[Any, int] = {}
        self._means = PartMeans()
        self._rule = plan.rule
        self._rows: BatchRows | SequentialRows | None = None
        self._kept: list[tuple[Any, Any, int]] = []  # for the single model, of so many rows
        self._share = 1.0  # of the rows of the first part that are not tested on
        self._tested: RowPart | None = None
        self._stand_in: Any = None  # for the first model, if its part has the tested rows
        self._trace: list[tuple[Any, ...]] = []
        self._drift, self._next_look, self._began = 1.0, 0, time.perf_counter()
        self._is_drifting = False
        self._stopped_by_rule = False

    def take(self, part: RowPart, model: Any) -> bool:
        """Take one more part with its model; return whether it is enough."""
        if not self.models:
            self._tested = self._source.validation
            if self._tested is not None:
                self._meet(self._tested)
                self._check_benefits(self._tested)
                self._rows = self._validation(self._tested)
        self._meet(part)
        self._check_benefits(part)
        self._label_counts.append(self._count(part))
        if self._asks_for_drift:
            self._means.add(part.X)
        self._keep(part)
        self.models.append(model)
        self._parts.append(part._replace(X=None, y=part.y[:0], blocks=None, kept=None))
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
        """Return all of it, with what may be said."""
        source = self._source
        if not self.models:
            raise ValueError(f"{source.where} has no rows")
        # Ctrl-C may have come in the middle of a part.
        if not self._stopped_by_rule and self.reason != "interrupted":
            self._is_drifting = self._order_matters()
        guarantee = self._end()
        caveats = self._caveats()
        is_one_model = source.num_parts == 1 and not caveats
        if caveats:
            guarantee = f"nothing for sure: {'; '.join(caveats)}"
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

    def _end(self) -> str:
        """Set the reason why it ended; return what holds if nothing speaks against it."""
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
            f"{self.settled:.1%} of {num_rows:,} validation rows were settled after "
            f"{len(self.models)} of {source.num_parts} parts (rule {plan.rule.rule!r}, bound "
            f"{plan.rule.bound!r})"
        )
        guarantee = guarantee_of(
            self._rule, plan.validation, num_rows, source.is_shuffled, source.where
        )
        if not self._fixed:
            guarantee += (
                "; labels that only unread rows have are not known"
                if self._knows_new_labels
                else "; and if there are no labels but those met"
            )
        return guarantee

    def _caveats(self) -> list[str]:
        """Return why nothing is guaranteed."""
        plan, source = self._plan, self._source
        number, found = len(self.models), []
        if self.reason == "interrupted":
            found.append("reading was interrupted")
        if len(self._first_met) == 1:
            (label,) = self._first_met
            found.append(f"only one label, {label!r}, was met, and it is decided for every row")
        if self._is_drifting:
            found.append(f"the order of the rows matters (p = {self._drift:.2g})")
        if source.is_shuffled and (chance := self._label_chance()) < UNLIKE:
            found.append(
                f"the parts differ in their labels by more than chance (p = {chance:.2g}): the "
                f"rows of {source.where} lie in an order, and a part holds few pieces of it"
            )
        late = [label for label, first in self._first_met.items() if first > max(number / 2, 1)]
        if late and (self._stopped_by_rule or not source.is_shuffled):
            found.append(
                f"the label {late[0]!r} was first met in part {self._first_met[late[0]]} of "
                f"{number} that were read"
                + (", so that there may be others in unread rows" if self._stopped_by_rule else "")
            )
        if self._stopped_by_rule and not source.is_shuffled:
            found.append(
                f"parts were read in the order of {source.where}: rows that were not read may "
                "differ from those that were"
            )
        if self._tested is not None and len(self._first_met) > 1:
            tested = np.unique(self._tested.y).tolist()
            if len(tested) == 1:
                found.append(f"all validation rows have the label {tested[0]!r}")
        if self._stopped_by_rule and plan.rule.bound != "betting":
            found.append(
                f"Hoeffding's bound gives {plan.rule.confidence:.1%} for one look at one row, but "
                "was looked at after every part and for every row"
            )
        if self._stopped_by_rule and source.num_empty:
            found.append(f"{source.num_empty} parts had no labelled rows")
        num_rows = 0 if self._rows is None else self._rows.num_rows
        if plan.early_stop and source.num_parts > 1 and num_rows < MIN_VALIDATION:
            found.append(
                f"there are {num_rows} validation rows, fewer than the {MIN_VALIDATION} it takes"
            )
        return found

    def _label_chance(self) -> float:
        """Return the p-value of the labels of the parts, if every part were a random sample."""
        from scipy.stats import chi2_contingency

        labels = list(self._first_met)
        counts = np.array([[own.get(label, 0) for label in labels] for own in self._label_counts])
        # The test needs expected counts of about five; rarer labels are taken together.
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
                "neighbouring parts are more alike than others, so that those read first do not "
                "stand for the rest. Let rows or parts come in random order (shuffle='auto'), or "
                "set on_drift='read_on'",
                DriftWarning,
                stacklevel=5,
            )
        if len(self._first_met) == 1:
            (label,) = self._first_met
            warnings.warn(
                f"only one label, {label!r}, was met in {where}: the classifier decides for it in "
                "every row",
                DataWarning,
                stacklevel=5,
            )
            return
        for remark in remarks:
            warnings.warn(f"{where}: {remark}", DataWarning, stacklevel=5)

    def _keep(self, part: RowPart) -> None:
        """Keep some rows of every part for the single model; of the first, some to test on."""
        plan, source = self._plan, self._source
        num_rows, most = len(part.y), single_rows(plan.base)
        if source.num_parts == 1:  # another model stands for the one, and needs as many rows
            most = num_rows
        if not self.models:
            if self._tested is None:
                part = self._hold_out(part)
            elif source.num_known:
                num_rows += len(self._tested.y)
            self._share = len(part.y) / num_rows
        kept = thin(part, most // (len(self.models) + 1), plan.seed)
        self._kept.append((kept.X, kept.y[kept.kept], num_rows))
        if self._num_kept > 2 * most:
            self._thin()

    def _thin(self) -> None:
        """Drop kept rows: not too many in all, and the same share of the rows of every part.

        Of the first part there are few, where validation rows were taken out of it. With more of
        the others a single model would know less of the surroundings of those rows than of others.
        """
        most = single_rows(self._plan.base)
        share = min(most / sum(number for *_, number in self._kept), self._share)
        sizes = [max(round(share * number), 1) for *_, number in self._kept]
        self._kept = [
            (take_rows(X, slice(size)), y[:size], number)
            for size, (X, y, number) in zip(sizes, self._kept, strict=True)
        ]

    @property
    def _num_kept(self) -> int:
        return sum(len(y) for _, y, _ in self._kept)

    def _hold_out(self, part: RowPart) -> RowPart:
        """Return a part without the rows to test on, up to half of it, and train on the rest.

        The models of other parts alone are no substitute for all: rows of a sorted file are like
        their neighbours, which are in the same part.
        """
        plan, num_parts = self._plan, self._source.num_parts
        share = VALIDATION_SHARE if num_parts == 1 else 0.5
        size = min(plan.validation_size, int(share * len(part.y)))
        rows = np.random.default_rng(plan.seed).permutation(len(part.y))
        self._tested, rest = rows_of_part(part, rows[:size]), rows_of_part(part, rows[size:])
        if size and num_parts > 1:
            self._stand_in = _try_to_fit(plan, rest.X, rest.y)
        return rest

    def _measure(self) -> tuple[Performance | None, list[str]]:
        """Compare with the commonest label and a single model, on rows that were not learned."""
        plan, tested = self._plan, self._tested
        # Where no rows were held out, they are some of the first part: its model has seen them.
        models = self.models
        if self._rows is None:
            models = [*([self._stand_in] if self._stand_in else []), *self.models[1:]]
        is_one_model = self._source.num_parts == 1
        if self.reason == "interrupted" or tested is None or not len(tested.y):
            return None, []
        if len(self._first_met) == 1 or not (models or is_one_model):
            return None, []
        if not is_one_model:
            self._thin()
        single = self._single()
        if is_one_model and single is None:
            return None, []
        chances = None
        if isinstance(self._rows, BatchRows):
            chances = self._rows.mean_probabilities(models, self.classes)
        elif not is_one_model:
            chances = mean_probabilities(tested.X, plan.features, models, self.classes)
        totals: Counter[Any] = Counter()
        for counts in self._label_counts:
            totals.update(counts)
        return measure(
            tested.X,
            tested.y,
            self.classes,
            plan.benefit,
            max(totals, key=lambda label: totals[label]),
            chances,
            single,
            self._num_kept,
            tested.blocks,
            is_random=is_one_model or self._source.is_shuffled or self._is_held_out_of_array,
        )

    @property
    def _is_held_out_of_array(self) -> bool:
        """Whether the validation rows are random rows of an array, in whatever order it is read."""
        return self._rows is not None and self._source.bytes_read is None

    def _single(self) -> FloatArray | None:
        """Return what a single model says of the rows to test on; None if it cannot be trained."""
        plan, tested = self._plan, self._tested
        assert tested is not None
        tables, labels, _ = zip(*self._kept, strict=True)
        is_frame = isinstance(tables[0], pd.DataFrame)
        X = pd.concat(tables, ignore_index=True) if is_frame else np.concatenate(tables)
        model = _try_to_fit(plan, X, np.concatenate(labels))
        return (
            None if model is None else probabilities(model, plan.features(tested.X), self.classes)
        )

    def _check_benefit_labels(self) -> None:
        """Check the labels that the benefit names against those that were met."""
        benefit = self._plan.benefit
        if self.reason.startswith("all ") and not self._fixed:
            check_benefit_labels(benefit, self.classes)
        elif unknown := unknown_labels(benefit, self.classes):
            warnings.warn(
                f"benefit names {', '.join(map(repr, unknown))}, which the rows that were read do "
                f"not have as a label: {explain_label(unknown[0], self.classes)}",
                DataWarning,
                stacklevel=4,
            )

    def _validation(self, rows: RowPart) -> BatchRows | SequentialRows:
        plan, source = self._plan, self._source
        self._rule = replace(plan.rule, num_parts=source.num_parts, num_known=source.num_known)
        kind = BatchRows if plan.validation == "batch" else SequentialRows
        return kind(rows.X, plan.features, plan.benefit, self._rule)

    def _can_compare(self) -> bool:
        """Return whether two labels were met: one alone cannot be told from others."""
        return len(self._first_met) > 1

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
        """Add the labels of a part to those known, or refuse them."""
        labels, first = np.unique(part.y, return_index=True)
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
        for label in labels.tolist():
            self._first_met.setdefault(label, len(self.models) + 1)

    def _count(self, part: RowPart) -> dict[Any, int]:
        labels, counts = np.unique(part.y, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

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


def _try_to_fit(plan: ScanPlan, X: Any, y: NDArray[Any]) -> Any:
    """Return a model; None if the learner fails on rows that it was not asked to learn from."""
    try:
        return fit_part(plan.base, plan.features(X), y, plan.seed) if len(y) else None
    except Exception:
        return None


def _hint_of_type(label: Any, classes: Sequence[Any]) -> str:
    """Return a hint if a class has the same name as a label and another type."""
    names = {str(label), f"{label:g}" if isinstance(label, float) else str(label)}
    meant = [one for one in classes if str(one) in names and type(one) is not type(label)]
    return f"; write {label!r}, not {meant[0]!r}" if meant else ""
