"""Convergence diagnostics: R-hat and effective sample sizes of sampled quantities.

This is the only module that calls ``arviz_stats``, on plain arrays ``(chains, draws, ...)``. R-hat
is the rank-normalised split R-hat of Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021 (eqs. 4
and 14); effective sample sizes are those of the bulk and the tails there.

The diagnosed quantities are invariants of the partition, since cluster numbers are arbitrary, and
learned hyper-parameters. R-hat uses ranks, but sums over clusters in another order differ in the
last digits: values of an invariant that differ by rounding errors are treated as equal.
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
MAX_RHAT = 1.01
MIN_ESS = 400.0
TAIL = 0.89
"""Probability of the interval between the tails: ArviZ's default, whatever a user has set there."""
ROUNDING = 4096 * np.finfo(np.float64).eps
"""Relative tolerance; rounding errors of sums over thousands of clusters are far smaller."""
MAX_NAMES = 5
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
    """Convergence diagnostics of one fit.

    Attributes
    ----------
    verdict
        The worst of all quantities: ``"exact"`` if nothing was drawn; ``"converged"``;
        ``"constant"`` if a quantity never varied, so that R-hat is undefined; ``"one chain"`` if
        effective draws suffice, but R-hat needs more chains; ``"too few draws"`` for both;
        ``"not converged"``.
    rhat
        Largest R-hat; NaN if there is none.
    ess
        Smallest effective sample size, of bulk and tails; NaN if there is none.
    quantities
        Diagnostics of each quantity, from :func:`diagnose`.
    """

    verdict: Verdict
    rhat: float = float("nan")
    ess: float = float("nan")
    quantities: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)

    def names(self, verdict: Verdict) -> tuple[str, ...]:
        """Return the names of the quantities with this verdict."""
        return tuple(name for name, q in self.quantities.items() if verdict_on(q) == verdict)


def diagnose(draws: Mapping[str, NDArray]) -> dict[str, dict[str, float]]:
    """Compute R-hat and effective sample sizes of invariants and learned hyper-parameters.

    For a quantity with many entries the worst values are returned. R-hat of a constant is NaN if
    all chains agree on its value, and infinite if they do not.

    Parameters
    ----------
    draws
        Arrays ``(chains, draws, ...)`` by name; names that are not diagnosed are ignored.

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
        if name not in draws:
            continue
        values = np.asarray(draws[name], dtype=np.float64)
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
    """Return the values with those made equal that differ by rounding errors only."""
    if not np.isfinite(values).all():
        return values
    distinct, place = np.unique(values, return_inverse=True)
    apart = np.diff(distinct, prepend=-np.inf) > ROUNDING * np.abs(distinct).max()
    result: FloatArray = distinct[apart][np.cumsum(apart) - 1][place.reshape(values.shape)]
    return result


def verdict_on(quantity: Mapping[str, float]) -> Verdict:
    """Return the verdict on one quantity from its R-hat and effective sample sizes.

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
    if rhat > MAX_RHAT or not ess >= MIN_ESS:
        return "not converged"
    return "one chain" if np.isnan(rhat) else "converged"


def judge(posterior: object) -> Convergence:
    """Diagnose a posterior from :func:`bayes_lcs.inference.condition.condition`.

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
    """Issue one warning for all fits of a call that did not converge, or that cannot be diagnosed.

    Parameters
    ----------
    fits
        Diagnostics by the name of each fit.
    draws, chains
        Parameters of the sampler.
    remedy
        Advice to the user.
    stacklevel
        3 points to the caller of the calling function.
    """
    constant, alone, few, poor = (
        {name: fit for name, fit in fits.items() if fit.verdict == verdict}
        for verdict in _SEVERITY[1:]
    )
    found = []
    if poor:
        rhats = [fit.rhat for fit in poor.values() if not np.isnan(fit.rhat)]
        worst = f"worst R-hat {max(rhats):.3f} (should be at most {MAX_RHAT}), " if rhats else ""
        found.append(
            f"{_which(poor, len(fits))} did not converge: {worst}fewest effective draws "
            f"{min(fit.ess for fit in poor.values()):.0f} (should be at least {MIN_ESS:.0f})"
        )
    if few:
        found.append(f"{_which(few, len(fits))} had too few draws for R-hat and effective draws")
    if found:
        only = "only " if draws * chains < MIN_ESS else ""
        found.append(f"the sampler used {only}draws={draws}, chains={chains}; {remedy}")
    if alone or (found and chains == 1):
        found.append("R-hat needs at least two chains: run more (chains=)")
    if constant:
        never = sorted({name for fit in constant.values() for name in fit.names("constant")})
        found.append(
            f"in {_which(constant, len(fits))} {', '.join(never)} never varied, so that R-hat "
            "cannot show whether the chains converged: the posterior may be this concentrated, or "
            "the chains are stuck; compare with more chains"
        )
    if found:
        sentences = (text[0].upper() + text[1:] for text in found)
        warnings.warn(". ".join(sentences), SamplingWarning, stacklevel=stacklevel)


def _which(names: Collection[str], total: int) -> str:
    if total == 1:
        return next(iter(names))
    shown = list(names)[:MAX_NAMES]
    more = f"; and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{len(names)} of {total} fits ({'; '.join(shown)}{more})"
