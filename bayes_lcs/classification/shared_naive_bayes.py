"""Naive Bayes for rows that come in groups, as a scikit-learn classifier.

The classifier is a thin coat: it codes ``X``, ``y`` and ``groups`` as a `GroupedTable`, conditions
one of the four sharing models on it (`bayes_lcs.inference.conditioning`), and averages predictions
over the whole posterior. Nothing is plugged in: neither a partition nor parameters are estimated
on the way.
"""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from bayes_lcs.core.priors import Gamma
from bayes_lcs.data.assemble import MANY_VALUES
from bayes_lcs.data.columns import value_name
from bayes_lcs.data.table import GroupedTable
from bayes_lcs.inference.conditioning import condition
from bayes_lcs.inference.diagnostics import judge, warn_of_fits
from bayes_lcs.models.clustered import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.feature_prior import NaiveBayesPrior
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype

__all__ = ["SharedNaiveBayesClassifier"]

FloatArray = NDArray[np.float64]

MODELS: dict[str, type[NaiveBayesPrior]] = {
    "none": NoSharing,
    "complete": CompleteSharing,
    "prototype": Prototype,
    "clustered": ClusteredNaiveBayes,
}


class SharedNaiveBayesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes whose groups share what they know: nothing, everything, or what the data say.

    Every row belongs to a group: a user, a shop, a site. Each group may follow a rule of its own,
    and ``sharing`` says what one group tells about another. A prediction is an average over the
    posterior of everything unknown.

    Parameters
    ----------
    sharing : {"none", "complete", "prototype", "clustered"} or model object, default="clustered"
        - ``"none"``: every group learns from its own rows alone (`NoSharing`);
        - ``"complete"``: groups are ignored, all rows are one group (`CompleteSharing`);
        - ``"prototype"``: every group is a noisy copy of one prototype (`Prototype`);
        - ``"clustered"``: unknown clusters of groups share one rule (`ClusteredNaiveBayes`).

        A model object has its own hyper-parameters, and those below are then not looked at.
    label_prior : float or array-like, default=1.0
        Dirichlet parameters of the labels: a number, or one number a class.
    feature_prior : float, array-like or Gamma, default=1.0
        Dirichlet parameters of the feature values. With a `Gamma` one number is learned.
    concentration : float or Gamma, default=1.0
        Of ``"clustered"``: the larger, the more clusters are expected.
    strength_prior : Gamma, default=None
        Of ``"prototype"``: the prior of how close groups are to it; None takes that of `Prototype`.
    bins : int, default=5
        A column of numbers is cut at so many quantiles of the training rows if it holds more
        different numbers than bins and some are not whole, or more than 20 whole ones (or more
        than ``bins``, if that is larger). In other columns each number is a value of its own, and
        with None in all. Columns of strings or of a categorical dtype are never cut.
    method : {"auto", "exact", "sample"}, default="auto"
        How the posterior is found; ``"auto"`` samples only where there is no fast exact answer.
    draws, chains : int, default=1000, 2
        Draws kept in each chain, and chains, where the posterior is sampled.
    random_state : int, RandomState instance or None, default=0
        Seed of the sampler. Exact answers do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted, in the order of the columns of `predict_proba`.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if all are strings.
    model_ : NoSharing, CompleteSharing, Prototype or ClusteredNaiveBayes
        The model.
    table_ : GroupedTable
        The training rows as they were coded: names, bins, groups.
    posterior_ : ExactPosterior or PosteriorDraws
        The model given the table. An exact one has ``log_evidence`` and ``coclustering()``.
    diagnostics_ : Convergence
        Whether the draws can be trusted: ``verdict``, which is ``"exact"`` where nothing was
        drawn, the worst R-hat ``rhat``, the fewest effective draws ``ess``, and both of every
        quantity in ``quantities``.

    Notes
    -----
    None and NaN in ``X`` are missing, and missing cells tell nothing; so is a value never seen
    in training. Infinities fall into the outermost bins.

    None and NaN in ``y`` are labels to be found: such rows still teach what feature values occur
    together. Posteriors with missing labels are always sampled.

    Groups have the names that their text gives them, as in every `GroupedTable`: 7, 7.0 and "7"
    are the same group.

    With scikit-learn's metadata routing on, ``set_fit_request(groups=True)`` and
    ``set_score_request(groups=True)`` let searches and cross-validation hand the groups through.
    `sklearn.model_selection.cross_val_predict` hands none to `predict`, so that it asks about new
    groups.

    See Also
    --------
    bayes_lcs.sample : The same posterior with diagnostics and decisions under any loss.

    Examples
    --------
    Bob decides the other way round than Ann and Cat. Each is understood, and Cat, of whom little
    is known, is taken for one like Ann.

    >>> import bayes_lcs as bl
    >>> X = [["work"], ["play"]] * 17
    >>> y = ["yes", "no"] * 8 + ["no", "yes"] * 8 + ["yes", "no"]
    >>> users = ["ann"] * 16 + ["bob"] * 16 + ["cat"] * 2
    >>> classifier = bl.SharedNaiveBayesClassifier(sharing="clustered").fit(X, y, groups=users)
    >>> classifier.predict([["work"]] * 3, groups=["ann", "bob", "cat"]).tolist()
    ['yes', 'no', 'yes']
    >>> classifier.classes_.tolist(), classifier.posterior_.map_partition().tolist()
    (['no', 'yes'], [0, 1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sharing": [StrOptions(set(MODELS)), NaiveBayesPrior],
        "label_prior": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "feature_prior": [Interval(Real, 0, None, closed="neither"), "array-like", Gamma],
        "concentration": [Interval(Real, 0, None, closed="neither"), Gamma],
        "strength_prior": [Gamma, None],
        "bins": [Interval(Integral, 2, None, closed="left"), None],
        "method": [StrOptions({"auto", "exact", "sample"})],
        "draws": [Interval(Integral, 1, None, closed="left")],
        "chains": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        sharing: str | NaiveBayesPrior = "clustered",
        *,
        label_prior: float | ArrayLike = 1.0,
        feature_prior: float | ArrayLike | Gamma = 1.0,
        concentration: float | Gamma = 1.0,
        strength_prior: Gamma | None = None,
        bins: int | None = 5,
        method: str = "auto",
        draws: int = 1000,
        chains: int = 2,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.sharing = sharing
        self.label_prior = label_prior
        self.feature_prior = feature_prior
        self.concentration = concentration
        self.strength_prior = strength_prior
        self.bins = bins
        self.method = method
        self.draws = draws
        self.chains = chains
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> SharedNaiveBayesClassifier:
        """Condition the model on labelled rows.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Numbers, strings or categories; None and NaN are missing.
        y : array-like of shape (n_samples,)
            Labels; None and NaN are missing.
        groups : array-like of shape (n_samples,), default=None
            The group of each row. None puts all rows in one group.

        Returns
        -------
        self : SharedNaiveBayesClassifier
            The fitted classifier.

        Warns
        -----
        SamplingWarning
            Where the posterior was sampled and R-hat exceeds 1.01, effective draws are below 400,
            or a diagnosed quantity never varied.
        """
        self._validate_params()
        frame = self._frame(X, reset=True)
        classes, labels = _code_labels(y)
        check_consistent_length(frame, labels)
        names = tuple(value_name(label) for label in classes)
        label, group = (_free_name(name, frame.columns) for name in ("label", "group"))
        features = list(map(str, frame.columns))
        measured = [name for name in features if self._is_measured(frame[name])]
        # A column without a single value gets one that never occurs, and then tells nothing.
        empty = [name for name in features if frame[name].isna().all()]
        columns = {
            label: np.array([*names, None], dtype=object)[labels],
            group: "all" if groups is None else _group_column(groups, len(frame)),
        }
        table = GroupedTable.from_frame(
            frame.assign(**columns),
            group=group,
            label=label,
            missing_values=(),
            bins=dict.fromkeys(measured, self.bins) if self.bins is not None else None,
            values=dict.fromkeys(empty, ("missing",)),
            label_values=names,
            categorical=True,
        )
        model = self._model()
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        posterior = condition(
            model,
            table,
            method=self.method,  # type: ignore[arg-type]
            draws=self.draws,
            chains=self.chains,
            seed=int(seed),
            progress=False,
        )
        self.classes_, self.model_, self.table_, self.posterior_ = classes, model, table, posterior
        self.diagnostics_ = judge(posterior)
        warn_of_fits({"the fit": self.diagnostics_}, self.draws, self.chains)
        self._has_groups = groups is not None
        return self

    def predict_proba(self, X: Any, groups: Any = None) -> FloatArray:
        """Probability of each label for each row, averaged over the posterior.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows, with the columns of the training rows. A value never seen is missing.
        groups : array-like of shape (n_samples,), default=None
            The group of each row; one not seen in `fit` is predicted as a new group. None means
            the one group there is if `fit` had no groups, and otherwise that no group is known:
            all rows are of new groups.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        frame = self._frame(X, reset=False)
        column: Any
        if groups is None:
            known = self.table_.group_names
            column = _free_name("new", known) if self._has_groups else known[0]
        elif not self._has_groups:
            raise ValueError(
                "groups were given to predict, but not to fit, so none is known; give them to "
                "both or to neither"
            )
        else:
            column = _group_column(groups, len(frame))
        rows = frame.assign(**{self.table_.group_name: column})
        return self.posterior_.predict_proba(rows)

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """The most probable label of each row.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows, as in `predict_proba`.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, as in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of ``classes_``.
        """
        best = self.predict_proba(X, groups).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Share of rows whose label is predicted.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows, as in `predict_proba`.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, as in `predict_proba`.

        Returns
        -------
        float
            Accuracy.
        """
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # `string` stays off, as it does in scikit-learn's encoders: strings are welcome, but the
        # tag promises that any other object is too.
        tags.input_tags.allow_nan = True
        return tags

    def _model(self) -> NaiveBayesPrior:
        if not isinstance(self.sharing, str):
            return self.sharing
        settings = {"label_prior": self.label_prior, "feature_prior": self.feature_prior}
        if self.sharing == "clustered":
            settings["concentration"] = self.concentration
        elif self.sharing == "prototype" and self.strength_prior is not None:
            settings["strength_prior"] = self.strength_prior
        return MODELS[self.sharing](**settings)

    def _frame(self, X: Any, *, reset: bool) -> pd.DataFrame:
        """``X`` as a frame with named columns, each of numbers only or of anything."""
        if isinstance(X, pd.DataFrame):
            if X.columns.has_duplicates:
                twice = X.columns[X.columns.duplicated()][0]
                raise ValueError(f"X has two columns named {twice!r}; rename one")
            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = X.reset_index(drop=True)
        else:
            # In a list, NumPy would turn None and NaN beside strings into strings.
            dtype = None if hasattr(X, "__array__") else object
            frame = pd.DataFrame(
                validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite=False)
            )
        frame.columns = getattr(
            self, "feature_names_in_", [f"x{column}" for column in range(self.n_features_in_)]
        )
        frame = frame.infer_objects()
        for name, cells in frame.items():
            kinds = {type(cell) for cell in cells} if _kind(cells) == "O" else ()
            for kind in kinds:
                if kind.__hash__ is None:
                    raise TypeError(
                        f"column {name!r}: the argument must be made of strings or numbers, but a "
                        f"cell holds {kind.__name__}"
                    )
        return frame

    def _is_measured(self, column: pd.Series[Any]) -> bool:
        """Whether the numbers of a column are to be cut into bins; `bins` says when."""
        if self.bins is None or _kind(column) not in "iuf":
            return False
        numbers = column.dropna().unique().astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        whole = bool((numbers == np.floor(numbers)).all())
        return len(numbers) > (max(MANY_VALUES, self.bins) if whole else self.bins)


def _kind(column: pd.Series[Any]) -> str:
    """NumPy's letter for the kind of data; "O" for strings, categories and anything mixed."""
    return str(getattr(column.dtype, "kind", "O"))


def _code_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes, and each label as an index into them; -1 is missing."""
    if y is None:
        raise ValueError(
            "SharedNaiveBayesClassifier requires y to be passed, but the target y is None"
        )
    labels = column_or_1d(y, warn=True)
    known = ~pd.isna(labels)
    if not known.any():
        raise ValueError("y has no label: every entry is missing")
    if not known.all():
        # What is left of an array of objects may be numbers, which NumPy sorts and checks.
        seen = pd.Series(labels[known]).infer_objects().to_numpy()
    else:
        seen = labels
    assert_all_finite(seen, input_name="y")
    check_classification_targets(seen)
    codes = np.full(labels.shape, -1, dtype=np.int64)
    classes, codes[known] = np.unique(seen, return_inverse=True)
    return classes, codes


def _group_column(groups: Any, num_rows: int) -> pd.Series[Any]:
    """The groups as a column that lies beside the rows, whatever index they came with."""
    if isinstance(groups, str) or not hasattr(groups, "__len__"):
        raise TypeError(f"groups must be a list with one entry a row, got {groups!r}")
    if np.ndim(groups) != 1 or len(groups) != num_rows:
        raise ValueError(
            f"groups must have one entry for each of the {num_rows} rows, got shape "
            f"{np.shape(groups)}"
        )
    return pd.Series(groups).reset_index(drop=True)


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
