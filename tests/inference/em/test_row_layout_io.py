"""Rows that are laid out on disk: statistics are the same to the bit, weights take few bytes."""

from __future__ import annotations

import numpy as np
import pytest

from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.inference.em.e_step import LocalEStep
from bayes_lcs.inference.em.row_layout import lay_out_rows
from bayes_lcs.inference.em.row_layout_io import load_layout, save_layout

SIZES = (3, 4, 2, 5)
WEIGHTS = {
    "one each": (np.ones(3000), 1),
    "numbers of rows": (np.arange(3000) % 250 + 1.0, 1),
    "large numbers": (np.arange(3000) + 300.0, 2),
    "halves": (np.arange(3000) / 2, 4),
    "any": (np.random.default_rng(0).exponential(size=3000), 8),
    "too large for fewer bytes": (np.full(3000, 1e300), 8),
}


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_statistics_are_the_same(tmp_path, kind, precision):
    rng = np.random.default_rng(1)
    weights, width = WEIGHTS[kind]
    codes = rng.integers(-1, SIZES, (3000, 4))
    layout = lay_out_rows(DenseRows(codes, SIZES), weights, merge_rows=False)
    path = tmp_path / "layout.rows"
    save_layout(layout, path)
    again = load_layout(path)
    cells = np.concatenate([rng.dirichlet(np.ones(size), 3).T for size in SIZES])
    parameters = MixtureParameters(np.array([0.2, 0.3, 0.5]), cells)
    (kept,) = LocalEStep(layout, precision, cores=1).statistics([parameters])
    (found,) = LocalEStep(again, precision, cores=1, on_device=False).statistics([parameters])
    for mine, theirs in zip(found, kept, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.total_weight == layout.total_weight
    sizes = [chunk.slots.nbytes + chunk.weights.nbytes // 8 * width for chunk in layout.chunks]
    assert sum(sizes) < path.stat().st_size < sum(sizes) + 40_000
