"""Ensembles that stop reading: what they read, what they promise, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import bayes_lcs as bl
from bayes_lcs import PartialScanClassifier
from bayes_lcs.classification.partial_scan.result import Scan
from bayes_lcs.classification.partial_scan.validation import BatchRows
from bayes_lcs.core.errors import DataError

CHECKED = PartialScanClassifier(n_partitions=4, random_state=0)


@parametrize_with_checks([CHECKED, PartialScanClassifier(random_state=0)])
@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # labels at random
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_checks_are_there():
    assert len(list(estimator_checks_generator(CHECKED, legacy=True))) >= 54


def simple(num_rows=6000, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, 3))
    return X, np.where(X[:, 0] + noise * rng.normal(size=num_rows) > 0, "yes", "no")


def people(num_rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Bonn", "Ulm", "Kiel"], num_rows),
            "age": rng.integers(18, 90, num_rows).astype(float),
            "amount": rng.gamma(2.0, 60.0, num_rows).round(2),
        }
    )
    chance = np.where(frame["town"] == "Ulm", 0.7, 0.05)
    frame["kind"] = np.where(rng.random(num_rows) < chance, "fraud", "honest")
    return frame


@pytest.mark.parametrize("base", [DecisionTreeClassifier(random_state=3), GaussianNB()])
def test_one_scan_is_averaging_by_hand(base):
    X, y = simple(1003)
    whole = PartialScanClassifier(base, 10, early_stop=False, shuffle=False).fit(X, y)
    parts = zip(np.array_split(X, 10), np.array_split(y, 10), strict=True)
    models = [type(base)(**base.get_params()).fit(*part) for part in parts]
    by_hand = np.mean([model.predict_proba(X) for model in models], axis=0)
    np.testing.assert_array_equal(whole.predict_proba(X), by_hand)
    np.testing.assert_array_equal(whole.predict(X), whole.classes_[by_hand.argmax(axis=1)])
    assert (whole.scanned_fraction_, whole.stop_reason_) == (1.0, "all parts were read")
    assert whole.parts_ == list(range(10))


def test_it_reads_less_and_agrees_with_all():
    X, y = simple(20_000, noise=0.05)
    partial = PartialScanClassifier("tree", 64, random_state=0).fit(X, y)
    whole = PartialScanClassifier("tree", 64, early_stop=False, random_state=0).fit(X, y)
    assert partial.scanned_fraction_ < 0.6
    assert len(partial.estimators_) == partial.scan_.parts_read < 64
    assert partial.scan_.rows_read == pytest.approx(20_000 * partial.scanned_fraction_)
    read = 1000 + 19_000 * partial.scan_.parts_read / 64  # with the validation rows
    assert partial.scan_.rows_read == pytest.approx(read, abs=64)
    assert (partial.predict(X) == whole.predict(X)).mean() > 0.97
    assert "99.7%" in partial.guarantee_
    assert "64 parts" in partial.guarantee_
    assert partial.scan_.is_guaranteed
    settled = partial.scan_.trace["settled"]
    assert settled.iloc[-1] >= 0.9 > settled.iloc[-2]
    assert partial.stop_reason_.startswith(f"{settled.iloc[-1]:.1%} of 1,000 validation rows")


def test_the_seed_decides_and_the_number_of_jobs_does_not():
    X, y = simple(4000)
    one, two, other = (
        PartialScanClassifier("tree", 32, random_state=seed, n_jobs=jobs).fit(X, y)
        for seed, jobs in ((0, None), (0, 2), (1, None))
    )
    assert one.parts_ == two.parts_
    assert (one.predict_proba(X) != other.predict_proba(X)).any()
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_parts_that_lack_labels():
    """Sorted by label: most parts know one label only, and give the others no probability."""
    X, y = np.arange(90.0)[:, None], np.repeat(["a", "b", "c"], 30)
    found = PartialScanClassifier(LogisticRegression(), 6, early_stop=False, shuffle=False)
    found.fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(found.predict_proba([[0.0]]), [[1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize("labels", [[3, 8, 11], [True, False], ["x", "y"], [0.5, 1.5]])
def test_labels_of_any_type(labels):
    rng = np.random.default_rng(0)
    codes = rng.integers(len(labels), size=600)
    y = np.array(labels)[codes]
    if y.dtype.kind == "f":
        with pytest.raises(ValueError, match="continuous"):
            PartialScanClassifier(n_partitions=4).fit(codes[:, None], y)
        return
    found = PartialScanClassifier(n_partitions=4, random_state=0).fit(codes[:, None], y)
    assert found.predict(codes[:, None]).dtype == y.dtype
    np.testing.assert_array_equal(found.predict(codes[:, None]), y)


class Told(ClassifierMixin, BaseEstimator):
    """Says for every row the mean of its own part's last column: a part's vote, written by hand."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.vote_ = float(np.mean(np.asarray(X)[:, -1]))
        return self

    def predict_proba(self, X):
        return np.tile([1.0 - self.vote_, self.vote_], (len(X), 1))


