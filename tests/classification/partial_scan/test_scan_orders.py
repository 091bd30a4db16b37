"""Scans of small, sorted and single-label data: accurate, or not guaranteed, as is said first."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import bayes_lcs as bl
import bayes_lcs.io.formats.csv_shards as csv_shards
import bayes_lcs.io.shards as file_shards
from bayes_lcs import PartialScanClassifier
from bayes_lcs.classification.partial_scan import scan_io
from bayes_lcs.classification.partial_scan.result import accuracy_interval, measure
from bayes_lcs.classification.partial_scan.shards import choose_num_parts
from bayes_lcs.cli.app import app
from bayes_lcs.core.errors import DataWarning
from bayes_lcs.runtime.progress import plain_lines

POOR = "ignore::bayes_lcs.core.errors.DataWarning"
SMALL = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
    "breast cancer": load_breast_cancer,
}


def by_label(X, y):
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def three_labels(num_rows=40_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, 4)).round(4)
    codes = np.digitize(X[:, 0] + 0.1 * rng.normal(size=num_rows), [-0.5, 0.5])
    return pd.DataFrame(X, columns=list("pqrs")).assign(y=np.array(["a", "b", "c"])[codes])


def checkers(num_rows=40_000, seed=1):
    """Two labels, one of them rare, that depend on two columns of text."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.choice(list("abcd"), num_rows) for name in ("u", "v", "w")})
    is_odd = (frame["u"] == frame["v"]) & (rng.random(num_rows) < 0.9)
    return frame.assign(x=rng.normal(size=num_rows).round(3), y=np.where(is_odd, 1, 0))


FRAMES = {"three labels": three_labels, "checkers": checkers}


