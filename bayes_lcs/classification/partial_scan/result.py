"""Record of a scan: rows read, reason for stopping, guarantee and accuracy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.classification.partial_scan.payoff import build_benefits, expected_benefits
from bayes_lcs.classification.partial_scan.stopping_bound import AgreementTest
from bayes_lcs.core.errors import plural

__all__ = [
    "MIN_VALIDATION",
    "Performance",
    "Scan",
    "accuracy_interval",
    "describe_guarantee",
    "measure",
]

FloatArray = NDArray[np.float64]

MIN_VALIDATION = 100
"""Minimum number of validation rows for a guarantee."""

MIN_COMPARED = 30
"""Minimum number of validation rows for remarks on a poor ensemble."""

INTERVAL_CONFIDENCE = 0.95
"""Confidence level of accuracy intervals."""

MIN_RELATIVE_GAP = 0.02
"""Smallest relative gap to a single model at which an ensemble is called clearly worse."""


@dataclass(frozen=True)
class Performance:
    """Accuracy and benefit on validation rows, on which the models were not trained.

    Attributes
    ----------
    num_rows
        Number of validation rows.
    accuracy, balanced_accuracy
        Of the ensemble: the share of rows decided correctly, and its mean over the labels.
    interval : (float, float) or None
        Confidence interval (95 %) of the accuracy on all rows of the data. Rows of the same block
        of a file are treated as dependent. None if the validation rows are not a random sample.
    majority_accuracy
        Accuracy of predicting the most frequent label of the training rows for every row.
    single_accuracy, single_balanced_accuracy
        The same for a single model of the base learner, trained on ``single_rows`` of the rows
        read; None if there is none.
    single_rows
        Number of training rows of the single model.
    benefit, constant_benefit, single_benefit
        Benefit per row of the ensemble, of the best constant decision, and of the single model;
        None if accuracy is the benefit.
    is_single
        True if the classifier is one model of all rows; its accuracy is then estimated with another
        model, trained without the validation rows.
    """

    num_rows: int
    accuracy: float
    balanced_accuracy: float
    majority_accuracy: float
    single_accuracy: float | None = None
    single_balanced_accuracy: float | None = None
    single_rows: int = 0
    benefit: float | None = None
    constant_benefit: float | None = None
    single_benefit: float | None = None
    is_single: bool = False
    interval: tuple[float, float] | None = None

    def explain(self) -> str:
        """Return a sentence that describes the performance."""
        own = f"{self.accuracy:.1%} (balanced {self.balanced_accuracy:.1%})"
        if self.interval is not None:
            low, high = self.interval
            own = (
                f"{self.accuracy:.1%} ({INTERVAL_CONFIDENCE:.0%} interval {low:.1%} to {high:.1%}; "
                f"balanced {self.balanced_accuracy:.1%})"
            )
        text = f"{own} of {plural(self.num_rows, 'validation row')} are predicted correctly"
        if self.is_single:
            text += f" by a model trained on {self.single_rows:,} others"
        text += f"; always predicting the most frequent label: {self.majority_accuracy:.1%}"
        if self.single_accuracy is not None and not self.is_single:
            text += f"; one model of {plural(self.single_rows, 'row')}: {self.single_accuracy:.1%}"
        if self.benefit is not None:
            text += (
                f". The benefit per row is {self.benefit:.4g}; that of the best constant decision "
                f"{self.constant_benefit:.4g}"
            )
            if self.single_benefit is not None and not self.is_single:
                text += f", that of one model {self.single_benefit:.4g}"
        return text


@dataclass(frozen=True)
class Scan:
    """Record of a complete or partial scan.

    Attributes
    ----------
    num_parts, parts_read
        Number of parts of the data, and of parts that were trained on.
    rows_read, bytes_read
        Rows and bytes read, including validation rows and rows read ahead; bytes are None for rows
        in memory.
    fraction
        Share of the data that was read: of the rows, or of the bytes of a text file.
    stop_reason
        Reason why reading ended, as text.
    guarantee
        The guarantee with its confidence and conditions, as text.
    is_guaranteed
        False if nothing is guaranteed.
    num_validation
        Number of rows used by the stopping test.
    drift
        p-value of the similarity of neighbouring parts if their order is random; 1 if it was not
        tested.
    trace
        A row for each part: ``part``, ``rows``, ``bytes``, ``fraction``, ``settled`` (share of the
        validation rows), ``benefit`` (expected benefit per row of the ensemble's decisions; NaN if
        the stopping test did not run after the part) and ``seconds``.
    caveats
        Reasons why nothing is guaranteed.
    performance
        Accuracy on validation rows, compared with that of the most frequent label and of a single
        model; None if it was not measured.
    remarks
        Problems that the performance shows.
    """

    num_parts: int
    parts_read: int
    rows_read: int
    bytes_read: int | None
    fraction: float
    stop_reason: str
    guarantee: str
    is_guaranteed: bool
    num_validation: int
    drift: float
    trace: pd.DataFrame = field(repr=False)
    caveats: tuple[str, ...] = ()
    performance: Performance | None = None
    remarks: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the ensemble on validation rows; None if it was not measured."""
        return None if self.performance is None else self.performance.accuracy

    @property
    def is_one_model(self) -> bool:
        """True if one model was trained on all rows."""
        return self.num_parts == self.parts_read == 1

    @property
    def is_cut_short(self) -> bool:
        """True if some parts were not read."""
        return self.parts_read < self.num_parts

    @property
    def headline(self) -> str:
        """Caveats and remarks as sentences; empty if there are none."""
        lines = list(self.remarks)
        if self.caveats:
            lines.insert(0, f"Nothing is guaranteed: {'; '.join(self.caveats)}")
        return ". ".join(line[:1].upper() + line[1:] for line in lines) + "." * bool(lines)

    def explain(self) -> str:
        """Return a summary in a few lines; problems come first."""
        size = "" if self.bytes_read is None else f", {self.bytes_read:,} bytes"
        if self.is_one_model:
            read = f"One model was trained on all {plural(self.rows_read, 'row')}{size}."
        else:
            read = (
                f"Learned from {self.parts_read} of {self.num_parts} parts, for which "
                f"{plural(self.rows_read, 'row')}{size} ({self.fraction:.1%}) were read."
            )
        performance = "not measured" if self.performance is None else self.performance.explain()
        lines = [
            self.headline,
            read,
            f"Why it stopped: {self.stop_reason}.",
            f"What is guaranteed: {self.guarantee}.",
            f"Accuracy: {performance}.",
        ]
        return "\n".join(line for line in lines if line)


