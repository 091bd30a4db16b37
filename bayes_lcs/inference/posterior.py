"""``bl.sample``, and the posterior that it returns."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.decisions import decide
from bayes_lcs.core.model_protocols import PartitionModel
from bayes_lcs.core.partitions import coclustering_matrix
from bayes_lcs.inference.datatree import diagnose, draws_datatree
from bayes_lcs.inference.diagnostics import SamplingWarning, verdict_on
from bayes_lcs.inference.partition_estimate import PartitionEstimate, estimate_partition
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from bayes_lcs.runtime.atomic_files import save_datatree
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import require_memory

if TYPE_CHECKING:
    import scipy.sparse
    import xarray as xr

    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["Posterior", "sample"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_DENSE_GROUPS = 4000
BYTES_PER_PAIR = 12
"""Memory of an entry of a sparse array: a number and its index, in 32 bits each, and some more."""


class Posterior:
    """Draws from the posterior of a sharing model.

    Attributes
    ----------
    model, data
        The model and the table.
    datatree : xarray.DataTree
        The draws in ArviZ's schema: ``datatree["posterior"]["z"]`` and so on.
    """

    def __init__(self, model: Any, data: GroupedTable, datatree: xr.DataTree) -> None:
        self.model = model
        self.data = data
        self.datatree = datatree

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups, in the order of every array here."""
        return self.data.group_names

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended the run early."""
        return bool(json.loads(self.datatree.attrs.get("interrupted", "false")))

    @property
    def draws(self) -> PosteriorDraws:
        """The draws as plain arrays."""
        latent = self.datatree["constant_data"].get("latent_probability")
        return PosteriorDraws(
            self.model,
            self.data,
            {name: np.asarray(values) for name, values in self.datatree["posterior"].items()},
            {name: np.asarray(values) for name, values in self.datatree["sample_stats"].items()},
            None if latent is None else np.asarray(latent),
            self.interrupted,
        )

    def partitions(self) -> IntArray:
        """Return all draws of the partition, ``(S, U)``, with the chains concatenated."""
        return self.draws.partitions()

    def partition_estimate(self, loss: str = "vi", *, level: float = 0.95) -> PartitionEstimate:
        """Search the partition with the smallest expected loss, and compute its credible ball."""
        z = np.asarray(self.datatree["posterior"]["z"])
        return estimate_partition(z.reshape(-1, z.shape[-1]), loss, level=level)

    def partition(self, loss: str = "vi") -> IntArray:
        """Return the partition ``(U,)`` with the smallest expected loss, "vi" or "binder"."""
        return self.partition_estimate(loss).partition

    def num_clusters(self) -> FloatArray:
        """Return the posterior probability of each number of clusters ``k``, at entry ``k``."""
        counts = (
            np.asarray(self.datatree["posterior"]["z"]).max(axis=-1).reshape(-1).astype(np.int64)
            + 1
        )
        return np.bincount(counts, minlength=self.data.num_groups + 1) / len(counts)

    def coclustering(
        self, groups: Sequence[Any] | None = None
    ) -> FloatArray | scipy.sparse.csr_array:
        """Return the share of draws in which each pair of groups shares a cluster, ``(U, U)``.

        Beyond 4,000 groups the result is a sparse array. A `MemoryError` is raised if it does not
        fit into memory.

        Parameters
        ----------
        groups
            Names or codes of the groups, in the order of the result; all groups by default.
        """
        z = np.asarray(self.datatree["posterior"]["z"])
        z = z.reshape(-1, z.shape[-1])
        if groups is not None:
            z = z[:, self.data.group_codes(groups)]
        z = z.astype(np.int64)
        num_draws, num_groups = z.shape
        if num_groups <= MAX_DENSE_GROUPS:
            return coclustering_matrix(z)
        import scipy.sparse

        # Pairs in the same cluster in the last draw, twice for the buffers of the product.
        pairs = float((np.bincount(z[-1]).astype(np.float64) ** 2).sum())
        require_memory(
            2 * BYTES_PER_PAIR * pairs + 16.0 * z.size,
            f"co-clustering of {num_groups:,} groups",
            "Ask for some of them: coclustering(groups=[...])",
        )
        columns = z + np.arange(num_draws)[:, None] * (int(z.max()) + 1)
        rows = np.tile(np.arange(num_groups), num_draws)
        ones = np.ones(z.size, dtype=np.float32)
        members = scipy.sparse.csr_array(
            (ones, (rows, columns.reshape(-1))), shape=(num_groups, int(columns.max()) + 1)
        )
        return (members @ members.T) / num_draws

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """Return R-hat and effective sample sizes of invariants of the partition."""
        return diagnose(self.datatree)

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
        return self.draws.predict_proba(rows, unseen=unseen, max_draws=max_draws)

    def decide(
        self,
        rows: Any = None,
        loss: ArrayLike | None = None,
        *,
        unseen: Literal["missing", "error"] = "missing",
    ) -> NDArray[Any]:
        """Return the label with the smallest expected loss for each row.

        Labels have the type of the label column.

        Parameters
        ----------
        rows, unseen
            As in `predict_proba`.
        loss : (L, L)
            Loss of each decision (column) under each true label (row); 0-1 loss by default.
        """
        num_labels = self.data.num_labels
        if loss is not None and np.shape(loss) != (num_labels, num_labels):
            raise ValueError(
                f"loss must have shape ({num_labels}, {num_labels}), a row for each true label and "
                f"a column for each decision; got {np.shape(loss)}"
            )
        chosen = decide(self.predict_proba(rows, unseen=unseen), loss)
        return self.data.typed_label_values[chosen]

    def save(self, path: str | Path) -> Path:
        """Write the posterior as netCDF, atomically, with a checksum beside it.

        An existing file is replaced.
        """
        return save_datatree(self.datatree, path)

    def __repr__(self) -> str:
        sizes = self.datatree["posterior"].sizes
        return (
            f"<Posterior of {self.model.name}: {sizes['chain']} chains of {sizes['draw']} draws, "
            f"{self.data.num_groups} groups>"
        )


def sample(
    model: Any,
    data: GroupedTable,
    *,
    draws: int = 1000,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
    split_merge: int = 1,
    start: Literal["auto", "apart", "grown"] = "auto",
    seed: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> Posterior:
    """Draw from the posterior of a sharing model by collapsed Gibbs sampling.

    The partition, missing labels and learned hyper-parameters are sampled; for a `Prototype` model
    also the prototypes and strengths. The groups' naive Bayes parameters are integrated out.

    Parameters
    ----------
    model
        ``NoSharing``, ``CompleteSharing``, ``Prototype`` or ``ClusteredNaiveBayes``.
    data : GroupedTable
        The table. Labels and features may be missing.
    draws, chains
        Number of draws per chain, and number of chains.
    warmup
        Sweeps before the first draw; half the number of draws by default.
    thin
        Sweeps from one draw to the next.
    split_merge
        Split-merge proposals per sweep.
    start : {"auto", "apart", "grown"}
        Initial partitions of the chains. ``"apart"``: all groups in one cluster, each group in its
        own, random partitions; agreement of such chains is strong evidence of convergence.
        ``"grown"``: by sweeps over a few groups, then over more and more of them, in another order
        for each chain (subsample annealing); with thousands of groups, chains that start apart do
        not find the clusters. ``"auto"`` uses ``"grown"`` beyond 1,000 groups. The posterior does
        not depend on it, only the time to convergence.
    seed
        The same seed gives the same draws on the same machine.
    progress
        Show a progress bar; None shows one on a terminal.
    executor
        Executor on which chains run, each as one task, from :func:`bayes_lcs.executor`; None for
        this process. Draws do not depend on it. After Ctrl-C, finished chains are kept in
        `bayes_lcs.checkpoints`.

    Warns
    -----
    SamplingWarning
        If R-hat exceeds 1.01, the effective sample size of an invariant is below 400, or an
        invariant never varied, so that R-hat is undefined.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0)
    >>> with warnings.catch_warnings():  # the posterior is so certain that nothing varies
    ...     warnings.simplefilter("ignore", bl.SamplingWarning)
    ...     post = bl.sample(bl.ClusteredNaiveBayes(), data, draws=100, seed=0)
    >>> bool((post.partition() == truth.partition).all())
    True
    """
    from bayes_lcs.inference.draw_posterior import draw_posterior

    found = draw_posterior(
        model,
        data,
        draws=draws,
        chains=chains,
        warmup=warmup,
        thin=thin,
        split_merge=split_merge,
        start=start,
        seed=seed,
        progress=progress,
        executor=executor,
    )
    posterior = Posterior(model, data, draws_datatree(found, seed))
    _warn(posterior)
    return posterior


def _warn(posterior: Posterior) -> None:
    """Warn if chains disagree, effective draws are few, or R-hat is undefined."""
    tree = posterior.datatree["posterior"]
    if set(tree.data_vars) == {"z"} and not isinstance(posterior.model, PartitionModel):
        return  # the model has no unknown quantities
    partitioned = isinstance(posterior.model, PartitionModel)
    moves = ", or try more split-merge moves (split_merge=)" if partitioned else ""
    constant: list[str] = []
    alone: list[str] = []
    too_few: list[str] = []
    for name, found in posterior.diagnostics().items():
        rhat, ess = found["rhat"], min(found["ess_bulk"], found["ess_tail"])
        verdict = verdict_on(found)
        if verdict == "constant":
            constant.append(name)
        elif verdict == "one chain":
            alone.append(name)
        elif verdict == "too few draws":
            too_few.append(name)
        elif verdict == "not converged":
            compared = "no R-hat with one chain" if np.isnan(rhat) else f"R-hat {rhat:.3f}"
            warnings.warn(
                f"{name}: {compared}, effective draws {ess:.0f}. The chains do not yet "
                f"represent the posterior well; draw more (draws=, warmup=){moves}",
                SamplingWarning,
                stacklevel=3,
            )
            return
    if too_few:
        warnings.warn(
            f"{', '.join(too_few)}: too few draws for R-hat and effective sample sizes; draw more "
            "(draws=)",
            SamplingWarning,
            stacklevel=3,
        )
    elif alone:
        warnings.warn(
            f"{', '.join(alone)}: R-hat needs at least two chains; run more (chains=)",
            SamplingWarning,
            stacklevel=3,
        )
    elif constant:
        chains = tree.sizes["chain"]
        started = f"The {chains} chains started apart and agree" if chains > 1 else "One chain ran"
        warnings.warn(
            f"{', '.join(constant)} never varied, so that R-hat cannot show whether the chains "
            f"converged. {started}: the posterior may be this concentrated, or the chains are "
            "stuck; compare with more chains (chains=)",
            SamplingWarning,
            stacklevel=3,
        )
