"""Tables of more rows than 32 bits count: nothing overflows, and answers are those of mpmath."""

from __future__ import annotations

from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.core.counts import GroupCounts
from tests.oracles import all_partitions

LIMIT = 2**31
SIZES = {
    "one group": [2_200_000_000, 50, 70],
    "sum only": [740_000_000] * 3,
    "one cell": [5_000_000_000, 3_000_000_000, 40],
}
MODELS = (bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes())

REL = 1e-12
"""Of the log evidence: float64 has it to some 1e-14, for its terms are 20 times as large."""

ATOL = 1e-3
"""Of a probability of partitions: logs of 1e11 have errors of 1e-5, and some 30 are added up."""


def table_of(labels: Any, features: Any, num_values: tuple[int, ...]) -> bl.CountedTable:
    """A table of counts under made-up names."""
    nothing = np.zeros(0, np.int32)
    num_groups, num_labels = labels.shape
    return bl.CountedTable(
        features=np.zeros((0, len(num_values)), np.int32),
        labels=nothing,
        groups=nothing,
        feature_names=tuple(f"f{number}" for number in range(len(num_values))),
        values=tuple(tuple(map(str, range(number))) for number in num_values),
        label_name="label",
        label_values=tuple(f"y{number}" for number in range(num_labels)),
        group_name="group",
        group_names=tuple(f"g{number}" for number in range(num_groups)),
        counted=GroupCounts(bl.Schema(num_labels, num_values), labels, features),
    )


def large_table(case: str) -> bl.CountedTable:
    """Two labels and two features; nearly all rows are alike."""
    labels, features = [], []
    for group, size in enumerate(SIZES[case]):
        rare = size // 100
        labels.append([rare, size - rare])
        features.append([])
        for label, rows in enumerate(labels[-1]):
            odd = rows // (80 + 3 * group) if label else rows // 2
            third = rows // 10
            features[-1].append([rows - odd, odd, third, third, rows - 2 * third])
    dtype = np.int32 if case == "sum only" else np.int64
    return table_of(np.array(labels, dtype), np.array(features, dtype), (2, 3))


@pytest.fixture(params=list(SIZES))
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def data(case: str) -> bl.CountedTable:
    return large_table(case)


@pytest.fixture(autouse=True)
def digits() -> Any:
    with mpmath.workdps(40):
        yield


def log_sequence(counts: list[int], prior: float = 1.0) -> Any:
    """Log probability of a sequence with these counts under a symmetric Dirichlet prior."""
    whole = prior * len(counts)
    total = mpmath.loggamma(whole) - mpmath.loggamma(whole + sum(counts))
    for count in counts:
        total += mpmath.loggamma(prior + count) - mpmath.loggamma(prior)
    return total


def log_block(data: bl.CountedTable, members: list[int]) -> Any:
    """``log m(T)``: the features of some groups together, given their labels."""
    total = mpmath.mpf(0)
    schema, counts = data.schema, data.counts().features.tolist()
    for label, feature in product(range(schema.num_labels), range(schema.num_features)):
        cells = schema.cells_of(feature)
        rows = [counts[group][label][cells] for group in members]
        total += log_sequence([sum(column) for column in zip(*rows, strict=True)])
    return total


def log_labels(data: bl.CountedTable) -> Any:
    return sum(log_sequence(row) for row in data.counts().labels.tolist())


def log_joint(data: bl.CountedTable, z: Any) -> Any:
    """``log P(X, Y, z)`` under a Chinese restaurant of concentration 1."""
    blocks = [[g for g, own in enumerate(z) if own == block] for block in sorted(set(z))]
    seats = sum(mpmath.loggamma(len(block)) for block in blocks) - mpmath.loggamma(len(z) + 1)
    return log_labels(data) + seats + sum(log_block(data, block) for block in blocks)


def log_sum(logs: list[Any]) -> Any:
    return max(logs) + mpmath.log(sum(mpmath.exp(log - max(logs)) for log in logs))


def expected_evidence(model: Any, data: bl.CountedTable) -> float:
    groups = list(range(data.num_groups))
    if isinstance(model, bl.NoSharing):
        return float(log_labels(data) + sum(log_block(data, [group]) for group in groups))
    if isinstance(model, bl.CompleteSharing):
        pooled = [sum(column) for column in zip(*data.counts().labels.tolist(), strict=True)]
        return float(log_sequence(pooled) + log_block(data, groups))
    return float(log_sum([log_joint(data, z) for z in all_partitions(data.num_groups)]))


