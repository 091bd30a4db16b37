"""Log probabilities of rows against the model's own, written in the plainest way."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.data.rows.ordinal_encoding import encode_sparse
from bayes_lcs.inference.em import row_densities
from bayes_lcs.inference.em.row_densities import log_density, map_rows, responsibilities
from bayes_lcs.models.multinomial_mixture import MultinomialMixture

SIZES = (2, 3, 5)


def same(joint):
    return joint


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(row_densities, "BLOCK_ROWS", 7)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_dense_rows_with_missing_cells(dtype):
    model = MultinomialMixture(schema=Schema(1, SIZES), num_components=4)
    rows, _, parameters = model.simulate(50, 0)
    rows[np.random.default_rng(1).random(rows.shape) < 0.3] = -1
    found = map_rows(parameters, DenseRows(rows.astype(dtype), SIZES), same)
    np.testing.assert_allclose(found, model.log_joint(parameters, rows), rtol=1e-13)


@pytest.mark.usefixtures("small_blocks")
def test_sparse_rows():
    model = MultinomialMixture(schema=Schema(1, (2,) * 12), num_components=3)
    rows, _, parameters = model.simulate(40, 2)
    found = map_rows(parameters, encode_sparse(csr_array(rows)), same)
    np.testing.assert_allclose(found, model.log_joint(parameters, rows), rtol=1e-12)


def test_a_value_of_probability_zero_makes_a_row_impossible():
    parameters = MixtureParameters(np.array([0.5, 0.5]), np.array([[0.0, 0.5], [1.0, 0.5]]))
    table = DenseRows(np.array([[0], [1], [-1]]), (2,))
    with np.errstate(divide="ignore"):
        expected = np.log([[0.0, 0.25], [0.5, 0.25], [0.5, 0.5]])
    np.testing.assert_allclose(map_rows(parameters, table, same), expected)
    np.testing.assert_allclose(map_rows(parameters, table, responsibilities)[0], [0.0, 1.0])
    assert map_rows(parameters, table, log_density)[2] == 0.0


def test_no_rows():
    parameters = MixtureParameters(np.array([0.5, 0.5]), np.full((2, 2), 0.5))
    assert map_rows(parameters, DenseRows(np.empty((0, 1), int), (2,)), same).shape == (0, 2)
