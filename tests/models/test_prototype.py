from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from tests.oracles import as_sequence, block_log_marginal, sequential_log_marginal
from tests.strategies import SmallTable, small_tables


def draw_latent(schema: Schema, seed: int) -> tuple[np.ndarray, np.ndarray]:
    _, truth = Prototype().simulate(schema, [0], seed=seed)
    return truth.prototype, truth.strength


@given(small_tables(), st.integers(0, 1000))
def test_the_marginal_equals_sequential_predictives(table: SmallTable, seed: int) -> None:
    counts = table.counts()
    prototype, strength = draw_latent(table.schema, seed)
    scatter = prototype * strength[:, table.schema.cell_feature]
    expected = sum(
        sequential_log_marginal(as_sequence(counts.labels[u]), [1.0] * table.schema.num_labels)
        + block_log_marginal(counts, [u], scatter)
        for u in range(counts.num_groups)
    )
    result = Prototype().log_marginal(counts, prototype, strength)
    assert result == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(small_tables(), st.integers(0, 1000))
def test_the_marginal_is_the_product_of_its_factors(table: SmallTable, seed: int) -> None:
    counts, schema = table.counts(), table.schema
    prototype, strength = draw_latent(schema, seed)
    model = Prototype()
    total = model.log_label_marginal(counts)
    for label in range(schema.num_labels):
        for f in range(schema.num_features):
            cells = schema.cells_of(f)
            total += float(
                model.log_factor(
                    counts.features[:, label, cells], prototype[label, cells], strength[label, f]
                )
            )
    assert total == pytest.approx(model.log_marginal(counts, prototype, strength), abs=1e-9)


def test_factors_broadcast_over_leading_axes() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, (6, 3))
    counts[2] = 0
    prototype, strength = rng.dirichlet([1, 1, 1], (4, 1)), rng.gamma(2.0, 1.0, (1, 5))
    result = Prototype.log_factor(counts, prototype, strength)
    assert result.shape == (4, 5)
    for i, j in np.ndindex(4, 5):
        single = Prototype.log_factor(counts, prototype[i, 0], strength[0, j])
        assert result[i, j] == pytest.approx(float(single), abs=1e-12)


def test_with_scatter_beta_it_is_no_sharing() -> None:
    """K = V_f beta and a uniform prototype give Dirichlet(beta), which No-Sharing has."""
    schema = Schema(2, (2, 3))
    table, _ = NoSharing().simulate(schema, [5, 8], seed=0, missing=0.2)
    counts = table.counts()
    prototype = np.array([[0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]] * 2)
    strength = np.array([[1.4, 2.1]] * 2)
    alone = NoSharing(feature_prior=0.7)
    model = Prototype()
    assert model.log_marginal(counts, prototype, strength) == pytest.approx(
        alone.log_marginal(counts), abs=1e-10
    )
    np.testing.assert_allclose(
        model.log_predictive(counts, [[1, 2]], prototype, strength),
        alone.log_predictive(counts, [[1, 2]]),
    )
    np.testing.assert_allclose(
        model.posterior_mode(counts, prototype, strength).theta, alone.posterior_mode(counts).theta
    )


def test_strength_decides_how_much_a_group_hears_of_the_prototype() -> None:
    schema = Schema(1, (2,))
    table, _ = NoSharing().simulate(schema, [0], seed=0)
    prototype = np.array([[0.9, 0.1]])
    counts = table.counts()
    for strength in (0.1, 10.0, 1e6):
        logs = Prototype().log_predictive(counts, [[0]], prototype, [[strength]])
        assert np.exp(logs[0, 0, 0]) == pytest.approx(0.9)
    counts.features[0, 0] = [0, 10]
    counts.labels[0, 0] = 10
    for strength in (0.1, 10.0, 1e6):
        logs = Prototype().log_predictive(counts, [[0]], prototype, [[strength]])
        assert np.exp(logs[0, 0, 0]) == pytest.approx(0.9 * strength / (strength + 10.0))


def test_a_prototype_on_the_edge_of_the_simplex_is_allowed() -> None:
    value = Prototype.log_factor([[3, 0]], [1.0, 0.0], 2.0)
    assert float(value) == pytest.approx(0.0, abs=1e-12)
    assert float(Prototype.log_factor([[3, 1]], [1.0, 0.0], 2.0)) < -500
    scatter = Prototype().scatter_parameters(Schema(1, (2,)), [[1.0, 0.0]], [[2.0]])
    assert (scatter > 0).all()
    with pytest.raises(ValueError, match="must end in the 2 feature values and the 1 features"):
        Prototype().scatter_parameters(Schema(1, (2,)), [[1.0, 0.0]], [[2.0, 3.0]])


def test_the_prior_density() -> None:
    schema = Schema(2, (2, 3))
    prototype, strength = draw_latent(schema, 3)
    model = Prototype(feature_prior=[2.0, (0.5, 1.0, 3.0)], strength_prior=Gamma(2.0, 0.3))
    expected = stats.gamma(2.0, scale=1 / 0.3).logpdf(strength).sum()
    for label in range(2):
        expected += stats.dirichlet([2.0, 2.0]).logpdf(prototype[label, :2])
        expected += stats.dirichlet([0.5, 1.0, 3.0]).logpdf(prototype[label, 2:])
    assert model.log_prior(schema, prototype, strength) == pytest.approx(expected, rel=1e-10)
    counts = NoSharing().simulate(schema, [3, 4])[0].counts()
    assert model.log_joint(counts, prototype, strength) == pytest.approx(
        expected + model.log_marginal(counts, prototype, strength)
    )


def test_a_learned_feature_prior_is_integrated_out_of_the_density() -> None:
    schema = Schema(1, (3,))
    prototype, strength = np.array([[0.2, 0.3, 0.5]]), np.array([[4.0]])
    model = Prototype(feature_prior=Gamma(2.0, 1.0))
    exact, _ = integrate.quad(
        lambda b: stats.gamma.pdf(b, 2.0) * stats.dirichlet.pdf(prototype[0], [b] * 3),
        0,
        60,
        epsabs=0,
        epsrel=1e-11,
        limit=200,
    )
    exact_log = math.log(exact) + stats.gamma.logpdf(4.0, 1.0, scale=10.0)
    assert model.log_prior(schema, prototype, strength) == pytest.approx(exact_log, abs=1e-9)
