"""Latent classes from a CSV: maxima, shares and standard errors that poLCA reports."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import bayes_lcs as bl

SHARES = {0.4447: 0.048, 0.3736: 0.047, 0.1817: 0.041}
"""Shares of three classes of the carcinoma data and their standard errors, from poLCA."""


def data_file(*parts):
    path = Path(os.environ.get("BAYES_LCS_DATA", "")).joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"no file {'/'.join(parts)} in the folder that BAYES_LCS_DATA names")
    return path


def outer_product_errors(model, rows):
    """poLCA's standard errors of the shares: the inverse of the sum of squared scores.

    Its pseudo-inverse leaves out what has no information, such as probabilities of 0 and 1.
    """
    codes = rows.to_numpy() - 1
    responsibilities = model.predict_proba(rows)
    scores = [
        responsibilities[:, k] * ((codes[:, f] == 1) - model.probabilities_[f][k, 1])
        for k in range(model.n_components_)
        for f in range(codes.shape[1])
    ]
    scores += list((responsibilities - model.weights_)[:, 1:].T)
    inverse = np.linalg.pinv(np.array(scores) @ np.array(scores).T, rcond=1e-8)
    others = model.n_components_ - 1
    share = model.weights_
    slope = (np.diag(share) - np.outer(share, share))[:, 1:]
    return np.sqrt(np.diag(slope @ inverse[-others:, -others:] @ slope.T))


def test_the_carcinoma_data_with_defaults(tmp_path):
    """The tolerance is the default one, and nothing else is needed to reach the maximum."""
    path = data_file("polca", "carcinoma.csv")
    rows = pd.read_csv(path)
    model = bl.MixtureClusterer(3, prior=0.0, n_init=5, random_state=0).fit_file(path)
    assert model.converged_
    assert model.log_likelihood_ == pytest.approx(-293.705, abs=1e-3)
    assert model.bic(rows) == pytest.approx(697.1357, abs=2e-3)  # 23 parameters, zeros included

    errors, tables = model.standard_errors(rows)
    order = np.argsort(-model.weights_)
    np.testing.assert_allclose(model.weights_[order], list(SHARES), atol=1e-3)
    np.testing.assert_allclose(errors[order], list(SHARES.values()), atol=1e-3)
    np.testing.assert_allclose(errors, outer_product_errors(model, rows), rtol=0.01)
    for table, of_table in zip(model.probabilities_, tables, strict=True):
        at_boundary = (table < 1e-4) | (table > 1 - 1e-4)
        np.testing.assert_array_equal(np.isnan(of_table), at_boundary)
        assert (of_table[~at_boundary] > 0.01).all()

    model.save(tmp_path / "classes.nc")
    again = bl.load(tmp_path / "classes.nc").set_params(warm_start=True).fit(rows)
    assert again.n_iter_ <= 3
    assert again.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-3)


@pytest.mark.parametrize(
    ("parts", "classes", "prior"),
    [
        (("polca", "carcinoma.csv"), 4, 0.0),
        (("polca", "cheating.csv"), 2, 0.0),
        (("polca", "values.csv"), 2, 0.0),
        (("nltcs", "nltcs.csv"), 4, 0.0),
        (("nltcs", "nltcs.csv"), 6, 1.0),
        (("income_esl", "IncomeESL.csv"), 5, 1.0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
def test_maxima_warm_starts_and_warnings_of_public_files(parts, classes, prior):
    rows = pd.read_csv(data_file(*parts))
    for seed in range(2):
        model = bl.MixtureClusterer(classes, prior=prior, random_state=seed, warm_start=True)
        cold = model.fit(rows)
        assert cold.converged_
        passes, objective, weights = cold.n_iter_, cold.log_posterior_, cold.weights_
        assert model.fit(rows).n_iter_ <= 14  # old rule: 44 to 964
        best = model.set_params(tol=1e-6, max_iter=20_000).fit(rows)
        assert best.log_posterior_ - objective < 2e-3
        np.testing.assert_allclose(weights, best.weights_, atol=5e-3)
    short = bl.MixtureClusterer(classes, prior=prior, max_iter=passes // 2, random_state=seed)
    with pytest.warns(ConvergenceWarning, match=f"max_iter={passes // 2}"):
        short.fit(rows)
    assert not short.converged_
