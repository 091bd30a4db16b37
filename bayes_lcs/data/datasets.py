"""Named data sets from a local folder, verified by their sha256.

The environment variable ``BAYES_LCS_DATA`` is the path of the folder, which has one subfolder per
data set. Nothing is downloaded or written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.core.errors import DataError, DatasetNotFound
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.data.read_grouped import read_grouped
from bayes_lcs.io.frames import read_frame
from bayes_lcs.io.options import CsvOptions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DATA_VARIABLE", "dataset_path", "list_datasets", "load_dataset"]

DATA_VARIABLE = "BAYES_LCS_DATA"
"""Environment variable with the path of the folder of data sets."""

_CONTEXT = (
    "distance",
    "timeAvailable",
    "temperature",
    "crowdedness",
    "knowledgeOfSurroundings",
    "season",
    "budget",
    "daytime",
    "weather",
    "companion",
    "mood",
    "weekday",
    "travelGoal",
    "transport",
)
_PROFILE = (
    "gender",
    "age",
    "maritalStatus",
    "has_children",
    "education",
    "occupation",
    "income",
    "cartype",
    "Bar",
    "CoffeeHouse",
    "CarryAway",
    "RestaurantLessThan20",
    "Restaurant20To50",
)
_PLACE = (
    "alcohol",
    "smoking_area",
    "dress_code",
    "accessibility",
    "price",
    "Rambience",
    "franchise",
    "area",
    "other_services",
)


def list_datasets(*, grouped: bool = True) -> tuple[str, ...]:
    """Return the names for `load_dataset` or, if not ``grouped``, all names for `dataset_path`.

    Examples
    --------
    >>> list_datasets()[:3]
    ('bank_conjoint', 'coupon', 'depaulmovie')
    """
    if grouped:
        return tuple(sorted(_LOADERS))
    return tuple(sorted({file.split("/")[0] for file in _registry()}))


def load_dataset(name: str) -> GroupedTable:
    """Load a grouped data set, encoded for the models.

    =================  ====================================================================
    ``bank_conjoint``  946 people choose between credit cards described by 14 attributes
    ``coupon``         567 profiles of drivers accept or reject coupons, 12 features
    ``depaulmovie``    97 students rate films in some time, place and company
    ``insteval``       2,972 students rate lectures, 4 features
    ``landmine``       29 mine fields, 9 radar features in quartiles
    ``restaurant_rc``  138 people rate restaurants described by 9 features
    ``sts_travel``     325 tourists rate places under 14 conditions, most of them missing
    ``verbagg``        316 people say whether they would curse, scold or shout, 5 features
    =================  ====================================================================

    Parameters
    ----------
    name
        One of `list_datasets`.

    Raises
    ------
    DatasetNotFound
        If ``BAYES_LCS_DATA`` is not set or the folder lacks the data set.
    DataError
        If the sha256 of a file differs.
    """
    if name not in _LOADERS:
        raise DatasetNotFound(
            f"there is no grouped data set {name!r}; there are {', '.join(list_datasets())}"
        )
    return _LOADERS[name]()


def dataset_path(name: str, file: str | None = None) -> Path:
    """Return the path of a file of a data set after verifying its sha256.

    Parameters
    ----------
    name
        One of ``list_datasets(grouped=False)``.
    file
        Name of the file; optional if the data set has only one.
    """
    known = [entry.split("/", 1)[1] for entry in _registry() if entry.split("/")[0] == name]
    if not known:
        raise DatasetNotFound(
            f"there is no data set {name!r}; there are {', '.join(list_datasets(grouped=False))}"
        )
    if file is None and len(known) == 1:
        file = known[0]
    if file not in known:
        raise DatasetNotFound(f"data set {name!r} has no file {file!r}; it has {', '.join(known)}")
    return _check_path(f"{name}/{file}")


@cache
def _registry() -> dict[str, str]:
    """Return the sha256 of every known file, by its path inside the folder."""
    with Path(__file__).with_name("registry.txt").open(encoding="ascii") as lines:
        return dict(line.split() for line in lines)


def _check_path(entry: str) -> Path:
    import pooch

    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise DatasetNotFound(
            f"the environment variable {DATA_VARIABLE} is not set; set it to the folder of data "
            f"sets, which contains {entry}"
        )
    if not Path(folder).is_dir():
        raise DatasetNotFound(f"{DATA_VARIABLE} is {folder}, which is not a folder")
    # Pooch.fetch would download missing or changed files: only its registry and hash are used.
    store = pooch.create(path=folder, base_url="", registry=_registry())
    path = Path(store.abspath) / entry
    if not path.is_file():
        raise DatasetNotFound(
            f"there is no file {entry} in {folder} (the folder in {DATA_VARIABLE})"
        )
    found = pooch.file_hash(str(path), alg="sha256")
    if found != store.registry[entry]:
        raise DataError(
            f"the file has changed: its sha256 is {found}, not {store.registry[entry]}; "
            "download it again",
            file=str(path),
        )
    return path


def _typed_frame(path: Path, delimiter: str = ",") -> pd.DataFrame:
    return read_frame(path, missing_values=("",), options=CsvOptions(delimiter=delimiter))


def _make_loader(name: str, file: str | None = None, **options: Any) -> Callable[[], GroupedTable]:
    """Return a loader for a data set that is read from one file without preprocessing."""
    return lambda: read_grouped(dataset_path(name, file), **options)


def _coupon() -> GroupedTable:
    """Load coupons; the file does not identify drivers, so equal profiles are one driver."""
    frame = _typed_frame(dataset_path("coupon"))
    number = frame.groupby(list(_PROFILE), sort=False, dropna=False).ngroup() + 1
    frame["profile"] = [f"profile-{n:03d}" for n in number]
    return GroupedTable.from_frame(
        frame, group="profile", label="Y", ignore=_PROFILE, missing_values=("",)
    )


def _restaurant() -> GroupedTable:
    ratings = _typed_frame(dataset_path("restaurant_rc", "rating_final.csv"), ";")
    places = _typed_frame(dataset_path("restaurant_rc", "geoplaces.csv"), ";")
    frame = ratings.merge(places, on="placeID", how="left", validate="many_to_one")
    return GroupedTable.from_frame(
        frame, group="userID", label="rating", features=_PLACE, missing_values=("", "?")
    )


def _landmine() -> GroupedTable:
    import numpy as np
    import pandas as pd
    from scipy.io import loadmat

    content = loadmat(dataset_path("landmine"))
    tasks = list(zip(content["feature"].flat, content["label"].flat, strict=True))
    columns = [f"feature_{number}" for number in range(1, tasks[0][0].shape[1] + 1)]
    frame = pd.DataFrame(np.concatenate([features for features, _ in tasks]), columns=columns)
    frame["mine"] = np.concatenate([labels.ravel() for _, labels in tasks])
    sizes = [len(features) for features, _ in tasks]
    frame["field"] = np.repeat(
        [f"field-{number:02d}" for number in range(1, len(tasks) + 1)], sizes
    )
    return GroupedTable.from_frame(
        frame, group="field", label="mine", bins=dict.fromkeys(columns, 4)
    )


_LOADERS: dict[str, Callable[[], GroupedTable]] = {
    "bank_conjoint": _make_loader(
        "bank_conjoint", file="choiceAtt.csv", group="id", label="choice"
    ),
    "coupon": _coupon,
    "depaulmovie": _make_loader(
        "depaulmovie",
        group="userid",
        label="rating",
        features=("Time", "Location", "Companion"),
        missing_values=("", "NA"),
    ),
    "insteval": _make_loader(
        "insteval", group="s", label="y", features=("studage", "lectage", "service", "dept")
    ),
    "landmine": _landmine,
    "restaurant_rc": _restaurant,
    "sts_travel": _make_loader(
        "sts_travel",
        file="Data_STS.csv",
        group="userID",
        label="rating",
        features=_CONTEXT,
        missing_values=("", "NULL"),
    ),
    "verbagg": _make_loader(
        "verbagg",
        group="id",
        label="r2",
        features=("btype", "situ", "mode", "Gender", "Anger"),
        bins={"Anger": 4},
    ),
}