def write(frame, path: Path) -> Path:
    if path.name.endswith("groups.parquet"):
        frame.to_parquet(path, index=False, row_group_size=max(len(frame) // 200, 1))
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        packing = {"method": "gzip", "compresslevel": 1} if path.suffix == ".gz" else None
        frame.to_csv(path, index=False, compression=packing)
    return path


# Small data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_small_sorted_arrays_are_one_model(name):
    """With 64 parts of consecutive rows: iris 0.33, wine 0.40, and a guarantee."""
    X, X_test, y, y_test = train_test_split(
        *SMALL[name](return_X_y=True), test_size=0.3, random_state=0
    )
    X, y = by_label(X, y)
    found = PartialScanClassifier(random_state=0).fit(X, y)
    tree = DecisionTreeClassifier(criterion="entropy", random_state=0).fit(X, y)
    assert found.score(X_test, y_test) > tree.score(X_test, y_test) - 0.05
    assert found.n_partitions_ == len(found.estimators_) == 1
    assert (found.scanned_fraction_, found.scan_.rows_read) == (1.0, len(y))
    assert not found.scan_.is_guaranteed
    assert "99.7" not in found.guarantee_
    assert found.scan_.explain().startswith(f"One model was trained on all {len(y):,} rows")
    # Its accuracy is measured by another model, without a fifth of the rows.
    told = found.scan_.performance
    assert told.num_rows == len(y) // 5
    assert told.single_rows == len(y) - told.num_rows
    assert abs(told.accuracy - found.score(X_test, y_test)) < 4.0 * np.sqrt(0.25 / told.num_rows)
    assert told.majority_accuracy < told.accuracy


@pytest.mark.parametrize("kind", ["t.csv", "t.csv.gz", "t.parquet", "groups.parquet"])
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_small_sorted_files_are_one_model(kind, name, tmp_path):
    X, y = by_label(*SMALL[name](return_X_y=True))
    frame = pd.DataFrame(X).rename(columns="x{}".format).assign(y=y)
    path = write(frame, tmp_path / kind)
    found = PartialScanClassifier(random_state=0).fit_file(path, label="y")
    assert found.n_partitions_ == 1
    assert found.score(frame.drop(columns="y"), y) == 1.0
    assert found.scan_.performance.accuracy > 0.75
    assert not found.scan_.is_guaranteed


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_parts_that_are_asked_for_are_made_of_shuffled_rows(name):
    X, X_test, y, y_test = train_test_split(
        *SMALL[name](return_X_y=True), test_size=0.3, random_state=0
    )
    found = PartialScanClassifier(n_partitions=4, random_state=0).fit(*by_label(X, y))
    assert found.n_partitions_ == 4
    assert found.score(X_test, y_test) > 0.75
    as_they_lie = PartialScanClassifier(n_partitions=4, shuffle=False, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_they_lie.fit(*by_label(X, y))
    assert as_they_lie.score(X_test, y_test) < found.score(X_test, y_test) - 0.1
    # The 24 validation rows of wine are too few to tell.
    is_told = any("clearly better than the ensemble" in str(one.message) for one in caught)
    assert is_told == (name == "digits")


def test_the_number_of_parts_follows_rows_and_classes():
    assert [choose_num_parts(rows, 2) for rows in (15_999, 16_000, 50_000, 10**7)] == [
        *(1, 16),
        *(50, 128),
    ]
    assert [choose_num_parts(50_000, labels) for labels in (5, 10, 16)] == [50, 25, 1]
    frame = three_labels(20_000)
    found = PartialScanClassifier(random_state=0).fit(frame[list("pqrs")], frame["y"])
    assert found.n_partitions_ == 20
    found.set_params(n_partitions=64).fit(frame[list("pqrs")], frame["y"])
    assert found.n_partitions_ == 64
    with pytest.raises(ValueError, match="n_partitions"):
        found.set_params(n_partitions="many").fit(frame[list("pqrs")], frame["y"])


@pytest.mark.parametrize("num_rows", [120, 450, 520])
def test_few_validation_rows_guarantee_nothing(num_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, 2))
    found = PartialScanClassifier(n_partitions=16, tolerance=0.3, random_state=0)
    found.fit(X, X[:, 0] > 0)
    number = found.scan_.num_validation
    assert number == num_rows // 5
    assert found.scan_.is_guaranteed == (number >= 100)
    if number < 100:
        told = f"Nothing is guaranteed: only {number} validation rows (at least 100 are needed)"
        assert found.scan_.explain().startswith(told)
        assert "99.7" not in found.guarantee_


# Orders -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["t.csv", "t.csv.gz", "t.parquet", "groups.parquet"])
@pytest.mark.parametrize("name", FRAMES)
def test_files_sorted_by_label(name, kind, tmp_path):
    """Read as they lie, 20 % of them hold one label, with a guarantee."""
    frame = FRAMES[name]()
    test, train = frame[:10_000], frame[10_000:]
    scores = {}
    for order in ("sorted", "random"):
        rows = train.sort_values("y", kind="stable") if order == "sorted" else train
        path = write(rows, tmp_path / kind)
        found = PartialScanClassifier(random_state=0).fit_file(path, label="y")
        assert found.classes_.tolist() == sorted(set(frame["y"]))
        scores[order] = found.score(test.drop(columns="y"), test["y"])
        assert abs(found.scan_.accuracy - scores[order]) < 4.5 * np.sqrt(0.25 / 1000)
        assert found.scan_.is_guaranteed
        if kind == "t.csv":
            assert found.scanned_fraction_ < 1.0
            assert found.n_partitions_ in (29, 30, 31)
        elif kind != "groups.parquet":
            assert found.scanned_fraction_ == 1.0  # read at once
    assert scores["sorted"] > scores["random"] - 0.02
    assert scores["sorted"] > train["y"].value_counts(normalize=True).iloc[0] + 0.05


@pytest.mark.parametrize("name", FRAMES)
def test_sorted_frames(name):
    frame = FRAMES[name]().sort_values("y")
    found = PartialScanClassifier(random_state=0).fit(frame.drop(columns="y"), frame["y"])
    assert found.scan_.is_guaranteed
    assert found.scan_.performance.accuracy > found.scan_.performance.majority_accuracy + 0.05
    assert found.scanned_fraction_ == found.scan_.rows_read / len(frame)


@pytest.mark.parametrize("kind", ["t.csv", "t.csv.gz", "groups.parquet"])
@pytest.mark.parametrize("share", [0.95, 0.7])
def test_a_label_that_lies_at_the_end_is_met(kind, share, tmp_path):
    frame = three_labels()
    place = int(share * len(frame))
    frame.loc[: place - 1, "y"] = frame["y"].replace("c", "a")[:place]
    found = PartialScanClassifier(random_state=0)
    found.fit_file(write(frame, tmp_path / kind), label="y")
    assert found.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore:Nothing is guaranteed")
@pytest.mark.parametrize("kind", ["t.csv", "t.csv.gz", "t.parquet", "array"])
def test_what_is_read_in_order_and_in_part_is_not_guaranteed(kind, tmp_path, monkeypatch):
    """The rest may hold anything, such as a label of its own."""
    monkeypatch.setattr(file_shards, "SMALL_STREAM", 0)
    frame = three_labels(60_000)
    frame.loc[:54_000, "y"] = frame["y"].replace("c", "a")[:54_001]
    shuffle = "auto" if kind == "t.csv.gz" else False
    found = PartialScanClassifier(tolerance=0.3, shuffle=shuffle, random_state=0)
    if kind == "array":
        found.fit(frame[list("pqrs")], frame["y"])
    else:
        found.fit_file(write(frame, tmp_path / kind), label="y")
    assert found.scanned_fraction_ < 0.9
    assert not found.scan_.is_guaranteed
    assert found.scan_.explain().startswith("Nothing is guaranteed: parts were read in the order")
    assert found.guarantee_.startswith("nothing: ")


@pytest.mark.filterwarnings(POOR)
def test_a_label_that_is_first_met_late_is_no_guarantee(tmp_path):
    """Neighbouring rows, one in a thousand, have a label of their own: few parts hold them."""
    frame = three_labels(30_000)
    frame.loc[17_000:17_029, "y"] = "rare"
    path = write(frame, tmp_path / "t.csv")
    told = []
    for seed in range(4):
        found = PartialScanClassifier(n_partitions=60, tolerance=0.4, random_state=seed)
        found.fit_file(path, label="y")
        late = [text for text in found.scan_.caveats if "'rare' first occurred in part" in text]
        told.append(bool(late))
        assert found.scan_.is_guaranteed != bool(found.scan_.caveats)
        met = ["rare" in model.classes_ for model in found.estimators_]
        if late:
            assert not any(met[: len(met) // 2])
            assert any(met)
            assert found.scan_.explain().startswith("Nothing is guaranteed: the label 'rare'")
    assert len(set(told)) == 2


@pytest.mark.parametrize("kind", ["t.csv", "t.csv.gz", "t.parquet", "groups.parquet", "array"])
@pytest.mark.parametrize("num_rows", [300, 30_000])
def test_a_single_label(kind, num_rows, tmp_path):
    frame = three_labels(num_rows).assign(y="a")
    found = PartialScanClassifier(random_state=0)
    path = None if kind == "array" else write(frame, tmp_path / kind)
    X, y = frame[list("pqrs")], frame["y"]
    with pytest.warns(DataWarning, match=r"only one label, 'a', was found"):
        _ = found.fit(X, y) if path is None else found.fit_file(path, label="y")
    assert not found.scan_.is_guaranteed
    assert found.scan_.performance is None
    assert found.scan_.explain().startswith("Nothing is guaranteed: only one label, 'a'")
    assert "99.7" not in found.scan_.explain()


# Accuracy -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(POOR)
@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("kind", ["t.csv", "groups.parquet", "array", "one model"])
def test_learners_that_know_their_rows_by_heart_are_not_believed(kind, early_stop, tmp_path):
    """Labels are coins: a nearest neighbour is right on its own rows, and on half of the others."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((20_000, 2)).round(6), columns=["u", "v"])
    frame["y"] = rng.integers(2, size=len(frame))
    parts = 1 if kind == "one model" else 20
    found = PartialScanClassifier(
        KNeighborsClassifier(1), parts, early_stop=early_stop, validation_size=2000, random_state=0
    )
    if kind in ("array", "one model"):
        found.fit(frame[["u", "v"]], frame["y"])
    else:
        found.fit_file(write(frame, tmp_path / kind), label="y")
    told = found.scan_.performance
    error = 4.0 * np.sqrt(0.25 / told.num_rows)
    assert told.num_rows >= 450
    for value in (told.accuracy, told.balanced_accuracy, told.single_accuracy):
        assert abs(value - 0.5) < error
    assert found.score(frame[["u", "v"]], frame["y"]) > 0.55


def coupons(num_rows, num_persons, num_labels, seed):
    """Persons and labels that have nothing to do with each other, sorted by both."""
    rng = np.random.default_rng(seed)
    person, label = (
        rng.integers(num_persons, size=num_rows),
        rng.integers(num_labels, size=num_rows),
    )
    return pd.DataFrame({"person": person, "y": label}).sort_values(["y", "person"])


@pytest.mark.filterwarnings(POOR)
@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("parts", [2, 5, 20])
@pytest.mark.parametrize("kind", ["t.csv", "groups.parquet", "array"])
def test_accuracy_of_files_sorted_by_label_and_person(kind, parts, early_stop, tmp_path):
    """Neighbours have the same label: neither with them alone nor without them one learns truly."""
    for num_persons, num_labels in ((2000, 3), (9000, 2), (500, 5)):
        frame = coupons(40_000, num_persons, num_labels, num_persons)
        found = PartialScanClassifier(
            n_partitions=parts,
            early_stop=early_stop,
            shuffle="parts" if kind == "array" and not early_stop else "auto",
            random_state=0,
        )
        if kind == "array":
            found.fit(frame[["person"]].to_numpy(), frame["y"])
        else:
            if kind == "groups.parquet":
                frame.to_parquet(tmp_path / kind, index=False, row_group_size=40)
            else:
                write(frame, tmp_path / kind)
            found.fit_file(tmp_path / kind, label="y")
        new = coupons(20_000, num_persons, num_labels, 1)
        X = new[["person"]].to_numpy() if kind == "array" else new[["person"]]
        true = found.score(X, new["y"])
        told = found.scan_.performance
        if told.interval is None:
            assert (kind, early_stop) == ("array", False)  # rows of one part only
            continue
        low, high = told.interval
        assert low - 0.03 < true < high + 0.03
        assert abs(told.single_accuracy - 1 / num_labels) < 0.1


@pytest.mark.parametrize("num_cells", [60, 150])
def test_one_model_is_measured_with_as_many_rows(num_cells):
    """Cells of a board have coins for labels: what is learned follows the number of rows."""
    rng = np.random.default_rng(0)
    board = rng.integers(2, size=(num_cells, num_cells))
    X = rng.integers(num_cells, size=(50_000, 2))
    y = board[X[:, 0], X[:, 1]]
    found = PartialScanClassifier(n_partitions=1, random_state=0).fit(X[:40_000], y[:40_000])
    low, high = found.scan_.performance.interval
    assert low <= found.score(X[40_000:], y[40_000:]) <= high
    assert found.scan_.performance.single_rows == 39_000


def test_what_was_not_measured_is_said():
    found = PartialScanClassifier(random_state=0).fit([[1.0], [2.0], [3.0]], ["a", "b", "a"])
    assert found.scan_.explain().splitlines()[-1] == "Accuracy: not measured."


@pytest.mark.filterwarnings(POOR)
def test_caveats_name_labels_as_their_users_do():
    X, y = np.arange(700.0)[:, None], np.where(np.arange(700) < 2, 2, 1)
    found = PartialScanClassifier(random_state=3).fit(X, y)
    assert found.scan_.caveats == ("all validation rows have the label 1",)


@pytest.mark.parametrize("kind", ["t.csv", "groups.parquet"])
def test_progress_ends_at_a_hundred_percent(kind, tmp_path, capsys):
    path = write(three_labels(20_000), tmp_path / kind)
    with plain_lines(0.0):
        found = PartialScanClassifier(n_partitions=20, early_stop=False).fit_file(path, label="y")
    assert found.n_partitions_ == 20
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Scanning")]
    shown = [int(line.split(":")[1].split("%")[0]) for line in lines]
    assert shown == list(range(5, 101, 5))


def test_an_ensemble_that_is_worse_than_one_model_is_told(tmp_path):
    """Every cell of a table of 20 by 20 has its own label: too many for parts of 16 rows."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(20, 20))
    X = rng.integers(20, size=(6000, 2))
    y = labels[X[:, 0], X[:, 1]]
    found = PartialScanClassifier(n_partitions=300, random_state=0)
    with pytest.warns(DataWarning, match=r"X: one model of 5,000 rows is clearly better"):
        found.fit(X, y)
    assert found.scan_.explain().splitlines()[0].endswith("take fewer parts, or n_partitions=1.")
    assert found.scan_.performance.single_accuracy > 0.99


def test_a_classifier_of_coins_is_told_to_be_no_better_than_the_commonest_label():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 2)), rng.random(20_000) < 0.4
    with pytest.warns(DataWarning, match="no better than predicting False for every row"):
        found = PartialScanClassifier(random_state=0).fit(X, y)
    assert found.scan_.performance.majority_accuracy == pytest.approx(0.6, abs=0.07)


def test_performance_by_hand():
    y = np.array(["a", "a", "a", "b"] * 10)
    chances = np.tile([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]], (10, 1))
    single = np.tile([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]], (10, 1))
    X = np.zeros((40, 1))
    found, remarks = measure(X, y, ["a", "b"], None, "a", chances, single, 77)
    assert (found.accuracy, found.majority_accuracy, found.single_accuracy) == (0.75, 0.75, 1.0)
    assert found.balanced_accuracy == pytest.approx((2 / 3 + 1) / 2)
    assert [text.split(":")[0] for text in remarks] == [
        "the classifier is no better than predicting 'a' for every row",
        "one model of 77 rows is clearly better than the ensemble",
    ]
    # Deciding "b" where it is true brings 9: worth it wherever P(b) > 0.1.
    benefit = {("a", "a"): 1.0, ("b", "b"): 9.0}
    found, remarks = measure(X, y, ["a", "b"], benefit, "a", chances, None, 0)
    assert found.benefit == pytest.approx((1 + 0 + 0 + 9) / 4)  # of a tie, the first
    assert found.constant_benefit == pytest.approx(9 / 4)
    assert (found.accuracy, remarks) == (0.5, [])


