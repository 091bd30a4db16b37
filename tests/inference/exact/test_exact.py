"""The exact posterior against every partition, one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayes_lcs as bl
from bayes_lcs.core.counts import count_rows
from bayes_lcs.inference.exact import partition_function
from tests.inference.cases import Case, log_sum, partitions, random_case
from tests.oracles import sequential_log_crp

# Log evidences of some thousand nats at the most, summed in another order: 1e-12 is usual, and a
# wrong constant anywhere is a thousandth at least.
ERROR = 1e-9


def assert_enumerated(case: Case) -> bl.ExactPosterior:
    """Every answer about the posterior, against enumeration."""
    posterior = bl.exact(case.model, case.table)
    assert posterior.log_evidence == pytest.approx(case.log_evidence, rel=0, abs=ERROR)
    np.testing.assert_allclose(posterior.coclustering(), case.coclustering(), rtol=0, atol=ERROR)
    clusters = posterior.num_clusters()
    assert clusters.shape == (case.num_groups + 1,)
    np.testing.assert_allclose(clusters, case.num_clusters(), rtol=0, atol=ERROR)
    every = partitions(case.num_groups)
    best = tuple(posterior.map_partition().tolist())
    assert case.log_joints[every.index(best)] == pytest.approx(
        case.log_joints.max(), rel=0, abs=ERROR
    )
    log_probabilities = case.log_joints - case.log_evidence
    shown = np.random.default_rng(0).permutation(len(every))[:50]
    for index in {*shown.tolist(), 0, len(every) - 1, int(case.log_joints.argmax())}:
        found = posterior.log_probability(every[index])
        assert found == pytest.approx(log_probabilities[index], rel=0, abs=ERROR)
    return posterior


@pytest.mark.parametrize("num_groups", range(1, 10))
def test_every_number_of_groups(num_groups):
    assert_enumerated(random_case(num_groups, num_groups=num_groups, missing=0.1))


@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("num_labels", [2, 3])
def test_labels_values_and_concentrations(num_labels, concentration):
    """Features of 2, 5, 1 and 3 values, a third of the cells missing, arrays as priors."""
    case = random_case(
        num_labels,
        num_groups=6,
        num_labels=num_labels,
        num_values=(2, 5, 1, 3),
        missing=0.3,
        concentration=concentration,
        clusters=3,
    )
    assert_enumerated(case)


def test_groups_of_very_different_sizes():
    assert_enumerated(random_case(5, num_groups=5, rows=[1, 500, 20, 3, 100], clusters=3))


def test_groups_without_rows():
    """They are groups like any other: their place in the partition is the prior's."""
    case = random_case(6, num_groups=5, rows=[10, 0, 7, 0, 12], concentration=0.7)
    posterior = assert_enumerated(case)
    assert posterior.num_groups == 5


def test_a_feature_that_is_missing_everywhere():
    case = random_case(7, num_groups=4, num_values=(2, 3))
    case.features[:, 1] = -1
    assert_enumerated(case)


def test_labels_that_never_occur():
    case = random_case(8, num_groups=4, num_labels=3)
    case.labels[:] = 1
    assert_enumerated(case)


def test_no_data_leaves_the_prior():
    case = random_case(9, num_groups=6, rows=0, concentration=2.5)
    posterior = bl.exact(case.model, case.table)
    assert posterior.log_evidence == pytest.approx(0.0, abs=1e-12)
    for z in partitions(6):
        assert posterior.log_probability(z) == pytest.approx(sequential_log_crp(z, 2.5), abs=1e-12)


def test_one_number_for_each_prior():
    """Plain numbers mean the same as arrays full of them."""
    case = random_case(10, num_groups=4)
    plain = bl.ClusteredNaiveBayes(label_prior=0.5, feature_prior=2.0, concentration=3.0)
    filled = Case(
        case.schema,
        4,
        case.groups,
        case.labels,
        case.features,
        np.full(2, 0.5),
        np.full((2, case.schema.num_cells), 2.0),
        3.0,
    )
    found = bl.exact(plain, case.table)
    assert found.log_evidence == pytest.approx(filled.log_evidence, rel=0, abs=ERROR)


