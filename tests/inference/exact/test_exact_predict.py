"""Predicted labels, against ratios of evidences over all partitions."""

from __future__ import annotations

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.core.errors import DataWarning
from bayes_lcs.core.naive_bayes import log_row_predictive
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.exact import posterior as exact_posterior
from tests.inference.cases import Case, random_case

ERROR = 1e-9  # of a probability; blocks left out may cost PREDICTION_ERROR = 1e-10


def rows_of(case: Case, rows: list[tuple[int, list[int]]]) -> bl.GroupedTable:
    """Unlabelled rows (group, features) named as in the case's table; -1 is a new group."""
    table = case.table
    names = [table.group_names[group] if group >= 0 else "a new one" for group, _ in rows]
    return bl.GroupedTable(
        features=np.array([features for _, features in rows], np.int32),
        labels=np.full(len(rows), -1, np.int32),
        groups=np.array([sorted(set(names)).index(name) for name in names], np.int32),
        feature_names=table.feature_names,
        values=table.values,
        label_name=table.label_name,
        label_values=table.label_values,
        group_name=table.group_name,
        group_names=tuple(sorted(set(names))),
    )


def some_rows(case: Case, seed: int) -> list[tuple[int, list[int]]]:
    """Every group and a new one; every feature missing in some row, and one row of nothing."""
    rng = np.random.default_rng(seed)
    rows = []
    for group in [*range(case.num_groups), -1]:
        for _ in range(2):
            rows.append((group, rng.integers(-1, case.schema.num_values).tolist()))
    rows.append((0, [-1] * case.schema.num_features))
    rows.append((-1, [-1] * case.schema.num_features))
    return rows


@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("num_groups", [1, 2, 5])
def test_clustered(num_groups, concentration):
    case = random_case(
        num_groups,
        num_groups=num_groups,
        num_labels=3,
        num_values=(2, 4, 3),
        rows=np.random.default_rng(0).integers(0, 12, num_groups).tolist(),
        missing=0.2,
        concentration=concentration,
        clusters=3,
    )
    rows = some_rows(case, seed=1)
    found = bl.exact(case.model, case.table).predict_proba(rows_of(case, rows))
    expected = [case.predict(group, features) for group, features in rows]
    np.testing.assert_allclose(found, expected, rtol=0, atol=ERROR)


def test_new_groups_of_different_names_are_predicted_alike():
    case = random_case(3, num_groups=3)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"group": ["x", "y"], "feature_0": [0, 0], "feature_1": [1, 1]})
    found = bl.exact(case.model, case.table).predict_proba(frame)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], case.predict(-1, [0, 1]), rtol=0, atol=ERROR)


def test_values_never_seen():
    pd = pytest.importorskip("pandas")
    case = random_case(4, num_groups=3)
    posterior = bl.exact(case.model, case.table)
    frame = pd.DataFrame({"group": ["1", "1"], "feature_0": ["0", "0"], "feature_1": [1, None]})
    frame.loc[0, "feature_0"] = "never seen"
    with pytest.warns(DataWarning, match="never seen"):
        found = posterior.predict_proba(frame)
    np.testing.assert_allclose(found[0], case.predict(1, [-1, 1]), rtol=0, atol=ERROR)
    np.testing.assert_allclose(found[1], case.predict(1, [0, -1]), rtol=0, atol=ERROR)
    with pytest.raises(bl.DataError, match="never seen"):
        posterior.predict_proba(frame, unseen="error")


def test_labels_of_the_rows_are_not_used():
    case = random_case(5, num_groups=3)
    posterior = bl.exact(case.model, case.table)
    table = case.table
    found = posterior.predict_proba(table)
    np.testing.assert_array_equal(
        found, posterior.predict_proba(table.mask_labels(np.arange(table.num_rows)))
    )


def test_no_rows():
    case = random_case(5, num_groups=3)
    empty = case.table.take(np.zeros(case.table.num_rows, dtype=bool))
    assert bl.exact(case.model, case.table).predict_proba(empty).shape == (0, 2)


# Known partitions, by hand ----------------------------------------------------------------------

TABLE = bl.GroupedTable.from_arrays(
    [["a"], ["a"], ["b"], ["b"], ["b"]], ["n", "n", "y", "n", "y"], ["u", "u", "u", "v", "v"]
)


def prediction(model, group: str) -> np.ndarray:
    rows = bl.GroupedTable.from_arrays(
        [["a"]], [None], [group], label_values=["n", "y"], values=[["a", "b"]]
    )
    return bl.exact(model, TABLE).predict_proba(rows)[0]


@pytest.mark.parametrize(
    ("group", "n", "y"),
    [
        ("u", 3 / 5 * 3 / 4, 2 / 5 * 1 / 3),  # labels n n y; a under n: 2 of 2, under y: 0 of 1
        ("v", 2 / 4 * 1 / 3, 2 / 4 * 1 / 3),  # labels n y; a under n: 0 of 1, under y: 0 of 1
        ("w", 1 / 2 * 1 / 2, 1 / 2 * 1 / 2),  # never seen: the prior
    ],
)
def test_no_sharing_by_hand(group, n, y):
    expected = [n / (n + y), y / (n + y)]
    np.testing.assert_allclose(prediction(bl.NoSharing(), group), expected, rtol=1e-12)


