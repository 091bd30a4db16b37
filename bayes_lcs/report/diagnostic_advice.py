"""Diagnostics of a comparison in words, with advice where they are bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayes_lcs.inference.diagnostics import MAX_RHAT, MIN_ESS, verdict_on
from bayes_lcs.model_evidence.log_evidence import LogEvidence

__all__ = ["Advice", "draws_advice", "evidence_advice"]

MIN_EFFECTIVE_DRAWS = 10.0
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
    """Result of a check.

    Attributes
    ----------
    is_ok
        True if nothing needs to be done.
    text
        Description of the result, with advice if the check failed.
    """

    is_ok: bool
    text: str


def evidence_advice(name: str, evidence: LogEvidence) -> Advice:
    """Check the evidence of a model."""
    if evidence.is_exact:
        return Advice(True, f"{name}: the evidence is exact.")
    if evidence.bracket is not None and evidence.bracket.forward.is_bound:
        text = (
            f"{name}: only bounds of the evidence ({evidence.method}) are known, "
            f"{evidence.lower:,.2f} and {evidence.upper:,.2f}, from "
            f"{evidence.effective_draws:.0f} effective draws."
        )
    else:
        text = (
            f"{name}: the evidence is an estimate ({evidence.method}), with a standard error of "
            f"{evidence.standard_error:.2g} from {evidence.effective_draws:.0f} effective draws."
        )
    longer = (
        "Use more chains in Python: bl.compare(models, data, precision=…, max_chains=…); "
        "see bl.evidence."
    )
    if evidence.bracket is not None and not evidence.bracket.agrees:
        ends = f"{evidence.bracket.forward.value:,.2f} and {evidence.bracket.reverse.value:,.2f}"
        return Advice(
            False,
            f"{text} Its lower and upper bound, {ends}, disagree: the chains have not converged, "
            "and the true value may lie anywhere between. Do not rely on differences of that size. "
            f"{longer}",
        )
    if evidence.effective_draws < MIN_EFFECTIVE_DRAWS:
        return Advice(
            False,
            f"{text} A few draws carry nearly all of the weight, so the standard error itself is "
            f"uncertain. {longer}",
        )
    if evidence.bracket is not None:
        how = "" if evidence.bracket.rigorous else " (provided that the posterior chains mixed)"
        text += f" Its lower and upper bound agree{how}."
    return Advice(True, text)


def draws_advice(
    quantities: dict[str, dict[str, float]], chains: int
) -> tuple[list[dict[str, str]], list[Advice]]:
    """Return a table of convergence diagnostics, and advice.

    Parameters
    ----------
    quantities
        Result of `bayes_lcs.inference.diagnostics.diagnose`.
    chains
        Number of chains.
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
                "rhat": _format(found["rhat"], ".3f"),
                "bulk": _format(found["ess_bulk"], ",.0f"),
                "tail": _format(found["ess_tail"], ",.0f"),
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
                f"The chains do not yet represent the posterior well ({', '.join(bad)}): R-hat "
                f"should be at most {MAX_RHAT}, and effective draws at least {MIN_ESS:.0f}. "
                "Double --draws until both hold. Until then the probabilities on this page may be "
                "wrong, and another seed may give different ones.",
            )
        )
    if few := by_verdict.get("too few draws"):
        found.append(
            Advice(False, f"Too few draws for diagnostics ({', '.join(few)}): increase --draws.")
        )
    if alone := by_verdict.get("one chain"):
        found.append(
            Advice(
                False,
                f"R-hat compares chains, but there is only one ({', '.join(alone)}): run at least "
                "four with --chains 4.",
            )
        )
    if constant := by_verdict.get("constant"):
        started = (
            f"The {chains} chains had different initial states and agree"
            if chains > 1
            else "There is only one chain"
        )
        found.append(
            Advice(
                chains > 1,
                f"R-hat is not defined for quantities that never varied: {', '.join(constant)}. "
                f"{started}: either the posterior is this certain, or sampling is stuck. Increase "
                "--chains to find out.",
            )
        )
    if not found:
        found.append(
            Advice(
                True,
                f"The chains agree: R-hat is at most {MAX_RHAT}, and there are enough effective "
                "draws.",
            )
        )
    return found


def _format(value: Any, form: str) -> str:
    if np.isnan(value):
        return "–"
    return "∞" if np.isinf(value) else format(value, form)