# What was read ------------------------------------------------------------------------------------


def os_bytes() -> int:
    try:
        return int(Path("/proc/self/io").read_text().split()[1])
    except (OSError, IndexError):
        pytest.skip("this system does not count what is read")


def test_models_are_compared_block_by_block():
    """Of ten blocks the single model is right in six, and the ensemble in the other four."""
    y, blocks = np.tile(["a", "b"], 500), np.arange(1000) // 100
    right = np.where(y[:, None] == np.array(["a", "b"]), 0.9, 0.1)
    is_single = (blocks < 6)[:, None]
    single, ensemble = (np.where(own, right, 1.0 - right) for own in (is_single, ~is_single))
    X = np.zeros((1000, 1))
    for given, number in ((blocks, 0), (None, 1)):
        _, remarks = measure(X, y, ["a", "b"], None, "a", ensemble, single, 77, given)
        assert sum("is clearly better" in text for text in remarks) == number


def test_intervals_of_single_rows_are_wilsons():
    correct = np.arange(1000) < 870
    low, high = accuracy_interval(correct)
    expected = binomtest(870, 1000).proportion_ci(method="wilson")
    assert low == pytest.approx(expected.low, abs=1e-4)  # Student's t has 999 degrees of freedom
    assert high == pytest.approx(expected.high, abs=1e-4)