def describe_guarantee(
    rule: AgreementTest, validation: str, num_rows: int, is_shuffled: bool, where: str
) -> str:
    """Return the guarantee of a rule that stopped a scan, as text."""
    share = "every one" if rule.rule == "every" else f"at least {1.0 - rule.tolerance:.1%}"
    what = (
        "the ensemble decides like that of all"
        if validation == "batch"
        else "the settled decisions are those of the ensemble of all"
    )
    order = (
        "over the random order in which they were read"
        if is_shuffled
        else f"if the order of the rows in {where} is independent of their content"
    )
    return (
        f"with probability {rule.confidence:.1%} {what} {rule.num_parts} parts, for {share} "
        f"of {plural(num_rows, 'validation row')}; {order}"
    )


def measure(
    X: Any,
    y: NDArray[Any],
    classes: list[Any],
    benefit: Any,
    majority: Any,
    ensemble: FloatArray | None,
    single: FloatArray | None,
    single_rows: int,
    blocks: NDArray[np.int64] | None = None,
    *,
    is_random: bool = True,
) -> tuple[Performance, list[str]]:
    """Compare the decisions of an ensemble, a single model and a constant for validation rows.

    Parameters
    ----------
    X, y
        The validation rows and their labels.
    classes
        All labels that were seen.
    benefit
        As in `bayes_lcs.PartialScanClassifier`.
    majority
        The most frequent label of the training rows.
    ensemble, single : (n, L)
        Probabilities of the labels; ``ensemble`` is None if it is the single model.
    single_rows
        Number of training rows of the single model.
    blocks : (n,)
        The block of a file in which each row lies; None if rows were drawn one by one.
    is_random
        Whether the rows, or their blocks, are a random sample of the data.

    Returns
    -------
    Performance
        The comparison.
    list of str
        Problems that it shows.
    """
    index = {label: i for i, label in enumerate(classes)}
    true = np.array([index[label] for label in y.tolist()])
    rows = np.arange(len(true))
    benefits = np.broadcast_to(
        build_benefits(benefit, X, classes), (len(true), len(classes), len(classes))
    )
    values = benefits[rows, true]  # of each decision, (n, L)

    def decide(proba: FloatArray) -> NDArray[np.int64]:
        return expected_benefits(proba, benefits).argmax(axis=1)

    def balanced_accuracy(decisions: NDArray[np.int64]) -> float:
        right = decisions == true
        return float(np.mean([right[true == label].mean() for label in np.unique(true)]))

    one = None if single is None else decide(single)
    is_single = ensemble is None
    own = one if ensemble is None else decide(ensemble)
    assert own is not None
    constant = index[majority] if benefit is None else int(values.mean(axis=0).argmax())
    found = Performance(
        len(true),
        float((own == true).mean()),
        balanced_accuracy(own),
        float((true == index[majority]).mean()),
        None if one is None else float((one == true).mean()),
        None if one is None else balanced_accuracy(one),
        single_rows,
        is_single=is_single,
        interval=accuracy_interval(own == true, blocks) if is_random else None,
        **(
            {}
            if benefit is None
            else {
                "benefit": float(values[rows, own].mean()),
                "constant_benefit": float(values[:, constant].mean()),
                "single_benefit": None if one is None else float(values[rows, one].mean()),
            }
        ),
    )
    if len(true) < MIN_COMPARED:
        return found, []
    remarks, value, fixed = [], values[rows, own], values[:, constant]
    behind = float((fixed - value).mean())
    # The best constant decision is chosen on these rows, which favours it slightly.
    error = np.sqrt(_variance_of_mean(fixed - value, blocks)[0])
    if behind >= 0.0 if benefit is None else behind > 2.0 * error:
        remarks.append(
            f"the classifier is no better than predicting {classes[constant]!r} for every row: "
            f"{_format_value(value.mean(), benefit)} against "
            f"{_format_value(fixed.mean(), benefit)} on {len(true):,} validation rows"
        )
    if one is not None and not is_single:
        other = values[rows, one]
        error = np.sqrt(_variance_of_mean(other - value, blocks)[0])
        if (other - value).mean() > max(2.0 * error, MIN_RELATIVE_GAP * abs(other.mean())):
            remarks.append(
                f"one model of {single_rows:,} rows is clearly better than the ensemble: "
                f"{_format_value(other.mean(), benefit)} against "
                f"{_format_value(value.mean(), benefit)} "
                f"on {len(true):,} validation rows; take fewer parts, or n_partitions=1"
            )
    return found, remarks


