"""`MixtureClusterer`: scikit-learn's contract, what goes in, and what comes out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix, csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import bayes_lcs as bl
from bayes_lcs import MixtureClusterer
from bayes_lcs.clustering.mixture.mixture_io import mixture_from_tree
from bayes_lcs.core.errors import InterruptedWarning
from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.core.schema import Schema
from bayes_lcs.learning_curve_sampling.truncated_training import parse_abbreviation
from bayes_lcs.models.multinomial_mixture import MultinomialMixture
from bayes_lcs.runtime.atomic_files import load_datatree
from tests.inference.em.em_oracle import plain_em

is_cut_short = pytest.mark.filterwarnings("ignore:EM has not converged")

CHECKED = MixtureClusterer(2, categorical=True, random_state=0)
LEAST_CHECKS = 44
SIZES = (3, 2, 4, 2, 3)


@is_cut_short
@pytest.mark.filterwarnings("ignore:values not seen in training")
@parametrize_with_checks([CHECKED])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_checks_are_there():
    """None is expected to fail."""
    names = [
        getattr(check, "func", check).__name__
        for _, check in estimator_checks_generator(CHECKED, legacy=True)
    ]
    assert len(names) >= LEAST_CHECKS  # 47 in scikit-learn 1.9
    assert {
        "check_dtype_object",
        "check_n_features_in_after_fitting",
        "check_estimators_pickle",
        "check_methods_subset_invariance",
        "check_sample_weight_equivalence_on_dense_data",
    } <= set(names)


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_dataframe_column_names_consistency,
        estimator_checks.check_f_contiguous_array_estimator,
        estimator_checks.check_param_validation,
    ],
)
def test_checks_that_scikit_learn_keeps_for_itself(check):
    check("MixtureClusterer", clone(CHECKED))


def clear_clusters(num_rows=300, seed=0):
    """Rows of two clusters that agree in nine of ten cells with opposite patterns."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, num_rows)
    flips = rng.random((num_rows, 8)) < 0.1
    return np.where(flips, 1 - z[:, None], z[:, None]), z


@pytest.fixture(scope="module")
def simulated():
    model = MultinomialMixture(schema=Schema(1, SIZES), num_components=3)
    rows, z, truth = model.simulate(300, 0)
    return rows, z, truth


@is_cut_short
def test_an_executor_is_shared_by_clones_and_left_out_of_files(tmp_path, simulated):
    X, _, _ = simulated
    with bl.executor("serial") as executor:
        clusterer = MixtureClusterer(3, executor=executor, max_iter=3, random_state=0)
        assert clone(clusterer).executor is executor
        clusterer.fit(X)
        assert clusterer.plan_ is None
        assert executor.traffic.calls == 1 + 1 + 3  # one block: laid out, described, three passes
        clusterer.save(tmp_path / "a.nc")
    again = MixtureClusterer.load(tmp_path / "a.nc")
    assert again.executor is None
    np.testing.assert_array_equal(again.predict(X), clusterer.predict(X))
    with pytest.raises(ValueError, match="executor"):
        MixtureClusterer(3, executor="processes").fit(X)


# What it finds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["perturbed", "random"])
def test_clear_clusters_are_found(init):
    X, z = clear_clusters()
    clusterer = MixtureClusterer(2, init=init, random_state=0)
    labels = clusterer.fit_predict(X)
    assert adjusted_rand_score(z, labels) > 0.95
    assert clusterer.converged_
    assert len(clusterer.trace_) <= clusterer.n_iter_ < 100
    np.testing.assert_array_equal(labels, clusterer.predict_proba(X).argmax(axis=1))
    np.testing.assert_allclose(clusterer.predict_proba(X).sum(axis=1), 1.0)


@is_cut_short
def test_it_is_em_from_the_start_given(simulated):
    X, _, truth = simulated
    schema = Schema(1, SIZES)
    tables = [truth.cells[schema.cells_of(f)].T for f in range(len(SIZES))]
    clusterer = MixtureClusterer(3, init=(truth.weights, tables), max_iter=7, tol=0).fit(X)
    expected, _ = plain_em(X, SIZES, truth, 7)
    np.testing.assert_allclose(clusterer.weights_, expected.weights, atol=1e-10)
    np.testing.assert_allclose(
        np.hstack(clusterer.probabilities_), expected.cells.T, rtol=0, atol=1e-10
    )
    with pytest.raises(ValueError, match="init must have 3 weights"):
        clone(clusterer).set_params(init=(truth.weights[:2], tables)).fit(X)
    with pytest.raises(ValueError, match="add up to one"):
        clone(clusterer).set_params(init=(truth.weights * 2, tables)).fit(X)


