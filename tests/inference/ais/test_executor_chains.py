"""Chains of annealing as work of an executor: the same weights, and whole batches are kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.ais import ais, partition
from bayes_lcs.inference.ais.ais import CHAINS_PER_TASK, Schedule, anneal, annealing_context
from bayes_lcs.runtime.executors.local import LocalExecutor
from bayes_lcs.runtime.interrupts import PartialResultInterrupt

TEMPERATURES = Schedule(np.linspace(0.0, 1.0, 6), 0.1)
CHAINS = 2 * CHAINS_PER_TASK + 1


@pytest.fixture(autouse=True)
def one_in_a_call(monkeypatch):
    """Parts of several sizes would be as many programs to compile."""
    monkeypatch.setattr(ais, "MAX_CHAINS_PER_PART", 1)


@pytest.fixture(scope="module")
def build_problem():
    model = bl.ClusteredNaiveBayes(concentration=5.0)
    data, _ = model.simulate(bl.Schema(2, (2, 3)), [4, 3, 5, 4, 2], seed=1)
    return partial(partition.build_problem, model, data)


@pytest.fixture(scope="module")
def problem(build_problem):
    return build_problem()


@pytest.fixture(scope="module")
def starts():
    return {"z": np.random.default_rng(0).integers(0, 2, (CHAINS, 5)).astype(np.uint16)}


def interrupted_at(executor, monkeypatch, number):
    """Let calls go on to one that hears Ctrl-C; the numbers of their first batches."""
    each, calls = executor.each, []

    def interrupted(placed, function, params):
        calls.append(params[1].start // CHAINS_PER_TASK)
        if len(calls) == number:
            raise KeyboardInterrupt
        return each(placed, function, params)

    monkeypatch.setattr(executor, "each", interrupted)
    return calls


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backwards", [False, True])
def test_weights_are_those_of_chains_side_by_side(
    build_problem, problem, starts, threads, backwards
):
    settings = {"chains": CHAINS, "seed": 3, "starts": starts if backwards else None}
    _, plain = anneal(problem, TEMPERATURES, **settings)
    with LocalExecutor(threads) as executor, annealing_context(executor, build_problem) as spread:
        _, found = spread(problem, TEMPERATURES, **settings)
        # Built once by each worker, and rounds of a batch for each.
        assert executor.traffic.calls == threads + threads * -(-3 // threads)
    assert found.shape == (CHAINS, 1)
    assert len(np.unique(found)) == CHAINS
    np.testing.assert_allclose(found, plain, rtol=1e-12)


def test_batches_are_kept_at_ctrl_c_and_taken_up(build_problem, problem, tmp_path, monkeypatch):
    settings = {"chains": CHAINS, "seed": 3}
    _, plain = anneal(problem, TEMPERATURES, **settings)
    with LocalExecutor() as executor, annealing_context(executor, build_problem) as spread:
        calls = interrupted_at(executor, monkeypatch, 3)
        with bl.checkpoints(tmp_path), pytest.raises(PartialResultInterrupt) as stopped:
            spread(problem, TEMPERATURES, **settings)
        np.testing.assert_allclose(
            stopped.value.log_weights, plain[: 2 * CHAINS_PER_TASK], rtol=1e-12
        )
        with bl.checkpoints(tmp_path):
            _, found = spread(problem, TEMPERATURES, **settings)
        assert calls == [0, 1, 2, 2]
    np.testing.assert_allclose(found, plain, rtol=1e-12)


@pytest.mark.slow
def test_chains_that_need_more_room_are_given_it(build_problem, problem):
    """In a worker too, and the problem that comes back has it."""
    narrow = replace(problem, config=replace(problem.config, num_slots=3))
    apart = {"z": np.tile(np.arange(5, dtype=np.uint16), (CHAINS, 1))}
    for given in (None, apart):
        settings = {"chains": CHAINS, "seed": 3, "starts": given}
        _, plain = anneal(problem, TEMPERATURES, **settings)
        wider, found = anneal(narrow, TEMPERATURES, **settings)
        np.testing.assert_allclose(found, plain, rtol=1e-12)
        assert wider.config.num_slots == 6
        with LocalExecutor() as executor, annealing_context(executor, build_problem) as spread:
            after, found = spread(narrow, TEMPERATURES, **settings)
        np.testing.assert_allclose(found, plain, rtol=1e-12)
        assert after.config == wider.config


def test_the_whole_evidence_of_labels_given_features_goes_there(monkeypatch):
    data, _ = bl.NoSharing().simulate(bl.Schema(2, (2,)), [3, 2], seed=0)
    known, asked = bl.evidence(bl.NoSharing(), data), []

    def evidence(model, table, method="auto", *, executor=None, **options):
        asked.append(executor)
        return known

    monkeypatch.setattr("bayes_lcs.model_evidence.evidence.evidence", evidence)
    with LocalExecutor() as executor:
        bl.conditional_evidence(bl.NoSharing(), data, executor=executor)
        assert asked == [executor, executor]
