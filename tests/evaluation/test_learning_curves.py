"""Learning curves: which rows are trained on, which are predicted, and what is averaged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.core.decisions import asymmetric_loss
from bayes_lcs.evaluation import learning_curves

SIZES = [2, 5, 8]
DATA = bl.meeting_requests(seed=0, rows_per_person=15)[0].select_groups([0, 1, 8, 10])


@pytest.fixture
def fits(monkeypatch) -> list[tuple[bl.GroupedTable, bl.GroupedTable]]:
    """Every training table, with every table that was predicted from it."""
    seen = []

    class Recorder:
        def __init__(self, posterior, train):
            self.posterior, self.train = posterior, train

        def predict_proba(self, rows):
            seen.append((self.train, rows))
            return self.posterior.predict_proba(rows)

    def condition(model, data, **options):
        return Recorder(original(model, data, **options), data)

    original = learning_curves.condition
    monkeypatch.setattr(learning_curves, "condition", condition)
    return seen


def rows_of(table: bl.GroupedTable, group: int | None = None) -> set[tuple[int, ...]]:
    """Rows as tuples; those of the meeting requests are all different."""
    here = slice(None) if group is None else table.groups == group
    return set(map(tuple, np.column_stack([table.groups, table.features])[here].tolist()))


def test_the_rows_are_different():
    assert len(rows_of(DATA)) == DATA.num_rows == 60


def test_the_same_of_everybody(fits):
    frame = bl.learning_curve([bl.NoSharing()], DATA, SIZES, repeats=2)
    assert len(fits) == len(frame) == 2 * 3 * 4
    for (train, tested), (_, point) in zip(fits, frame.iterrows(), strict=True):
        assert train.group_sizes.tolist() == [point["size"]] * 4
        assert tested.num_rows == point["num_rows"] == 3
        assert tested.row_group_names() == [point["group"]] * 3
        assert not rows_of(train) & rows_of(tested)
    by_repeat = [fits[:12], fits[12:]]
    for repeat in by_repeat:
        trained = [rows_of(train) for train, _ in repeat[::4]]
        assert trained[0] < trained[1] < trained[2]
        assert rows_of(repeat[0][1]) == rows_of(repeat[4][1]) == rows_of(repeat[8][1])
    assert rows_of(by_repeat[0][0][1]) != rows_of(by_repeat[1][0][1])


def test_all_of_the_others(fits):
    frame = bl.learning_curve(
        [bl.NoSharing()], DATA, [0, 5], repeats=1, others="all", groups=["person-09"]
    )
    assert frame["group"].tolist() == ["person-09"] * 2
    for (train, tested), size in zip(fits, [0, 5], strict=True):
        assert train.group_sizes.tolist() == [15, 15, size, 15]
        assert tested.group_sizes.tolist() == [0, 0, 3, 0]
        assert not rows_of(train) & rows_of(tested)


def test_all_that_is_not_trained_on(fits):
    bl.learning_curve([bl.NoSharing()], DATA, [2, 14], repeats=1, test_fraction=None)
    for train, tested in fits:
        group = int(tested.groups[0])
        assert rows_of(train, group) | rows_of(tested) == rows_of(DATA, group)
        assert not rows_of(train) & rows_of(tested)


def test_losses_are_means_of_the_rows_held_out(fits):
    model, loss = bl.ClusteredNaiveBayes(), asymmetric_loss(3)
    frame = bl.learning_curve({"mine": model}, DATA, [5], repeats=1, losses={"steep": loss})
    assert list(frame.columns) == [
        "model",
        "group",
        "size",
        "repeat",
        "num_rows",
        "convergence",
        "rhat",
        "ess",
        "zero_one_loss",
        "log_loss",
        "steep",
    ]
    assert set(frame["model"]) == {"mine"}
    assert set(frame["convergence"]) == {"exact"}
    assert frame[["rhat", "ess"]].isna().all(axis=None)
    for (train, tested), (_, point) in zip(fits, frame.iterrows(), strict=True):
        p = bl.exact(model, train).predict_proba(tested)
        for column, what in (("zero_one_loss", "zero-one"), ("log_loss", "log"), ("steep", loss)):
            assert point[column] == pytest.approx(bl.mean_loss(p, tested.labels, what).value)


def test_models_see_the_same_rows(fits):
    bl.learning_curve([bl.NoSharing(), bl.CompleteSharing()], DATA, [5], repeats=1)
    first, second = fits[:4], fits[4:]
    for (train_a, tested_a), (train_b, tested_b) in zip(first, second, strict=True):
        assert train_a == train_b
        assert tested_a == tested_b


def test_a_group_too_small_for_a_size_has_no_point_there():
    kept = np.flatnonzero((DATA.groups != 1) | (np.cumsum(DATA.groups == 1) <= 6))
    frame = bl.learning_curve([bl.NoSharing()], DATA.take(kept), [3, 5], repeats=1)
    assert frame.groupby("size")["group"].nunique().to_dict() == {3: 4, 5: 3}


def test_rows_without_a_label_are_not_used(fits):
    bl.learning_curve([bl.NoSharing()], DATA.mask_labels([0, 16]), [5], repeats=1)
    assert all((table.labels >= 0).all() for pair in fits for table in pair)


def test_averages_by_hand():
    frame = pd.DataFrame(
        {
            "model": ["m"] * 4,
            "group": ["a", "b", "a", "b"],
            "size": [5] * 4,
            "repeat": [0, 0, 1, 1],
            "num_rows": [3, 300, 3, 300],
            "log_loss": [0.0, 1.0, 1.0, 2.0],
        }
    )
    together = bl.average_learning_curve(frame)
    # Repeats have means 0.5 and 1.5: mean 1, standard error sqrt(0.5 / 2).
    assert together["log_loss"].tolist() == [1.0]
    assert together["log_loss_standard_error"].tolist() == [pytest.approx(0.5)]
    each = bl.average_learning_curve(frame, by=("model", "group", "size"))
    assert each["log_loss"].tolist() == [0.5, 1.5]
    one = bl.average_learning_curve(frame[frame["repeat"] == 0])
    assert one["log_loss_standard_error"].isna().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [13]}, "size 13 is not between 0 and 12"),
        ({"sizes": [-1]}, "size -1"),
        ({"test_fraction": 1.0}, "test_fraction"),
        ({"others": "none"}, "others"),
        ({"groups": ["nobody"]}, "nobody"),
        ({"losses": {"size": np.eye(2)}}, "cannot be named 'size'"),
        ({"models": [bl.NoSharing(), bl.NoSharing(feature_prior=2.0)]}, "same name"),
    ],
)
def test_bad_options(options, message):
    given = {"models": [bl.NoSharing()], "sizes": [5], "repeats": 1, **options}
    with pytest.raises(ValueError, match=message):
        bl.learning_curve(given.pop("models"), DATA, given.pop("sizes"), **given)