@given(
    seed=st.integers(0, 2**32 - 1),
    num_groups=st.integers(1, 6),
    num_labels=st.integers(1, 3),
    num_values=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    rows=st.integers(0, 12),
    missing=st.floats(0.0, 0.9),
    log_concentration=st.floats(-5, 5),
)
@settings(max_examples=40, deadline=None)
def test_random_tables(seed, num_groups, num_labels, num_values, rows, missing, log_concentration):
    sizes = np.random.default_rng(seed).integers(rows + 1, size=num_groups).tolist()
    case = random_case(
        seed,
        num_groups=num_groups,
        num_labels=num_labels,
        num_values=tuple(num_values),
        rows=sizes,
        missing=missing,
        concentration=math.exp(log_concentration),
    )
    assert_enumerated(case)


@pytest.mark.parametrize("seed", range(3))
def test_the_fall_back_in_logs(seed, monkeypatch):
    monkeypatch.setattr(partition_function, "HUGE", 0.0)
    posterior = assert_enumerated(random_case(seed, num_groups=6, missing=0.2, clusters=3))
    assert posterior.sums.arithmetic == "logs"


def test_hundreds_of_features():
    """The scaled path at 300 features and groups of 2 to 60 rows."""
    sizes = [2, 60, 20, 5, 40]
    case = random_case(3, num_groups=5, num_values=(3,) * 300, rows=sizes, clusters=3)
    posterior = bl.exact(case.model, case.table)
    assert posterior.log_evidence == pytest.approx(case.log_evidence, rel=0, abs=ERROR)
    np.testing.assert_allclose(posterior.coclustering(), case.coclustering(), rtol=0, atol=ERROR)


def test_map_of_separated_clusters():
    """Two pairs and a loner, far apart, with names that say so."""
    x = [[0], [1], [0], [1], [2]]
    table = bl.GroupedTable.from_arrays(
        np.repeat(x, 40, axis=0), np.zeros(200, int), np.repeat(range(5), 40), num_values=3
    )
    posterior = bl.exact(bl.ClusteredNaiveBayes(), table)
    assert posterior.map_partition().tolist() == [0, 1, 0, 1, 2]
    assert posterior.group_names == table.group_names
    assert posterior.log_probability([4, 2, 4, 2, 9]) > math.log(0.5)  # labels carry no meaning


def test_log_probability_wants_one_block_a_group():
    posterior = bl.exact(bl.ClusteredNaiveBayes(), random_case(0, num_groups=3).table)
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(2,\)"):
        posterior.log_probability([0, 1])


def test_repr_names_the_model():
    posterior = bl.exact(bl.ClusteredNaiveBayes(), random_case(0, num_groups=3).table)
    assert "Clustered Naive Bayes" in repr(posterior)
    assert "3 groups" in repr(posterior)


# Known partitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("num_groups", [1, 4])
def test_no_sharing(num_groups):
    case = random_case(1, num_groups=num_groups, missing=0.2, num_values=(2, 3, 4))
    model = bl.NoSharing(label_prior=case.label_prior, feature_prior=case.feature_prior)
    posterior = bl.exact(model, case.table)
    expected = case.log_labels() + sum(case.log_block([u]) for u in range(num_groups))
    assert posterior.log_evidence == pytest.approx(expected, rel=0, abs=ERROR)
    assert posterior.map_partition().tolist() == list(range(num_groups))
    np.testing.assert_array_equal(posterior.coclustering(), np.eye(num_groups))
    assert posterior.num_clusters().tolist() == [0.0] * num_groups + [1.0]
    assert posterior.log_probability(range(num_groups)) == 0.0
    if num_groups > 1:
        assert posterior.log_probability([0] * num_groups) == -np.inf
    assert posterior.sample(3).tolist() == [list(range(num_groups))] * 3


