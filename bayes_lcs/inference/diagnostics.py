"""Whether draws represent the posterior: R-hat and effective draws of whatever was sampled.

The only module that calls ``arviz_stats``, on plain arrays ``(chains, draws, ...)``; R-hat is the
rank-normalised split one of Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021 (eqs. 4 and 14),
effective draws are those of the bulk and of the tails there.

Diagnosed are invariants of the partition, because block numbers mean nothing, and what was learned.
R-hat looks at ranks, and the same partition with its blocks in another order sums to another last
digit: values of an invariant that differ by rounding alone are the same value here.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.posterior_draws import PosteriorDraws

__all__ = [
    "Convergence",
    "SamplingWarning",
    "diagnose",
    "judge",
    "verdict_on",
    "warn_of_fits",
]

FloatArray = NDArray[np.float64]
Verdict = Literal["exact", "converged", "constant", "one chain", "too few draws", "not converged"]

INVARIANTS = ("num_clusters", "largest", "entropy", "log_joint")
LEARNED = ("concentration", "beta", "strength")
WORST_RHAT = 1.01
LEAST_ESS = 400.0
TAIL = 0.89
"""Where the tails begin: ArviZ's default, but not at the mercy of a user's settings of ArviZ."""
ROUNDING = 4096 * np.finfo(np.float64).eps
"""Relative to the largest value; a sum over thousands of blocks is off by far less."""
MOST_NAMES = 5
_SEVERITY: tuple[Verdict, ...] = (
    "converged",
    "constant",
    "one chain",
    "too few draws",
    "not converged",
)


class SamplingWarning(UserWarning):
    """The chains may not represent the posterior; the message says what to do."""


@dataclass(frozen=True, eq=False)
class Convergence:
    """How far the draws behind one fit can be trusted.

    Attributes
    ----------
    verdict
        The worst of all quantities: ``"exact"`` where nothing was drawn; ``"converged"``;
        ``"constant"`` where a quantity never varied, so that R-hat cannot judge it; ``"one
        chain"`` where effective draws are enough, but R-hat had nothing to compare; ``"too few
        draws"`` for both; ``"not converged"``.
    rhat
        The largest R-hat there is; NaN if there is none.
    ess
        The fewest effective draws, of bulk and tails; NaN if there are none.
    quantities
        What :func:`diagnose` found of each quantity.
    """

    verdict: Verdict
    rhat: float = float("nan")
    ess: float = float("nan")
    quantities: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)

    def names(self, verdict: Verdict) -> tuple[str, ...]:
        """The quantities on which this is the verdict."""
        return tuple(name for name, q in self.quantities.items() if verdict_on(q) == verdict)


def diagnose(drawn: Mapping[str, NDArray]) -> dict[str, dict[str, float]]:
    """R-hat and effective sample sizes of the invariants, and of what was learned.

    Of a quantity with many entries the worst are given. What never varied has no R-hat: it is NaN
    where all chains agree on the constant, and infinite where they do not.

    Parameters
    ----------
    drawn
        Arrays ``(chains, draws, ...)`` by name; other names than those diagnosed are passed over.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> good = diagnose({"log_joint": draws})["log_joint"]
    >>> good["rhat"] < 1.01, good["ess_bulk"] > 400
    (True, True)
    >>> draws[3] += 1.0
    >>> diagnose({"log_joint": draws})["log_joint"]["rhat"] > 1.1
    True
    """
    result = {}
    for name in (*INVARIANTS, *LEARNED):
        if name not in drawn:
            continue
        values = np.asarray(drawn[name], dtype=np.float64)
        if name in INVARIANTS:
            values = _without_rounding(values)
        spread = np.ptp(values, axis=1)
        agree = np.ptp(values, axis=(0, 1)) == 0
        stuck = bool(((spread == 0).all(axis=0) & ~agree).any())
        if stuck or agree.any():
            result[name] = {
                "rhat": float("inf") if stuck else float("nan"),
                "ess_bulk": 0.0 if stuck else float("nan"),
                "ess_tail": 0.0 if stuck else float("nan"),
                "mean": float(values.mean()),
                "constant": not stuck,
            }
        else:
            result[name] = _measure(values)
    return result


def _measure(values: FloatArray) -> dict[str, float]:
    import arviz_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(divide="ignore", invalid="ignore"):  # halves of chains may be constant
        return {
            "rhat": float(np.max(arviz_stats.rhat(values, **axes))),
            "ess_bulk": float(np.min(arviz_stats.ess(values, method="bulk", **axes))),
            "ess_tail": float(np.min(arviz_stats.ess(values, method="tail", prob=TAIL, **axes))),
            "mean": float(values.mean()),
            "constant": False,
        }


def _without_rounding(values: FloatArray) -> FloatArray:
    """The values, those that differ by no more than rounding made equal."""
    if not np.isfinite(values).all():
        return values
    distinct, place = np.unique(values, return_inverse=True)
    apart = np.diff(distinct, prepend=-np.inf) > ROUNDING * np.abs(distinct).max()
    result: FloatArray = distinct[apart][np.cumsum(apart) - 1][place.reshape(values.shape)]
    return result


def verdict_on(quantity: Mapping[str, float]) -> Verdict:
    """What R-hat and effective draws say of one quantity that was drawn.

    Examples
    --------
    >>> verdict_on({"rhat": 1.002, "ess_bulk": 950.0, "ess_tail": 310.0, "constant": False})
    'not converged'
    """
    rhat, ess = quantity["rhat"], min(quantity["ess_bulk"], quantity["ess_tail"])
    if quantity["constant"]:
        return "constant"
    if np.isnan(rhat) and np.isnan(ess):
        return "too few draws"
    if rhat > WORST_RHAT or not ess >= LEAST_ESS:
        return "not converged"
    return "one chain" if np.isnan(rhat) else "converged"


def judge(posterior: object) -> Convergence:
    """Diagnose what :func:`bayes_lcs.inference.condition.condition` returned.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=5)
    >>> judge(bl.exact(bl.NoSharing(), data)).verdict
    'exact'
    """
    if not isinstance(posterior, PosteriorDraws) or posterior.is_certain:
        return Convergence("exact")
    quantities = diagnose({**posterior.stats, **posterior.unknown})
    rhat = [q["rhat"] for q in quantities.values()]
    ess = [q[kind] for q in quantities.values() for kind in ("ess_bulk", "ess_tail")]
    return Convergence(
        max(map(verdict_on, quantities.values()), key=_SEVERITY.index),
        max((value for value in rhat if not np.isnan(value)), default=float("nan")),
        min((value for value in ess if not np.isnan(value)), default=float("nan")),
        quantities,
    )


def warn_of_fits(
    fits: Mapping[str, Convergence],
    draws: int,
    chains: int,
    *,
    remedy: str = "draw more (draws=)",
    stacklevel: int = 3,
) -> None:
    """One warning for all fits of a call that did not converge, or of which none can tell.

    Parameters
    ----------
    fits
        By names that say which fit it was.
    draws, chains
        What was asked of the sampler.
    remedy
        What the caller's user can do.
    stacklevel
        3 points to whoever called the caller.
    """
    constant, alone, few, poor = (
        {name: fit for name, fit in fits.items() if fit.verdict == verdict}
        for verdict in _SEVERITY[1:]
    )
    found = []
    if poor:
        rhats = [fit.rhat for fit in poor.values() if not np.isnan(fit.rhat)]
        worst = f"worst R-hat {max(rhats):.3f} (at most {WORST_RHAT} is wanted), " if rhats else ""
        found.append(
            f"{_which(poor, len(fits))} did not converge: {worst}fewest effective draws "
            f"{min(fit.ess for fit in poor.values()):.0f} (at least {LEAST_ESS:.0f} are wanted)"
        )
    if few:
        found.append(f"{_which(few, len(fits))} had too few draws for R-hat and effective draws")
    if found:
        only = "only " if draws * chains < LEAST_ESS else ""
        found.append(f"the sampler was asked for {only}draws={draws}, chains={chains}; {remedy}")
    if alone or (found and chains == 1):
        found.append("R-hat compares chains, and there is one: run more (chains=)")
    if constant:
        never = sorted({name for fit in constant.values() for name in fit.names("constant")})
        found.append(
            f"in {_which(constant, len(fits))} {', '.join(never)} never varied, so that R-hat "
            "cannot say whether the chains converged: the posterior may be this certain, or they "
            "are stuck; compare with more chains"
        )
    if found:
        sentences = (text[0].upper() + text[1:] for text in found)
        warnings.warn(". ".join(sentences), SamplingWarning, stacklevel=stacklevel)


def _which(names: Collection[str], total: int) -> str:
    if total == 1:
        return next(iter(names))
    shown = list(names)[:MOST_NAMES]
    more = f"; and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{len(names)} of {total} fits ({'; '.join(shown)}{more})"