@pytest.mark.parametrize("blocks", [np.zeros(10, np.int64), None])
def test_intervals_of_extreme_cases(blocks):
    found = accuracy_interval(np.ones(10, bool), blocks)
    if blocks is not None:
        assert found is None  # one block shows no variance
    else:
        assert 0.6 < found[0] < 0.8
        assert found[1] == 1.0


def test_intervals_of_blocks_hold_at_their_rate():
    """Blocks of twelve rows that share their accuracy; rows taken for independent hold far less."""
    rng = np.random.default_rng(0)
    truth, held, alone = 0.75, 0, 0
    for _ in range(1000):
        chance = rng.beta(3.0, 1.0, 100)  # its mean is 0.75
        blocks = np.repeat(np.arange(100), 12)
        correct = rng.random(1200) < chance[blocks]
        low, high = accuracy_interval(correct, blocks)
        held += low <= truth <= high
        low, high = accuracy_interval(correct)
        alone += low <= truth <= high
    # Fewer than 920 of 1,000 have a probability below 1e-4 at a rate of 95 %.
    assert 920 <= held <= 980
    assert alone < 850


def sorted_by_difficulty(num_rows, seed, draw):
    """Rows sorted by ``u``; in each of 1,000 stretches of ``u`` labels are certain or a coin."""
    is_coin = np.random.default_rng(seed).random(1000) < 0.5
    rng = np.random.default_rng((seed, draw))
    u, x = rng.random(num_rows), rng.normal(size=num_rows)
    y = np.where(is_coin[(1000 * u).astype(int)], rng.random(num_rows) < 0.5, x > 0.0)
    return pd.DataFrame({"u": u.round(5), "x": x.round(4), "y": y.astype(int)}).sort_values("u")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_intervals_of_accuracy_hold_on_sorted_files(kind, tmp_path):
    number, held = 40, 0
    for seed in range(number):
        frame = sorted_by_difficulty(20_000, seed, 0)
        if kind == "csv":
            path = write(frame, tmp_path / "t.csv")
        else:
            path = tmp_path / "t.parquet"
            frame.to_parquet(path, index=False, row_group_size=30)
        found = PartialScanClassifier("naive_bayes", random_state=seed).fit_file(path, label="y")
        new = sorted_by_difficulty(20_000, seed, 1)
        low, high = found.scan_.performance.interval
        held += low <= found.score(new[["u", "x"]], new["y"]) <= high
    assert held >= binom.ppf(1e-3, number, 0.95)


