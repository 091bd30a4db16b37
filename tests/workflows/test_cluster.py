"""Mixture clustering of a file."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayes_lcs.io.size_estimate import table_extent
from bayes_lcs.workflows.cluster import cluster_file


def test_all_rows_fit_where_memory_does(tmp_path, monkeypatch):
    """A long header makes rows seem fewer than they are, which is no lack of memory."""
    monkeypatch.setattr("bayes_lcs.io.size_estimate.SAMPLE_BYTES", 2000)
    kind = np.random.default_rng(0).integers(2, size=300)
    path = tmp_path / "t.csv"
    pd.DataFrame({name * 400: kind for name in "abc"}).to_csv(path, index=False)
    assert table_extent(path).rows < 250
    result, source = cluster_file(path, 2, alpha=0.0)
    assert source.num_rows == 300
    assert "memory" not in result.stop_reason
    assert result.sample_size == 240
