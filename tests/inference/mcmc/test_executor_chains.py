"""Chains as tasks of an executor: the same draws, and whole chains are kept."""

from __future__ import annotations

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.draw_posterior import draw_posterior
from bayes_lcs.runtime.executors.local import LocalExecutor

SETTINGS = {"draws": 12, "chains": 3, "seed": 4, "progress": False}


@pytest.fixture(scope="module")
def data():
    table, _ = bl.meeting_requests(seed=2, rows_per_person=5)
    labels = np.array(table.labels)
    labels[::7] = -1
    return bl.GroupedTable.from_arrays(
        np.array(table.features), labels, np.array(table.groups), num_values=table.schema.num_values
    )


def same(one, two):
    assert one.unknown.keys() == two.unknown.keys()
    for name, value in one.unknown.items():
        np.testing.assert_array_equal(value, two.unknown[name], err_msg=name)
    assert one.stats.keys() == two.stats.keys()
    for name, value in one.stats.items():
        np.testing.assert_allclose(value, two.stats[name], rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(one.latent_probability, two.latent_probability, rtol=1e-12)


@pytest.mark.parametrize("model", [bl.ClusteredNaiveBayes(), bl.Prototype()])
def test_draws_are_those_of_chains_side_by_side(model, data):
    plain = draw_posterior(model, data, **SETTINGS)
    with LocalExecutor() as executor:
        found = draw_posterior(model, data, executor=executor, **SETTINGS)
        assert executor.traffic.calls == 1 + 3  # the problem is posed once
    assert "latent_label" in found.unknown
    same(found, plain)


def test_chains_that_are_done_are_kept(data, tmp_path, monkeypatch):
    plain = draw_posterior(bl.ClusteredNaiveBayes(), data, **SETTINGS)
    with LocalExecutor() as executor:
        each, calls = executor.each, []

        def interrupted(placed, function, params):
            calls.append(params[1].start)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return each(placed, function, params)

        monkeypatch.setattr(executor, "each", interrupted)
        for _ in range(2):
            with bl.checkpoints(tmp_path):
                try:
                    found = draw_posterior(
                        bl.ClusteredNaiveBayes(), data, executor=executor, **SETTINGS
                    )
                except KeyboardInterrupt:
                    found = None
        assert calls == [0, 1, 2, 2]
    same(found, plain)
