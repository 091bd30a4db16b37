"""Counts read in one pass are those of the table of all rows, and models see no difference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayes_lcs as bl
from bayes_lcs.data import read_counts


def frame_of(num_rows, num_groups, seed=0, missing=0.1):
    """Rows of groups in a random order, some features missing, a value met late."""
    rng = np.random.default_rng(seed)
    features = {
        "colour": rng.choice(["red", "green", "blue"], num_rows),
        "size": rng.choice(["10", "2", "33"], num_rows),
        "rare": np.where(
            np.arange(num_rows) == num_rows - 1, "z", rng.choice(["x", "y"], num_rows)
        ),
    }
    frame = pd.DataFrame(features).mask(rng.random((num_rows, 3)) < missing, "")
    frame["who"] = [f"g{number}" for number in rng.integers(0, num_groups, num_rows)]
    frame["buys"] = rng.choice(["yes", "no", "later"], num_rows)
    return frame


def same(found, table):
    assert found.num_rows == table.num_rows
    for name in ("feature_names", "values", "label_values", "group_names", "schema"):
        assert getattr(found, name) == getattr(table, name)
    np.testing.assert_array_equal(found.counts().labels, table.counts().labels)
    np.testing.assert_array_equal(found.counts().features, table.counts().features)
    np.testing.assert_array_equal(found.group_sizes, table.group_sizes)


@pytest.fixture
def small_pieces(monkeypatch):
    """Files of some hundred rows are then many pieces."""
    monkeypatch.setattr("bayes_lcs.io.formats.parquet.BATCH_ROWS", 37)
    monkeypatch.setattr("bayes_lcs.io.formats.csv.BLOCK_BYTES", 2000)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("num_groups", [1, 7, 3000])
def test_counts_are_those_of_all_rows(kind, num_groups, tmp_path, small_pieces):
    frame, path = frame_of(4000 if num_groups > 7 else 300, num_groups), tmp_path / f"rows.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    options = {"group": "who", "label": "buys", "features": ["rare", "colour", "size"]}
    same(bl.read_counts(path, **options), bl.read_grouped(path, **options))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_pieces_are_added_up(data):
    """Whatever is met when: counting in pieces is counting at once."""
    size = data.draw(st.integers(1, 30))
    codes = [
        np.array(data.draw(st.lists(st.integers(low, 5), min_size=size, max_size=size)))
        for low in (0, 0, -1)
    ]
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=4)))
    counts = read_counts._GrowingCounts()
    counts.counts = np.zeros((1, 1, 1), dtype=np.int32)
    for first, last in zip([0, *cuts], [*cuts, size], strict=True):
        counts.add(*(each[first:last] for each in codes))
    expected = np.zeros((6, 6, 6))
    for group, label, value in zip(*codes, strict=True):
        if value >= 0:
            expected[group, label, value] += 1
    order = np.random.default_rng(0).permutation(6)
    found = counts.reorder(np.arange(6), order, np.arange(6)[::-1])
    np.testing.assert_array_equal(found[:, order][:, :, ::-1], expected)
    merged = counts.reorder(np.array([0, 1, 0, 2, 3, -1]), order, np.arange(6))
    np.testing.assert_array_equal(merged[0][order], expected[0] + expected[2])
    np.testing.assert_array_equal(merged[3][order], expected[4])


def test_counts_grow_beyond_32_bits():
    """Ten rows more than int32 holds of one value, and a group met after that."""
    counts = read_counts._GrowingCounts()
    counts.add(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]))
    assert counts.counts.dtype == np.int32
    more = np.iinfo(np.int32).max - 3
    counts.counts[0, 0, 1] += more
    counts.num_counted += more
    ten = np.zeros(10, np.int64)
    counts.add(ten, ten, ten + 1)
    counts.add(np.array([5000]), np.array([1]), np.array([0]))
    found = counts.reorder(np.arange(5001), np.arange(2), np.arange(2))
    assert found.dtype == np.int64
    assert found[0].tolist() == [[0, more + 11], [0, 0]]
    assert found[1].tolist() == [[0, 1], [0, 0]]
    assert found[5000].tolist() == [[0, 0], [1, 0]]


def test_small_counts_stay_in_32_bits(tmp_path):
    frame_of(300, 7).to_csv(tmp_path / "rows.csv", index=False)
    counts = bl.read_counts(tmp_path / "rows.csv", group="who", label="buys").counts()
    assert counts.labels.dtype == counts.features.dtype == np.int32


def test_ordered_dictionaries_keep_their_order_and_values_must_occur(tmp_path, small_pieces):
    frame = frame_of(200, 5)
    sizes = frame["size"].replace("", None)
    frame["size"] = pd.Categorical(sizes, ["33", "2", "10", "never"], ordered=True)
    frame["who"] = pd.Categorical(frame["who"], [*sorted(set(frame["who"])), "nobody"])
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, index=False)
    found = bl.read_counts(path, group="who", label="buys")
    table = bl.read_grouped(path, group="who", label="buys")
    assert found.values[1] == ("33", "2", "10")
    same(found, table)


def test_models_see_no_difference(tmp_path):
    path, new = tmp_path / "rows.csv", frame_of(5, 2, seed=9).replace("z", "x")
    frame_of(120, 4).to_csv(path, index=False)
    options = {"group": "who", "label": "buys"}
    found, table = bl.read_counts(path, **options), bl.read_grouped(path, **options)
    for model in (bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes()):
        assert bl.evidence(model, found).value == bl.evidence(model, table).value
        a, b = (bl.exact(model, data).predict_proba(new) for data in (found, table))
        np.testing.assert_array_equal(a, b)
    some = found.select_groups(["g1", "g3"])
    assert (
        bl.evidence(model, some).value
        == bl.evidence(model, table.select_groups(["g1", "g3"])).value
    )
    with pytest.raises(bl.DataError, match="there is no group 'nobody'"):
        found.select_groups(["nobody"])


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_posteriors_of_counts_are_saved_and_read(tmp_path):
    path = tmp_path / "rows.csv"
    frame_of(60, 4).to_csv(path, index=False)
    found = bl.read_counts(path, group="who", label="buys")
    table = bl.read_grouped(path, group="who", label="buys")
    draws = {"draws": 20, "chains": 2, "progress": False}
    posterior = bl.sample(bl.ClusteredNaiveBayes(), found, **draws)
    plain = bl.sample(bl.ClusteredNaiveBayes(), table, **draws)
    np.testing.assert_array_equal(posterior.partitions(), plain.partitions())
    posterior.save(tmp_path / "fit.nc")
    again = bl.load(tmp_path / "fit.nc")
    assert again.data == found
    assert isinstance(again.data, bl.CountedTable)
    rows = frame_of(5, 2, seed=9).replace("z", "x")
    np.testing.assert_array_equal(again.predict_proba(rows), plain.predict_proba(rows))


def test_what_needs_rows_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    frame_of(60, 4).to_csv(path, index=False)
    found = bl.read_counts(path, group="who", label="buys")
    for call in (
        lambda: bl.conditional_evidence(bl.NoSharing(), found),
        lambda: bl.evidence(bl.NoSharing(), found, "ais", variant="thesis"),
        lambda: bl.leave_one_out(bl.exact(bl.NoSharing(), found)),
        lambda: bl.cross_validate(bl.NoSharing(), found),
        lambda: found.take([0]),
        lambda: found.unlabelled(),
        lambda: found.to_frame(),
    ):
        with pytest.raises(bl.DataError, match="its rows were not kept"):
            call()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("who,x,buys\n,1,yes\n,2,no\n", "rows.csv, column 'who': no row has a group"),
        ("who,x,buys\na,1,yes\nb,2,\n", r"rows.csv, line 3, column 'buys': the row has no label"),
        ("who,x,buys\na,1,yes\nb,2,yes\n", "only one value"),
        ("who,x,buys\na,,yes\nb,,no\n", "every cell is missing"),
        ("who,x,buys\n", "no rows"),
    ],
)
def test_faults_are_named_with_their_place(text, message, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(bl.DataError, match=message):
        bl.read_counts(path, group="who", label="buys")


def test_identifiers_are_refused_unless_asked_for(tmp_path):
    frame = frame_of(60, 4)
    frame["id"] = [f"n{number}" for number in range(60)]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(bl.DataError, match="looks like an identifier"):
        bl.read_counts(tmp_path / "rows.csv", group="who", label="buys")
    found = bl.read_counts(tmp_path / "rows.csv", group="who", label="buys", categorical=["id"])
    assert len(found.values[-1]) == 60


def test_counts_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    frame_of(60, 4).to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.setattr("bayes_lcs.runtime.memory.available_memory", lambda: 100)
    with pytest.raises(MemoryError, match="counting 1,024 groups, 4 labels"):
        bl.read_counts(tmp_path / "rows.csv", group="who", label="buys")