def accuracy_interval(
    correct: NDArray[np.bool_], blocks: NDArray[np.int64] | None = None
) -> tuple[float, float] | None:
    """Return the confidence interval of an accuracy, measured on rows that come in blocks.

    Neighbouring rows of a sorted file are similar, so that a block is worth fewer rows than it has.
    The variance is that of a ratio estimate over blocks (Cochran 1977, section 11.8, for
    blocks drawn with equal probability), and the interval is Wilson's with the number of
    independent rows that has this variance.

    Parameters
    ----------
    correct : (n,)
        Whether each row was decided correctly.
    blocks : (n,)
        The block of each row; None if rows were drawn one by one.

    Returns
    -------
    tuple or None
        Lower and upper end; None if there are fewer than two blocks.

    Examples
    --------
    >>> low, high = accuracy_interval(np.repeat([True, False], [90, 10]))
    >>> round(low, 2), round(high, 2)
    (0.82, 0.95)
    >>> low, high = accuracy_interval(np.repeat([True, False], [90, 10]), np.arange(100) // 10)
    >>> round(low, 2), round(high, 2)
    (0.52, 0.99)
    """
    from scipy.stats import t as student

    num_rows, accuracy = len(correct), float(correct.mean())
    variance, num_blocks = _variance_of_mean(correct, blocks)
    if num_blocks < 2:
        return None
    # If all rows are correct, or none, the variance is zero and each block counts as one row.
    size = accuracy * (1.0 - accuracy) / variance if variance > 0.0 else float(num_blocks)
    size = min(size, float(num_rows))
    z = float(student.ppf((1.0 + INTERVAL_CONFIDENCE) / 2.0, num_blocks - 1))
    middle = (accuracy + z**2 / (2.0 * size)) / (1.0 + z**2 / size)
    half = z * np.sqrt(accuracy * (1.0 - accuracy) / size + z**2 / (4.0 * size**2))
    half /= 1.0 + z**2 / size
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)


def _variance_of_mean(values: NDArray[Any], blocks: NDArray[np.int64] | None) -> tuple[float, int]:
    """Return the variance of a mean over rows that come in blocks, and the number of blocks."""
    num_rows = len(values)
    codes = np.arange(num_rows) if blocks is None else np.unique(blocks, return_inverse=True)[1]
    num_blocks = int(codes.max()) + 1
    if num_blocks < 2:
        return np.inf, num_blocks
    sums = np.bincount(codes, weights=values - values.mean())
    return num_blocks / (num_blocks - 1) * float(sums @ sums) / num_rows**2, num_blocks


def _format_value(value: float, benefit: Any) -> str:
    return f"{value:.1%} correct" if benefit is None else f"a benefit of {value:.4g} per row"
