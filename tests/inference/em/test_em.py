"""EM: equal to plain NumPy however the rows are laid out, and never downhill."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.data.rows.ordinal_encoding import encode_sparse
from bayes_lcs.inference.em import em
from bayes_lcs.inference.em.e_step import LocalEStep
from bayes_lcs.inference.em.em import GapRule, RelativeRule, em_steps, remaining_gap, run_em
from bayes_lcs.inference.em.initialization import column_counts, draw_start
from bayes_lcs.inference.em.row_layout import lay_out_rows
from bayes_lcs.models.multinomial_mixture import MultinomialMixture
from tests.inference.em.em_oracle import plain_em

SIZES = (3, 2, 4, 2, 3)


def never_stop(trace, gap):
    return False


squarem_steps = partial(em_steps, is_accelerated=True)


PLANS = [
    dict(zip(("merge_columns", "merge_rows", "leave_out_common"), choice, strict=True))
    for choice in itertools.product((True, False), repeat=3)
]


def mixture(prior=1.0, sizes=SIZES, num_components=3):
    return MultinomialMixture(
        schema=Schema(1, sizes),
        num_components=num_components,
        weight_prior=prior,
        cell_prior=prior,
    )


def rows_of(seed=0, num_rows=300, missing=0.1):
    rng = np.random.default_rng(seed)
    rows, _, _ = mixture().simulate(num_rows, seed)
    rows[rng.random(rows.shape) < missing] = -1
    return rows, rng.gamma(2.0, size=num_rows)


def start_for(model, rows, weights=None, seed=0):
    table = DenseRows(rows, model.schema.num_values)
    rng = np.random.default_rng(seed)
    return draw_start(rng, model, model.num_components, column_counts(table, weights), "random")


def fit(model, layout, start, max_iter, stop=never_stop, steps=em_steps, precision="double"):
    executor = LocalEStep(layout, precision)
    results, interrupted = run_em(
        executor,
        [partial(steps, model, start, max_iter, stop)],
        max_iter=max_iter,
        log_prior=model.log_prior,
        progress=False,
    )
    assert not interrupted
    return results[0]


# The same as plain NumPy --------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("choices", PLANS, ids=lambda c: "-".join(str(int(v)) for v in c.values()))
def test_it_equals_plain_numpy_with_weights_and_missing_cells(choices, prior):
    rows, weights = rows_of()
    model = mixture(prior)
    start = start_for(model, rows, weights)
    expected, objectives = plain_em(rows, SIZES, start, 12, prior, weights)
    layout = lay_out_rows(DenseRows(rows, SIZES), weights, **choices)
    found = fit(model, layout, start, 12)
    np.testing.assert_allclose(found.parameters.weights, expected.weights, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.parameters.cells, expected.cells, rtol=0, atol=1e-10)
    # Ours has the constant of the prior, theirs has none.
    np.testing.assert_allclose(
        np.diff(found.trace), np.diff(objectives), rtol=0, atol=1e-10 * abs(objectives[0])
    )
    if prior == 0.0:
        np.testing.assert_allclose(found.trace, objectives, rtol=1e-12)


def test_the_likelihood_is_the_sum_over_rows():
    rows, weights = rows_of()
    model = mixture()
    start = start_for(model, rows)
    layout = lay_out_rows(DenseRows(rows, SIZES), weights)
    (statistics,) = LocalEStep(layout).statistics([start])
    joint = np.exp(model.log_joint(start, rows))
    assert statistics.log_likelihood == pytest.approx(
        weights @ np.log(joint.sum(axis=1)), rel=1e-13
    )
    assert statistics.components.sum() == pytest.approx(weights.sum(), rel=1e-13)
    share = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(statistics.components, weights @ share, rtol=1e-12)


@pytest.mark.parametrize("precision", ["double", "mixed"])
@pytest.mark.parametrize("num_components", [1, 2, 3, 4, 5, 7, 8, 9, 13])
def test_components_that_only_fill_a_vector_take_nothing(num_components, precision):
    rows, weights = rows_of()
    model = mixture(num_components=num_components)
    parameters = model.simulate(1, 5)[2]
    layout = lay_out_rows(DenseRows(rows, SIZES), weights)
    (found,) = LocalEStep(layout, precision).statistics([parameters])
    joint = model.log_joint(parameters, rows)
    density = np.logaddexp.reduce(joint, axis=1)
    tolerance = 1e-12 if precision == "double" else 1e-5
    assert found.log_likelihood == pytest.approx(weights @ density, rel=tolerance)
    share = weights[:, None] * np.exp(joint - density[:, None])
    np.testing.assert_allclose(found.components, share.sum(axis=0), rtol=tolerance)
    assert found.cells.shape == (sum(SIZES), num_components)
    np.testing.assert_allclose(found.cells[0], share[rows[:, 0] == 0].sum(axis=0), rtol=tolerance)


def test_parts_of_many_chunks_add_up():
    """More rows than one chunk takes, one core or two, and a last block that is not full."""
    sizes = (2,) * 40
    model = mixture(sizes=sizes, num_components=2)
    rows, _, truth = model.simulate(40_000, 3)
    table = DenseRows(np.asfortranarray(rows.astype(np.int8)), sizes)
    layout = lay_out_rows(table, merge_columns=False, merge_rows=False, leave_out_common=False)
    assert len(layout.chunks) > 2
    one, two = (LocalEStep(layout, cores=cores).statistics([truth])[0] for cores in (1, 2))
    np.testing.assert_allclose(one.cells, two.cells, rtol=1e-12)
    joint = model.log_joint(truth, rows)
    top = joint.max(axis=1, keepdims=True)
    share = np.exp(joint - top)
    total = share.sum(axis=1, keepdims=True)
    assert one.log_likelihood == pytest.approx(float((top + np.log(total)).sum()), rel=1e-13)
    share /= total
    cells = np.concatenate(
        [[share[rows[:, f] == v].sum(axis=0) for v in (0, 1)] for f in range(40)]
    )
    np.testing.assert_allclose(one.cells, cells, rtol=1e-10)


def test_a_sparse_matrix_gives_what_a_dense_one_gives():
    rng = np.random.default_rng(1)
    rows = (rng.random((500, 30)) < np.linspace(0.01, 0.3, 30)).astype(np.int64)
    sizes = (2,) * 30
    model = mixture(sizes=sizes)
    start = start_for(model, rows)
    sparse = encode_sparse(csr_array(rows))
    np.testing.assert_array_equal(column_counts(sparse), column_counts(DenseRows(rows, sizes)))
    layouts = [
        lay_out_rows(DenseRows(rows, sizes), leave_out_common=False),
        lay_out_rows(sparse),
        lay_out_rows(sparse, merge_rows=False, merge_columns=False, leave_out_common=True),
    ]
    assert layouts[1].slots_per_row < 0.7 * len(layouts[1].groups)
    dense, *others = (fit(model, layout, start, 10).parameters for layout in layouts)
    for other in others:
        np.testing.assert_allclose(dense.cells, other.cells, rtol=0, atol=1e-12)
        np.testing.assert_allclose(dense.weights, other.weights, rtol=0, atol=1e-12)


def test_mixed_precision_is_as_good_as_float32():
    rows, weights = rows_of(num_rows=2000)
    model = mixture()
    start = start_for(model, rows)
    layout = lay_out_rows(DenseRows(rows, SIZES), weights, merge_rows=False)
    mixed, double = (LocalEStep(layout, p).statistics([start])[0] for p in ("mixed", "double"))
    # A row's log is off by a few units in the last place of float32; sums are in float64.
    assert mixed.log_likelihood == pytest.approx(double.log_likelihood, rel=1e-6)
    np.testing.assert_allclose(mixed.cells, double.cells, rtol=2e-5)
    assert mixed.log_likelihood != double.log_likelihood


# Uphill, and to an end ----------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [1.0, 0.0])
@pytest.mark.parametrize("steps", [em_steps, squarem_steps])
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_falls(steps, prior, seed):
    rows, weights = rows_of(seed)
    model = mixture(prior)
    layout = lay_out_rows(DenseRows(rows, SIZES), weights, merge_rows=False)
    found = fit(model, layout, start_for(model, rows, weights, seed), 150, steps=steps)
    assert np.diff(found.trace).min() >= -1e-8
    assert found.num_iter == 150


def test_acceleration_arrives_at_the_same_place_sooner():
    rows, weights = rows_of(2)
    model = mixture()
    layout = lay_out_rows(DenseRows(rows, SIZES), weights, merge_rows=False)
    start = start_for(model, rows, weights)
    stop = GapRule(1e-6)
    plain = fit(model, layout, start, 5000, stop)
    fast = fit(model, layout, start, 5000, stop, squarem_steps)
    assert plain.converged
    assert fast.converged
    assert fast.num_iter < plain.num_iter / 2
    assert fast.objective == pytest.approx(plain.objective, abs=2e-6)


def test_an_extrapolation_too_far_is_thrown_away(monkeypatch):
    def wild(schema, zero, one, limit):
        return MixtureParameters(one.update.weights, np.full_like(one.update.cells, 1e-3)), limit

    rows, weights = rows_of(2)
    model = mixture()
    layout = lay_out_rows(DenseRows(rows, SIZES), weights, merge_rows=False)
    start = start_for(model, rows, weights)
    monkeypatch.setattr(em, "extrapolate", wild)
    found = fit(model, layout, start, 30, steps=squarem_steps)
    # After the plain passes every other one is an EM step; the others are not used.
    assert len(found.trace) == 20
    plain = fit(model, layout, start, len(found.trace))
    np.testing.assert_allclose(found.trace, plain.trace, rtol=1e-12)


@pytest.mark.parametrize(
    ("trace", "stops"),
    [
        ([-100.0, -50.0], False),
        ([-100.0, -50.0, -49.6], True),  # 0.4 of 50.4
        ([-100.0, -50.0, -49.4], False),  # 0.6 of 50.6
        ([-100.0, -100.0], True),
        ([-100.0, -101.0], True),
    ],
)
def test_the_stopping_rule_of_the_paper(trace, stops):
    assert RelativeRule(0.01, "double")(trace) is stops


def test_it_stops_where_the_rule_says():
    rows, weights = rows_of()
    model = mixture()
    layout = lay_out_rows(DenseRows(rows, SIZES), weights, merge_rows=False)
    found = fit(model, layout, start_for(model, rows), 500, RelativeRule(1e-3, "double"))
    assert found.converged
    shares = np.diff(found.trace) / (found.trace[1:] - found.trace[0])
    assert shares[-1] < 1e-3
    assert (shares[:-1] >= 1e-3).all()
    # Converged: the parameters are those of the last objective.
    (again,) = LocalEStep(layout).statistics([found.parameters])
    assert again.log_likelihood + model.log_prior(found.parameters) == found.objective


def test_several_starts_together_are_as_each_alone():
    rows, weights = rows_of()
    model = mixture()
    layout = lay_out_rows(DenseRows(rows, SIZES), weights, merge_rows=False)
    starts = [start_for(model, rows, seed=seed) for seed in range(3)]
    stop = RelativeRule(1e-3, "double")
    together, _ = run_em(
        LocalEStep(layout),
        [partial(em_steps, model, start, 200, stop) for start in starts],
        max_iter=200,
        log_prior=model.log_prior,
    )
    for start, found in zip(starts, together, strict=True):
        alone = fit(model, layout, start, 200, stop)
        np.testing.assert_array_equal(alone.trace, found.trace)
        np.testing.assert_array_equal(alone.parameters.cells, found.parameters.cells)


def test_interruption_keeps_what_is_known():
    rows, _ = rows_of()
    model = mixture()
    executor = LocalEStep(lay_out_rows(DenseRows(rows, SIZES), merge_rows=False))
    start = start_for(model, rows)
    taken, calls = executor.statistics, []

    def interrupted(requests):
        calls.append(len(requests))
        if len(calls) > 5:
            raise KeyboardInterrupt
        return taken(requests)

    executor.statistics = interrupted
    results, stopped = run_em(
        executor,
        [partial(em_steps, model, start, 100, never_stop)],
        max_iter=100,
        log_prior=model.log_prior,
    )
    assert stopped
    assert results[0].num_iter == 5
    executor.statistics = taken
    expected = fit(model, executor.layout, start, 5)
    np.testing.assert_array_equal(results[0].parameters.cells, expected.parameters.cells)
    assert results[0].log_likelihood == expected.log_likelihood
    calls.extend(range(6))
    executor.statistics = interrupted
    with pytest.raises(KeyboardInterrupt):
        run_em(
            executor,
            [partial(em_steps, model, start, 9, never_stop)],
            max_iter=9,
            log_prior=model.log_prior,
        )


def test_plans_of_nearly_one_size_share_a_program():
    from bayes_lcs.inference.em import e_step

    model = mixture()
    sizes = []
    for num_rows in (290, 300, 310):
        rows, weights = rows_of(num_rows=num_rows)
        layout = lay_out_rows(DenseRows(rows, SIZES), weights, merge_rows=False)
        LocalEStep(layout).statistics([start_for(model, rows)])
        sizes.append(e_step._accumulate._cache_size())
    assert sizes[0] == sizes[-1]


# How far from the maximum ------------------------------------------------------------------------


def maximum_from(model, layout, parameters):
    """The objective of the maximum that EM leads to from some parameters."""
    found = fit(model, layout, parameters, 20_000, GapRule(1e-6), squarem_steps)
    assert found.converged
    return found.objective


@pytest.mark.parametrize(
    ("steps", "prior", "seed"),
    [(squarem_steps, prior, seed) for prior in (1.0, 0.0) for seed in (1, 2, 3, 4)]
    + [(em_steps, 1.0, 1), (em_steps, 1.0, 3), (em_steps, 0.0, 2)],
)
def test_it_stops_as_near_the_maximum_as_it_says(steps, prior, seed):
    rows, weights = rows_of(seed)
    model = mixture(prior)
    layout = lay_out_rows(DenseRows(rows, SIZES), weights)
    found = fit(
        model, layout, start_for(model, rows, weights, seed), 20_000, GapRule(1e-3), steps=steps
    )
    assert found.converged
    assert found.gap <= 1e-3
    # The estimate is that of a quadratic: it may be off by a factor of two.
    assert maximum_from(model, layout, found.parameters) - found.objective < 2e-3


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.999])
def test_the_gap_of_one_direction(rate):
    """A quadratic of complete information 1: EM is a linear map with this rate."""
    objective = [-0.5 * (1 - rate) * rate ** (2 * t) for t in range(3)]
    gains = [0.5 * (1 - rate) ** 2 * rate ** (2 * t) for t in range(2)]
    expected = -objective[1] if rate > em.MIN_RATE else gains[1] / (1 - em.MIN_RATE)
    assert remaining_gap(*gains) == pytest.approx(expected, rel=1e-9)
    assert remaining_gap(gains[1], gains[0]) == np.inf


@pytest.mark.parametrize(
    ("seed", "cell", "component"), [(1, 8, 1), (2, 5, 0), (3, 1, 0), (3, 9, 0)]
)
def test_a_probability_that_grows_from_zero_is_waited_for(seed, cell, component):
    """A probability that begins at next to nothing hardly changes any count, and is worth nats."""
    rows, weights = rows_of(seed)
    model = mixture(0.0)
    layout = lay_out_rows(DenseRows(rows, SIZES), weights)
    start = start_for(model, rows, weights, seed)
    best = fit(model, layout, start, 20_000, GapRule(1e-6), squarem_steps)
    cells = best.parameters.cells.copy()
    cells[cell, component] = 1e-20
    feature = model.schema.cells_of(int(model.schema.cell_feature[cell]))
    cells[feature, component] /= cells[feature, component].sum()
    start = MixtureParameters(best.parameters.weights, cells)
    found = fit(model, layout, start, 500, GapRule(1e-3), squarem_steps)
    assert found.converged
    assert found.objective > best.objective - 2e-3


@pytest.mark.parametrize("stop", [GapRule(1e-3), RelativeRule(1e-5, "double", origin=-3000.0)])
def test_a_start_at_the_maximum_ends_at_once(stop):
    rows, weights = rows_of(1)
    model = mixture()
    layout = lay_out_rows(DenseRows(rows, SIZES), weights)
    first = fit(model, layout, start_for(model, rows, weights), 2000, GapRule(1e-4), squarem_steps)
    assert fit(model, layout, first.parameters, 2000, stop).num_iter == 2


def test_an_extrapolation_does_not_lower_a_probability_for_good():
    """Nor does it raise one that is zero."""
    tables = [[0.9, 0.1, 0.0], [0.95, 0.05, 0.0], [0.975, 0.025, 0.0]]
    zero, one, two = (MixtureParameters(np.ones(1), np.array([t]).T) for t in tables)
    floor = np.log(np.full((4, 1), 1e-3))
    first, second = (
        em.EMPoint(at, None, 0.0, update, 0.0, 0.0, np.ones((4, 1)), floor)
        for at, update in ((zero, one), (one, two))
    )
    bold, step = em.extrapolate(Schema(1, (3,)), first, second, 8.0)
    assert step == 8.0
    assert 1e-3 <= bold.cells[1, 0] < 1e-2  # without a floor: 4e-6
    assert bold.cells[2, 0] == 0.0
    assert bold.cells.sum() == pytest.approx(1.0)
