"""``bl.sample`` and the posterior it returns: partitions, predictions, decisions, diagnostics."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.naive_bayes import normalise_log
from bayes_lcs.core.partitions import coclustering_matrix
from bayes_lcs.evaluation.decisions import decide
from bayes_lcs.evaluation.partition_estimates import PartitionEstimate, estimate_partition
from bayes_lcs.models.clustered import ClusteredNaiveBayes
from bayes_lcs.report.datatree import chains_datatree, diagnose
from bayes_lcs.report.serialise import model_from_json, table_from_tree
from bayes_lcs.report.storage import load_datatree, save_datatree

if TYPE_CHECKING:
    import scipy.sparse
    import xarray as xr

    from bayes_lcs.data.table import GroupedTable

__all__ = ["Posterior", "SamplingWarning", "load", "sample"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_DENSE_GROUPS = 4000
WORST_RHAT = 1.01
LEAST_ESS = 400.0


class SamplingWarning(UserWarning):
    """The chains may not represent the posterior; the message says what to do."""


class Posterior:
    """Draws from the posterior of a sharing model.

    Attributes
    ----------
    model, data
        What was sampled.
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
        """Whether Ctrl-C ended the run early."""
        return bool(json.loads(self.datatree.attrs.get("interrupted", "false")))

    def partitions(self) -> IntArray:
        """All draws of the partition, chains one after the other, ``(S, U)``."""
        z = np.asarray(self.datatree["posterior"]["z"], dtype=np.int64)
        return z.reshape(-1, z.shape[-1])

    def partition_estimate(self, loss: str = "vi", *, level: float = 0.95) -> PartitionEstimate:
        """The partition of least expected loss, found by search, with its credible ball."""
        return estimate_partition(self.partitions(), loss, level=level)

    def partition(self, loss: str = "vi") -> IntArray:
        """The partition of least expected loss (``"vi"`` or ``"binder"``), ``(U,)``."""
        return self.partition_estimate(loss).partition

    def num_clusters(self) -> FloatArray:
        """Posterior probability of each number of clusters; entry ``k`` for ``k`` clusters."""
        counts = self.partitions().max(axis=1) + 1
        return np.bincount(counts, minlength=self.data.num_groups + 1) / len(counts)

    def coclustering(self) -> FloatArray | scipy.sparse.csr_array:
        """Share of the draws in which each pair of groups is together, ``(U, U)``.

        Beyond 4,000 groups a sparse array without the pairs that were never together.
        """
        z = self.partitions()
        num_draws, num_groups = z.shape
        if num_groups <= MOST_DENSE_GROUPS:
            return coclustering_matrix(z)
        import scipy.sparse

        columns = z + np.arange(num_draws)[:, None] * (int(z.max()) + 1)
        rows = np.tile(np.arange(num_groups), num_draws)
        ones = np.ones(z.size, dtype=np.float32)
        members = scipy.sparse.csr_array(
            (ones, (rows, columns.reshape(-1))), shape=(num_groups, int(columns.max()) + 1)
        )
        return (members @ members.T) / num_draws

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """R-hat and effective sample sizes of invariants of the partition."""
        return diagnose(self.datatree)

    def predict_proba(
        self,
        rows: Any = None,
        *,
        unseen: Literal["missing", "error"] = "missing",
        max_draws: int = 200,
    ) -> FloatArray:
        """Probability of each label for each row, averaged over the draws.

        Parameters
        ----------
        rows
            A frame or table of new rows, of known groups or of groups never seen. None predicts
            the rows of the training table that had no label.
        unseen : {"missing", "error"}
            What a feature value never seen in training is.
        max_draws
            At most this many draws are averaged, spread evenly over the chains.

        Returns
        -------
        (N, L)
            Columns in the order of ``data.label_values``.
        """
        if rows is None:
            if "latent_probability" not in self.datatree["constant_data"]:
                raise ValueError("every row of the training table has a label; give rows")
            return np.asarray(self.datatree["constant_data"]["latent_probability"])
        encoded = self.data.encode(rows, unseen=unseen)
        z = self.partitions()
        kept = np.unique(np.linspace(0, len(z) - 1, min(max_draws, len(z))).astype(int))
        total = np.full((encoded.num_rows, encoded.num_labels), -np.inf)
        for draw in kept:
            total = np.logaddexp(total, self._log_joint_of_draw(int(draw), z[draw], encoded))
        return normalise_log(total)

    def decide(
        self,
        rows: Any = None,
        loss: ArrayLike | None = None,
        *,
        unseen: Literal["missing", "error"] = "missing",
    ) -> NDArray[np.str_]:
        """The label of least expected loss for each row.

        Parameters
        ----------
        loss : (L, L)
            Loss of each decision (column) under each true label (row); 0-1 loss by default.
        """
        chosen = decide(self.predict_proba(rows, unseen=unseen), loss)
        return np.asarray(self.data.label_values)[chosen]

    def _draw(self, name: str, draw: int) -> Any:
        values = np.asarray(self.datatree["posterior"][name])
        return values.reshape(-1, *values.shape[2:])[draw]

    def _log_joint_of_draw(self, draw: int, z: IntArray, encoded: GroupedTable) -> FloatArray:
        """``log P(y, x)`` of each row given one draw of all that is unknown, ``(N, L)``."""
        data, drawn = self.data, {}
        if "latent_label" in self.datatree["posterior"]:
            labels = data.labels.copy()
            labels[data.labels < 0] = self._draw("latent_label", draw)
            data = data.with_labels(labels)
        for name, site in (("feature_prior", "beta"), ("concentration", "concentration")):
            if site in self.datatree["posterior"]:
                drawn[name] = float(self._draw(site, draw))
        model = replace(self.model, **drawn)
        given = (z,) if isinstance(model, ClusteredNaiveBayes) else ()
        counts = data.counts()
        joint = np.empty((encoded.num_rows, encoded.num_labels))
        for group in np.unique(encoded.groups):
            here = np.flatnonzero(encoded.groups == group)
            rows = encoded.features[here]
            joint[here] = model.log_predictive(counts, rows, *given, groups=[group])[0]
        return joint

    def save(self, path: str | Path) -> Path:
        """Write the posterior as netCDF, atomically, with a checksum beside it."""
        return save_datatree(self.datatree, path)

    def __repr__(self) -> str:
        sizes = self.datatree["posterior"].sizes
        return (
            f"<Posterior of {self.model.name}: {sizes['chain']} chains of {sizes['draw']} draws, "
            f"{self.data.num_groups} groups>"
        )


