"""Long tables are predicted piece by piece, and nothing else changes."""

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.inference.condition import condition
from bayes_lcs.model_evidence import compare
from bayes_lcs.model_evidence.compare import predict_in_batches


@pytest.mark.parametrize("model", [bl.NoSharing(), bl.ClusteredNaiveBayes()])
def test_pieces_are_predicted_as_the_whole(model, monkeypatch):
    data, _ = bl.meeting_requests(seed=0, rows_per_person=12)
    data = data.select_groups(range(6))
    posterior = condition(model, data.take(slice(0, None, 2)))
    rows = data.take(slice(1, None, 2))
    whole = posterior.predict_proba(rows)
    monkeypatch.setattr(compare, "BATCH_SIZE", 5)
    found = predict_in_batches(posterior, rows)
    np.testing.assert_allclose(found, whole, rtol=1e-10)
    frame = predict_in_batches(posterior, rows.to_frame())
    np.testing.assert_allclose(frame, whole, rtol=1e-10)
