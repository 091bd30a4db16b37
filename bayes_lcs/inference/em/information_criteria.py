"""Criteria for the number of components.

With ``l`` the log-likelihood at ``theta``, ``d`` the number of free parameters and ``N`` the weight
of the rows::

    BIC = -2 l + d log N                                    (Schwarz 1978)
    ICL = BIC + 2 H,  H = -sum_n w_n sum_k r_nk log r_nk    (Biernacki, Celeux, Govaert 2000)
    CS  = log p(D') + l - log p(D' | theta)                 (Cheeseman and Stutz 1996)

Lower is better for the first two, higher for the last. ``D'`` are the data completed with the
expected counts at ``theta``, whose evidence has a closed form, so that CS approximates the log
evidence. It counts one of the ``K!`` equivalent orders of the components, as AutoClass does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics

__all__ = ["bic", "cheeseman_stutz", "entropies", "icl"]

FloatArray = NDArray[np.float64]


def bic(log_likelihood: float, num_free_parameters: int, weight: float) -> float:
    """Return the Bayesian information criterion; lower is better.

    Examples
    --------
    >>> round(bic(-10.0, 2, np.e), 12)
    22.0
    """
    return -2.0 * log_likelihood + num_free_parameters * float(np.log(weight))


def entropies(responsibilities: FloatArray) -> FloatArray:
    """Return the entropy of the component of each row, in nats."""
    return np.asarray(-xlogy(responsibilities, responsibilities).sum(axis=1))


def icl(
    log_likelihood: float, num_free_parameters: int, weight: float, entropy_of_rows: float
) -> float:
    """Return the integrated completed likelihood, on the scale of BIC; lower is better."""
    return bic(log_likelihood, num_free_parameters, weight) + 2.0 * entropy_of_rows


def cheeseman_stutz(
    model: Any, parameters: MixtureParameters, statistics: MixtureStatistics
) -> float:
    """Return an approximate log evidence, from statistics at the parameters; higher is better."""
    completed = float(
        xlogy(statistics.components, parameters.weights).sum()
        + xlogy(statistics.cells, parameters.cells).sum()
    )
    return float(model.log_marginal(statistics) + statistics.log_likelihood - completed)
