"""What a fitted mixture says of rows, and rows that it draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from bayes_lcs.clustering.mixture.encode_input import WeightedRows, decoded
from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.inference.em.row_densities import log_density, map_rows, responsibilities
from bayes_lcs.models.multinomial_mixture import MultinomialMixture

__all__ = ["PredictsRows"]

FloatArray = NDArray[np.float64]


class PredictsRows:
    """Clusters and densities of rows under `bayes_lcs.MixtureClusterer`."""

    random_state: Any
    categories_: list[NDArray[Any]]
    _model: MultinomialMixture
    _parameters: MixtureParameters

    def _code_fitted(self, X: Any, sample_weight: Any = None) -> WeightedRows:
        raise NotImplementedError

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each cluster, for each row.

        Parameters
        ----------
        X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Rows add up to one.
        """
        return self._map(X, responsibilities)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The most probable cluster of each row; see `predict_proba`."""
        return self._map(X, lambda joint: joint.argmax(axis=1))

    def score_samples(self, X: Any) -> FloatArray:
        """``log p(x)`` of each row, in nats; missing cells are summed out."""
        return self._map(X, log_density)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean of `score_samples`."""
        del y
        scores = self.score_samples(X)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, scores)
        return float(np.average(scores, weights=weights))

    def anomaly_score(self, X: Any) -> FloatArray:
        """How surprising each row is: ``-log p(x)`` in nats, more is stranger.

        Missing cells surprise nobody, so that rows with many of them score low. The expected
        score of a row without missing cells that the mixture itself draws is its entropy.
        """
        return -self.score_samples(X)

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows of values out of ``categories_``; of objects unless all columns are numbers.
        y : ndarray of shape (n_samples,)
            The clusters that they come from.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rows, components, _ = self._model.simulate(int(n_samples), seed, self._parameters)
        return decoded(rows, self.categories_), components

    def _map(self, X: Any, function: Callable[[FloatArray], NDArray[Any]]) -> NDArray[Any]:
        data = self._code_fitted(X)
        return map_rows(self._parameters, data.table, function)
