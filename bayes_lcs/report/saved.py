"""Results read back from the files that their ``save`` wrote."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.seals import understood
from bayes_lcs.data.storage import load_datatree
from bayes_lcs.report.posterior import Posterior
from bayes_lcs.report.serialise import model_from_json, table_from_tree

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan import PartialScanClassifier
    from bayes_lcs.clustering.mixture import MixtureClusterer

__all__ = ["load"]


def load(path: str | PathLike[str]) -> Posterior | MixtureClusterer | PartialScanClassifier:
    """Read what a ``save`` wrote: a posterior, a mixture, or an ensemble. No pickle is read.

    Parameters
    ----------
    path
        A file with its checksum beside it.

    Returns
    -------
    Posterior, MixtureClusterer or PartialScanClassifier
        Whichever the file holds.

    Examples
    --------
    >>> import tempfile
    >>> import bayes_lcs as bl
    >>> clusterer = bl.MixtureClusterer(2, random_state=0).fit([["a"], ["b"], ["a"], ["b"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clusterer.save(f"{folder}/mixture.nc")
    ...     bl.load(f"{folder}/mixture.nc").n_components_
    2
    """
    if _is_zip(Path(path)):
        from bayes_lcs.classification.partial_scan import PartialScanClassifier

        return PartialScanClassifier.load(path)
    tree = load_datatree(Path(path))
    if "mixture" in tree.attrs:
        from bayes_lcs.clustering.mixture import MixtureClusterer
        from bayes_lcs.clustering.mixture_storage import mixture_from_tree

        with understood(path, "MixtureClusterer"):
            return mixture_from_tree(MixtureClusterer, tree)
    if "coreset_stream" in tree.attrs:
        raise DataError("this file holds a CoresetStream: read it with its load", file=str(path))
    if {"model", "table"} - set(tree.attrs):
        raise DataError(
            "this netCDF file holds no posterior or mixture of bayes_lcs", file=str(path)
        )
    with understood(path, "posterior"):
        posterior = Posterior(model_from_json(tree.attrs["model"]), table_from_tree(tree), tree)
        posterior.draws.partitions()
        return posterior


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False