@pytest.mark.parametrize("num_groups", [1, 4])
def test_complete_sharing(num_groups):
    case = random_case(2, num_groups=num_groups, missing=0.2, num_values=(2, 3, 4))
    model = bl.CompleteSharing(label_prior=case.label_prior, feature_prior=case.feature_prior)
    posterior = bl.exact(model, case.table)
    expected = case.log_labels(together=True) + case.log_block(range(num_groups))
    assert posterior.log_evidence == pytest.approx(expected, rel=0, abs=ERROR)
    assert posterior.map_partition().tolist() == [0] * num_groups
    np.testing.assert_array_equal(posterior.coclustering(), np.ones((num_groups, num_groups)))
    assert posterior.num_clusters().tolist() == [0.0, 1.0] + [0.0] * (num_groups - 1)
    assert posterior.log_probability([7] * num_groups) == 0.0
    assert posterior.sample(2).tolist() == [[0] * num_groups] * 2


# Sizes that cannot be enumerated ---------------------------------------------------------------


def recursion_in_logs(case_log_blocks, concentration: float, num_groups: int) -> list[float]:
    """``log Z`` of every subset by the plain recursion: lists, the math module and no scaling.

    The block always holds the *first* member of the subset, where the package takes the last.
    """
    log_z = [0.0] * (1 << num_groups)
    for subset in range(1, 1 << num_groups):
        first = subset & -subset
        others = subset ^ first
        terms = []
        part = others
        while True:
            block = part | first
            terms.append(
                math.log(concentration)
                + math.lgamma(block.bit_count())
                + case_log_blocks[block]
                + log_z[subset ^ block]
            )
            if not part:
                break
            part = (part - 1) & others
        log_z[subset] = log_sum(terms)
    return log_z


@pytest.mark.parametrize("num_groups", [10, pytest.param(11, marks=pytest.mark.slow)])
def test_meeting_requests_by_the_plain_recursion(num_groups):
    """Real-shaped rows of 10 and 11 people, missing cells included: 3^10 terms in plain Python."""
    data, _ = bl.meeting_requests(seed=3, rows_per_person=8, missing_fraction=0.1)
    data = data.select_groups(range(num_groups))
    model = bl.ClusteredNaiveBayes(concentration=0.6, feature_prior=0.8)
    posterior = bl.exact(model, data)
    case = Case(
        data.schema,
        num_groups,
        data.groups,
        data.labels,
        data.features,
        model.label_parameters(data.schema),
        model.feature_parameters(data.schema),
        0.6,
    )
    log_z = recursion_in_logs(case.log_blocks, 0.6, num_groups)
    seats = math.fsum(math.log(0.6 + i) for i in range(num_groups))
    expected = case.log_labels() + log_z[-1] - seats
    # Evidence of thousands of nats from a few ten thousand logarithms: rounding of 1e-11.
    assert posterior.log_evidence == pytest.approx(expected, rel=0, abs=ERROR)
    everybody = (1 << num_groups) - 1
    together = np.zeros((num_groups, num_groups))
    for block in range(1, everybody + 1):
        log_weight = math.log(0.6) + math.lgamma(block.bit_count()) + case.log_blocks[block]
        inside = [u for u in range(num_groups) if block >> u & 1]
        together[np.ix_(inside, inside)] += math.exp(
            log_weight + log_z[everybody ^ block] - log_z[-1]
        )
    np.testing.assert_allclose(posterior.coclustering(), together, rtol=0, atol=ERROR)


def assert_coherent(posterior: bl.ExactPosterior) -> None:
    """What must hold of any posterior over partitions, at any size."""
    together = posterior.coclustering()
    np.testing.assert_allclose(np.diag(together), 1.0, rtol=0, atol=ERROR)
    np.testing.assert_array_equal(together, together.T)
    assert (together >= 0).all()
    assert (together <= 1 + ERROR).all()
    probability = posterior.sums.block_probabilities
    masks = np.arange(probability.size)
    for group in range(posterior.num_groups):
        assert probability[masks >> group & 1 == 1].sum() == pytest.approx(1.0, abs=ERROR)
    clusters = posterior.num_clusters()
    assert clusters[0] == 0.0
    assert clusters.sum() == pytest.approx(1.0, abs=ERROR)
    # The mean number of blocks, counted in two ways.
    mean = clusters @ np.arange(clusters.size)
    assert probability.sum() == pytest.approx(mean, abs=1e-8)
    best = posterior.log_probability(posterior.map_partition())
    assert best <= 0.0
    draws = posterior.sample(200, seed=4)
    assert max(posterior.log_probability(z) for z in draws) <= best + ERROR