def test_intervals_follow_how_rows_were_chosen(tmp_path):
    frame = three_labels(20_000)
    path = write(frame.sort_values("p"), tmp_path / "t.csv")
    scattered = PartialScanClassifier(random_state=0).fit_file(path, label="y").scan_
    low, high = scattered.performance.interval
    assert low < scattered.accuracy < high
    assert f"interval {low:.1%} to {high:.1%}" in scattered.explain()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the order matters, and the ensemble is poor
        in_order = PartialScanClassifier(random_state=0, shuffle=False).fit_file(path, label="y")
    assert in_order.scan_.performance.interval is None
    X, y = frame.drop(columns="y").to_numpy(), frame["y"]
    for shuffle in ("auto", False):
        array = PartialScanClassifier(random_state=0, shuffle=shuffle).fit(X, y).scan_
        assert array.performance.interval is not None


def test_the_share_read_is_what_the_system_counts(tmp_path):
    path = write(three_labels(60_000), tmp_path / "t.csv")
    found = PartialScanClassifier(n_partitions=60, tolerance=0.3, random_state=0)
    PartialScanClassifier(n_partitions=2).fit_file(path, label="y")  # imports
    before = os_bytes()
    found.fit_file(path, label="y")
    really = os_bytes() - before
    size = path.stat().st_size
    assert found.scanned_fraction_ < 0.8
    assert found.scanned_fraction_ == pytest.approx(found.scan_.bytes_read / size)
    # The header is read several times, to find the delimiter, and some records at the ends of
    # blocks are read with both neighbours.
    assert found.scan_.bytes_read <= really < 1.1 * found.scan_.bytes_read + (1 << 17)
    # Parts, validation rows and the records at the ends of blocks.
    share = found.scan_.parts_read / 60
    assert share < found.scanned_fraction_ < share + 1000 / 60_000 + 0.06