def load(path: str | Path) -> Posterior:
    """Read a posterior that :meth:`Posterior.save` wrote."""
    tree = load_datatree(path)
    missing = {"model", "table"} - set(tree.attrs)
    if missing:
        raise ValueError(f"{path}: this netCDF file holds no posterior of bayes_lcs")
    return Posterior(model_from_json(tree.attrs["model"]), table_from_tree(tree), tree)


def sample(
    model: Any,
    data: GroupedTable,
    *,
    draws: int = 1000,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
    split_merge: int = 1,
    seed: int = 0,
    progress: bool | None = None,
) -> Posterior:
    """Draw from the posterior of a sharing model by collapsed Gibbs sampling.

    Partition, missing labels and learned hyper-parameters are sampled; the naive Bayes parameters
    are integrated out. Chains start apart: all groups together, every group alone, at random.

    Parameters
    ----------
    model
        ``NoSharing``, ``CompleteSharing`` or ``ClusteredNaiveBayes``.
    data : GroupedTable
        Missing labels and missing features are fine.
    draws, chains
        Draws kept of each chain, and the number of chains.
    warmup
        Sweeps before the first draw; half the number of draws by default.
    thin
        Sweeps from one draw to the next.
    split_merge
        Split-merge proposals a sweep.
    seed
        The same seed gives the same draws on the same machine.
    progress
        Show a progress bar; None shows one on a terminal.

    Warns
    -----
    SamplingWarning
        Where R-hat exceeds 1.01 or the effective sample size of an invariant is below 400.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0)
    >>> post = bl.sample(bl.ClusteredNaiveBayes(), data, draws=100, seed=0)
    >>> bool((post.partition() == truth.partition).all())
    True
    """
    import jax

    from bayes_lcs.inference.chains import run_chains
    from bayes_lcs.inference.sharing_sampler import pose

    for name, value, least in (
        ("draws", draws, 1),
        ("chains", chains, 1),
        ("thin", thin, 1),
        ("split_merge", split_merge, 0),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    with jax.enable_x64(True):
        problem = pose(model, data, split_merge)
    result = run_chains(
        problem,
        draws=draws,
        warmup=draws // 2 if warmup is None else warmup,
        chains=chains,
        thin=thin,
        seed=seed,
        progress=progress,
    )
    posterior = Posterior(model, data, chains_datatree(model, data, result, seed))
    _warn(posterior)
    return posterior


def _warn(posterior: Posterior) -> None:
    """Warn where the chains disagree, or where there are too few effective draws."""
    for name, found in posterior.diagnostics().items():
        rhat, ess = found["rhat"], min(found["ess_bulk"], found["ess_tail"])
        if rhat > WORST_RHAT or ess < LEAST_ESS:
            warnings.warn(
                f"{name}: R-hat {rhat:.3f}, effective draws {ess:.0f}. The chains do not yet "
                "represent the posterior well; draw more (draws=, warmup=), or try more "
                "split-merge moves (split_merge=)",
                SamplingWarning,
                stacklevel=3,
            )
            return
