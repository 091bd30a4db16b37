"""What a paper says, from the ``expected.toml`` of its folder, beside what we find."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from experiments.papers.outcome import Finding

AGREES = {True: "yes", False: "NO", None: "cannot be compared"}
TOO_SMALL = "A smoke run is too small to judge; run without --smoke."
UNEXPLAINED = "No reason has been written for this data set."


class Setting(Protocol):
    """What a comparison asks of a setting: its name, and whether it is too small to judge."""

    @property
    def name(self) -> str: ...

    @property
    def smoke(self) -> bool: ...


@dataclass(frozen=True)
class Claim:
    """One published figure or statement.

    Attributes
    ----------
    experiment
        The experiment that answers it.
    reference
        Where the paper says it.
    says, published
        What it says, and the published figure or finding.
    reasons
        Why we may not agree, by data set; under ``other`` for every other one.
    mathematical
        Whether it is true or false of any data, so that a smoke run can judge it.
    """

    name: str
    experiment: str
    reference: str
    says: str
    published: str
    reasons: Mapping[str, str]
    mathematical: bool = False


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The claims that a file lists, in its order."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Claim(name, **entry) for name, entry in entries.items())


def compare(
    experiment: str,
    findings: Mapping[str, Finding],
    setting: Setting,
    known: Sequence[Claim],
) -> pd.DataFrame:
    """Published and ours side by side, with the reason where they do not agree."""
    asked = [claim for claim in known if claim.experiment == experiment]
    if {claim.name for claim in asked} != set(findings):
        raise ValueError(
            f"{experiment} answers {sorted(findings)}, and expected.toml asks it "
            f"{sorted(claim.name for claim in asked)}"
        )
    rows = []
    for claim in asked:
        found = findings[claim.name]
        row = {"claim": claim.name, "says": claim.says, "reference": claim.reference}
        row |= {"published": claim.published, "ours": found.ours, "agrees": AGREES[found.agrees]}
        rows.append({**row, "reason": _reason(claim, found, setting)})
    return pd.DataFrame(rows)


def _reason(claim: Claim, found: Finding, setting: Setting) -> str:
    if found.agrees or found.reason:
        return found.reason
    if setting.smoke and found.agrees is False and not claim.mathematical:
        return TOO_SMALL
    return claim.reasons.get(setting.name, claim.reasons.get("other", UNEXPLAINED))


def show_comparison(comparison: pd.DataFrame, console: Console, title: str) -> None:
    table = RichTable(title=title, title_justify="left", show_lines=True, expand=True)
    shares = {"says": 4, "reference": 2, "published": 2, "ours": 3, "agrees?": 2, "reason": 5}
    for column, share in shares.items():
        table.add_column(column, ratio=share)
    for _, row in comparison.iterrows():
        table.add_row(*(Text(row[column.rstrip("?")]) for column in shares))
    console.print(table)
