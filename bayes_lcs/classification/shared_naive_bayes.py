"""Naive Bayes classifier for grouped rows, with the interface of scikit-learn.

The classifier is a thin wrapper: it encodes ``X``, ``y`` and ``groups`` as a `GroupedTable`,
conditions one of the four sharing models on it (`bayes_lcs.inference.condition`), and averages
predictions over the whole posterior, without point estimates of the partition or of parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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

from bayes_lcs.core.errors import DataError
from bayes_lcs.core.priors import Gamma
from bayes_lcs.data.build_table import MAX_CATEGORY_NUMBERS, build_table
from bayes_lcs.data.column_source import open_columns
from bayes_lcs.inference.condition import condition
from bayes_lcs.inference.diagnostics import judge, warn_of_fits
from bayes_lcs.io.column_types import value_name
from bayes_lcs.io.frames import read_frame, set_index_aside
from bayes_lcs.io.open_tables import is_streamed, open_tables
from bayes_lcs.io.options import MissingRule, MissingValues, Notes, missing_rules, require_column
from bayes_lcs.models.base import NaiveBayesPrior
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
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
    """Naive Bayes for grouped rows, with no, complete or inferred sharing between groups.

    Every row belongs to a group, such as a user, a shop or a site. Each group may have its own
    distribution, and ``sharing`` defines how groups inform each other. Predictions are averages
    over the posterior of all unknowns.

    Parameters
    ----------
    sharing : {"none", "complete", "prototype", "clustered"} or model object, default="clustered"
        - ``"none"``: every group learns from its own rows only (`NoSharing`);
        - ``"complete"``: groups are ignored, all rows are one group (`CompleteSharing`);
        - ``"prototype"``: every group is a noisy copy of one prototype (`Prototype`);
        - ``"clustered"``: unknown clusters of groups share their parameters
          (`ClusteredNaiveBayes`).

        A model object has its own hyper-parameters; those below are then ignored.
    label_prior : float or array-like, default=1.0
        Dirichlet parameters of the labels: a number, or one number per class.
    feature_prior : float, array-like or Gamma, default=1.0
        Dirichlet parameters of the feature values. With a `Gamma` prior, one number is inferred.
    concentration : float or Gamma, default=1.0
        CRP concentration of ``"clustered"``; larger values favour more clusters.
    strength_prior : Gamma, default=None
        Prior of ``"prototype"`` on how close groups are to the prototype; None is the default of
        `Prototype`.
    bins : int, default=5
        Number of quantile bins of numeric columns. A column is binned if it has more distinct
        numbers than bins and some are not integers, or more than 20 distinct integers (or more
        than ``bins``, if that is larger). In other columns, and with None in all, each number is a
        category. Columns of strings or of a categorical dtype are never binned.
    missing_values : list or dict, default=None
        Markers of missing values in ``X`` and ``y``, or a dict from column to markers; None is the
        default of `bayes_lcs.read_grouped`.
    method : {"auto", "exact", "sample"}, default="auto"
        Inference method; ``"auto"`` samples only if there is no fast exact posterior.
    draws, chains : int, default=1000, 2
        Number of draws per chain and of chains, if the posterior is sampled.
    random_state : int, RandomState instance or None, default=0
        Seed of the sampler. Exact posteriors do not depend on it.

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
        The encoded training rows with names, bins and groups.
    posterior_ : ExactPosterior or PosteriorDraws
        The model given the table. An exact one has ``log_evidence`` and ``coclustering()``.
    diagnostics_ : Convergence
        Convergence diagnostics: ``verdict``, which is ``"exact"`` if nothing was sampled, the
        largest R-hat ``rhat``, the smallest effective sample size ``ess``, and both for every
        quantity in ``quantities``.

    Notes
    -----
    Missing cells of ``X`` are integrated out: None, NaN, empty cells and the markers NA, N/A, NaN,
    NULL and ?, in upper or lower case. A value never seen in training is treated as missing, with a
    warning. Infinities fall into the outermost bins.

    Missing labels in ``y`` are latent variables: such rows still inform about which feature values
    occur together. Posteriors with missing labels are always sampled.

    Groups are identified by their text, as in every `GroupedTable`: 7, 7.0 and "7" are the same
    group.

    With scikit-learn's metadata routing enabled, ``set_fit_request(groups=True)`` and
    ``set_score_request(groups=True)`` let searches and cross-validation pass the groups on.
    `sklearn.model_selection.cross_val_predict` passes none to `predict`, which then predicts for
    new groups.

    See Also
    --------
    bayes_lcs.sample : The same posterior with diagnostics and decisions under any loss.

    Examples
    --------
    Bob decides opposite to Ann and Cat. All are predicted correctly, and Cat, who has few rows, is
    assigned to the cluster of Ann.

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

    takes_text_columns: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sharing": [StrOptions(set(MODELS)), NaiveBayesPrior],
        "label_prior": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "feature_prior": [Interval(Real, 0, None, closed="neither"), "array-like", Gamma],
        "concentration": [Interval(Real, 0, None, closed="neither"), Gamma],
        "strength_prior": [Gamma, None],
        "bins": [Interval(Integral, 2, None, closed="left"), None],
        "missing_values": ["array-like", dict, None],
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
        missing_values: MissingValues = None,
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
        self.missing_values = missing_values
        self.method = method
        self.draws = draws
        self.chains = chains
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> SharedNaiveBayesClassifier:
        """Condition the model on labelled rows.

        Parameters
        ----------
        X : DataFrame, array-like of shape (n_samples, n_features) or path
            Numbers, strings or categories: a pandas, polars or Arrow frame, an array, or the path
            of a CSV or Parquet file. Missing cells are those of `bayes_lcs.read_grouped`. A first
            column without a name is an index and ignored.
        y : array-like of shape (n_samples,) or column name
            Labels; missing ones are allowed. If ``X`` is a frame or a path, also a column name.
        groups : array-like of shape (n_samples,) or column name, default=None
            The group of each row. None puts all rows into one group. Rows without a group are
            dropped with a warning.

        Returns
        -------
        self : SharedNaiveBayesClassifier
            The fitted classifier.

        Warns
        -----
        SamplingWarning
            If the posterior was sampled and R-hat exceeds 1.01, the effective sample size is below
            400, or a diagnosed quantity never varied.
        DataWarning
            If rows without a group are dropped.
        """
        self._validate_params()
        roles = {"y": y, "groups": groups}
        self._columns_by_name = {role: name for role, name in roles.items() if _is_name(name)}
        is_read = is_streamed(X)  # missing cells were reported by the reader
        X, y, groups = self._split(X, y, groups)
        frame = self._frame(X, reset=True)
        label, group = (_free_name(name, frame.columns) for name in ("label", "group"))
        features = list(map(str, frame.columns))
        given = self.missing_values
        if isinstance(given, Mapping):
            names = {
                **{name: name for name in features},
                str(self._columns_by_name.get("y")): label,
            }
            given = {names[str(name)]: given[name] for name in given if str(name) in names}
        rules = missing_rules(given, [*features, label], [*features, label], DataError)
        is_noted = is_read and "y" in self._columns_by_name
        classes, labels = _encode_labels(y, rules[label], is_noted)
        check_consistent_length(frame, labels)
        values = _label_values(classes)
        binned = [name for name in features if self._is_binned(frame[name])]
        # An empty column gets a category that never occurs, and then has no influence.
        empty = [name for name in features if _is_empty(frame[name], rules[name])]
        columns = {
            label: np.array([*values, None], dtype=object)[labels],
            group: "all" if groups is None else _group_column(groups, len(frame)),
        }
        table = build_table(
            open_columns(frame.assign(**columns)),
            group=group,
            label=label,
            missing_values=given,
            bins=dict.fromkeys(binned, self.bins) if self.bins is not None else None,
            values=dict.fromkeys(empty, ("missing",)),
            label_values=values,
            categorical=True,
            noted=[label, *(features if is_read else ())],
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
        """Return the probability of each label for each row, averaged over the posterior.

        Parameters
        ----------
        X : DataFrame, array-like of shape (n_samples, n_features) or path
            Rows with the columns of the training rows. Values never seen in training are treated
            as missing, with a warning.
        groups : array-like of shape (n_samples,) or column name, default=None
            The group of each row; a group not seen in `fit` is predicted as a new group. None is
            the column that was named in `fit`; without one, all rows belong to the single group if
            `fit` had no groups, and otherwise to new groups.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        X, _, groups = self._split(X, None, groups, reset=False)
        frame = self._frame(X, reset=False)
        column: Any
        if groups is None:
            known = self.table_.group_names
            column = _free_name("new", known) if self._has_groups else known[0]
        elif not self._has_groups:
            raise ValueError(
                "groups were given to predict, but not to fit, so all are unknown; give them to "
                "both or to neither"
            )
        else:
            column = _group_column(groups, len(frame))
        rows = frame.assign(**{self.table_.group_name: column})
        return self.posterior_.predict_proba(rows)

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """Return the most probable label of each row.

        Parameters
        ----------
        X : DataFrame, array-like of shape (n_samples, n_features) or path
            Rows, as in `predict_proba`.
        groups : array-like of shape (n_samples,) or column name, default=None
            The group of each row, as in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        best = self.predict_proba(X, groups).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return the accuracy of the predicted labels.

        Parameters
        ----------
        X : DataFrame, array-like of shape (n_samples, n_features) or path
            Rows, as in `predict_proba`.
        y : array-like of shape (n_samples,) or column name
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        groups : array-like of shape (n_samples,) or column name, default=None
            The group of each row, as in `predict_proba`.

        Returns
        -------
        float
            Accuracy.
        """
        X, y, groups = self._split(X, y, groups, reset=False)
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # As in scikit-learn's encoders, `string` stays False: the tag would imply that any other
        # object is accepted, too.
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

    def _split(self, X: Any, y: Any, groups: Any, *, reset: bool = True) -> tuple[Any, Any, Any]:
        """Return features, labels and groups; labels and groups may be columns of ``X``."""
        named = {} if reset else self._columns_by_name
        columns = None
        if not reset and hasattr(self, "feature_names_in_"):
            roles = (y, groups, named.get("groups"))
            columns = [*self.feature_names_in_, *(str(name) for name in roles if _is_name(name))]
        group = groups if _is_name(groups) else None if groups is not None else named.get("groups")
        if is_streamed(X):
            X = self._read(X, columns, str(group) if _is_name(group) else None)
        else:
            X = set_index_aside(X, columns or ())
        if not isinstance(X, pd.DataFrame):
            return X, y, groups
        own = {str(name): name for name in X.columns}
        if groups is None and _is_name(group) and str(group) in own:
            groups = group
        taken = [*(name for name in (y, groups) if _is_name(name))]
        for name in taken:
            require_column(str(name), list(own), DataError)
        y, groups = (X[own[str(name)]] if _is_name(name) else name for name in (y, groups))
        taken += [name for name in named.values() if _is_name(name) and str(name) in own]
        left = {str(name) for name in taken}
        return X[[name for text, name in own.items() if text not in left]], y, groups

    def _read(self, X: Any, columns: list[str] | None, group: str | None) -> pd.DataFrame:
        """Read a file or an Arrow frame; in the group column only empty cells are missing."""
        wanted = None if columns is None else [name for name in columns if name != group]
        ignore = () if group is None or columns is not None else (group,)
        frame = read_frame(X, columns=wanted, ignore=ignore, missing_values=self.missing_values)
        if group is None or group not in open_tables(X)[0].names:
            return frame
        return frame.join(read_frame(X, columns=[group], missing_values=("",)))

    def _frame(self, X: Any, *, reset: bool) -> pd.DataFrame:
        """Return ``X`` as a frame with named columns, numeric or of objects."""
        if isinstance(X, pd.DataFrame):
            if X.columns.has_duplicates:
                twice = X.columns[X.columns.duplicated()][0]
                raise ValueError(f"X has two columns named {twice!r}; rename one of them")
            if len({isinstance(name, str) for name in X.columns}) > 1:
                X = X.rename(columns=str)
            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = X.reset_index(drop=True)
        else:
            # NumPy would convert None and NaN in a list of strings to strings.
            dtype = None if hasattr(X, "__array__") else object
            frame = pd.DataFrame(
                validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite=False)
            )
        frame.columns = getattr(
            self, "feature_names_in_", [f"x{column}" for column in range(self.n_features_in_)]
        )
        frame = frame.infer_objects()
        for name, cells in frame.items():
            kinds = {type(cell) for cell in cells} if _dtype_kind(cells) == "O" else ()
            for kind in kinds:
                if kind.__hash__ is None:
                    raise TypeError(
                        f"column {name!r}: the argument must be made of strings or numbers, but a "
                        f"cell holds {kind.__name__}"
                    )
        return frame

    def _is_binned(self, column: pd.Series[Any]) -> bool:
        """Return whether a numeric column is binned (see the parameter ``bins``)."""
        if self.bins is None or _dtype_kind(column) not in "iuf":
            return False
        numbers = column.dropna().unique().astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        whole = bool((numbers == np.floor(numbers)).all())
        return len(numbers) > (max(MAX_CATEGORY_NUMBERS, self.bins) if whole else self.bins)


def _dtype_kind(column: pd.Series[Any]) -> str:
    """Return NumPy's letter for the kind of data; "O" for strings, categories and mixed types."""
    return str(getattr(column.dtype, "kind", "O"))


def _encode_labels(
    y: Any, rule: MissingRule, is_noted: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted classes, and each label as an index into them; -1 is missing.

    Missing labels are reported unless ``is_noted`` is True.
    """
    if y is None:
        raise ValueError(
            "SharedNaiveBayesClassifier requires y to be passed, but the target y is None"
        )
    labels = column_or_1d(y, warn=True)
    known = ~pd.isna(labels)
    if labels.dtype.kind in "OU":
        for row, label in enumerate(labels.tolist()):
            if isinstance(label, str) and rule.matches(label):
                known[row] = False
    if rule.tokens is None and not is_noted:
        notes = Notes()
        for label in labels[~known].tolist():
            notes.count_missing("y", label if isinstance(label, str) else "", 1)
        notes.warn()
    if not known.any():
        raise ValueError("y has no label: every entry is missing")
    if not known.all() or labels.dtype.kind == "O":
        # An array of objects may contain numbers only, which NumPy sorts and checks.
        seen = pd.Series(labels[known]).infer_objects().to_numpy()
    else:
        seen = labels
    assert_all_finite(seen, input_name="y")
    check_classification_targets(seen)
    codes = np.full(labels.shape, -1, dtype=np.int64)
    classes, codes[known] = np.unique(seen, return_inverse=True)
    return classes, codes


def _label_values(classes: NDArray[Any]) -> list[Any]:
    """Return the labels as values of a table."""
    if classes.dtype.kind in "biufUO":
        return classes.tolist()
    return [value_name(label) for label in classes]


def _is_name(given: Any) -> bool:
    """Return whether labels or groups are given by the name of a column."""
    return isinstance(given, str | int | np.integer) and not isinstance(given, bool)


def _is_empty(column: pd.Series[Any], rule: MissingRule) -> bool:
    """Return whether every cell of a column is missing."""
    cells = column.dropna().unique()
    return all(rule.matches(value_name(cell)) for cell in cells)


def _group_column(groups: Any, num_rows: int) -> pd.Series[Any]:
    """Return the groups as a column with the default index of the rows."""
    if hasattr(groups, "to_pandas"):  # polars and Arrow
        groups = groups.to_pandas()
    if isinstance(groups, str) or not hasattr(groups, "__len__"):
        raise TypeError(f"groups must be a list with one entry per row, got {groups!r}")
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
