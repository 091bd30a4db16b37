from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bayes_lcs.core.errors import DataError, DatasetNotFound
from bayes_lcs.data.datasets import DATA_VARIABLE, dataset_path, list_datasets, load_dataset
from bayes_lcs.data.read_grouped import read_grouped


@pytest.mark.parametrize(
    ("name", "rows", "groups", "num_values", "labels"),
    [
        ("bank_conjoint", 14_799, 946, (3, 3, 2, *[3] * 10, 2), ("0", "1")),
        ("coupon", 12_684, 567, (3, 4, 3, 3, 5, 5, 2, 1, 2, 2, 2, 2), ("0", "1")),
        ("depaulmovie", 5_043, 97, (2, 2, 3), ("1", "2", "3", "4", "5")),
        ("insteval", 73_421, 2_972, (4, 6, 2, 14), ("1", "2", "3", "4", "5")),
        ("landmine", 14_820, 29, (4,) * 9, ("0", "1")),
        ("restaurant_rc", 1_161, 138, (3, 5, 3, 3, 3, 2, 2, 2, 3), ("0", "1", "2")),
        (
            "sts_travel",
            2_534,
            325,
            (2, 3, 6, 3, 3, 4, 3, 3, 6, 5, 4, 2, 9, 4),
            ("1", "2", "3", "4", "5"),
        ),
        ("verbagg", 7_584, 316, (3, 2, 2, 2, 4), ("N", "Y")),
    ],
)
def test_published_sizes(
    name: str, rows: int, groups: int, num_values: tuple[int, ...], labels: tuple[str, ...]
) -> None:
    try:
        table = load_dataset(name)
    except DatasetNotFound as error:
        pytest.skip(str(error))
    assert (table.num_rows, table.num_groups) == (rows, groups)
    assert table.num_values == num_values
    assert table.label_values == labels
    assert not table.has_missing_labels
    assert table.group_sizes.min() >= 1


def test_published_details() -> None:
    try:
        movies, mines = load_dataset("depaulmovie"), load_dataset("landmine")
    except DatasetNotFound as error:
        pytest.skip(str(error))
    assert (movies.features < 0).any(axis=0).all()
    assert all("NA" not in values for values in movies.values)
    assert int((mines.labels == 1).sum()) == 904


def test_every_loader_is_a_known_data_set() -> None:
    assert set(list_datasets()) <= set(list_datasets(grouped=False))
    assert len(list_datasets()) == 8
    assert len(list_datasets(grouped=False)) == 47


def test_unknown_names() -> None:
    with pytest.raises(DatasetNotFound, match="no grouped data set 'iris'; there are bank_conj"):
        load_dataset("iris")
    with pytest.raises(DatasetNotFound, match="no data set 'irsi'; there are acs_ma_employment"):
        dataset_path("irsi")
    with pytest.raises(DatasetNotFound, match=r"'adult' has no file None; it has adult\.data"):
        dataset_path("adult")


def test_variable_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert issubclass(DatasetNotFound, DataError)
    with pytest.raises(FileNotFoundError, match="variable BAYES_LCS_DATA is not set; set it"):
        load_dataset("verbagg")


def test_folder_or_file_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DatasetNotFound, match="nowhere, which is not a folder"):
        load_dataset("verbagg")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(DatasetNotFound, match=r"no file verbagg/VerbAgg.csv in .*BAYES_LCS_DATA"):
        load_dataset("verbagg")


def test_altered_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (tmp_path / "verbagg").mkdir()
    (tmp_path / "verbagg" / "VerbAgg.csv").write_text("id,r2\n1,N\n")
    with pytest.raises(DataError, match=r"VerbAgg\.csv: the file has changed"):
        load_dataset("verbagg")
    assert (tmp_path / "verbagg" / "VerbAgg.csv").read_text() == "id,r2\n1,N\n"
    assert [path.name for path in tmp_path.rglob("*")] == ["verbagg", "VerbAgg.csv"]


def test_unbinned_numbers_in_a_real_file(raw_file: Callable[..., Path]) -> None:
    path = raw_file("verbagg")
    with pytest.raises(DataError, match=r"VerbAgg.csv, column 'Anger': holds 26 different numb"):
        read_grouped(path, group="id", label="r2")
    table = read_grouped(path, group="id", label="r2", ignore=["Anger"])
    assert table.feature_names == ("Gender", "item", "resp", "btype", "situ", "mode")


def test_a_real_file_with_carriage_returns(raw_file: Callable[..., Path]) -> None:
    table = read_grouped(raw_file("coupon"), group="occupation", label="Y")
    assert table.num_groups == 25
    assert table.label_values == ("0", "1")
    assert (
        table.values[table.feature_names.index("cartype")][0]
        == "Car that is too old to install Onstar :D"
    )


def test_a_real_file_without_header(raw_file: Callable[..., Path]) -> None:
    path = raw_file("car")
    names = ["buying", "maint", "doors", "persons", "lug_boot", "safety", "class"]
    table = read_grouped(path, group="safety", label="class", header=names)
    assert table.num_rows == 1728
    assert table.group_names == ("low", "med", "high")
    unnamed = read_grouped(path, group="column_6", label="column_7", header=False)
    assert (unnamed.features == table.features).all()


def test_a_real_parquet_file(raw_file: Callable[..., Path]) -> None:
    path = raw_file("acs_ma_employment")
    table = read_grouped(path, group="year", label="employed", features=["SEX", "MAR"])
    assert table.num_rows == 277_677
    assert table.group_names == ("2015", "2016", "2017", "2018")