def test_rows_of_parts_trained_side_by_side_are_counted():
    frame = three_labels(20_000)
    X, y = frame[list("pqrs")], frame["y"]
    with joblib.parallel_config(backend="threading"):
        one, two = (
            PartialScanClassifier(n_partitions=40, tolerance=0.3, n_jobs=n, random_state=0).fit(
                X, y
            )
            for n in (None, 3)
        )
    assert one.scan_.parts_read == two.scan_.parts_read
    assert one.scan_.rows_read == 1000 + one.scan_.parts_read * 475
    together = -(-one.scan_.parts_read // 3) * 3
    assert two.scan_.rows_read == 1000 + together * 475


def test_a_file_that_cannot_be_cut(tmp_path, monkeypatch):
    """Quotes in the middle of cells are not told from those around them."""
    frame = three_labels(20_000).sort_values("y")
    rows = [f'{p},5" pipe,{y}' for p, y in zip(frame["p"], frame["y"], strict=True)]
    path = tmp_path / "pipes.csv"
    path.write_text("\n".join(["p,size,y", *rows]))
    found = PartialScanClassifier(tolerance=0.3, random_state=0).fit_file(path, label="y")
    assert found.classes_.tolist() == ["a", "b", "c"]
    assert found.scan_.accuracy > 0.85
    assert (found.n_partitions_, found.scanned_fraction_) == (20, 1.0)
    monkeypatch.setattr(file_shards, "MAX_BYTES_AT_ONCE", 0)
    with pytest.raises(bl.DataError, match=r"pipes\.csv: parts cannot be read in random order"):
        PartialScanClassifier(shuffle=True).fit_file(path, label="y")


# Commands, pages and saved files ------------------------------------------------------------------


@pytest.mark.filterwarnings(POOR)
@pytest.mark.parametrize("case", ["one label", "small", "sorted"])
def test_the_command_says_first_what_is_not_guaranteed(case, tmp_path):
    frame = three_labels(30_000 if case == "sorted" else 500).sort_values("y")
    frame = frame.assign(y="a") if case == "one label" else frame
    path = write(frame, tmp_path / "t.csv")
    words = ["scan", str(path), "--label", "y", "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, words, catch_exceptions=False)
    assert found.exit_code == 0
    story = (tmp_path / "out" / "scan.txt").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    told = json.loads(CliRunner().invoke(app, [*words, "--json", "--force"]).stdout)
    assert told["is_guaranteed"] == (case == "sorted")
    if case == "one label":
        assert "Nothing is guaranteed: only one label" in found.output
        assert story.startswith("Nothing is guaranteed: only one label")
        assert page.index('id="headline"') < page.index('class="answer"')
        assert "was enough" not in page
        return
    assert told["performance"]["accuracy"] > 0.85
    assert "always predicting the most frequent label" in story
    assert 'id="performance"' in page
    if case == "small":
        assert story.startswith("One model was trained on all 500 rows")
        assert "trained as one model" in page
    else:
        assert "99.7%" in story
        assert "; one model of " in story


def test_ensembles_saved_before_there_was_a_performance(tmp_path, monkeypatch):
    frame = three_labels(3000)
    found = PartialScanClassifier(n_partitions=4, random_state=0)
    found.fit(frame[list("pqrs")], frame["y"]).save(tmp_path / "new.skops")
    restored = scan_io._restore_classifier

    def of_old(kind, described):
        for name in ("caveats", "remarks", "performance"):
            del described["scan"][name]
        return restored(kind, described)

    again = bl.load(tmp_path / "new.skops")
    assert again.scan_.performance == found.scan_.performance
    monkeypatch.setattr(scan_io, "_restore_classifier", of_old)
    old = bl.load(tmp_path / "new.skops")
    assert (old.scan_.performance, old.scan_.caveats) == (None, ())
    np.testing.assert_array_equal(
        old.predict(frame[list("pqrs")]), found.predict(frame[list("pqrs")])
    )


# The guarantee ------------------------------------------------------------------------------------


PARTS = 16


class Coin(ClassifierMixin, BaseEstimator):
    """A vote that is the same for all rows, and that the rows of its part determine."""

    def __init__(self, chance=0.5):
        self.chance = chance

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        code = zlib.crc32(np.sort(np.asarray(X)[:, 0]).tobytes())
        self.vote_ = float(code / 2**32 < self.chance)
        return self

    def predict_proba(self, X):
        return np.tile([1.0 - self.vote_, self.vote_], (len(X), 1))


def broken_promises(fit, confidence, files):
    """Shares of files on which the decision is not that of all parts, and on which it stopped."""
    rng = np.random.default_rng(0)
    broken = stopped = 0
    for number in range(files):
        options = {"confidence": confidence, "tolerance": 0.3, "random_state": number}
        learner = Coin(rng.uniform(0.5, 1.0))
        found = fit(PartialScanClassifier(learner, PARTS, validation_size=100, **options), number)
        if found.scan_.parts_read == PARTS:
            continue
        assert found.scan_.is_guaranteed
        stopped += 1
        # The same parts: a rule that never stops.
        found.set_params(confidence=1.0 - 1e-15, rule="every")
        votes = [model.vote_ for model in found.estimators_]
        whole = fit(found, number)
        assert [model.vote_ for model in whole.estimators_[: len(votes)]] == votes
        every = [model.vote_ for model in whole.estimators_]
        # It may end where those that are left cannot change the decision.
        assert len(every) == PARTS or max(sum(every), len(every) - sum(every)) > PARTS / 2
        broken += (np.mean(votes) > 0.5) != (np.mean(every) > 0.5)
    return broken / files, stopped / files


def coins(num_rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.random(num_rows).round(6), "y": rng.integers(2, size=num_rows)})


def fit_array(model, number):
    frame = coins(600, number)
    return model.fit(frame[["x"]], frame["y"])


@pytest.mark.filterwarnings(POOR)
def test_promises_about_arrays_are_kept():
    broken, stopped = broken_promises(fit_array, 0.8, 40)
    assert broken <= binom.ppf(0.9999, 40, 0.2) / 40
    assert stopped > 0.3


@pytest.mark.slow
@pytest.mark.filterwarnings(POOR)
@pytest.mark.parametrize(
    ("kind", "confidence"),
    [("csv", 0.997), ("csv", 0.9), ("csv", 0.8), ("groups.parquet", 0.8)],
)
def test_promises_are_kept_on_300_sorted_files(confidence, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(file_shards, "SMALL_FILE", 0)
    monkeypatch.setattr(csv_shards, "MIN_BLOCK", 64)
    monkeypatch.setattr(csv_shards, "ROWS_PER_BLOCK", 2)

    def fit_sorted(model, number):
        path = tmp_path / f"{number}.{kind}"
        if not path.exists():
            rows = PARTS * (120 if kind == "csv" else 205)
            frame = coins(rows, number).sort_values("x")
            if kind == "csv":
                frame.to_csv(path, index=False)
            else:
                frame.to_parquet(path, index=False, row_group_size=41)
        return model.fit_file(path, label="y", classes=[0, 1], progress=False)

    broken, stopped = broken_promises(fit_sorted, confidence, 300)
    assert broken <= binom.ppf(0.9999, 300, 1.0 - confidence) / 300
    assert stopped > 0.3


# Real data ----------------------------------------------------------------------------------------

REAL = {
    "iris": ("iris/iris.data", -1),
    "car": ("car/car.data", -1),
    "tic-tac-toe": ("tic-tac-toe/tic-tac-toe.data", -1),
    "mushroom": ("mushroom/agaricus-lepiota.data", 0),
    "nursery": ("nursery/nursery.data", -1),
    "adult": ("adult/adult.data", -1),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_sorted_by_label(name, tmp_path):
    folder = os.environ.get("BAYES_LCS_DATA")
    file, label = REAL[name]
    if not folder or not Path(folder, file).is_file():
        pytest.skip(f"BAYES_LCS_DATA holds no {file}")
    frame = pd.read_csv(
        Path(folder, file), header=None, skipinitialspace=True, keep_default_na=False
    )
    frame = frame.rename(columns=lambda column: f"x{column}")
    frame = frame.rename(columns={frame.columns[label]: "y"})
    train, test = train_test_split(frame, test_size=0.3, random_state=0)
    path = write(train.sort_values("y", kind="stable"), tmp_path / "t.csv")
    found = PartialScanClassifier(random_state=0).fit_file(path, label="y", missing_values=())
    single = PartialScanClassifier(n_partitions=1, random_state=0)
    single.fit_file(path, label="y", missing_values=())
    X, y = test.drop(columns="y"), test["y"]
    assert found.score(X, y) > single.score(X, y) - 0.03
    assert found.score(X, y) > (y == y.mode()[0]).mean() + 0.05


def clumped(labels, rng):
    """Rows of two numbers that tell the labels apart, sorted by label."""
    y = np.sort(labels)
    X = rng.normal(size=(len(y), 2)) + np.c_[y == "b", y == "rare"] * 3.0
    return pd.DataFrame(X, columns=["u", "v"]).assign(kind=y)


@pytest.mark.parametrize("rows_per_group", [300, 900])
def test_a_sorted_parquet_file_of_some_groups_gives_what_the_csv_file_gives(
    tmp_path, rows_per_group
):
    rng = np.random.default_rng(0)
    train = clumped(rng.choice(["a", "b", "rare"], 40_000, p=[0.5, 0.45, 0.05]), rng)
    test = clumped(rng.choice(["a", "b", "rare"], 5_000, p=[0.5, 0.45, 0.05]), rng)
    train.to_parquet(tmp_path / "t.parquet", index=False, row_group_size=rows_per_group)
    found = bl.PartialScanClassifier(random_state=0).fit_file(tmp_path / "t.parquet", label="kind")
    right = found.predict(test) == test["kind"]
    assert right[test["kind"] == "rare"].mean() > 0.7
    assert found.scan_.accuracy == pytest.approx(right.mean(), abs=0.05)


def test_parts_of_one_label_each_guarantee_nothing(tmp_path):
    rng = np.random.default_rng(1)
    train = clumped(rng.choice(["a", "b", "rare"], 20_000), rng)
    train.to_parquet(tmp_path / "t.parquet", index=False, row_group_size=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.DataWarning)
        found = bl.PartialScanClassifier(n_partitions=40, random_state=0).fit_file(
            tmp_path / "t.parquet", label="kind"
        )
    assert not found.scan_.is_guaranteed
    assert "label frequencies of the parts differ" in found.scan_.headline


@pytest.mark.parametrize("how", ["array", "file"])
def test_one_label_in_file_order_is_no_error(tmp_path, how):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=4000), "y": 0})
    frame.to_csv(tmp_path / "t.csv", index=False)
    scan = bl.PartialScanClassifier(n_partitions=8, shuffle=False)
    fit = {
        "array": lambda: scan.fit(frame[["x"]], frame["y"]),
        "file": lambda: scan.fit_file(tmp_path / "t.csv", label="y"),
    }
    with pytest.warns(bl.DataWarning, match="only one label"):
        fit[how]()
    assert not scan.scan_.is_guaranteed


