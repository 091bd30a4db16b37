"""How far a comparison can be trusted, in words, with what to do where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayes_lcs.inference.diagnostics import MAX_RHAT, MIN_ESS, verdict_on
from bayes_lcs.model_evidence.log_evidence import LogEvidence

__all__ = ["Advice", "trust_in_draws", "trust_in_evidence"]

FEW_EFFECTIVE_DRAWS = 10.0
QUANTITIES = {
    "num_clusters": "number of clusters",
    "largest": "size of the largest cluster",
    "entropy": "entropy of the partition",
    "log_joint": "log probability of the draw",
    "concentration": "concentration",
    "beta": "feature prior",
    "strength": "strength of the prototype",
}


@dataclass(frozen=True)
class Advice:
    """Something that was checked.

    Attributes
    ----------
    fine
        Whether there is nothing to do.
    text
        What was found, and what to do if something is not as it should be.
    """

    fine: bool
    text: str


def trust_in_evidence(name: str, found: LogEvidence) -> Advice:
    """Of one model's evidence."""
    if found.is_exact:
        return Advice(True, f"{name}: the evidence is exact.")
    if found.bracket is not None and found.bracket.forward.is_bound:
        text = (
            f"{name}: of the evidence ({found.method}) only bounds are known, {found.lower:,.2f} "
            f"and {found.upper:,.2f}, from {found.effective_draws:.0f} effective draws."
        )
    else:
        text = (
            f"{name}: the evidence is an estimate ({found.method}), with a standard error of "
            f"{found.standard_error:.2g} from {found.effective_draws:.0f} effective draws."
        )
    longer = (
        "More of them: bl.compare(models, data, precision=…, max_chains=…) in Python; "
        "see bl.evidence."
    )
    if found.bracket is not None and not found.bracket.agrees:
        ends = f"{found.bracket.forward.value:,.2f} and {found.bracket.reverse.value:,.2f}"
        return Advice(
            False,
            f"{text} Its lower and its upper end, {ends}, disagree: the chains had not arrived, "
            "and the truth may lie anywhere between. Do not rely on differences of that size. "
            f"{longer}",
        )
    if found.effective_draws < FEW_EFFECTIVE_DRAWS:
        return Advice(
            False,
            f"{text} A few draws carry nearly all of the weight, so that the error itself is "
            f"uncertain. {longer}",
        )
    if found.bracket is not None:
        how = "" if found.bracket.rigorous else ", as far as the chains behind the upper one mixed"
        text += f" Its lower and its upper end agree{how}."
    return Advice(True, text)


def trust_in_draws(
    quantities: dict[str, dict[str, float]], chains: int
) -> tuple[list[dict[str, str]], list[Advice]]:
    """A table of what was diagnosed, and what follows from it.

    Parameters
    ----------
    quantities
        From `bayes_lcs.inference.diagnostics.diagnose`.
    chains
        How many chains ran.
    """
    rows: list[dict[str, str]] = []
    by_verdict: dict[str, list[str]] = {}
    for key, found in quantities.items():
        name, verdict = QUANTITIES.get(key, key), verdict_on(found)
        by_verdict.setdefault(verdict, []).append(name)
        rows.append(
            {
                "name": name,
                "mean": f"{found['mean']:,.4g}",
                "rhat": _number(found["rhat"], ".3f"),
                "bulk": _number(found["ess_bulk"], ",.0f"),
                "tail": _number(found["ess_tail"], ",.0f"),
                "verdict": "never varied" if verdict == "constant" else verdict,
            }
        )
    return rows, _advice(by_verdict, chains)


def _advice(by_verdict: dict[str, list[str]], chains: int) -> list[Advice]:
    found = []
    if bad := by_verdict.get("not converged"):
        found.append(
            Advice(
                False,
                f"The chains do not yet represent the posterior well ({_listed(bad)}): R-hat "
                f"should be at most {MAX_RHAT}, and effective draws at least {MIN_ESS:.0f}. "
                "Draw more: twice the --draws, and again until both hold. Until then "
                "probabilities on this page may be off, and another seed may give others.",
            )
        )
    if few := by_verdict.get("too few draws"):
        found.append(
            Advice(
                False, f"Too few draws to say anything ({_listed(few)}): ask for more with --draws."
            )
        )
    if alone := by_verdict.get("one chain"):
        found.append(
            Advice(
                False,
                f"R-hat compares chains, and there is one ({_listed(alone)}): run at least four, "
                "--chains 4.",
            )
        )
    if constant := by_verdict.get("constant"):
        started = f"The {chains} chains started apart and agree" if chains > 1 else "One chain ran"
        found.append(
            Advice(
                chains > 1,
                f"Never varied, so that R-hat cannot judge: {_listed(constant)}. {started}: the "
                "posterior may be this certain, or they are stuck. More --chains would tell.",
            )
        )
    if not found:
        found.append(
            Advice(True, f"The chains agree: R-hat at most {MAX_RHAT}, effective draws enough.")
        )
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _number(value: Any, form: str) -> str:
    if np.isnan(value):
        return "–"
    return "∞" if np.isinf(value) else format(value, form)