def test_the_cases_are_what_they_say():
    one, spread, cell = (large_table(case).counts() for case in SIZES)
    assert one.labels.sum(axis=1).max() > LIMIT > one.labels[1:].sum()
    assert spread.labels.sum(axis=1).max() < LIMIT < spread.features.sum(axis=0).max()
    assert cell.features.max() > LIMIT


def test_rows_are_counted(case, data):
    assert data.num_rows == sum(SIZES[case])
    assert data.group_sizes.tolist() == SIZES[case]
    assert f"({sum(SIZES[case])} rows" in repr(data)
    assert data.select_groups([0, 1]).num_rows == sum(SIZES[case][:2])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_evidence_is_that_of_mpmath(model, data):
    found = bl.evidence(model, data)
    assert found.value == pytest.approx(expected_evidence(model, data), rel=REL, abs=0.0)


def test_the_exact_posterior_is_that_of_mpmath(data):
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    partitions = list(all_partitions(data.num_groups))
    logs = [log_joint(data, z) for z in partitions]
    total = log_sum(logs)
    chances = np.array([float(mpmath.exp(log - total)) for log in logs])
    together = np.array([np.equal.outer(z, z) for z in partitions])
    np.testing.assert_allclose(
        posterior.coclustering(), np.einsum("p,pgh->gh", chances, together), rtol=0.0, atol=ATOL
    )
    assert posterior.map_partition().tolist() == list(partitions[chances.argmax()])


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_samples_have_the_joint_density_of_mpmath(model, data):
    posterior = bl.sample(model, data, draws=20, chains=2, seed=0, progress=False)
    found = posterior.draws.stats["log_joint"].reshape(-1)
    expected = [expected_evidence(model, data)] * len(found)
    if isinstance(model, bl.ClusteredNaiveBayes):
        expected = [float(log_joint(data, z)) for z in posterior.partitions().tolist()]
    np.testing.assert_allclose(found, expected, rtol=REL)


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
@pytest.mark.parametrize("case", ["one cell"])
def test_prototypes_have_the_joint_density_of_numpy(data):
    model = bl.Prototype()
    draws = bl.sample(model, data, draws=20, chains=2, seed=0, progress=False).draws
    prototype, strength = (
        draws.unknown[name].reshape(40, *draws.unknown[name].shape[2:])
        for name in ("prototype", "strength")
    )
    expected = [
        model.log_joint(data.counts(), p, k) for p, k in zip(prototype, strength, strict=True)
    ]
    found = draws.stats["log_joint"].reshape(-1)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=REL)


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
@pytest.mark.parametrize("how", ["exact", "sampled"])
def test_predictions_are_made_of_the_counts(how, data):
    rows = table_of_rows(data)
    counts = data.counts()
    for model in (bl.NoSharing(), bl.CompleteSharing()):
        labels, features = (c.astype(object) for c in (counts.labels, counts.features))
        if isinstance(model, bl.CompleteSharing):
            labels, features = (
                np.tile(c.sum(axis=0), (3, *[1] * (c.ndim - 1))) for c in (labels, features)
            )
        expected = np.empty((rows.num_rows, 2))
        for row, (group, codes) in enumerate(zip(rows.groups, rows.features, strict=True)):
            for label in range(2):
                chance = mpmath.mpf(labels[group, label] + 1)
                for feature, code in enumerate(codes):
                    own = features[group, label, data.schema.cells_of(feature)]
                    chance *= mpmath.mpf(own[code] + 1) / (sum(own) + len(own))
                expected[row, label] = chance / (sum(labels[group]) + 2)
        expected /= expected.sum(axis=1, keepdims=True)
        if how == "exact":
            posterior: Any = bl.exact(model, data)
        else:
            posterior = bl.sample(model, data, draws=4, chains=2, progress=False)
        np.testing.assert_allclose(posterior.predict_proba(rows), expected, rtol=1e-9)


def table_of_rows(data: bl.CountedTable) -> bl.GroupedTable:
    """Rows of all groups and values."""
    every = list(product(range(3), range(2), range(3)))
    return bl.GroupedTable(
        features=np.array([row[1:] for row in every]),
        labels=np.full(len(every), -1),
        groups=np.array([row[0] for row in every]),
        feature_names=data.feature_names,
        values=data.values,
        label_name=data.label_name,
        label_values=data.label_values,
        group_name=data.group_name,
        group_names=data.group_names,
    )