@pytest.mark.parametrize("num_groups", [12, 15])
def test_coherence(num_groups):
    data, _ = bl.meeting_requests(seed=1, rows_per_person=25)
    assert_coherent(bl.exact(bl.ClusteredNaiveBayes(), data.select_groups(range(num_groups))))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20, 180])
def test_all_21_people(rows):
    """The size that the thesis calls hopeless: half a minute with every answer asked for."""
    data, truth = bl.meeting_requests(seed=0, rows_per_person=rows)
    model = bl.ClusteredNaiveBayes()
    posterior = bl.exact(model, data)
    assert posterior.sums.arithmetic == "scaled"
    assert_coherent(posterior)
    best = posterior.map_partition()
    counts = data.counts()
    # Rounding of an evidence of 8e4 nats: a few spacings of 1.5e-11.
    assert posterior.log_evidence >= model.log_joint(counts, best) - 1e-9
    assert model.log_joint(counts, best) >= model.log_joint(counts, truth.partition)
    for other in (best, truth.partition, range(21), [0] * 21):
        expected = model.log_joint(counts, other) - posterior.log_evidence
        assert posterior.log_probability(other) == pytest.approx(expected, rel=0, abs=1e-8)


@pytest.mark.slow
def test_21_people_of_whom_ten_are_empty():
    """Groups without rows integrate out: the evidence of 21 is that of the 11 with rows.

    This ties the size that nothing else can check to one that plain Python can, through the
    consistency of the Chinese restaurant process and nothing else.
    """
    rows = [12] * 11 + [0] * 10
    data, _ = bl.meeting_requests(seed=2, rows_per_person=rows)
    model = bl.ClusteredNaiveBayes(concentration=1.7)
    large, small = bl.exact(model, data), bl.exact(model, data.select_groups(range(11)))
    assert large.log_evidence == pytest.approx(small.log_evidence, rel=0, abs=ERROR)
    np.testing.assert_allclose(
        large.coclustering()[:11, :11], small.coclustering(), rtol=0, atol=ERROR
    )


def test_empty_groups_integrate_out():
    data, _ = bl.meeting_requests(seed=2, rows_per_person=[12] * 8 + [0] * 13)
    model = bl.ClusteredNaiveBayes(concentration=1.7)
    large = bl.exact(model, data.select_groups(range(14)))
    small = bl.exact(model, data.select_groups(range(8)))
    assert large.log_evidence == pytest.approx(small.log_evidence, rel=0, abs=ERROR)
    np.testing.assert_allclose(
        large.coclustering()[:8, :8], small.coclustering(), rtol=0, atol=ERROR
    )


def test_order_of_groups_and_rows_does_not_matter():
    data, _ = bl.meeting_requests(seed=5, rows_per_person=10)
    people = [3, 9, 0, 14, 7, 20, 11, 5, 16, 2]
    model = bl.ClusteredNaiveBayes()
    one = bl.exact(model, data.select_groups(sorted(people)))
    other = bl.exact(model, data.select_groups(people))
    order = np.argsort(np.argsort(people))
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=0, abs=ERROR)
    np.testing.assert_allclose(
        one.coclustering()[np.ix_(order, order)], other.coclustering(), rtol=0, atol=ERROR
    )
    shuffled = data.take(np.random.default_rng(0).permutation(data.num_rows))
    again = bl.exact(model, shuffled.select_groups(people))
    assert again.log_evidence == other.log_evidence


def test_the_counting_agrees_with_the_table():
    """The oracle and the package read the same table: the counts of one case by hand."""
    case = random_case(0, num_groups=3, missing=0.4)
    counts = count_rows(case.schema, 3, case.groups, case.labels, case.features)
    for group, label, value in np.ndindex(3, 2, 2):
        rows = (case.groups == group) & (case.labels == label) & (case.features[:, 0] == value)
        assert counts.features[group, label, value] == rows.sum()
