"""What has no exact answer is refused at once, and the message says what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.exact import exact as exact_module
from bayes_lcs.inference.exact.exact import exact_memory, exact_seconds
from tests.inference.cases import random_case


@pytest.fixture
def no_work(monkeypatch):
    """Fail if a refusal comes only after the work has begun."""

    def started(*args, **kwargs):
        raise AssertionError("work began before the refusal")

    monkeypatch.setattr(exact_module, "log_block_marginals", started)
    monkeypatch.setattr(exact_module, "PartitionSums", started)


def table_of(num_groups: int) -> bl.GroupedTable:
    return random_case(0, num_groups=num_groups, rows=1).table


def test_too_many_groups(no_work):
    with pytest.raises(bl.NotExactError) as refusal:
        bl.exact(bl.ClusteredNaiveBayes(), table_of(25))
    message = str(refusal.value)
    for part in ("25 groups", "max_groups=24", "GiB", "on one core", "bl.sample", "select_groups"):
        assert part in message


def test_max_groups_is_the_users_choice(no_work, monkeypatch):
    with pytest.raises(bl.NotExactError, match="max_groups=5"):
        bl.exact(bl.ClusteredNaiveBayes(), table_of(6), max_groups=5)
    monkeypatch.setattr(exact_module, "available_memory", lambda: None)
    with pytest.raises(AssertionError, match="work began"):
        bl.exact(bl.ClusteredNaiveBayes(), table_of(25), max_groups=25)


def test_as_many_as_max_groups_are_done():
    assert bl.exact(bl.ClusteredNaiveBayes(), table_of(5), max_groups=5).num_groups == 5


def test_not_enough_memory(no_work, monkeypatch):
    need = exact_memory(20)
    monkeypatch.setattr(exact_module, "available_memory", lambda: need - 1)
    with pytest.raises(bl.NotExactError) as refusal:
        bl.exact(bl.ClusteredNaiveBayes(), table_of(20))
    assert "20 groups" in str(refusal.value)
    assert "are free" in str(refusal.value)
    assert "bl.sample" in str(refusal.value)


def test_just_enough_memory(monkeypatch):
    monkeypatch.setattr(exact_module, "available_memory", lambda: exact_memory(4))
    assert bl.exact(bl.ClusteredNaiveBayes(), table_of(4)).num_groups == 4


def test_a_system_that_does_not_tell_its_memory(monkeypatch):
    monkeypatch.setattr(exact_module, "available_memory", lambda: None)
    assert bl.exact(bl.ClusteredNaiveBayes(), table_of(4)).num_groups == 4


def test_cost_doubles_and_triples():
    assert exact_memory(22) - exact_memory(21) == 2 * (exact_memory(21) - exact_memory(20))
    assert exact_seconds(21) == pytest.approx(3 * exact_seconds(20))


@pytest.mark.parametrize(("groups", "unit"), [(25, "minutes"), (28, "hours"), (34, "days")])
def test_durations_in_the_unit_people_would_use(groups, unit, no_work):
    with pytest.raises(bl.NotExactError, match=unit):
        bl.exact(bl.ClusteredNaiveBayes(), table_of(groups))


@pytest.mark.parametrize(
    "model", [bl.ClusteredNaiveBayes(), bl.NoSharing(), bl.CompleteSharing()], ids=lambda m: m.name
)
def test_missing_labels(model):
    table = table_of(5).mask_labels([0, 3])
    with pytest.raises(bl.NotExactError) as refusal:
        bl.exact(model, table)
    message = str(refusal.value)
    for part in ("2 of 5 rows", "data.labelled()", "bl.sample"):
        assert part in message
    with pytest.raises(bl.NotExactError, match="2 of 5 rows"):
        bl.evidence(model, table, "exact")


def test_the_way_out_that_the_message_names():
    """`data.labelled()` leaves the rows out and keeps the groups."""
    case = random_case(1, num_groups=4, rows=5)
    table = case.table.mask_labels(np.flatnonzero(case.groups == 2))
    posterior = bl.exact(case.model, table.labelled())
    assert posterior.num_groups == 4
    kept = case.groups != 2
    rest = bl.GroupedTable.from_arrays(
        case.features[kept],
        case.labels[kept],
        case.groups[kept],
        num_values=case.schema.num_values,
        num_labels=2,
        num_groups=4,
    )
    assert posterior.log_evidence == bl.exact(case.model, rest).log_evidence


@pytest.mark.parametrize("name", ["concentration", "feature_prior"])
def test_learned_hyper_parameters(name, no_work):
    model = bl.ClusteredNaiveBayes(**{name: bl.Gamma(2.0, 1.0)})
    with pytest.raises(bl.NotExactError, match=rf"{name} is learned.*{name}=1\.0"):
        bl.exact(model, table_of(3))


def test_prototype(no_work):
    with pytest.raises(bl.NotExactError, match=r"Prototype has no exact posterior.*bl\.evidence"):
        bl.exact(bl.Prototype(), table_of(3))


def test_something_that_is_no_model():
    with pytest.raises(bl.NotExactError, match="str has no exact posterior"):
        bl.exact("clustered", table_of(3))


@pytest.mark.parametrize("num_groups", [100, 946, 5000])
def test_more_groups_than_numbers_can_say_are_refused_too(num_groups):
    data, _ = bl.NoSharing().simulate(bl.Schema(2, (2,)), [1] * num_groups, seed=0)
    with pytest.raises(bl.NotExactError, match="more memory and time than any machine has"):
        bl.exact(bl.ClusteredNaiveBayes(), data)
