"""A fitted ensemble as a file, and back: skops, which knows no pickle.

Types that skops does not know are refused, but for the classes of this package and the one that
trees of scikit-learn are made of; what else a base learner needs has to be named when the file is
read.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lcs._version import __version__
from bayes_lcs.classification.scan import Scan
from bayes_lcs.classification.scan_rows import RowKinds
from bayes_lcs.data.errors import DataError, one_line
from bayes_lcs.data.kept_models import unknown_types
from bayes_lcs.data.seals import check_seal, seal, understood
from bayes_lcs.data.storage import check_whole, write_with_checksum

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan import PartialScanClassifier

__all__ = ["load_ensemble", "save_ensemble"]

KIND = "PartialScanClassifier"
_ZIP = b"PK\x03\x04"
FITTED = ("classes_", "estimators_", "parts_", "n_features_in_")


def save_ensemble(classifier: PartialScanClassifier, path: str | PathLike[str]) -> None:
    """Write settings, models and the story of the scan, atomically, with a checksum."""
    from skops import io

    settings = {**classifier.get_params(deep=False), "executor": None}  # workers are no settings
    if callable(settings["benefit"]) or (
        isinstance(settings["benefit"], dict) and any(map(callable, settings["benefit"].values()))
    ):
        raise TypeError(
            "a benefit that is a function cannot be saved; give it as a matrix or as columns, or "
            "set benefit=None, save, and set it again after loading"
        )
    pairs = None
    if isinstance(settings["benefit"], dict):
        pairs = [[*pair, value] for pair, value in settings["benefit"].items()]
        settings["benefit"] = None
    if not isinstance(settings["random_state"], int):
        settings["random_state"] = None
    scan = {**vars(classifier.scan_), "trace": classifier.scan_.trace.to_dict("list")}
    described = {
        "kind": KIND,
        "version": __version__,
        "settings": settings,
        "benefit_pairs": pairs,
        "fitted": {name: getattr(classifier, name) for name in FITTED},
        "feature_names": list(map(str, getattr(classifier, "feature_names_in_", []))),
        "kinds": {"is_frame": classifier._kinds.is_frame, "names": list(classifier._kinds.names)},
        "scan": scan,
    }

    def write(temporary: Path) -> None:
        io.dump(described, temporary)
        seal(temporary)

    write_with_checksum(path, write)


def load_ensemble(
    kind: type[PartialScanClassifier], path: str | PathLike[str], trusted: Iterable[str] = ()
) -> PartialScanClassifier:
    """The classifier that `save_ensemble` wrote."""
    from skops import io

    source = check_whole(path)
    with source.open("rb") as stream:
        is_zip = stream.read(len(_ZIP)) == _ZIP
    if not is_zip:
        raise DataError(f"this is no file of a {KIND}: it is no zip file", file=str(source))
    check_seal(source)
    try:
        unknown = io.get_untrusted_types(file=source)
    except Exception as error:
        raise DataError(
            f"this is no file of a {KIND} ({one_line(error)})", file=str(source)
        ) from error
    refused = sorted(set(unknown_types(unknown)) - set(trusted))
    if refused:
        raise DataError(
            f"the file holds types that are not known to be harmless: {', '.join(refused)}; if you "
            f"made it yourself, load it with trusted={refused!r}",
            file=str(source),
        )
    with understood(source, KIND):
        return _restored(kind, io.load(source, trusted=sorted(unknown)))


def _restored(kind: type[PartialScanClassifier], described: Any) -> PartialScanClassifier:
    if not isinstance(described, dict) or described.get("kind") != KIND:
        raise DataError(f"this file holds no {KIND}")
    settings = described["settings"]
    if described["benefit_pairs"] is not None:
        settings["benefit"] = {
            (true, decided): value for true, decided, value in described["benefit_pairs"]
        }
    classifier = kind(**settings)
    for name in FITTED:
        setattr(classifier, name, described["fitted"][name])
    if described["feature_names"]:
        classifier.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    kinds = described["kinds"]
    classifier._kinds = RowKinds(kinds["is_frame"], tuple(kinds["names"]))
    story = {**described["scan"], "trace": pd.DataFrame(described["scan"]["trace"])}
    classifier._tell(Scan(**story))
    return classifier
