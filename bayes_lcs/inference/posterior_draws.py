"""Draws of all unknown quantities of a sharing model, and predictions averaged over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel, PrototypeModel
from bayes_lcs.core.naive_bayes import normalise_log
from bayes_lcs.core.predictive import ConditionalPredictive

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["PosteriorDraws"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Draws from the posterior of one model on one table.

    Attributes
    ----------
    model, data
        The model and the table.
    unknown
        Draws ``(chains, draws, ...)`` by name: the partition ``z``, and if they are unknown
        ``latent_label``, ``concentration``, ``beta``, ``prototype`` and ``strength``.
    stats
        Further statistics of the draws, ``(chains, draws)`` by name.
    latent_probability : (M, L), optional
        Mean of the conditional probabilities from which the missing labels were drawn.
    interrupted
        True if Ctrl-C ended the run early.
    sweeps_per_second
        Rate after compilation, summed over chains.
    """

    model: Any
    data: GroupedTable
    unknown: dict[str, NDArray]
    stats: dict[str, NDArray] = field(default_factory=dict)
    latent_probability: FloatArray | None = None
    interrupted: bool = False
    sweeps_per_second: float = float("nan")

    @property
    def num_draws(self) -> int:
        """Total number of draws in all chains."""
        chains, draws = self.unknown["z"].shape[:2]
        return int(chains * draws)

    @property
    def is_certain(self) -> bool:
        """True if the partition, all labels and all hyper-parameters are known."""
        return isinstance(self.model, KnownPartitionModel) and set(self.unknown) == {"z"}

    def partitions(self) -> IntArray:
        """Return all draws of the partition, ``(S, U)``, with the chains concatenated."""
        return self._flat("z").astype(np.int64)

    def _flat(self, name: str) -> NDArray:
        values = self.unknown[name]
        return values.reshape(-1, *values.shape[2:])

    def informants(self, max_draws: int | None = None) -> Iterator[ConditionalPredictive]:
        """Yield the predictive distribution given each draw, or evenly spaced ones."""
        if max_draws is not None and max_draws < 1:
            raise ValueError(f"max_draws must be at least 1, or None for all; got {max_draws}")
        return self._informants(self.num_draws if max_draws is None else max_draws)

    def _informants(self, max_draws: int) -> Iterator[ConditionalPredictive]:
        size = self.num_draws
        wanted = min(max_draws, size)
        flat = {name: self._flat(name) for name in self.unknown}
        missing = self.data.labels < 0
        counts = self.data.counts()
        for draw in np.unique(np.linspace(0, size - 1, wanted).astype(int)):
            drawn = {name: values[draw] for name, values in flat.items()}
            if "latent_label" in drawn:
                labels = self.data.labels.copy()
                labels[missing] = drawn["latent_label"]
                counts = self.data.with_labels(labels).counts()
            learned = {
                name: float(drawn[site])
                for name, site in (("feature_prior", "beta"), ("concentration", "concentration"))
                if site in drawn
            }
            model = replace(self.model, **learned)
            given: tuple[Any, ...] = ()
            if isinstance(model, PartitionModel):
                given = (drawn["z"].astype(np.int64),)
            elif isinstance(model, PrototypeModel):
                given = (drawn["prototype"], drawn["strength"])
            yield model.informants(counts, *given)

    def predict_proba(
        self,
        rows: Any = None,
        *,
        unseen: Literal["missing", "error"] = "missing",
        max_draws: int | None = 200,
    ) -> FloatArray:
        """Return the probability of each label for each row, averaged over the draws.

        Parameters
        ----------
        rows
            New rows, of known or new groups: a pandas, polars or Arrow frame, a table, or the path
            of a CSV or Parquet file. None predicts the rows of the training table without a label.
        unseen : {"missing", "error"}
            Treatment of feature values not seen in training: as missing, or an error.
        max_draws
            Maximum number of draws that are averaged, evenly spaced in the chains; None for all.

        Returns
        -------
        (N, L)
            Columns in the order of ``data.label_values``.
        """
        if rows is None:
            if self.latent_probability is None:
                raise ValueError(
                    "rows is required, since every row of the training table has a label"
                )
            return self.latent_probability
        encoded = self.data.encode(rows, unseen=unseen)
        total = np.full((encoded.num_rows, encoded.num_labels), -np.inf)
        for informants in self.informants(max_draws):
            np.logaddexp(total, informants.log_joint(encoded.features, encoded.groups), out=total)
        return normalise_log(total)
