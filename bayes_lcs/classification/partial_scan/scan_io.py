"""Save and load fitted ensembles with skops, without pickle.

Types that neither skops nor `bayes_lcs.runtime.estimator_io` trusts are refused; other types of a
base learner must be named when the file is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_lcs._version import __version__
from bayes_lcs.classification.partial_scan.result import Performance, Scan
from bayes_lcs.classification.partial_scan.validate_input import InputSpec
from bayes_lcs.core.errors import DataError
from bayes_lcs.io.options import CsvOptions
from bayes_lcs.runtime.atomic_files import verify_checksum, write_with_checksum
from bayes_lcs.runtime.checksums import append_checksum, as_data_errors, verify_appended_checksum
from bayes_lcs.runtime.estimator_io import load_trusted

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier

__all__ = ["load_ensemble", "save_ensemble"]

KIND = "PartialScanClassifier"
ADVICE = (
    f"if you made the file yourself, load it with {KIND}.load(path, trusted=[...]) and these names"
)
_ZIP = b"PK\x03\x04"
FITTED = ("classes_", "estimators_", "parts_", "n_features_in_")


def save_ensemble(classifier: PartialScanClassifier, path: str | PathLike[str]) -> None:
    """Write parameters, models and the scan record, atomically, with a checksum."""
    from skops import io

    settings = {**classifier.get_params(deep=False), "executor": None}  # workers cannot be saved
    if callable(settings["benefit"]) or (
        isinstance(settings["benefit"], dict) and any(map(callable, settings["benefit"].values()))
    ):
        raise TypeError(
            "a benefit that is a function cannot be saved; use a matrix or columns instead, or "
            "set benefit=None, save, and set it again after loading"
        )
    pairs = None
    if isinstance(settings["benefit"], dict):
        pairs = [[*pair, value] for pair, value in settings["benefit"].items()]
        settings["benefit"] = None
    if not isinstance(settings["random_state"], int):
        settings["random_state"] = None
    record = classifier.scan_
    scan = {
        **vars(record),
        "trace": record.trace.to_dict("list"),
        "caveats": list(record.caveats),
        "remarks": list(record.remarks),
        "performance": None if record.performance is None else asdict(record.performance),
    }
    described = {
        "kind": KIND,
        "version": __version__,
        "settings": settings,
        "benefit_pairs": pairs,
        "fitted": {name: getattr(classifier, name) for name in FITTED},
        "feature_names": list(map(str, getattr(classifier, "feature_names_in_", []))),
        "input": _describe_input(classifier._spec),
        "scan": scan,
    }

    def write(temporary: Path) -> None:
        io.dump(described, temporary)
        append_checksum(temporary)

    write_with_checksum(path, write)


def load_ensemble(
    kind: type[PartialScanClassifier], path: str | PathLike[str], trusted: Iterable[str] = ()
) -> PartialScanClassifier:
    """Load a classifier written by `save_ensemble`."""
    source = verify_checksum(path)
    with source.open("rb") as stream:
        is_zip = stream.read(len(_ZIP)) == _ZIP
    if not is_zip:
        raise DataError(f"this is not a saved {KIND}: it is not a zip file", file=str(source))
    verify_appended_checksum(source)
    with source.open("rb") as stream, as_data_errors(source, KIND):
        return _restore_classifier(kind, load_trusted(stream, trusted, advice=ADVICE))


def _restore_classifier(kind: type[PartialScanClassifier], described: Any) -> PartialScanClassifier:
    if not isinstance(described, dict) or described.get("kind") != KIND:
        raise DataError(f"this file does not contain a {KIND}")
    settings = {**described["settings"], "executor": None}
    if described["benefit_pairs"] is not None:
        settings["benefit"] = {
            (true, decided): value for true, decided, value in described["benefit_pairs"]
        }
    classifier = kind(**settings)
    for name in FITTED:
        setattr(classifier, name, described["fitted"][name])
    if described["feature_names"]:
        classifier.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    classifier._spec = _restore_input(described["input"])
    record = {**described["scan"], "trace": pd.DataFrame(described["scan"]["trace"])}
    # Files of version 0.1 have neither.
    for name in ("caveats", "remarks"):
        record[name] = tuple(record.get(name, ()))
    if record.get("performance") is not None:
        performance = record["performance"]
        if performance.get("interval") is not None:
            performance["interval"] = tuple(performance["interval"])
        record["performance"] = Performance(**performance)
    classifier._set_scan(Scan(**record))
    return classifier


def _describe_input(spec: InputSpec) -> dict[str, Any]:
    """Return plain values; texts are one JSON string, since skops writes a node for each object."""
    columns = None if spec.columns is None else list(spec.columns)
    texts = [sorted(spec.texts[name]) if name in spec.texts else None for name in spec.text]
    options = spec.options
    return {
        "columns": columns,
        "text": list(spec.text),
        "texts": json.dumps(texts),
        "other_columns": list(spec.other_columns),
        "missing_values": spec.missing_values,
        "encoding": options.encoding,
        "delimiter": options.delimiter,
        "header": options.header if isinstance(options.header, bool) else list(options.header),
    }


def _restore_input(described: dict[str, Any]) -> InputSpec:
    columns, text = described["columns"], tuple(described["text"])
    texts = zip(text, json.loads(described["texts"]), strict=True)
    return InputSpec(
        None if columns is None else tuple(columns),
        text,
        {name: set(own) for name, own in texts if own is not None},
        tuple(described["other_columns"]),
        described["missing_values"],
        CsvOptions(described["encoding"], described["delimiter"], described["header"]),
    )