def test_starts_are_kept_and_the_best_is_taken(simulated):
    X, _, _ = simulated
    clusterer = MixtureClusterer(3, n_init=4, init="random", random_state=1).fit(X)
    objectives = [result.objective for result in clusterer.results_]
    assert len(set(objectives)) == 4
    assert clusterer.log_posterior_ == max(objectives) == clusterer.trace_[-1]
    best = clusterer.results_[int(np.argmax(objectives))]
    np.testing.assert_array_equal(clusterer.weights_, best.parameters.weights)
    again = clone(clusterer).fit(X)
    np.testing.assert_array_equal(again.trace_, clusterer.trace_)


@is_cut_short
def test_the_paper_s_start(simulated):
    """Equal weights; all components nearly alike, so that the first objective hardly differs."""
    X, _, _ = simulated
    first = [
        MixtureClusterer(k, random_state=s, max_iter=1, prior=0).fit(X).log_likelihood_
        for k, s in ((1, 0), (3, 0), (3, 1))
    ]
    counts = [np.bincount(X[:, f]) / len(X) for f in range(len(SIZES))]
    independent = sum(len(X) * (c[c > 0] * np.log(c[c > 0])).sum() for c in counts)
    # One component is perturbed too: the fit of a single component is above it.
    assert independent - 30 < first[0] < independent
    assert all(independent - 30 < value < independent + 30 for value in first)
    assert len(set(first)) == 3


def test_more_rows_by_weights(simulated):
    X, _, _ = simulated
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    one = MixtureClusterer(3, random_state=0).fit(X, sample_weight=weights)
    many = MixtureClusterer(3, random_state=0).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(one.trace_, many.trace_, rtol=1e-10)
    np.testing.assert_allclose(one.weights_, many.weights_, atol=1e-9)
    assert one.bic(X, weights) == pytest.approx(many.bic(np.repeat(X, weights, axis=0)))
    assert one.icl(X, weights) == pytest.approx(many.icl(np.repeat(X, weights, axis=0)))
    assert one.score(X, sample_weight=weights) == pytest.approx(
        many.score(np.repeat(X, weights, axis=0))
    )
    with pytest.raises(ValueError, match="at least one non-zero"):
        one.fit(X, sample_weight=np.zeros(len(X)))


@pytest.mark.parametrize("criterion", ["bic", "icl", "cheeseman_stutz"])
def test_the_number_of_components_is_chosen(criterion):
    X, z = clear_clusters(600)
    clusterer = MixtureClusterer("auto", criterion=criterion, random_state=0).fit(X)
    assert clusterer.n_components_ == 2
    assert sorted(clusterer.criterion_scores_) == [1, 2, 3, 4]
    assert adjusted_rand_score(z, clusterer.predict(X)) > 0.95
    score = getattr(clusterer, criterion)(X)
    assert clusterer.criterion_scores_[2] == pytest.approx(score)
    some = MixtureClusterer([1, 2], criterion=criterion, random_state=0).fit(X)
    assert some.n_components_ == 2
    with pytest.raises(ValueError, match="n_components is empty"):
        MixtureClusterer([]).fit(X)


