"""`SharedNaiveBayesClassifier`: scikit-learn's contract, and that it is the model it says it is."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import bayes_lcs as bl
from bayes_lcs import SharedNaiveBayesClassifier
from bayes_lcs.core.errors import DataNote, DataWarning
from bayes_lcs.data.binning import quantile_edges

EXACT = ("none", "complete", "clustered")
FAST_CHECKS = [SharedNaiveBayesClassifier(sharing) for sharing in EXACT]
# Exact with one group, so that checks are quick; the prototype model compiles for every shape.
SLOW_CHECKS = [SharedNaiveBayesClassifier("prototype", draws=20, chains=1)]
LEAST_CHECKS = 50


@parametrize_with_checks(FAST_CHECKS)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")  # 20 draws are what was asked for
@parametrize_with_checks(SLOW_CHECKS)
def test_the_contract_of_scikit_learn_when_sampled(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", FAST_CHECKS + SLOW_CHECKS, ids=lambda e: e.sharing)
def test_the_checks_are_there(estimator):
    names = [
        getattr(check, "func", check).__name__
        for _, check in estimator_checks_generator(estimator, legacy=True)
    ]
    assert len(names) >= LEAST_CHECKS  # 54 in scikit-learn 1.9
    assert {
        "check_classifiers_train",
        "check_dtype_object",
        "check_estimators_pickle",
        "check_methods_subset_invariance",
        "check_supervised_y_no_nan",
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
    check("SharedNaiveBayesClassifier", SharedNaiveBayesClassifier())


def users_table(seed=0, rows=12):
    """Four users; the last two decide the other way round than the first two."""
    rng = np.random.default_rng(seed)
    users = np.repeat(["ann", "bob", "cat", "dan"], rows)
    X = rng.integers(0, 3, (4 * rows, 3))
    y = np.where((X[:, 0] > 0) == np.isin(users, ["ann", "bob"]), "yes", "no")
    return X, y, users


MODELS = {
    "none": bl.NoSharing(label_prior=0.7, feature_prior=0.3),
    "complete": bl.CompleteSharing(label_prior=0.7, feature_prior=0.3),
    "clustered": bl.ClusteredNaiveBayes(label_prior=0.7, feature_prior=0.3, concentration=4.0),
}


# The same as the models ---------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", EXACT)
def test_it_is_the_exact_posterior_of_the_model(sharing):
    X, y, users = users_table()
    model = MODELS[sharing]
    table = bl.GroupedTable.from_arrays(X, y, users)
    expected = bl.exact(model, table).predict_proba(table)
    settings = {"label_prior": 0.7, "feature_prior": 0.3, "concentration": 4.0}
    for classifier in (
        SharedNaiveBayesClassifier(sharing, **settings),
        clone(SharedNaiveBayesClassifier(model)),
    ):
        found = classifier.fit(X, y, groups=users).predict_proba(X, groups=users)
        assert classifier.model_ == model
        assert classifier.table_.group_names == ("ann", "bob", "cat", "dan")
        assert classifier.diagnostics_.verdict == "exact"
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert classifier.classes_.tolist() == list(table.label_values)


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_sampling_uses_the_seed_and_the_prior():
    """One shape for everything sampled from the prototype model: compiling it takes seconds."""
    from bayes_lcs.inference.draw_posterior import draw_posterior

    X, y, users = users_table()
    prior = bl.Gamma(2.0, 0.5)
    settings = {"draws": 20, "chains": 1, "strength_prior": prior}
    first, again, other = (
        SharedNaiveBayesClassifier("prototype", **settings, random_state=seed)
        .fit(X, y, users)
        .predict_proba(X, users)
        for seed in (3, 3, 4)
    )
    assert (first == again).all()
    assert (first != other).any()
    table = bl.GroupedTable.from_arrays(X, y, users)
    model = bl.Prototype(strength_prior=prior)
    draws = draw_posterior(model, table, draws=20, chains=1, seed=3)
    np.testing.assert_allclose(first, draws.predict_proba(table), rtol=1e-12)

    drawn = [
        SharedNaiveBayesClassifier("prototype", **settings, random_state=np.random.RandomState(5))
        .fit(X, y, users)
        .predict_proba(X, users)
        for _ in range(2)
    ]
    assert (drawn[0] == drawn[1]).all()


def test_rows_without_a_label_are_sampled():
    X, y, users = users_table()
    classifier = SharedNaiveBayesClassifier("none", draws=50, chains=1)
    for missing, classes in ((None, ["no", "yes"]), (np.nan, [0.0, 1.0]), (None, [0, 1])):
        labels = np.array(classes, dtype=object)[(y == "yes").astype(int)]
        labels[::4] = missing
        if missing is not None:
            labels = labels.astype(float)
        with pytest.warns(bl.SamplingWarning, match="only draws=50, chains=1; draw") as caught:
            classifier.fit(X, labels, groups=users)
        kinds = [one.category for one in caught]
        assert kinds == [bl.DataNote, bl.SamplingWarning]
        assert str(caught[0].message).startswith("cells taken as missing: column 'y' ")
        assert {one.filename for one in caught} == {__file__}
        assert classifier.diagnostics_.verdict == "not converged"
        assert classifier.diagnostics_.ess < 400
        assert classifier.classes_.tolist() == classes
        assert classifier.classes_.dtype.kind == np.array(classes).dtype.kind or classes[0] == "no"
        assert classifier.posterior_.latent_probability.shape == (12, 2)
        right = classifier.predict(X, groups=users) == np.array(classes)[(y == "yes").astype(int)]
        assert right.mean() > 0.8
    with pytest.raises(bl.NotExactError, match="12 of 48 rows have no label"):
        clone(classifier).set_params(method="exact").fit(X, labels, groups=users)
    with pytest.raises(ValueError, match="every entry is missing"):
        classifier.fit(X, [None] * 48)


# Groups -------------------------------------------------------------------------------------------


def test_opposite_rules_are_learned_apart_unless_all_is_shared():
    X, y, users = users_table(rows=30)
    scores = {
        sharing: SharedNaiveBayesClassifier(sharing).fit(X, y, users).score(X, y, groups=users)
        for sharing in EXACT
    }
    assert scores["none"] > 0.95
    assert scores["clustered"] > 0.95
    assert scores["complete"] < 0.75


def test_clusters_help_a_group_of_which_little_is_known():
    X, y, users = users_table(rows=30)
    known = np.isin(users, ["ann", "bob", "cat"]) | (np.arange(len(users)) % 10 == 0)
    dan = users == "dan"
    scores = {
        sharing: SharedNaiveBayesClassifier(sharing)
        .fit(X[known], y[known], users[known])
        .score(X[dan], y[dan], groups=users[dan])
        for sharing in ("none", "clustered")
    }
    assert scores["clustered"] > 0.95
    assert scores["clustered"] > scores["none"]


@pytest.mark.parametrize("sharing", EXACT)
def test_a_group_never_seen(sharing):
    X, y, users = users_table()
    classifier = SharedNaiveBayesClassifier(sharing).fit(X, y, groups=users)
    new = classifier.predict_proba(X, groups=["eve"] * len(X))
    table = bl.GroupedTable.from_arrays(X, y, users)
    frame = table.to_frame().assign(group="eve").drop(columns="label")
    expected = bl.exact(classifier.model_, table).predict_proba(frame)
    np.testing.assert_allclose(new, expected, rtol=1e-12)
    # To say nothing about groups is to say that none of them is known.
    np.testing.assert_array_equal(classifier.predict_proba(X), new)
    own = classifier.predict_proba(X, groups=users)
    assert np.allclose(own, new) == (sharing == "complete")


def test_the_name_of_no_group_is_free():
    X, y, users = users_table()
    classifier = SharedNaiveBayesClassifier("none")
    plain = classifier.fit(X, y, users).predict_proba(X)
    renamed = np.where(users == "ann", "new", users)
    np.testing.assert_array_equal(classifier.fit(X, y, renamed).predict_proba(X), plain)


def test_groups_are_known_by_their_text():
    X, y, users = users_table()
    numbers = np.unique(users, return_inverse=True)[1]
    classifier = SharedNaiveBayesClassifier("none").fit(X, y, groups=numbers)
    expected = classifier.predict_proba(X, groups=numbers)
    for same in (numbers.astype(str), numbers.astype(float), numbers.astype(object)):
        np.testing.assert_array_equal(classifier.predict_proba(X, groups=same), expected)


def test_groups_lie_beside_the_rows_whatever_their_index():
    X, y, users = users_table()
    shuffled = np.random.default_rng(0).permutation(len(X))
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=shuffled)
    groups = pd.Series(users, index=shuffled[::-1], dtype="category")
    classifier = SharedNaiveBayesClassifier("none")
    expected = classifier.fit(X, y, users).predict_proba(X, users)
    found = classifier.fit(frame, pd.Series(y), groups).predict_proba(frame, groups)
    np.testing.assert_array_equal(found, expected)
    assert frame.columns.tolist() == ["a", "b", "c"]


def test_without_groups_there_is_one():
    X, y, _ = users_table()
    one = SharedNaiveBayesClassifier("none").fit(X, y)
    named = SharedNaiveBayesClassifier("none").fit(X, y, groups=[7] * len(X))
    np.testing.assert_array_equal(one.predict_proba(X), named.predict_proba(X, [7] * len(X)))
    with pytest.raises(ValueError, match="given to predict, but not to fit"):
        one.predict(X, groups=[7] * len(X))


# Columns ------------------------------------------------------------------------------------------


def test_a_frame_of_strings_categories_and_numbers():
    rng = np.random.default_rng(1)
    size = 60
    colour = rng.choice(["red", "green", "blue"], size)
    frame = pd.DataFrame(
        {
            "colour": colour,
            "size": pd.Categorical(rng.choice(["s", "m"], size), ["s", "m", "l"], ordered=True),
            "price": rng.normal(size=size),
            "count": rng.integers(0, 4, size),
            "label": rng.random(size) < 0.5,  # names that the table would have liked for itself
            "group": pd.array([1, None] * (size // 2), dtype="Int64"),
        }
    )
    y = np.where(colour == "red", "stop", "go")
    classifier = SharedNaiveBayesClassifier("complete").fit(frame, y)
    assert classifier.score(frame, y) == 1.0
    assert classifier.feature_names_in_.tolist() == list(frame)
    assert classifier.table_.feature_names == tuple(frame)
    values = dict(zip(frame, classifier.table_.values, strict=True))
    assert values["colour"] == ("blue", "green", "red")
    assert values["size"] == ("s", "m")
    assert len(values["price"]) == 5
    assert values["count"] == ("0", "1", "2", "3")
    assert values["label"] == ("False", "True")
    assert values["group"] == ("1",)
    # The same cells as objects in an array, and in lists, say the same.
    frame = frame.assign(size=frame["size"].astype(str))
    expected = classifier.fit(frame, y).predict_proba(frame)
    cells = frame.astype(object).to_numpy()
    cells[pd.isna(cells)] = None
    for same in (cells, cells.tolist()):
        other = SharedNaiveBayesClassifier("complete").fit(same, y)
        np.testing.assert_array_equal(other.predict_proba(same), expected)


def test_numbers_are_cut_at_training_quantiles():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    X[::7, 0] = np.nan
    y = X[:, 1] > 0
    classifier = SharedNaiveBayesClassifier("complete", bins=4).fit(X, y)
    for column in range(2):
        edges = quantile_edges(X[:, column], 4)
        assert classifier.table_.edges[column] == edges
        codes = np.searchsorted(edges, X[:, column], side="right")
        codes[np.isnan(X[:, column])] = -1
        np.testing.assert_array_equal(classifier.table_.features[:, column], codes)
    far = classifier.predict_proba([[0.0, -np.inf], [0.0, X[:, 1].min()], [0.0, X[:, 1].max()]])
    assert (far[0] == far[1]).all()
    assert (classifier.predict_proba([[0.0, 1e9]]) == far[2]).all()


@pytest.mark.parametrize(
    ("column", "bins", "num_values"),
    [
        (np.arange(40) % 20, 5, 20),  # whole numbers are codes while they are few
        (np.arange(40) % 21, 5, 5),
        (np.where(np.arange(40) < 3, np.nan, np.arange(40) % 10), 5, 10),
        (np.arange(40) % 5 + 0.5, 5, 5),
        (np.arange(40) % 6 + 0.5, 5, 5),
        (np.arange(40) + 0.5, None, 40),
        (np.arange(40), 30, 30),
        (np.arange(40) % 30, 30, 30),
        (pd.Categorical(np.arange(40)), 5, 40),
        (np.arange(40).astype(str), 5, 40),
        (np.append(np.full(39, 0.5), np.inf), 5, 2),
    ],
)
def test_which_columns_are_cut(column, bins, num_values):
    frame = pd.DataFrame({"column": column})
    classifier = SharedNaiveBayesClassifier(bins=bins).fit(frame, np.arange(40) % 2)
    assert classifier.table_.num_values == (num_values,)
    assert bool(classifier.table_.edges[0]) == (num_values == bins and len(set(column)) > bins)


def test_missing_and_unseen_values_tell_nothing():
    X = np.array([["a", "u"], ["b", "v"], ["a", None], [None, "v"]] * 5, dtype=object)
    y = np.array([0, 1, 0, 1] * 5)
    classifier = SharedNaiveBayesClassifier("none").fit(X, y)
    with pytest.warns(DataWarning, match=r"column 'x1' 1 cell \('w'\)"):
        known, missing, unseen, nothing = classifier.predict_proba(
            [["a", "u"], ["a", None], ["a", "w"], [np.nan, "?"]]
        )
    assert (missing == unseen).all()
    assert (known != missing).any()
    np.testing.assert_allclose(nothing, [0.5, 0.5])  # the labels are balanced


def test_a_column_with_nothing_in_it():
    X, y, users = users_table()
    empty = np.column_stack([X, np.full(len(X), np.nan)])
    classifier = SharedNaiveBayesClassifier()
    expected = classifier.fit(X, y, users).predict_proba(X, users)
    with pytest.warns(DataWarning, match=r"column 'x3' 48 cells \('0'\)"):
        found = classifier.fit(empty, y, users).predict_proba(np.nan_to_num(empty), users)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# Labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels", [["9", "10"], [9, 10], [-1.0, 2.0], [False, True], ["b", "a"], ["naan", "None"]]
)
def test_columns_follow_the_classes(labels):
    """Text sorts "10" before "9", numbers do not."""
    y = np.array(labels * 10)
    X = np.array([["x"], ["y"]] * 10)
    classifier = SharedNaiveBayesClassifier().fit(X, y)
    assert classifier.classes_.tolist() == sorted(labels)
    assert classifier.predict(X).tolist() == y.tolist()
    assert classifier.predict(X).dtype == y.dtype


def test_one_class_is_certain():
    classifier = SharedNaiveBayesClassifier().fit([["a"], ["b"]], ["only", "only"])
    assert classifier.predict([["a"]]).tolist() == ["only"]
    assert classifier.predict_proba([["a"]]).tolist() == [[1.0]]


# Kinds of input -----------------------------------------------------------------------------------


def visits():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "shop": rng.choice(["NA", "ulm", "bonn"], 60),
            "size": rng.integers(1, 4, 60),
            "town": rng.choice(["x", "y", "?"], 60),
            "flag": rng.random(60) < 0.5,
        }
    )
    frame["buys"] = (frame["size"] > 1).astype(int)
    return frame


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataNote")
def test_frames_and_files_are_fitted_and_predicted_alike(tmp_path):
    frame = visits()
    X = frame.drop(columns=["buys", "shop"])
    classifier = SharedNaiveBayesClassifier("none").fit(X, frame["buys"], groups=frame["shop"])
    expected = classifier.predict_proba(X, groups=frame["shop"])
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.table_.typed_label_values.tolist() == [0, 1]
    assert "NA" in classifier.table_.group_names
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    kept = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
    sources = [tmp_path / "t.csv", str(tmp_path / "t.parquet"), pa.Table.from_pandas(frame), kept]
    try:
        import polars as pl
    except ImportError:
        pass
    else:
        sources += [pl.from_pandas(frame)]
    for source in sources:
        other = SharedNaiveBayesClassifier("none").fit(source, "buys", groups="shop")
        assert other.classes_.dtype == np.int64
        assert other.n_features_in_ == 3
        for rows in sources:
            np.testing.assert_array_equal(other.predict_proba(rows), expected)
            assert (
                other.predict(rows, groups="shop") == classifier.predict(X, frame["shop"])
            ).all()
            assert other.score(rows, "buys") == other.score(X, frame["buys"], groups=frame["shop"])


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataNote")
def test_columns_named_by_integers():
    frame = visits()
    expected = SharedNaiveBayesClassifier("none").fit(frame, "buys", groups="shop")
    numbered = frame.set_axis(range(5), axis=1)
    found = SharedNaiveBayesClassifier("none").fit(numbered, 4, groups=0)
    np.testing.assert_array_equal(found.predict_proba(numbered), expected.predict_proba(frame))
    with pytest.raises(bl.DataError, match="column 'shpo': there is no such column; did you mean"):
        expected.predict(frame, groups="shpo")


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataNote")
@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_missing_values_by_column():
    frame = visits().astype({"buys": str})
    classifier = SharedNaiveBayesClassifier("none", missing_values={"buys": ["0"], "size": [3]})
    classifier.fit(frame, "buys", groups="shop")
    assert classifier.classes_.tolist() == ["1"]
    assert classifier.table_.values == (("1", "2"), ("x", "y"), ("False", "True"))


def test_polars_and_arrow_columns_are_labels_and_groups():
    frame = visits()
    X, y, groups = frame[["size", "flag"]], frame["buys"], frame["shop"]
    expected = SharedNaiveBayesClassifier("none").fit(X, y, groups).predict(X, groups)
    for make in (pa.array, lambda column: pytest.importorskip("polars").Series(column.tolist())):
        found = SharedNaiveBayesClassifier("none").fit(X, make(y), make(groups))
        assert found.predict(X, make(groups)).tolist() == expected.tolist()


def test_markers_are_missing_unless_told_otherwise():
    X = [["NA", "a"], ["EU", "b"]] * 10
    y = ["yes", "?"] * 10
    with pytest.warns() as caught:
        classifier = SharedNaiveBayesClassifier("complete", draws=400).fit(X, y)
    notes = [str(warning.message) for warning in caught if warning.category is DataNote]
    assert [note.split("; ")[0] for note in notes] == [
        "cells taken as missing: column 'y' 10 '?'",
        "cells taken as missing: column 'x0' 10 'NA'",
    ]
    assert classifier.classes_.tolist() == ["yes"]
    classifier = SharedNaiveBayesClassifier("complete", missing_values=[""]).fit(X, y)
    assert classifier.classes_.tolist() == ["?", "yes"]
    assert classifier.table_.values[0] == ("EU", "NA")


# Searches, copies, errors -------------------------------------------------------------------------


def test_groups_pass_through_cross_validation():
    X, y, users = users_table(rows=30)
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = (
            SharedNaiveBayesClassifier().set_fit_request(groups=True).set_score_request(groups=True)
        )
        folds = KFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(classifier, {"sharing": ["complete", "none"]}, cv=folds)
        search.fit(X, y, groups=users)
        assert search.best_params_ == {"sharing": "none"}
        assert search.best_score_ > 0.9
        known = search.best_estimator_.predict(X, groups=users)
        assert (known == y).mean() > 0.95

        # A new group in every fold: what `predict` without groups is for.
        found = cross_val_predict(
            classifier, X, y, cv=GroupKFold(4), params={"groups": users}, method="predict_proba"
        )
    expected = np.empty((len(X), 2))
    for train, test in GroupKFold(4).split(X, y, users):
        fold = SharedNaiveBayesClassifier().fit(X[train], y[train], users[train])
        expected[test] = fold.predict_proba(X[test], users[test])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_it_survives_a_pickle():
    X, y, users = users_table()
    classifier = SharedNaiveBayesClassifier(bl.ClusteredNaiveBayes(concentration=2.0))
    expected = classifier.fit(X, y, users).predict_proba(X, users)
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X, users), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sharing": "some"}, "'sharing' parameter .*'clustered'.* Got 'some' instead"),
        ({"label_prior": 0.0}, "'label_prior' parameter"),
        ({"feature_prior": -1.0}, "'feature_prior' parameter"),
        ({"concentration": 0}, "'concentration' parameter"),
        ({"strength_prior": 1.0}, "'strength_prior' parameter"),
        ({"bins": 1}, "'bins' parameter"),
        ({"method": "guess"}, "'method' parameter"),
        ({"draws": 0}, "'draws' parameter"),
        ({"chains": 0}, "'chains' parameter"),
        ({"label_prior": [1.0, 1.0, 1.0]}, "one for each of the 2 labels"),
        ({"sharing": "prototype", "method": "exact"}, "Prototype has no exact posterior"),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SharedNaiveBayesClassifier(**settings).fit([[0], [1]], [0, 1])


def test_rows_that_are_refused():
    X, y, users = users_table()
    classifier = SharedNaiveBayesClassifier()
    with pytest.raises(ValueError, match=r"each of the 48 rows, got shape \(47,\)"):
        classifier.fit(X, y, groups=users[1:])
    with pytest.raises(TypeError, match="groups must be a list"):
        classifier.fit(X, y, groups="users")
    with pytest.warns(DataWarning, match="1 row without a group is left out"):
        classifier.fit(X[:3], y[:3], groups=["ann", None, "bob"])
    assert classifier.table_.group_names == ("ann", "bob")
    with pytest.raises(bl.DataError, match="row 1, column 'group': the row has no group"):
        classifier.predict(X[:3], groups=["ann", None, "bob"])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[48, 47\]"):
        classifier.fit(X, y[1:])
    with pytest.raises(ValueError, match="two columns named 'a'"):
        classifier.fit(pd.DataFrame(X, columns=["a", "b", "a"]), y)
    with pytest.raises(TypeError, match=r"column 'a': .* a cell holds list"):
        classifier.fit(pd.DataFrame({"a": [[1], [2]]}), [0, 1])
    classifier.fit(X, y, users)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        classifier.predict(X[:, :2], users)
    with pytest.raises(ValueError, match=r"each of the 48 rows, got shape \(48, 1\)"):
        classifier.predict(X, users[:, None])