@pytest.mark.parametrize("group", ["u", "v", "w"])
def test_complete_sharing_by_hand(group):
    """Everybody's labels n n y n y and values: a under n 2 of 3, under y 0 of 2."""
    n, y = 4 / 7 * 3 / 5, 3 / 7 * 1 / 4
    expected = [n / (n + y), y / (n + y)]
    np.testing.assert_allclose(prediction(bl.CompleteSharing(), group), expected, rtol=1e-12)


# Blocks that are left out -----------------------------------------------------------------------


def surprising_case() -> tuple[Case, tuple[int, list[int]]]:
    """Ten groups; blocks of tiny probability predict the row far better than all others.

    The row has codes outside nobody but the last group has ever had. That group 0 shares with it
    has a probability of 6e-14, and yet those partitions decide the prediction.
    """
    rng = np.random.default_rng(0)
    num_groups, num_features = 10, 12
    groups = np.repeat(np.arange(num_groups), [6] + [1] * 8 + [6])
    labels = rng.integers(2, size=groups.size)
    features = rng.integers(3, size=(groups.size, num_features))
    odd = groups == num_groups - 1
    features[odd] = np.where(rng.random((odd.sum(), num_features)) < 0.8, 3, features[odd])
    case = Case(
        Schema(2, (4,) * num_features),
        num_groups,
        groups,
        labels,
        features,
        np.ones(2),
        np.full((2, 4 * num_features), 0.05),
    )
    return case, (0, [3] * num_features)


def full_prediction(posterior: bl.ExactPosterior, group: int, row: list[int]) -> np.ndarray:
    """Every block that holds the group, none left out, in plain loops over labels and features."""
    counts, schema = posterior.data.counts(), posterior.data.schema
    alpha = posterior.model.label_parameters(schema)
    beta = posterior.model.feature_parameters(schema)
    joint = np.zeros(schema.num_labels)
    for mask, probability in enumerate(posterior.sums.block_probabilities):
        if not mask >> group & 1:
            continue
        inside = [u for u in range(posterior.num_groups) if mask >> u & 1]
        cells = counts.features[inside].sum(axis=0)
        for label in range(schema.num_labels):
            term = probability * (counts.labels[group, label] + alpha[label])
            for feature, value in enumerate(row):
                if value >= 0:
                    span = schema.cells_of(feature)
                    own = cells[label, span] + beta[label, span]
                    term *= own[value] / own.sum()
            joint[label] += term
    return joint / joint.sum()


def test_improbable_blocks_that_decide():
    """The rule stops by what is left relative to the row's own joint, not by probability alone."""
    case, (group, row) = surprising_case()
    posterior = bl.exact(case.model, case.table)
    expected = full_prediction(posterior, group, row)
    found = posterior.predict_proba(rows_of(case, [(group, row)]))[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=ERROR)
    # That the case is as hard as it claims: stopped by probability alone, the answer is another.
    assert 0 < posterior.coclustering()[0, -1] < 1e-12
    likely = np.zeros(2)
    for informants in posterior.informing_blocks(group):
        log_joint = log_row_predictive(
            informants.counts, case.label_prior, case.feature_prior, [row]
        )
        likely += np.einsum("k,knl->l", informants.probability, np.exp(log_joint))
        if informants.left < exact_posterior.PREDICTION_ERROR:
            break
    assert np.abs(likely / likely.sum() - expected).max() > 0.1


def test_what_is_left_out_honours_the_error(monkeypatch):
    """A coarser error leaves more out, and the answer moves by no more than that."""
    case = random_case(1, num_groups=10, rows=4, concentration=2.0)
    posterior = bl.exact(case.model, case.table)
    rows = rows_of(case, [(0, [0, 1])])
    fine = posterior.predict_proba(rows)
    moved = []
    for error in (1e-1, 1e-2, 1e-3, 1e-4):
        monkeypatch.setattr(exact_posterior, "PREDICTION_ERROR", error)
        moved.append(np.abs(posterior.predict_proba(rows) - fine).max())
        assert moved[-1] <= error
    assert moved[0] > 1e-6, "nothing was left out: the rule is not at work"


def test_what_is_left_is_the_probability_still_to_come():
    case = random_case(1, num_groups=8, concentration=3.0, rows=3)
    posterior = bl.exact(case.model, case.table)
    for group in (2, -1):
        batches = list(posterior.informing_blocks(group))
        assert len(batches) > 1
        total = sum(batch.probability.sum() for batch in batches)
        assert total == pytest.approx(1.0, abs=1e-12)
        come = 0.0
        for batch in batches:
            come += batch.probability.sum()
            assert batch.left == pytest.approx(total - come, abs=1e-12)


def test_many_features():
    """900 features: the joint probability of a row is far below what a float can hold."""
    case = random_case(6, num_groups=3, num_values=(4,) * 900, rows=3)
    row = (0, np.random.default_rng(0).integers(4, size=900).tolist())
    new = (-1, row[1])
    found = bl.exact(case.model, case.table).predict_proba(rows_of(case, [row, new]))
    np.testing.assert_allclose(found[0], case.predict(*row), rtol=0, atol=1e-8)
    np.testing.assert_allclose(found[1], case.predict(*new), rtol=0, atol=1e-8)