def test_scores_by_hand(simulated):
    X, _, _ = simulated
    clusterer = MixtureClusterer(2, random_state=0).fit(X)
    joint = (
        clusterer.weights_
        * np.prod([table[:, X[:, f]] for f, table in enumerate(clusterer.probabilities_)], axis=0).T
    )
    log_likelihood = np.log(joint.sum(axis=1)).sum()
    np.testing.assert_allclose(clusterer.score_samples(X), np.log(joint.sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(clusterer.anomaly_score(X), -clusterer.score_samples(X))
    assert clusterer.score(X) == pytest.approx(log_likelihood / len(X))
    assert clusterer.log_likelihood_ == pytest.approx(log_likelihood)
    free = 1 + 2 * (sum(SIZES) - len(SIZES))
    bic = -2 * log_likelihood + free * np.log(len(X))
    assert clusterer.bic(X) == pytest.approx(bic)
    share = joint / joint.sum(axis=1, keepdims=True)
    assert clusterer.icl(X) == pytest.approx(bic - 2 * (share * np.log(share)).sum())


def test_strange_rows_score_high():
    X, _ = clear_clusters()
    clusterer = MixtureClusterer(2, random_state=0).fit(X)
    usual, odd = [[0] * 8], [[0, 1] * 4]
    assert clusterer.anomaly_score(odd) > clusterer.anomaly_score(usual) + 3


def test_acceleration_reaches_at_least_as_far(simulated):
    X, _, _ = simulated
    settings = {"random_state": 0, "tol": 1e-8, "max_iter": 5000}
    plain = MixtureClusterer(3, acceleration=None, **settings).fit(X)
    fast = MixtureClusterer(3, **settings).fit(X)
    assert fast.n_iter_ < plain.n_iter_
    assert np.diff(fast.trace_).min() >= -1e-8


@is_cut_short
def test_warm_start_goes_on_where_it_was(simulated):
    X, _, _ = simulated
    through = MixtureClusterer(3, random_state=0, max_iter=9, tol=0).fit(X)
    steps = MixtureClusterer(3, random_state=0, max_iter=3, tol=0, warm_start=True)
    traces = [steps.fit(X).trace_ for _ in range(3)]
    np.testing.assert_allclose(np.concatenate(traces), through.trace_, rtol=1e-12)
    np.testing.assert_allclose(steps.weights_, through.weights_, rtol=1e-10)


@pytest.mark.parametrize("prior", [1.0, 0.0])
@pytest.mark.parametrize(
    "options",
    [{}, {"acceleration": None, "max_iter": 20_000}, {"stopping": "relative", "tol": 1e-5}],
    ids=str,
)
def test_warm_start_from_a_converged_fit_takes_few_passes(simulated, options, prior):
    """From a start near the maximum the improvement since the start is no measure."""
    clusters, _ = clear_clusters()
    for X in (
        simulated[0],
        clusters,
        MultinomialMixture(schema=Schema(1, SIZES), num_components=3).simulate(500, 7)[0],
    ):
        clusterer = MixtureClusterer(
            3, prior=prior, random_state=0, warm_start=True, precision="double"
        ).set_params(**options)
        cold = clusterer.fit(X).n_iter_
        warm = clusterer.fit(X)
        assert warm.converged_
        assert warm.n_iter_ <= 14
        assert warm.n_iter_ <= cold + 2


def test_warm_start_on_more_rows_takes_no_more_passes_than_a_cold_one():
    model = MultinomialMixture(schema=Schema(1, SIZES), num_components=3)
    for seed in (0, 2, 3):
        X, _, _ = model.simulate(1200, seed)
        clusterer = MixtureClusterer(3, random_state=0, warm_start=True).fit(X[:900])
        cold = clone(clusterer).fit(X)
        assert clusterer.fit(X).n_iter_ <= cold.n_iter_ + 5


def test_warm_start_leaves_zeros_that_more_rows_contradict():
    """EM keeps a probability of zero, whatever the rows say."""
    X, z = clear_clusters(400, seed=3)
    X[:, 0] = np.where(z == 0, 0, X[:, 0])
    tables = [np.array([[0.9, 0.1], [0.1, 0.9]])] * 8
    tables[0] = np.array([[1.0, 0.0], [0.1, 0.9]])
    clusterer = MixtureClusterer(2, prior=0.0, init=([0.5, 0.5], tables)).fit(X)
    assert clusterer.probabilities_[0][0, 1] == 0.0
    more = X.copy()
    more[::3, 0] = 1 - more[::3, 0]
    cold = MixtureClusterer(2, prior=0.0, random_state=0).fit(more)
    clusterer.set_params(warm_start=True).fit(more)
    assert clusterer.log_likelihood_ == pytest.approx(cold.log_likelihood_, abs=5e-3)
    assert clusterer.n_iter_ <= cold.n_iter_ + 5


# Convergence --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [1.0, 0.0])
def test_by_default_it_ends_at_the_maximum(prior):
    """Slow convergence: 0.4 nats were missing, and a share was 0.20 in place of 0.16."""
    for seed in range(4):
        model = MultinomialMixture(schema=Schema(1, SIZES), num_components=3)
        X, _, _ = model.simulate(300, seed)
        clusterer = MixtureClusterer(3, prior=prior, random_state=seed).fit(X)
        assert clusterer.converged_
        assert clusterer.gap_ <= 1e-3
        best = MixtureClusterer(
            3, prior=prior, init=(clusterer.weights_, clusterer.probabilities_), tol=1e-7
        )
        best.set_params(max_iter=5000).fit(X)
        assert best.log_posterior_ - clusterer.log_posterior_ < 2e-3


def test_too_few_passes_are_warned_of(simulated, tmp_path):
    X, _, _ = simulated
    pd.DataFrame(X).add_prefix("c").to_csv(tmp_path / "rows.csv", index=False)
    clusterer = MixtureClusterer(3, max_iter=4, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=4 passes.*Increase max_iter"):
        clusterer.fit(X)
    assert not clusterer.converged_
    assert clusterer.gap_ > 1e-3
    with pytest.warns(ConvergenceWarning, match="max_iter=4"):
        clone(clusterer).fit_file(tmp_path / "rows.csv")
    with pytest.warns(ConvergenceWarning, match="max_iter=4"):
        clone(clusterer).partial_fit(X)
    with pytest.warns(ConvergenceWarning, match="n_components 2, 3, so that their scores"):
        clone(clusterer).set_params(n_components=[1, 2, 3]).fit(X)
    with pytest.warns(ConvergenceWarning, match="5 of 5 fits of the bootstrap"):
        clusterer.standard_errors(X, method="bootstrap", n_bootstrap=5, random_state=0)


def test_runs_that_are_cut_short_on_purpose_do_not_warn(simulated):
    X, _ = clear_clusters(600)
    bl.learning_curve_sample(
        MixtureClusterer(2, random_state=0),
        X,
        alpha=0.0,
        initial_size=100,
        holdout_size=100,
        abbreviated="fixed-1",
        progress=False,
    )


def test_batches_after_a_fit_do_not_count_as_converged(simulated):
    X, _, _ = simulated
    clusterer = MixtureClusterer(3, random_state=0).fit(X)
    assert clusterer.converged_
    clusterer.partial_fit(X[:100])
    assert not clusterer.converged_
    assert clusterer.gap_ == np.inf


@pytest.mark.parametrize("scale", [1 / 300, 7.0])
def test_the_scale_of_weights_does_not_decide_where_it_stops(simulated, scale):
    X, _, _ = simulated
    options = {"prior": 0.0, "random_state": 0, "tol": 1e-2}
    plain = MixtureClusterer(3, **options).fit(X)
    scaled = MixtureClusterer(3, **options).fit(X, sample_weight=np.full(len(X), scale))
    assert scaled.log_likelihood_ / scale == pytest.approx(plain.log_likelihood_, abs=2e-2)


def test_the_rule_of_the_paper_is_there(simulated):
    X, _, _ = simulated
    paper = MixtureClusterer(
        3, stopping="relative", tol=1e-3, acceleration=None, random_state=0
    ).fit(X)
    shares = np.diff(paper.trace_) / (paper.trace_[1:] - paper.trace_[0])
    assert shares[-1] < 1e-3
    assert (shares[:-1] >= 1e-3).all()
    assert paper.n_iter_ == len(paper.trace_)
    near = (paper.weights_, paper.probabilities_)
    again = clone(paper).set_params(init=near, tol=1e-2).fit(X)
    assert again.n_iter_ == 2  # not since the start, which is near the end
    cut_short = parse_abbreviation("thresh-0.01")
    assert cut_short is not None
    assert cut_short.parameters(paper) == {"tol": 0.01, "stopping": "relative"}


def test_warm_start_learns_new_values():
    X, z = clear_clusters()
    clusterer = MixtureClusterer(2, random_state=0, warm_start=True).fit(X)
    more = np.column_stack([np.where(z == 0, 5, X[:, 0]), X[:, 1:]])
    clusterer.fit(more)
    assert clusterer.categories_[0].tolist() == [0, 1, 5]
    assert clusterer.probabilities_[0].shape == (2, 3)
    assert adjusted_rand_score(z, clusterer.predict(more)) > 0.95


def test_batches_move_the_parameters():
    X, z = clear_clusters(2000)
    clusterer = MixtureClusterer(2, random_state=0)
    for start in range(0, 2000, 250):
        clusterer.partial_fit(X[start : start + 250])
    assert adjusted_rand_score(z, clusterer.predict(X)) > 0.95
    # The rows drift: nearly all are now of the first kind.
    share = clusterer.weights_[clusterer.predict([[0] * 8])[0]]
    for _ in range(20):
        clusterer.partial_fit(X[z == 0][:250])
    assert clusterer.weights_[clusterer.predict([[0] * 8])[0]] > share + 0.2


def test_interruption_warns_and_keeps(simulated, monkeypatch):
    from bayes_lcs.inference.em.e_step import LocalEStep

    X, _, _ = simulated
    taken, calls = LocalEStep.statistics, []

    def interrupted(self, requests):
        calls.append(1)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return taken(self, requests)

    monkeypatch.setattr(LocalEStep, "statistics", interrupted)
    with pytest.warns(InterruptedWarning, match="interrupted after 4 passes"):
        clusterer = MixtureClusterer(3, random_state=0).fit(X)
    assert not clusterer.converged_
    assert clusterer.predict(X).shape == (300,)


# What goes in -------------------------------------------------------------------------------------


def as_words(X):
    return np.array(["no", "yes"], dtype=object)[X]


def test_all_kinds_of_input_are_the_same_table():
    X, _ = clear_clusters()
    base = MixtureClusterer(2, random_state=0, max_iter=15).fit(X)
    words = as_words(X)
    kinds = {
        "bytes": X.astype(np.uint8),
        "floats": X.astype(float),
        "booleans": X.astype(bool),
        "objects": X.astype(object),
        "lists": X.tolist(),
        "words": words,
        "text": words.astype(str),
        "frame": pd.DataFrame(words).add_prefix("c"),
        "categories": pd.DataFrame(words).add_prefix("c").astype("category"),
        "nullable": pd.DataFrame(X).add_prefix("c").astype("Int64"),
        "arrow-like": pd.DataFrame(words).add_prefix("c").astype("string"),
        "sparse": csr_array(X),
        "sparse-matrix": csc_matrix(X),
    }
    for kind, given in kinds.items():
        found = MixtureClusterer(2, random_state=0, max_iter=15).fit(given)
        np.testing.assert_allclose(found.trace_, base.trace_, rtol=1e-12, err_msg=kind)
        np.testing.assert_allclose(
            found.score_samples(given), base.score_samples(X), rtol=1e-9, err_msg=kind
        )
        np.testing.assert_array_equal(found.predict(given), base.predict(X))


def test_missing_cells_tell_nothing():
    X, z = clear_clusters()
    rng = np.random.default_rng(1)
    holes = rng.random(X.shape) < 0.2
    floats = np.where(holes, np.nan, X)
    words = as_words(X)
    words[holes] = None
    marked = np.where(holes, -1, X)
    nullable = pd.DataFrame(X).add_prefix("c").astype("Int64").mask(holes)
    settings = {"random_state": 0, "max_iter": 15}
    base = MixtureClusterer(2, **settings).fit(floats)
    assert adjusted_rand_score(z, base.predict(floats)) > 0.8
    for given, missing in ((words, None), (marked, -1), (marked, [-1, 7]), (nullable, None)):
        found = MixtureClusterer(2, missing_values=missing, **settings).fit(given)
        np.testing.assert_allclose(found.trace_, base.trace_, rtol=1e-12)
        np.testing.assert_allclose(
            found.predict_proba(given), base.predict_proba(floats), atol=1e-9
        )
    # Without being told, -1 is a value.
    assert MixtureClusterer(2, **settings).fit(marked).categories_[0].tolist() == [-1, 0, 1]
    nothing = base.predict_proba([[np.nan] * 8])
    np.testing.assert_allclose(nothing[0], base.weights_)
    assert base.score_samples([[np.nan] * 8])[0] == pytest.approx(0.0, abs=1e-12)


def test_a_column_without_values_changes_nothing():
    X, _ = clear_clusters()
    empty = np.column_stack([X.astype(float), np.full(len(X), np.nan)])
    one = MixtureClusterer(2, random_state=0, prior=0, init="random").fit(X)
    two = MixtureClusterer(2, random_state=0, prior=0, init="random").fit(empty)
    assert two.probabilities_[8].tolist() == [[1.0], [1.0]]
    assert adjusted_rand_score(one.predict(X), two.predict(empty)) > 0.95


def test_values_never_seen():
    X, _ = clear_clusters()
    clusterer = MixtureClusterer(2, random_state=0).fit(X)
    new, missing = X[:5].astype(float), X[:5].astype(float)
    new[:, 3], missing[:, 3] = 9, np.nan
    with pytest.warns(bl.DataWarning, match=r"column 'x3' in 5 of 5 rows, for instance 9\.0"):
        scores = clusterer.score_samples(new)
    np.testing.assert_array_equal(scores, clusterer.score_samples(missing))
    strict = clone(clusterer).set_params(handle_unknown="error").fit(X)
    with pytest.raises(bl.DataError, match=r"row 0, column 'x3': unknown value"):
        strict.predict(new)
    strict.predict(missing)
    known = clone(clusterer).set_params(categories=[[0, 1, 9]] * 8).fit(X)
    assert known.probabilities_[0].shape == (2, 3)
    assert (known.probabilities_[3][:, 2] > 0).all()
    assert (known.score_samples(new) < known.score_samples(missing)).all()
    with pytest.raises(ValueError, match="categories lists 2 columns, but X has 8"):
        clone(clusterer).set_params(categories=[[0, 1]] * 2).fit(X)
    with pytest.raises(ValueError, match="distinct values"):
        clone(clusterer).set_params(categories=[[0, 0]] * 8).fit(X)


def test_what_maximum_likelihood_thinks_impossible():
    X = np.array([[0, 0, 1], [1, 1, 0], [1, 1, 1]] * 20)
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    start = [0.5, 0.5], [sure, sure, [[0.5, 0.5]] * 2]
    clusterer = MixtureClusterer(2, prior=0, init=start).fit(X)
    sparse = MixtureClusterer(2, prior=0, init=start).fit(csr_array(X))
    rows = [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    expected = clusterer.score_samples(rows)
    np.testing.assert_allclose(np.exp(expected), [1 / 3, 0.0, 1 / 3], rtol=1e-9)
    np.testing.assert_allclose(sparse.score_samples(csr_array(rows)), expected, rtol=1e-9)
    np.testing.assert_allclose(sparse.predict_proba(csr_array(rows)).sum(axis=1), 1.0)


def test_wrong_input_is_refused():
    X, _ = clear_clusters(20)
    with pytest.raises(bl.DataError, match="zeros and ones"):
        MixtureClusterer(2).fit(csr_array(3 * X))
    with pytest.raises(ValueError, match="two columns named 'a'"):
        MixtureClusterer(2).fit(pd.DataFrame(X[:, :2], columns=["a", "a"]))
    with pytest.raises(TypeError, match="strings or numbers"):
        MixtureClusterer(2).fit(np.array([[{}, 1], [{}, 2]], dtype=object))
    with pytest.raises(ValueError, match="n_samples"):
        MixtureClusterer(2).fit(X).sample(0)
    with pytest.raises(ValueError, match="'information' or 'bootstrap'"):
        MixtureClusterer(2).fit(X).standard_errors(X, method="guess")


# What comes out -----------------------------------------------------------------------------------


def test_rows_drawn_are_of_the_kind_that_went_in():
    X, _ = clear_clusters()
    words = MixtureClusterer(2, random_state=0).fit(as_words(X))
    rows, z = words.sample(500)
    assert set(rows.ravel()) == {"no", "yes"}
    assert (words.predict(rows) == z).mean() > 0.95
    numbers, _ = MixtureClusterer(2, random_state=0).fit(X.astype(np.int16)).sample(3)
    assert numbers.dtype == np.int64


def test_standard_errors_have_the_shape_of_what_they_are_errors_of(simulated):
    X, _ = clear_clusters()
    clusterer = MixtureClusterer(2, random_state=0, tol=1e-9).fit(X)
    weights, tables = clusterer.standard_errors(X)
    assert weights.shape == (2,)
    assert [t.shape for t in tables] == [t.shape for t in clusterer.probabilities_]
    # Clear clusters: nearly those of proportions.
    np.testing.assert_allclose(weights, np.sqrt(np.prod(clusterer.weights_) / 302), rtol=0.05)
    other, _ = clusterer.standard_errors(X, method="bootstrap", n_bootstrap=30, random_state=0)
    assert (np.abs(other / weights - 1) < 0.6).all()  # 30 fits: 13 per cent is one sigma


@pytest.mark.parametrize("method", ["information", "bootstrap"])
def test_standard_errors_with_probabilities_of_zero(method):
    """One cluster never has a value: the other errors are there all the same."""
    X, z = clear_clusters(400, seed=2)
    X[:, 0] = z
    clusterer = MixtureClusterer(2, prior=0.0, random_state=0).fit(X)
    weights, tables = clusterer.standard_errors(
        X,
        method=method,
        **({"n_bootstrap": 30, "random_state": 0} if method == "bootstrap" else {}),
    )
    np.testing.assert_allclose(
        weights, np.sqrt(np.prod(clusterer.weights_) / 400), rtol=0.05 if method[0] == "i" else 0.6
    )
    at_boundary = np.isnan(tables[0]) if method == "information" else tables[0] < 1e-6
    assert at_boundary.all()
    for table, errors in zip(clusterer.probabilities_[1:], tables[1:], strict=True):
        share = table[:, 0] * table[:, 1] / (400 * clusterer.weights_)
        np.testing.assert_allclose(
            errors[:, 0], np.sqrt(share), rtol=0.1 if method[0] == "i" else 0.6
        )


def test_saved_and_loaded_it_is_the_same(tmp_path):
    X, _ = clear_clusters()
    frame = pd.DataFrame(as_words(X)).add_prefix("$c<")
    clusterer = MixtureClusterer(2, random_state=0, missing_values="?").fit(frame)
    path = tmp_path / "mixture.nc"
    clusterer.save(path)
    again = MixtureClusterer.load(path)
    assert again.get_params() == bl.load(path).get_params() == clusterer.get_params()
    np.testing.assert_array_equal(again.predict_proba(frame), clusterer.predict_proba(frame))
    np.testing.assert_array_equal(again.trace_, clusterer.trace_)
    assert again.gap_ == clusterer.gap_
    assert again.feature_names_in_.tolist() == frame.columns.tolist()
    for one in (again, clusterer):
        one.partial_fit(frame[:100])
    np.testing.assert_array_equal(again.weights_, clusterer.weights_)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="checksum"):
        MixtureClusterer.load(path)


def test_files_of_versions_with_relative_tolerances_only_keep_them(tmp_path):
    X, _ = clear_clusters()
    MixtureClusterer(2, tol=1e-5, random_state=0).fit(X).save(tmp_path / "mixture.nc")
    tree = load_datatree(tmp_path / "mixture.nc")
    described = json.loads(tree.attrs["mixture"])
    del described["settings"]["stopping"], described["gap"]
    tree.attrs["mixture"] = json.dumps(described)
    again = mixture_from_tree(MixtureClusterer, tree)
    assert (again.stopping, again.tol, again.gap_) == ("relative", 1e-5, np.inf)


def test_dates_are_named_by_their_text(tmp_path):
    X, _ = clear_clusters(20)
    dates = np.array([pd.Timestamp(2020, 1, 1), pd.Timestamp(2021, 1, 1)], dtype=object)[X]
    clusterer = MixtureClusterer(2, random_state=0).fit(dates)
    assert clusterer.categories_[0].tolist() == ["2020-01-01", "2021-01-01"]
    clusterer.save(tmp_path / "mixture.nc")
    again = MixtureClusterer.load(tmp_path / "mixture.nc")
    np.testing.assert_array_equal(again.predict(dates), clusterer.predict(dates))


def test_its_plan_can_be_asked_for():
    X, _ = clear_clusters()
    clusterer = MixtureClusterer(2, random_state=0).fit(X)
    assert "300 rows" in repr(clusterer.plan_)
    assert clusterer.plan_.num_distinct < 300


def test_parameters_are_named_tuples():
    parameters = MixtureParameters(np.ones(1), np.ones((1, 1)))
    assert parameters.num_components == 1


@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_rows_may_stand_for_billions(precision):
    """Equal rows are merged, and their weights exceed 32 bits; without a prior nothing changes."""
    model = MultinomialMixture(schema=Schema(1, SIZES), num_components=2)
    rows, _, _ = model.simulate(300, 4)
    rows, weights = np.repeat(rows, 2, axis=0), np.full(600, 3e9)
    options = {"random_state": 0, "precision": precision, "prior": 0.0}
    one = MixtureClusterer(2, tol=1e-9, **options).fit(rows)
    many = MixtureClusterer(2, **options).fit(rows, sample_weight=weights)
    share = 1e-5 if precision == "double" else 1e-4
    np.testing.assert_allclose(many.weights_, one.weights_, rtol=share)
    assert many.log_likelihood_ / 3e9 == pytest.approx(one.log_likelihood_, rel=share)
