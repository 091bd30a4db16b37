"""How well a fitted mixture does, by criteria, and how sure its parameters are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bayes_lcs.clustering.mixture.encode_input import WeightedRows
from bayes_lcs.clustering.mixture.fit import row_sums, statistics_of
from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.inference.em import information_criteria
from bayes_lcs.inference.em.row_layout import plan_rows
from bayes_lcs.models.multinomial_mixture import MultinomialMixture

__all__ = ["MixtureCriteria"]

FloatArray = NDArray[np.float64]


class MixtureCriteria:
    """Criteria and standard errors of `bayes_lcs.MixtureClusterer`."""

    max_iter: int
    tol: float
    _model: MultinomialMixture
    _parameters: MixtureParameters

    def _code_fitted(self, X: Any, sample_weight: Any = None) -> WeightedRows:
        raise NotImplementedError

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion on some rows; less is better."""
        data = self._code_fitted(X, sample_weight)
        return information_criteria.bic(*row_sums(data, self._model, self._parameters)[:3])

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """BIC plus twice the entropy of the clusters of the rows; less is better."""
        data = self._code_fitted(X, sample_weight)
        return information_criteria.icl(*row_sums(data, self._model, self._parameters))

    def cheeseman_stutz(self, X: Any, sample_weight: Any = None) -> float:
        """Approximate log evidence of some rows, AutoClass's score; more is better.

        It needs ``prior > 0``, and is meant for the rows that the mixture was fitted to.
        """
        data = self._code_fitted(X, sample_weight)
        statistics = statistics_of(data, self._parameters)
        return information_criteria.cheeseman_stutz(self._model, self._parameters, statistics)

    def standard_errors(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        method: str = "information",
        n_bootstrap: int = 100,
        random_state: Any = None,
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Standard errors of ``weights_`` and ``probabilities_``.

        Parameters
        ----------
        X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)
            The rows that the mixture was fitted to.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights: numbers of rows, not precisions.
        method : {"information", "bootstrap"}, default="information"
            ``"information"`` inverts the observed information of the log posterior, which takes
            memory of the number of parameters squared. ``"bootstrap"`` fits again to rows drawn
            with replacement, from the present parameters, and matches components.
        n_bootstrap : int, default=100
            Number of fits.
        random_state : int, RandomState instance or None, default=None
            Seed of the bootstrap.

        Returns
        -------
        weights : ndarray of shape (n_components,)
            Standard errors of ``weights_``.
        probabilities : list of ndarray of shape (n_components, n_values)
            Standard errors of ``probabilities_``.

        Notes
        -----
        A probability estimated at 0 or 1, as happens with ``prior=0``, has no standard error from
        the information: it is held fixed, and its own is NaN. So are those of an empty cluster. The
        number of parameters in `bic` and `icl` counts them.
        """
        from bayes_lcs.inference.em import standard_errors as mixture_errors

        if method not in ("information", "bootstrap"):
            raise ValueError(f"method must be 'information' or 'bootstrap', got {method!r}")
        data = self._code_fitted(X, sample_weight)
        plan = plan_rows(data.table, data.weights)
        if method == "information":
            weights, cells = mixture_errors.information_errors(
                self._model, self._parameters, data.table, data.weights
            )
        else:
            seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
            weights, cells = mixture_errors.bootstrap_errors(
                self._model,
                self._parameters,
                plan,
                data.weights,
                num_fits=n_bootstrap,
                max_iter=self.max_iter,
                tol=self.tol,
                seed=seed,
            )
        schema = self._model.schema
        return weights, [cells[schema.cells_of(f)].T for f in range(schema.num_features)]
