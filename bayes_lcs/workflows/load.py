"""Load results from files written by their ``save`` methods."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bayes_lcs
from bayes_lcs.core.errors import DataError
from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference.posterior import Posterior
from bayes_lcs.inference.serialization import table_from_tree
from bayes_lcs.models.base import NaiveBayesPrior
from bayes_lcs.runtime.atomic_files import load_datatree
from bayes_lcs.runtime.checksums import as_data_errors

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier
    from bayes_lcs.clustering.mixture.estimator import MixtureClusterer

__all__ = ["load", "model_from_json"]


def load(path: str | PathLike[str]) -> Posterior | MixtureClusterer | PartialScanClassifier:
    """Load a posterior, mixture or ensemble that was saved by its ``save``, without pickle.

    Parameters
    ----------
    path
        File with its checksum beside it.

    Returns
    -------
    Posterior, MixtureClusterer or PartialScanClassifier
        The object in the file.

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
        from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier

        return PartialScanClassifier.load(path)
    tree = load_datatree(Path(path))
    if "mixture" in tree.attrs:
        from bayes_lcs.clustering.mixture.estimator import MixtureClusterer
        from bayes_lcs.clustering.mixture.mixture_io import mixture_from_tree

        with as_data_errors(path, "MixtureClusterer"):
            return mixture_from_tree(MixtureClusterer, tree)
    if "coreset_stream" in tree.attrs:
        raise DataError(
            "this file holds a CoresetStream; load it with CoresetStream.load", file=str(path)
        )
    if {"model", "table"} - set(tree.attrs):
        raise DataError(
            "this netCDF file holds no posterior or mixture of bayes_lcs", file=str(path)
        )
    with as_data_errors(path, "posterior"):
        posterior = Posterior(model_from_json(tree.attrs["model"]), table_from_tree(tree), tree)
        posterior.draws.partitions()
        return posterior


def model_from_json(text: str) -> Any:
    """Return the model written by `bayes_lcs.inference.serialization.model_to_json`.

    Only public models are accepted.

    Examples
    --------
    >>> model_from_json('{"model": "Prototype", "strength_prior": {"shape": 2.0, "rate": 0.1}}')
    Prototype(label_prior=1.0, feature_prior=1.0, strength_prior=Gamma(shape=2.0, rate=0.1))
    >>> model_from_json('{"model": "GroupedTable"}')
    Traceback (most recent call last):
        ...
    ValueError: the file holds a posterior of 'GroupedTable', which is no public model of bayes_lcs
    """
    described = json.loads(text)
    name = described.pop("model")
    model = getattr(bayes_lcs, name) if name in bayes_lcs.__all__ else None
    if not (isinstance(model, type) and issubclass(model, NaiveBayesPrior)):
        raise ValueError(
            f"the file holds a posterior of {name!r}, which is no public model of bayes_lcs"
        )

    def restore(value: Any) -> Any:
        return Gamma(**value) if isinstance(value, dict) else value

    return model(**{key: restore(value) for key, value in described.items()})


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False