def told(votes, rows=20):
    """As many rows a part, half of each label; the first column says nothing."""
    X = np.column_stack([np.zeros(rows * len(votes)), np.repeat(votes, rows)])
    return X, np.tile([0, 1], rows * len(votes) // 2)


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # votes by hand
def test_hoeffding_by_hand():
    """Votes of 0.9: e1 - e2 = 0.8 > 2 eps = 2 sqrt(ln(1/0.1) / 2k) from k = 8 on: 7.2 < k."""
    X, y = told([0.9] * 20)
    options = {"bound": "hoeffding", "rule": "every", "confidence": 0.9, "shuffle": False}
    found = PartialScanClassifier(Told(), 20, **options).fit(X, y)
    assert found.scan_.parts_read == 8
    assert not found.scan_.is_guaranteed
    assert found.guarantee_.startswith("nothing: ")
    # With sqrt((20 - k) / 19) the error falls below 0.4 at k = 6: 0.438 * 0.858 = 0.376.
    options["bound"] = "hoeffding-finite"
    assert PartialScanClassifier(Told(), 20, **options).fit(X, y).scan_.parts_read == 6


def by_hand(num_parts, needed, first=0):
    """Parts until unanimous votes bring more than is needed, the first of them not bet on."""
    wealth, stakes = np.ones(5), np.array([0.2, 0.4, 0.6, 0.8, 1.0])
    for t in range(num_parts):
        odds = (num_parts - t) / (num_parts / 2 - t)
        if t >= first:
            wealth *= 1.0 + stakes * (odds - 1.0)
        if wealth.mean() > needed:
            return t + 1
    return None


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # votes by hand
def test_betting_by_hand():
    """Four rows that are alike are wrong together unless each brings more than 4 / 0.05."""
    X, y = told([1.0] * 40)
    options = {"confidence": 0.95, "rule": "every", "validation_size": 4, "shuffle": False}
    found = PartialScanClassifier(Told(), 40, **options).fit(X, y)
    assert found.scan_.parts_read == by_hand(40, 4 / 0.05)


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # votes by hand
def test_sequential_rows_by_hand():
    """With every row alike, both ways of looking need the same parts."""
    X, y = told([0.9] * 20)
    options = {"bound": "hoeffding", "rule": "every", "confidence": 0.9, "shuffle": False}
    for validation in ("batch", "sequential"):
        found = PartialScanClassifier(Told(), 20, validation=validation, **options).fit(X, y)
        assert found.scan_.parts_read == 8


@pytest.mark.parametrize("bound", ["betting", "hoeffding-finite"])
def test_sequential_reads_about_as_much_as_batch(bound):
    X, y = simple(8000, noise=0.02)
    options = {"n_partitions": 40, "bound": bound, "tolerance": 0.3, "random_state": 0}
    batch, sequential = (
        PartialScanClassifier("tree", validation=way, **options).fit(X, y)
        for way in ("batch", "sequential")
    )
    assert batch.scan_.parts_read < 40
    assert sequential.scan_.parts_read < 40
    settled = sequential.scan_.trace["settled"]
    assert settled.is_monotonic_increasing
    assert settled.iloc[-1] >= 0.7
    if bound == "betting":
        assert "the settled decisions are" in sequential.guarantee_


def test_benefits_decide():
    frame = people()
    X, y = frame.drop(columns="kind"), frame["kind"]
    benefit = {("fraud", "fraud"): ("amount", -90.0), ("honest", "fraud"): -90.0}
    found = PartialScanClassifier(
        "naive_bayes", 8, benefit=benefit, benefit_only=["amount"], random_state=0
    ).fit(X, y)
    p = found.predict_proba(X)[:, 0]
    worth = p * (X["amount"] - 90.0) - (1.0 - p) * 90.0
    np.testing.assert_array_equal(found.predict(X) == "fraud", worth > 0.0)
    np.testing.assert_allclose(found.expected_benefit(X)[:, 0], worth)
    np.testing.assert_allclose(found.expected_benefit(X)[:, 1], 0.0)
    said = found.predict(X) == "fraud"
    brought = np.where(y == "fraud", X["amount"] - 90.0, -90.0)[said].sum()
    assert found.total_benefit(X, y) == pytest.approx(brought)


def test_a_matrix_and_a_function_are_the_same_benefit():
    X, y = simple(2000)
    matrix = np.array([[1.0, 0.0], [0.0, 4.0]])
    found = [
        PartialScanClassifier("tree", 8, benefit=one, random_state=0).fit(X, y).predict(X)
        for one in (
            matrix,
            lambda rows, classes: np.tile(matrix, (len(rows), 1, 1)),
            {("no", "no"): 1.0, ("yes", "yes"): 4.0},
        )
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    plain = PartialScanClassifier("tree", 8, random_state=0).fit(X, y).predict(X)
    assert (found[0] == "yes").sum() > (plain == "yes").sum()


def test_files_give_what_frames_give(tmp_path):
    frame = people()
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet", row_group_size=100)
    X, y = frame.drop(columns="kind"), frame["kind"]
    for shuffle in ("auto", False):
        options = {"early_stop": False, "shuffle": shuffle, "random_state": 0}
        whole = PartialScanClassifier("naive_bayes", 8, **options).fit(X, y)
        of_parquet = PartialScanClassifier("naive_bayes", 8, **options)
        of_parquet.fit_file(tmp_path / "people.parquet", label="kind")
        of_text = PartialScanClassifier("naive_bayes", 8, **options)
        of_text.fit_file(tmp_path / "people.csv", label="kind")
        np.testing.assert_allclose(whole.predict_proba(X), of_text.predict_proba(X))
        # A Parquet file with enough row groups is not shuffled row by row.
        apart = np.abs(whole.predict_proba(X) - of_parquet.predict_proba(X)).max()
        assert apart < (1e-12 if shuffle is False else 0.1)
    assert of_text.feature_names_in_.tolist() == ["town", "age", "amount"]
    assert of_text.scan_.bytes_read == (tmp_path / "people.csv").stat().st_size


def test_the_rest_of_a_file_is_not_read(tmp_path):
    frame = people(60_000)
    frame["kind"] = np.where(frame["town"] == "Ulm", "fraud", "honest")
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    size = path.stat().st_size
    # What is wrong behind the part that is read is not noticed.
    with path.open("a") as stream:
        stream.write("Bonn,17\n")
    found = PartialScanClassifier("tree", 64, shuffle=False, random_state=0)
    found.fit_file(path, label="kind")
    assert found.scan_.parts_read < 32
    assert found.scan_.bytes_read < 0.6 * size
    assert found.scanned_fraction_ == pytest.approx(found.scan_.bytes_read / size, rel=0.01)
    assert "parts were read in the order of people.csv" in found.guarantee_
    assert not found.scan_.is_guaranteed
    with pytest.raises(DataError, match=r"people\.csv, line 60002, column 'amount'"):
        PartialScanClassifier("tree", 64, early_stop=False).fit_file(path, label="kind")


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # votes by hand
def test_the_model_of_the_first_part_of_a_file_is_not_bet_on(tmp_path):
    """Its rows are those that are validated, so that it is not one of many in random order."""
    X, y = told([1.0] * 40, rows=4)
    frame = pd.DataFrame(X, columns=["nothing", "vote"]).assign(y=y)
    frame.to_parquet(tmp_path / "told.parquet")
    options = {"confidence": 0.995, "rule": "every", "shuffle": False, "random_state": 1}
    found = PartialScanClassifier(Told(), 40, **options)
    found.fit_file(tmp_path / "told.parquet", label="y", classes=[0, 1])
    assert found.scan_.num_validation == 2
    assert found.scan_.parts_read == by_hand(40, 2 / 0.005, first=1) == by_hand(40, 2 / 0.005) + 1


def test_a_parquet_file_is_read_in_random_order(tmp_path):
    frame = people(20_000)
    frame["kind"] = np.where(frame["town"] == "Ulm", "fraud", "honest")
    frame.sort_values("age").to_parquet(tmp_path / "p.parquet", row_group_size=200)
    found = PartialScanClassifier("tree", 64, random_state=0)
    found.fit_file(tmp_path / "p.parquet", label="kind")
    assert found.scan_.parts_read < 32
    assert found.scan_.is_guaranteed
    assert "over the random order" in found.guarantee_
    assert found.scan_.bytes_read < 0.7 * (tmp_path / "p.parquet").stat().st_size


def sorted_amounts():
    """The rule changes along the file."""
    rng = np.random.default_rng(0)
    amount = np.sort(rng.gamma(2.0, 60.0, 20_000))
    X = np.column_stack([amount, rng.normal(size=20_000)])
    return X, np.where((X[:, 1] > 0) ^ (amount > 120.0), "a", "b")


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")
def test_a_sorted_file_is_seen_and_read_on():
    X, y = sorted_amounts()
    options = {"n_partitions": 64, "shuffle": False, "random_state": 0}
    with pytest.warns(bl.DriftWarning, match="order of the rows in X matters"):
        found = PartialScanClassifier("tree", **options).fit(X, y)
    assert found.scanned_fraction_ < 1.0
    assert not found.scan_.is_guaranteed
    assert "the order of the rows matters" in found.guarantee_
    with pytest.warns(bl.DriftWarning):
        found = PartialScanClassifier("tree", on_drift="read_on", **options).fit(X, y)
    assert found.scanned_fraction_ == 1.0
    assert found.scan_.drift < 1e-3
    assert not found.scan_.is_guaranteed
    mixed = PartialScanClassifier("tree", 64, shuffle="rows", random_state=0).fit(X, y)
    assert mixed.scanned_fraction_ < 1.0


def test_a_label_that_comes_late(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=4000)
    y = np.array(["a", "b", "c"])[x]
    y[:3000] = np.where(y[:3000] == "c", "a", y[:3000])
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "late.csv", index=False)
    found = PartialScanClassifier("tree", 8, early_stop=False, shuffle=False)
    found.fit_file(tmp_path / "late.csv", label="y")
    assert found.classes_.tolist() == ["a", "b", "c"]
    assert not found.scan_.is_guaranteed
    assert found.scan_.caveats[0].startswith("the label 'c' first occurred in part 7 of 8")
    probability = found.predict_proba(pd.DataFrame({"x": [2.0]}))[0]
    assert probability[2] == pytest.approx(0.25)
    with pytest.raises(DataError, match=r"late\.csv, line \d+, column 'y': the label 'c' is not"):
        found.fit_file(tmp_path / "late.csv", label="y", classes=["a", "b"])
    with pytest.raises(ValueError, match="a row for each true label"):
        PartialScanClassifier("tree", 8, benefit=np.eye(3), shuffle=False).fit_file(
            tmp_path / "late.csv", label="y"
        )


@pytest.mark.parametrize(
    "benefit",
    [None, {("yes", "yes"): 5.0, ("no", "no"): 1.0}, lambda rows, labels: np.eye(len(labels))],
)
@pytest.mark.parametrize("validation", ["batch", "sequential"])
@pytest.mark.filterwarnings("ignore::bayes_lcs.DriftWarning")
@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")
def test_one_label_so_far_is_not_taken_for_all(tmp_path, benefit, validation):
    """The first parts hold one label only: that others will come must first become unlikely."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000).round(6)
    y = np.where((np.arange(20_000) < 900) | (x < 0), "no", "yes")
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "late.csv", index=False)
    found = PartialScanClassifier(
        "tree", 64, benefit=benefit, validation=validation, shuffle=False, random_state=0
    )
    found.fit_file(tmp_path / "late.csv", label="y")
    assert found.scan_.parts_read >= 8
    assert found.scan_.bytes_read > (tmp_path / "late.csv").stat().st_size / 10
    assert found.classes_.tolist() == ["no", "yes"]
    assert not found.scan_.is_guaranteed


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")
@pytest.mark.parametrize("given", [None, ["no", "yes"]])
def test_a_scan_does_not_stop_before_two_labels_are_met(tmp_path, given):
    """The first 90 % of the rows have one label, on which all models agree trivially."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(4000, 2)), columns=["a", "b"])
    frame["y"] = np.where(np.arange(4000) < 3600, "no", "yes")
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = PartialScanClassifier("tree", 64, shuffle=False, random_state=0)
    found.fit_file(tmp_path / "t.csv", label="y", classes=given)
    assert found.scan_.parts_read > 0.9 * 64


@pytest.mark.parametrize("given", [None, ["no", "yes"]])
def test_a_label_that_was_not_met_is_one_of_the_possible_decisions(tmp_path, monkeypatch, given):
    """Unless all labels are given, the bound allows for one that no part has shown yet."""
    asked = []
    update = BatchRows.update

    def record(self, models, classes, num_met):
        asked.append((len(classes), num_met))
        return update(self, models, classes, num_met)

    monkeypatch.setattr(BatchRows, "update", record)
    x = np.random.default_rng(0).normal(size=20_000).round(6)
    frame = pd.DataFrame({"x": x, "y": np.where(x > 0, "yes", "no")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    PartialScanClassifier("tree", 16, random_state=0).fit_file(
        tmp_path / "t.csv", label="y", classes=given
    )
    assert set(asked) == {(3 if given is None else 2, 2)}


def test_a_benefit_without_a_number_is_named(tmp_path):
    frame = people(2000)
    frame.loc[1500, "amount"] = np.nan
    frame.to_csv(tmp_path / "p.csv", index=False)
    benefit = {("fraud", "fraud"): "amount", ("honest", "fraud"): -90.0}
    found = PartialScanClassifier("tree", 4, benefit=benefit, early_stop=False)
    with pytest.raises(DataError, match=r"p\.csv, line 1502, column 'amount': the benefit needs"):
        found.fit_file(tmp_path / "p.csv", label="kind")
    with pytest.raises(DataError, match="row 1500, column 'amount'"):
        found.fit(frame.drop(columns="kind"), frame["kind"])
    good = frame.dropna()
    found.fit(good.drop(columns="kind"), good["kind"])
    with pytest.raises(DataError, match="column 'amount': the benefit needs a number"):
        found.predict(frame.drop(columns="kind").iloc[1500:1501])
    assert not hasattr(PartialScanClassifier(), "estimators_")


def test_damaged_files_leave_no_model(tmp_path):
    frame = people(4000)
    path = tmp_path / "p.parquet"
    frame.to_parquet(path, row_group_size=100)
    path.write_bytes(path.read_bytes()[:-100])
    found = PartialScanClassifier("tree", 8)
    with pytest.raises(DataError, match=r"p\.parquet: is not a complete Parquet file"):
        found.fit_file(path, label="kind")
    text = frame.to_csv(index=False).splitlines()
    text[20] = "Bonn,17"
    (tmp_path / "p.csv").write_text("\n".join(text))
    with pytest.raises(DataError, match=r"p\.csv, line 21, column 'amount'"):
        found.fit_file(tmp_path / "p.csv", label="kind")
    assert not hasattr(found, "estimators_")


class Broken(DecisionTreeClassifier):
    """Fails on parts of which the first number is above a bound."""

    def fit(self, X, y, sample_weight=None):
        if X[0, 0] >= 700:
            raise RuntimeError("no")
        return super().fit(X, y, sample_weight)


class Interrupted(DecisionTreeClassifier):
    """Ctrl-C in the part that begins with 700."""

    def fit(self, X, y, sample_weight=None):
        if X[0, 0] == 700:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # labels of no meaning
def test_a_learner_that_fails_is_named_with_its_part():
    X = np.arange(1000.0)[:, None]
    y = np.arange(1000) % 2
    found = PartialScanClassifier(Broken(), 10, early_stop=False, shuffle=False)
    with pytest.raises(ValueError, match="Broken cannot be trained on part 8, which has 100 rows"):
        found.fit(X, y)
    assert not hasattr(found, "estimators_")


def test_what_was_learned_before_an_interruption_is_kept_and_marked():
    X, y = np.arange(1000.0)[:, None], np.arange(1000) % 2
    found = PartialScanClassifier(Interrupted(), 10, early_stop=False, shuffle=False)
    with pytest.warns(bl.InterruptedWarning, match="after 7 of 10 parts"):
        found.fit(X, y)
    assert found.scan_.parts_read == 7
    assert found.stop_reason_ == "interrupted"
    assert not found.scan_.is_guaranteed
    assert found.scan_.explain().startswith("Nothing is guaranteed: reading was interrupted")
    assert found.predict(X).shape == (1000,)


@pytest.mark.parametrize("base", ["tree", "naive_bayes", "rules", LogisticRegression()])
def test_saved_and_loaded(base, tmp_path):
    if base == "rules":
        pytest.importorskip("wittgenstein")
    frame = people(1200)
    X, y = frame.drop(columns="kind"), frame["kind"]
    benefit = {("fraud", "fraud"): ("amount", -90.0), ("honest", "fraud"): -90.0}
    found = PartialScanClassifier(base, 4, benefit=benefit, random_state=0).fit(X, y)
    path = tmp_path / "ensemble.skops"
    found.save(path)
    for again in (PartialScanClassifier.load(path), bl.load(path)):
        np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), found.predict(X))
        assert again.scan_.explain() == found.scan_.explain()
        assert again.get_params()["benefit"] == benefit
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="does not match its checksum"):
        bl.load(path)


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")  # votes by hand
def test_what_cannot_be_saved_or_trusted(tmp_path):
    X, y = simple(400)
    own = PartialScanClassifier(Told(), 4, random_state=0).fit(X, y)
    own.save(tmp_path / "own.skops")
    with pytest.raises(DataError, match=r"not trusted: .*Told"):
        bl.load(tmp_path / "own.skops")
    name = f"{Told.__module__}.Told"
    again = PartialScanClassifier.load(tmp_path / "own.skops", trusted=[name])
    np.testing.assert_array_equal(again.predict_proba(X), own.predict_proba(X))
    function = PartialScanClassifier(benefit=lambda rows, classes: np.eye(2), n_partitions=4)
    with pytest.raises(TypeError, match="function cannot be saved"):
        function.fit(X, y).save(tmp_path / "f.skops")
    (tmp_path / "other.skops").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(DataError, match="does not end with the checksum"):
        bl.load(tmp_path / "other.skops")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"base": "forest"}, ValueError, "base must be one of tree, naive_bayes, rules"),
        ({"base": RidgeClassifier()}, TypeError, "has no predict_proba"),
        ({"base": DecisionTreeClassifier}, TypeError, "must be an instance"),
        ({"base": 3}, TypeError, "a name or a classifier"),
        ({"bound": "chernoff"}, ValueError, "bound"),
        ({"benefit": np.eye(3)}, ValueError, "a row for each true label"),
        ({"benefit": [[1, np.nan], [0, 1]]}, ValueError, "must be finite"),
        ({"benefit": {"yes": 1.0}}, ValueError, "keys of benefit are pairs"),
        ({"benefit": {("yes", "yes"): "money"}}, ValueError, "names a column 'money'"),
        ({"benefit_only": ["money"]}, ValueError, "must be a DataFrame"),
    ],
)
def test_what_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        PartialScanClassifier(**{"n_partitions": 4, **options}).fit(*simple(200))


def test_any_classifier_with_probabilities():
    X, y = simple(1200)
    found = PartialScanClassifier(SVC(probability=True, random_state=0), 6, random_state=0)
    with pytest.warns(FutureWarning):
        found.fit(X, y)
    assert found.score(X, y) > 0.9


def test_a_file_that_is_read_at_once_is_not_said_to_be_read_in_part():
    """Small files are; parts that were not learned from are then read all the same."""
    story = Scan(8, 5, 600, 12_345, 1.0, "why", "what", False, 10, 1.0, pd.DataFrame())
    said = "Learned from 5 of 8 parts, for which 600 rows, 12,345 bytes (100.0%) were read."
    assert story.explain().splitlines()[0] == said