def test_models_are_compared(data):
    models = (*MODELS, bl.Prototype())
    found = bl.compare(models, data)
    logs = [found.evidences[i].value for i in range(len(models))]
    expected = [expected_evidence(model, data) for model in MODELS]
    np.testing.assert_allclose(logs[:3], expected, rtol=REL)
    assert found.probabilities().sum() == pytest.approx(1.0)
    best = int(np.argmax([*expected, logs[3]]))
    assert found.order[0] == best


def test_predictions_are_averaged_over_models(data):
    found, rows = bl.compare(MODELS, data), table_of_rows(data)
    each = [bl.exact(model, data).predict_proba(rows) for model in MODELS]
    expected = np.einsum("m,mrl->rl", found.probabilities(), each)
    np.testing.assert_allclose(found.predict_proba(rows), expected, atol=1e-6)  # NEGLIGIBLE


def log_prototype_evidence(counts: list[list[int]], rate: float) -> Any:
    """Evidence of one label and one binary feature: the trapezoidal rule at 40 digits.

    In ``log K`` and the logit of the prototype the integrand falls off on all sides, where the
    rule converges geometrically: steps twice as long give the same to 1e-7.
    """
    step = mpmath.mpf("0.2")
    shift = sum(mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b) for a, b in counts)
    total = mpmath.mpf(0)
    for i, j in product(range(-60, 31), range(-30, 61)):
        strength, share = mpmath.exp(step * i), 1 / (1 + mpmath.exp(-step * j))
        first, second = strength * share, strength * (1 - share)
        log_density = mpmath.log(rate * strength * share * (1 - share)) - rate * strength
        for a, b in counts:
            log_density += mpmath.loggamma(first + a) - mpmath.loggamma(first)
            log_density += mpmath.loggamma(second + b) - mpmath.loggamma(second)
            log_density -= mpmath.loggamma(strength + a + b) - mpmath.loggamma(strength)
        total += mpmath.exp(log_density - shift)
    return shift + mpmath.log(total * step**2)


@pytest.mark.parametrize(
    "counts",
    [
        [[2_200_000_000, 31_000_000], [40, 3]],
        [[740_000_000, 9_000_000], [740_000_000, 12_000_000], [740_000_000, 20_000_000]],
    ],
    ids=["one group", "sum only"],
)
def test_evidence_of_prototypes_is_that_of_quadrature(counts):
    each = np.array(counts, np.int64)
    data = table_of(each.sum(axis=1, keepdims=True), each[:, None, :], (2,))
    found = bl.evidence(bl.Prototype(), data)
    expected = float(log_prototype_evidence(counts, 0.1))  # a single label is certain
    assert abs(found.value - expected) < 4.0 * found.standard_error
    # As of a small table: draws hardly count where digits of the likelihood are lost.
    assert found.effective_draws > 2000


def test_equal_counts_are_equal_whatever_their_type():
    small = large_table("one group").select_groups([1, 2])
    counts = small.counts()
    narrow = table_of(counts.labels.astype(np.int32), counts.features.astype(np.int32), (2, 3))
    assert narrow.counts().features.dtype == np.int32
    wide = table_of(counts.labels, counts.features, (2, 3))
    assert narrow == wide
    assert narrow.content_hash() == wide.content_hash()
    # 2^32 + 1 times as many: the lower 32 bits are the same.
    much = 2**32 + 1
    assert table_of(much * counts.labels, much * counts.features, (2, 3)) != wide


def test_counts_that_cannot_be_are_refused():
    labels, features = np.array([[3]]), np.array([[[2, 1]]])
    table_of(labels, features, (2,))
    for wrong, message in (
        ((-labels, features), "non-negative"),
        ((labels, features - 2), "non-negative"),
        ((labels.astype(float), features), "integers"),
        ((labels, features + 1), "more values under a label than there are rows"),
    ):
        with pytest.raises(bl.DataError, match=message):
            table_of(*wrong, (2,))


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_posteriors_are_saved_and_read(tmp_path):
    data = large_table("sum only")
    posterior = bl.sample(bl.ClusteredNaiveBayes(), data, draws=4, chains=2, progress=False)
    posterior.save(tmp_path / "fit.nc")
    assert bl.load(tmp_path / "fit.nc").data == data