def test_a_packed_file_of_medium_size_is_shuffled(tmp_path):
    rng = np.random.default_rng(0)
    frame = clumped(rng.choice(["a", "b", "rare"], 60_000, p=[0.4, 0.3, 0.3]), rng)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    found = bl.PartialScanClassifier(random_state=0).fit_file(tmp_path / "t.csv.gz", label="kind")
    assert len(found.classes_) == 3
    assert (found.predict(frame) == frame["kind"]).mean() > 0.8


def test_a_file_that_is_left_in_order_warns(tmp_path, monkeypatch):
    monkeypatch.setattr("bayes_lcs.io.shards.SMALL_STREAM", 1 << 10)
    rng = np.random.default_rng(0)
    frame = clumped(rng.choice(["a", "b"], 60_000), rng).sample(frac=1.0, random_state=0)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    with pytest.warns(bl.DataWarning, match="of the file were read in its order"):
        found = bl.PartialScanClassifier(random_state=0).fit_file(
            tmp_path / "t.csv.gz", label="kind"
        )
    assert found.scan_.is_cut_short
    assert not found.scan_.is_guaranteed


@pytest.mark.parametrize("seed", range(3))
def test_rare_notes_of_several_paragraphs_are_read(tmp_path, seed):
    """Blank lines within a cell in quotes are no ends of rows, even before a quote was seen."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=20_000)
    rows = [f"{v:.6f},,{'p' if v > 0 else 'q'}\n" for v in x]
    note = '"' + "\n\n".join(["a long paragraph, of a note " * 20] * 40) + '"'
    for row in rng.integers(3000, 20_000, size=20):
        rows[row] = f"{x[row]:.6f},{note},{'p' if x[row] > 0 else 'q'}\n"
    (tmp_path / "n.csv").write_text("x,note,y\n" + "".join(rows))
    found = bl.PartialScanClassifier(random_state=0).fit_file(
        tmp_path / "n.csv", label="y", ignore=["note"]
    )
    assert found.score(pd.DataFrame({"x": x}), np.where(x > 0, "p", "q")) > 0.99
