"""What a scan read, why it stopped, and what may be said of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from bayes_lcs.classification.agreement import Agreement

__all__ = ["Scan", "guarantee_of"]


@dataclass(frozen=True)
class Scan:
    """One scan, whole or not.

    Attributes
    ----------
    num_parts, parts_read
        Parts of the data, and those that were trained on.
    rows_read, bytes_read
        Counted where they were read; bytes are None of rows in memory.
    fraction
        Share of the data that was read: of the rows, or of the bytes of a text file.
    stop_reason
        Why it ended, in words.
    guarantee
        What holds, with which confidence, and on what condition; in words.
    is_guaranteed
        Whether anything does.
    num_validation
        Rows on which the ensembles were compared.
    drift
        How likely neighbouring parts are so much alike if their order means nothing; 1 where that
        was not asked.
    trace
        A row for each part: ``part``, ``rows``, ``bytes``, ``fraction``, ``settled`` (share of the
        validation rows), ``benefit`` (that the ensemble expects of its decisions, a row; NaN where
        there was no look after the part) and ``seconds``.
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

    def explain(self) -> str:
        """The whole story in a few lines."""
        size = "" if self.bytes_read is None else f", {self.bytes_read:,} bytes"
        return (
            f"Learned from {self.parts_read} of {self.num_parts} parts, for which "
            f"{self.rows_read:,} rows{size} ({self.fraction:.1%}) were read.\n"
            f"Why it stopped: {self.stop_reason}.\n"
            f"What holds: {self.guarantee}."
        )


def guarantee_of(
    rule: Agreement, validation: str, num_rows: int, is_shuffled: bool, where: str
) -> tuple[str, bool]:
    """What a rule that stopped a scan promises, and whether it does at all."""
    if rule.bound != "betting":
        weak = (
            f"nothing for sure: Hoeffding's bound gives {rule.confidence:.1%} for one look at one "
            "row, but was looked at after every part and for every row"
        )
        return weak, False
    share = "every one" if rule.rule == "every" else f"at least {1.0 - rule.tolerance:.1%}"
    what = (
        "the ensemble decides as that of all"
        if validation == "batch"
        else "the decisions that were settled are those of the ensemble of all"
    )
    order = (
        "over the random order in which they were read"
        if is_shuffled
        else f"if the order of the rows in {where} has nothing to do with what they say"
    )
    promise = (
        f"with probability {rule.confidence:.1%} {what} {rule.num_parts} parts would, for {share} "
        f"of {num_rows:,} validation rows; {order}"
    )
    return promise, True
