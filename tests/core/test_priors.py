from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bayes_lcs.core.priors import (
    Gamma,
    fixed_value,
    freeze,
    resolve_feature_prior,
    resolve_label_prior,
    validate_prior,
)
from bayes_lcs.core.schema import Schema

SCHEMA = Schema(2, (3, 2))


def test_gamma_is_shape_and_rate() -> None:
    gamma = Gamma(2.5, 4.0)
    reference = stats.gamma(2.5, scale=0.25)
    x = np.array([0.01, 0.5, 3.0])
    assert gamma.mean == reference.mean()
    np.testing.assert_allclose(gamma.log_density(x), reference.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(
        gamma.log_density_of_log(np.log(x)), reference.logpdf(x) + np.log(x), rtol=1e-12
    )
    assert gamma.log_density_of_log(np.array([-5000.0]))[0] == pytest.approx(-12500, abs=10)


@pytest.mark.parametrize(("shape", "rate"), [(0, 1), (1, -1), (np.nan, 1), (1, np.inf)])
def test_gamma_refuses_what_is_not_positive(shape: float, rate: float) -> None:
    with pytest.raises(ValueError, match="must be positive and finite"):
        Gamma(shape, rate)


def test_frozen_specs_hash_and_keep_their_values() -> None:
    frozen = freeze([1.0, np.array([0.5, 2.0]), [[1, 2], [3, 4]]])
    assert frozen == (1.0, (0.5, 2.0), ((1, 2), (3, 4)))
    hash(frozen)
    with pytest.raises(TypeError, match="one entry per feature or a Gamma"):
        freeze(object())


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, [1.0, 0.0], np.array([[1.0, -2.0]])])
def test_construction_refuses_what_is_not_positive(bad) -> None:
    with pytest.raises(ValueError, match="my_prior must be positive and finite, got"):
        validate_prior(bad, "my_prior")


@pytest.mark.parametrize("bad", ["1", True, None, 1j, ["a"]])
def test_construction_refuses_what_is_no_number(bad) -> None:
    with pytest.raises(TypeError):
        validate_prior(bad, "my_prior")


def test_gamma_only_where_it_can_be_learned() -> None:
    assert validate_prior(Gamma(), "x", learnable=True) == Gamma()
    with pytest.raises(TypeError, match="x cannot be learned"):
        validate_prior(Gamma(), "x")


def test_a_learned_value_is_asked_for_kindly() -> None:
    assert fixed_value(2, "concentration") == 2.0
    with pytest.raises(ValueError, match=r"concentration=0\.5"):
        fixed_value(Gamma(1.0, 2.0), "concentration")
    with pytest.raises(ValueError, match="feature_prior has a Gamma prior"):
        resolve_feature_prior(Gamma(), SCHEMA)


def test_label_priors() -> None:
    assert resolve_label_prior(2, SCHEMA).tolist() == [2.0, 2.0]
    assert resolve_label_prior((1, 3), SCHEMA).tolist() == [1.0, 3.0]
    with pytest.raises(ValueError, match="each of the 2 labels"):
        resolve_label_prior((1, 2, 3), SCHEMA)


def test_feature_priors_in_every_spelling() -> None:
    full = np.arange(1.0, 11.0).reshape(2, 5)
    np.testing.assert_array_equal(resolve_feature_prior(0.5, SCHEMA), np.full((2, 5), 0.5))
    np.testing.assert_array_equal(resolve_feature_prior(freeze(full), SCHEMA), full)
    by_feature = resolve_feature_prior([(1, 2, 3), 4], SCHEMA)
    np.testing.assert_array_equal(by_feature, [[1, 2, 3, 4, 4]] * 2)
    by_label = resolve_feature_prior([full[:, :3], full[:, 3:]], SCHEMA)
    np.testing.assert_array_equal(by_label, full)


def test_the_full_array_is_understood_with_as_many_features_as_labels() -> None:
    """SCHEMA has two of each, and (2, 5) fits no reading by feature."""
    assert SCHEMA.num_labels == SCHEMA.num_features
    full = np.arange(1.0, 11.0).reshape(2, 5)
    np.testing.assert_array_equal(resolve_feature_prior(full, SCHEMA), full)


def test_feature_priors_that_do_not_fit_name_the_feature() -> None:
    with pytest.raises(ValueError, match="3 entries; give one number"):
        resolve_feature_prior([1, 2, 3], SCHEMA)
    with pytest.raises(ValueError, match=r"feature 1 has shape \(3,\)"):
        resolve_feature_prior([1, (1, 2, 3)], SCHEMA)
