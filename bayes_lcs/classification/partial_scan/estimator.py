"""Ensemble of classifiers trained on disjoint parts of the data, with early stopping of reading.

W. Fan, H. Wang, P. S. Yu and S. Lo, "Inductive learning in less than one sequential data scan",
IJCAI 2003. A classifier is trained on each part; their probabilities are averaged, and the decision
with the largest expected benefit is taken. Reading stops when the ensemble so far decides like that
of all parts (see the module `stopping_bound`). Unlike the bound of the paper, the default bound is
valid when it is tested after every part. Parts are random samples of the data; those of the paper
(``shuffle=False``) are random samples only if the rows are in random order.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bayes_lcs.classification.partial_scan.base_learners import make_base_learner, probabilities
from bayes_lcs.classification.partial_scan.loop import Ensemble, scan
from bayes_lcs.classification.partial_scan.payoff import (
    benefit_columns,
    build_benefits,
    check_benefit_labels,
    expected_benefits,
)
from bayes_lcs.classification.partial_scan.result import Scan
from bayes_lcs.classification.partial_scan.scan_io import load_ensemble, save_ensemble
from bayes_lcs.classification.partial_scan.shards import (
    VALIDATION_SHARE,
    ArrayParts,
    FilePartSource,
    choose_num_parts,
)
from bayes_lcs.classification.partial_scan.stopping_bound import BOUNDS, RULES, AgreementTest
from bayes_lcs.classification.partial_scan.train import ScanPlan
from bayes_lcs.classification.partial_scan.validate_input import (
    InputSpec,
    check_known_rows,
    check_labelled_rows,
    take_rows,
)
from bayes_lcs.core.errors import DataError, DataNote, DataWarning, naming, plural
from bayes_lcs.io.column_types import is_null, typed_array, value_name
from bayes_lcs.io.open_tables import as_path
from bayes_lcs.io.options import CsvOptions, MissingValues, Notes, as_list
from bayes_lcs.io.shards import (
    CannotSeek,
    ChooseNumber,
    ColumnTypeChanged,
    FileShards,
    ReadCount,
)
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["PartialScanClassifier"]

FloatArray = NDArray[np.float64]


class PartialScanClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Average of classifiers trained on disjoint parts, which reads only as many parts as needed.

    With the defaults, data with less than 16,000 rows are read completely and one model is trained.

    Parameters
    ----------
    base : {"tree", "naive_bayes", "rules"} or classifier, default="tree"
        Learner for each part: an unpruned tree grown by entropy, naive Bayes with all parameters
        integrated out, RIPPER (extra ``rules``), or any scikit-learn classifier with
        ``predict_proba``. Categorical columns are one-hot encoded unless it is a Pipeline.
    n_partitions : int or "auto", default="auto"
        Number of parts; at most the number of rows. ``"auto"`` makes parts of at least 1,000 rows,
        and 200 for each class, and at most 128 parts; data that are too small for 16 such parts
        (16,000 rows with up to five classes) are read completely and one model is trained.
    part_size : int, default=None
        Rows per part, instead of ``n_partitions``.
    confidence : float, default=0.997
        Confidence of the stopping rule.
    benefit : matrix, mapping or function, default=None
        Benefit of decisions; None is accuracy. A matrix has a row for each true label and a column
        for each decision, in the order of ``classes_``. A mapping from (true label, decision) has
        values that are a number, the name of a column, a pair (column, number to be added), or a
        function of the rows; the benefit of other pairs is 0. Labels match by value (1, 1.0 and
        True are the same, "1" is another label). A label that does not occur is an error, or a
        warning if only a part of a file was read. A function of the rows and the classes returns
        ``(n, L, L)``.
    early_stop : bool, default=True
        If False, all parts are read, in exactly one scan.
    bound : {"betting", "hoeffding", "hoeffding-finite"}, default="betting"
        See the module `stopping_bound`. The last two are those of the paper and do not guarantee
        the stated confidence.
    rule : {"tolerance", "every"}, default="tolerance"
        Whether a share of the validation rows may remain unsettled, or every one must be settled.
    tolerance : float, default=0.1
        Share of the validation rows that may remain unsettled.
    validation : {"batch", "sequential"}, default="batch"
        Whether all validation rows are tested after every part, or one after another, each until it
        is settled.
    validation_size : int, default=1000
        Number of validation rows, which are held out of training: random rows of an array, at most
        a fifth; in a file, at most half of the part that is read first. With ``early_stop=False``
        none are held out.
    shuffle : {"auto", "rows", "parts", True, False}, default="auto"
        ``"auto"`` makes parts of random rows from everywhere in the data: of rows of an array or of
        a small file; of small blocks of bytes of a plain CSV file; of row groups of a Parquet file,
        which is read completely if it has too few. Files without random access (gzip of more than
        16 MiB, UTF-16, Parquet of more than 33 million cells in few row groups) are then read in
        their order, without a guarantee and with a warning; True makes that an error. ``"rows"`` is
        the same for arrays; ``"parts"`` reads parts of neighbouring rows of an array in random
        order. False reads rows in their order, as in the paper, and guarantees nothing unless all
        rows are read.
    on_drift : {"warn", "read_on"}, default="warn"
        What to do if the rule would stop but the order of the rows matters: stop with a
        `DriftWarning` and no guarantee, or continue reading.
    benefit_only : list of str, default=()
        Columns that are used by the benefit only and not as features.
    n_jobs : int, default=None
        Number of parts that are trained in parallel. The result does not depend on it, but some
        parts may be read in vain.
    executor : Executor or None, default=None
        Executor from `bayes_lcs.executor` that trains parts, as many in parallel as it has workers;
        ``n_jobs`` is then ignored. Its workers also read the parts of a Parquet file in random
        order, except the first; all workers need access to the file. Clones share the executor;
        `save` omits it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of the columns of `predict_proba`.
    estimators_ : list
        The classifiers of the parts that were read.
    parts_ : list of int
        Numbers of these parts.
    n_partitions_ : int
        Number of parts in all.
    scanned_fraction_ : float
        Share of the data that was read, including validation rows and rows read ahead.
    stop_reason_, guarantee_ : str
        Reason why reading ended, and the guarantee for the result.
    scan_ : Scan
        Record of the scan: rows, bytes, ``is_guaranteed`` and ``caveats``, ``performance`` on
        validation rows compared with the most frequent label and a single model, a trace for
        `bayes_lcs.plot_scan`, and ``explain()``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The model of a part without a label gives it probability 0. The labels of a file are those of
    the rows read so far, unless ``classes`` are given to `fit_file`. Errors in unread rows are not
    detected.

    Nothing is guaranteed if only one label was found, if a label first occurred in the second half
    of the parts that were read, if the order of the rows matters or is not random, if there are
    fewer than 100 validation rows, or if reading was interrupted; ``scan_.caveats`` lists the
    reasons. A `DataWarning` is issued if there is only one label, and if the ensemble is not better
    than the most frequent label or clearly worse than a single model on the validation rows. The
    single model is trained on at most 10,000 rows of all parts read (4,000 unless it is a tree or
    naive Bayes).

    Columns are numeric or text, and labels have the type of their column, by the same rule for
    files, frames and Arrow tables. Rows without a label are dropped with a `DataWarning`. Texts
    that were not seen in training are reported at prediction with a `DataWarning`.

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lcs as bl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40_000, 3))
    >>> y = np.where(X[:, 0] + 0.1 * rng.normal(size=40_000) > 0, "yes", "no")
    >>> classifier = bl.PartialScanClassifier("tree", random_state=0).fit(X, y)
    >>> classifier.n_partitions_, classifier.scanned_fraction_ < 0.6
    (40, True)
    >>> classifier.scan_.is_guaranteed, classifier.scan_.performance.accuracy > 0.95
    (True, True)
    """

    takes_text_columns: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "base": "no_validation",  # type: ignore[dict-item]
        "n_partitions": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "part_size": [Interval(Integral, 1, None, closed="left"), None],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "benefit": "no_validation",  # type: ignore[dict-item]
        "early_stop": ["boolean"],
        "bound": [StrOptions(set(BOUNDS))],
        "rule": [StrOptions(set(RULES))],
        "tolerance": [Interval(Real, 0, 1, closed="left")],
        "validation": [StrOptions({"batch", "sequential"})],
        "validation_size": [Interval(Integral, 1, None, closed="left")],
        "shuffle": [StrOptions({"auto", "parts", "rows"}), "boolean"],
        "on_drift": [StrOptions({"warn", "read_on"})],
        "benefit_only": [list, tuple],
        "n_jobs": [Integral, None],
        "executor": [HasMethods(["run", "place", "each"]), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        base: Any = "tree",
        n_partitions: int | str = "auto",
        *,
        part_size: int | None = None,
        confidence: float = 0.997,
        benefit: Any = None,
        early_stop: bool = True,
        bound: str = "betting",
        rule: str = "tolerance",
        tolerance: float = 0.1,
        validation: str = "batch",
        validation_size: int = 1000,
        shuffle: str | bool = "auto",
        on_drift: str = "warn",
        benefit_only: Sequence[str] = (),
        n_jobs: int | None = None,
        executor: Executor | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.base = base
        self.n_partitions = n_partitions
        self.part_size = part_size
        self.confidence = confidence
        self.benefit = benefit
        self.early_stop = early_stop
        self.bound = bound
        self.rule = rule
        self.tolerance = tolerance
        self.validation = validation
        self.validation_size = validation_size
        self.shuffle = shuffle
        self.on_drift = on_drift
        self.benefit_only = benefit_only
        self.n_jobs = n_jobs
        self.executor = executor
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PartialScanClassifier:
        """Train on as many parts of an array or a frame as needed.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            A pandas or polars frame or an Arrow table with numeric and text columns, or an array of
            numbers.
        y : array-like of shape (n_samples,)
            Labels. Rows with a missing label in a column of a frame are dropped.

        Returns
        -------
        self : PartialScanClassifier
            The fitted classifier.
        """
        self._validate_params()
        base = make_base_learner(self.base, 0)
        allow_nan = get_tags(base).input_tags.allow_nan
        X, y, is_known, spec, notes = check_labelled_rows(self, X, y, allow_nan)
        state = check_random_state(self.random_state)
        plan, seed = self._plan(base, state), _draw_seed(state)
        known = np.flatnonzero(is_known)
        classes = np.unique(y[known])
        check_benefit_labels(self.benefit, classes.tolist())
        build_benefits(self.benefit, take_rows(X, known[:1]), classes.tolist())
        parts = self._divide(X, y, known, spec.text, seed)
        found = scan(plan, parts, classes.tolist(), None)
        self.classes_ = classes
        self._set_fitted(found, spec)
        _warn(notes, len(y) - len(known), None)
        return self

    def fit_file(
        self,
        path: str | PathLike[str],
        *,
        label: str,
        features: Sequence[str] | None = None,
        ignore: Iterable[str] = (),
        classes: Sequence[Any] | None = None,
        missing_values: MissingValues = None,
        categorical: bool | Iterable[str] = (),
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool | Sequence[str] = True,
        progress: bool | None = None,
    ) -> PartialScanClassifier:
        """Train on as many parts of a CSV or Parquet file as needed, and read no more.

        Parameters
        ----------
        path
            A text file, plain or gzipped, or a Parquet file.
        label
            The column to predict. Rows without a label are dropped and counted.
        features, ignore
            The columns to use, or those to ignore. A first column without a name is an index and
            ignored.
        classes
            All labels in the desired order; any other label is an error. By default, labels are
            those of the rows read so far, and models of earlier parts give later labels probability
            0.
        missing_values, encoding, delimiter, header
            As in `bayes_lcs.read_grouped`.
        categorical
            Columns to read as text although they contain numbers; True for all. The type of a
            column of a text file is that of its cells in the first part; if a later part contains
            text, the scan starts again with the column as text.
        progress
            Whether to show a progress bar; None shows it on a terminal.

        Returns
        -------
        self : PartialScanClassifier
            The fitted classifier.
        """
        self._validate_params()
        if self.shuffle == "rows":
            raise ValueError(
                "shuffle='rows' is for arrays only; use shuffle='auto' or True for a file"
            )
        state = check_random_state(self.random_state)
        base = make_base_learner(self.base, 0)
        plan, seed = self._plan(base, state), _draw_seed(state)
        if classes is not None:
            check_benefit_labels(self.benefit, classes)
        options = CsvOptions(encoding, delimiter, header)
        shuffle: bool | str = "auto" if self.shuffle == "auto" else bool(self.shuffle)
        held_out = self.validation_size if self.early_stop else 0
        name, changed, count = as_path(path).name, dict[str, DataError](), ReadCount()
        missing_values, at_once = _plain_values(missing_values), False
        while True:
            shards = FileShards(
                path,
                label=label,
                features=features,
                ignore=ignore,
                num_shards=self._num_parts_or_rule,
                rows_per_shard=self.part_size,
                missing_values=missing_values,
                categorical=categorical,
                text=changed,
                options=options,
                shuffle=shuffle,
                seed=seed,
                extra_rows=held_out,
                at_once=at_once,
                count=count,
            )
            self._check_benefit_columns(shards, name)
            try:
                with naming(name):
                    file = FilePartSource(shards, name, str(label), held_out, plan.seed)
                    source = self._divide_file(file, seed) if shards.is_whole else file
                    found = scan(plan, source, classes, progress)
                break
            except ColumnTypeChanged as change:
                changed |= change.columns
            except CannotSeek:
                at_once = True
            # Missing cells are counted again; the counts of rows and bytes continue.
            count = ReadCount(count.num_rows, count.num_bytes)
        names = shards.feature_names
        if isinstance(missing_values, dict):
            missing_values = {key: own for key, own in missing_values.items() if key in names}
        spec = InputSpec(
            tuple(names),
            tuple(shards.text_columns),
            other_columns=tuple(shards.other_names),
            missing_values=missing_values,
            options=options,
        )
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.classes_ = typed_array(found.classes)
        self._set_fitted(found, spec)
        for error in changed.values():
            warnings.warn(
                f"{error}; the scan was restarted with the whole column as text "
                "(set missing_values= or categorical= to change this)",
                DataNote,
                stacklevel=2,
            )
        _warn(shards.count.notes, shards.count.unlabelled, name)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the labels, averaged over the parts.

        Parameters
        ----------
        X : DataFrame, path or array-like of shape (n_samples, n_features)
            A frame, an Arrow table, the path of a CSV or Parquet file, or an array. The label and
            other columns of the file that `fit_file` read are ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return self._probabilities(self._check_rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the decision with the largest expected benefit for each row of ``X``."""
        decisions = self._decisions(self._check_rows(X))
        return self.classes_[decisions]

    def expected_benefit(self, X: Any) -> FloatArray:
        """Return the expected benefit of each decision, ``(n_samples, n_classes)``."""
        X = self._check_rows(X)
        benefits = build_benefits(self.benefit, X, self.classes_.tolist())
        return expected_benefits(self._probabilities(X), benefits)

    def total_benefit(self, X: Any, y: Any) -> float:
        """Return the total benefit of the decisions, given the true labels."""
        X = self._check_rows(X)
        labels = self.classes_.tolist()
        index = {label: i for i, label in enumerate(labels)}
        true = np.asarray(y).tolist()
        unknown = [label for label in true if label not in index]
        if unknown:
            raise ValueError(f"the label {unknown[0]!r} is not among {labels!r:.200}")
        benefits = build_benefits(self.benefit, X, labels)
        benefits = np.broadcast_to(benefits, (len(true), *benefits.shape[1:]))
        codes = np.array([index[label] for label in true], np.int64)
        return float(benefits[np.arange(len(true)), codes, self._decisions(X)].sum())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, optionally weighted."""
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted classifier, atomically, with a checksum; no pickle.

        Parameters
        ----------
        path
            The file, for instance ``ensemble.skops``. An existing file is replaced.
        """
        check_is_fitted(self, "estimators_")
        save_ensemble(self, path)

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, trusted: Iterable[str] = ()
    ) -> PartialScanClassifier:
        """Load a classifier written by `save`.

        Parameters
        ----------
        path
            The file.
        trusted
            Full names of types of other packages' base learners, such as
            ``"package.module.Class"``. The error for a refused file lists those that it needs.
            Loading a type runs its code: list only types that you know, in files whose origin you
            know.
        """
        return load_ensemble(cls, path, trusted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = make_base_learner(self.base, 0)
        tags.input_tags.allow_nan = get_tags(base).input_tags.allow_nan
        tags.classifier_tags.multi_label = False
        return tags

    def _decisions(self, X: Any, proba: FloatArray | None = None) -> NDArray[np.int64]:
        """Return the codes of the decided labels; ``proba`` are known probabilities."""
        benefits = build_benefits(self.benefit, X, self.classes_.tolist())
        proba = self._probabilities(X) if proba is None else proba
        return expected_benefits(proba, benefits).argmax(axis=1)

    def _probabilities(self, X: Any) -> FloatArray:
        rows, labels = self._features(X), self.classes_.tolist()
        total = np.zeros((len(X), len(labels)))
        for model in self.estimators_:
            total += probabilities(model, rows, labels)
        return total / len(self.estimators_)

    def _features(self, X: Any) -> Any:
        """Return the rows without the columns that only benefits use."""
        if not self.benefit_only:
            return X
        if not isinstance(X, pd.DataFrame):
            raise ValueError("benefit_only names columns, so X must be a DataFrame")
        missing = [name for name in self.benefit_only if name not in X.columns]
        if missing:
            raise ValueError(f"benefit_only names {missing[0]!r}, which is not a column of X")
        return X.drop(columns=list(self.benefit_only))

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self, "estimators_")
        allow_nan = get_tags(make_base_learner(self.base, 0)).input_tags.allow_nan
        return check_known_rows(self, X, self._spec, allow_nan)

    def _plan(self, base: Any, state: np.random.RandomState) -> ScanPlan:
        rule = AgreementTest(1, self.confidence, self.bound, self.rule, self.tolerance)
        return ScanPlan(
            base,
            self._features,
            self.benefit,
            self.early_stop,
            rule,
            self.validation,
            self.validation_size,
            self.n_jobs,
            self.on_drift == "read_on",
            _draw_seed(state),
            self.executor,
        )

    @property
    def _num_parts_or_rule(self) -> int | ChooseNumber:
        return choose_num_parts if isinstance(self.n_partitions, str) else int(self.n_partitions)

    def _divide(
        self,
        X: Any,
        y: NDArray[Any],
        labelled: NDArray[np.int64],
        text: Sequence[Any],
        seed: int,
        file: FilePartSource | None = None,
    ) -> ArrayParts:
        """Split rows in memory into parts, with validation rows held out."""
        number = self._num_parts_or_rule
        if self.part_size is not None:
            number = -(-len(labelled) // self.part_size)
        elif not isinstance(number, int):
            number = number(len(labelled), len(np.unique(y[labelled])))
        number = min(number, len(labelled))
        rng, size = np.random.default_rng(seed), 0
        order = rng.permutation(labelled)
        if self.early_stop and number > 1:
            most = min(int(VALIDATION_SHARE * len(labelled)), len(labelled) - number)
            size = min(self.validation_size, most)
        held_out, rows = np.sort(order[:size]), order[size:]
        by_parts = self.shuffle == "parts"
        is_shuffled = bool(self.shuffle)
        are_neighbours = number > 1 and (by_parts or not is_shuffled)
        if are_neighbours:
            rows = np.sort(rows)
        numbers = rng.permutation(number) if by_parts else np.arange(number)
        return ArrayParts(
            X, y, rows, held_out, text, number, numbers.tolist(), is_shuffled, are_neighbours, file
        )

    def _divide_file(self, file: FilePartSource, seed: int) -> ArrayParts:
        """Split the rows of a file that is read at once."""
        whole = file.read_whole()
        number, rows = self.n_partitions, len(whole.y)
        if self.part_size is None and not isinstance(number, str) and number > rows:
            raise DataError(
                f"only {plural(rows, 'row')}, too few for {number} parts; ask for "
                f"{plural(rows, 'part')} or fewer",
                file=file.where,
            )
        return self._divide(whole.X, whole.y, np.arange(rows), list(whole.texts), seed, file)

    def _check_benefit_columns(self, shards: FileShards, name: str) -> None:
        for column in (*benefit_columns(self.benefit), *self.benefit_only):
            if column not in shards.feature_names:
                raise DataError(
                    "the benefit names this column, but it does not exist or is ignored",
                    file=name,
                    column=column,
                )

    def _set_fitted(self, ensemble: Ensemble, spec: InputSpec) -> None:
        for texts in ensemble.texts:
            spec.learn_texts({c: own for c, own in texts.items() if c not in self.benefit_only})
        spec.finish()
        self._spec = spec
        self.estimators_, self.parts_ = ensemble.models, ensemble.parts
        self._set_scan(ensemble.scan)
        record = ensemble.scan
        if self.shuffle is not False and record.is_cut_short and not ensemble.is_shuffled:
            warnings.warn(
                f"{record.headline} {record.fraction:.0%} of the file were read in its order, "
                "since it has no random access; accuracy is that of these rows",
                DataWarning,
                stacklevel=3,
            )

    def _set_scan(self, record: Scan) -> None:
        self.scan_, self.n_partitions_ = record, record.num_parts
        self.scanned_fraction_ = record.fraction
        self.stop_reason_, self.guarantee_ = record.stop_reason, record.guarantee


def _draw_seed(state: np.random.RandomState) -> int:
    return int(state.randint(np.iinfo(np.int32).max))


def _plain_values(given: MissingValues) -> Any:
    """Return markers of missing values as lists of texts, which can be saved."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(name): _plain_values(own) for name, own in given.items()}
    return [value_name(value) for value in as_list(given) if not is_null(value)]


def _warn(notes: Notes, unlabelled: int, file: str | None) -> None:
    """Issue the notes about the data that a fit has read."""
    notes.warn()
    if unlabelled:
        where, verb = f"{file}: " if file else "", "is" if unlabelled == 1 else "are"
        warnings.warn(
            f"{where}{plural(unlabelled, 'row')} without a label {verb} left out",
            DataWarning,
            stacklevel=3,
        )
