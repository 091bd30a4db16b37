"""An ensemble over disjoint parts of the data that reads no more of them than it needs.

W. Fan, H. Wang, P. S. Yu and S. Lo, "Inductive learning in less than one sequential data scan",
IJCAI 2003. A classifier is trained on each part, in the order in which the parts lie; their
probabilities are averaged, and the decision with the largest expected benefit is taken. Reading
stops when the ensemble so far decides as that of all parts would (`bayes_lcs.classification.
agreement`): with a bound that may be looked at after every part, which the paper's is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bayes_lcs.classification.agreement import BOUNDS, RULES, Agreement
from bayes_lcs.classification.benefits import benefits_of, column_names, expected_benefits
from bayes_lcs.classification.scan import Scan
from bayes_lcs.classification.scan_learners import base_learner, probabilities
from bayes_lcs.classification.scan_parts import ArrayParts, FilePartSource
from bayes_lcs.classification.scan_rows import RowKinds, known_rows, labelled_rows, take_rows
from bayes_lcs.classification.scan_storage import load_ensemble, save_ensemble
from bayes_lcs.classification.scan_training import ScanPlan
from bayes_lcs.classification.scanning import Ensemble, scan
from bayes_lcs.core.executors import Executor
from bayes_lcs.data.errors import DataError, naming
from bayes_lcs.data.file_parts import FileParts

__all__ = ["PartialScanClassifier"]

FloatArray = NDArray[np.float64]


class PartialScanClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifiers of disjoint parts, averaged, and no more parts read than needed.

    Parameters
    ----------
    base : {"tree", "naive_bayes", "rules"} or classifier, default="tree"
        What is trained on each part: an unpruned tree grown by entropy, naive Bayes with all
        parameters integrated out, RIPPER (extra ``rules``), or any scikit-learn classifier with
        probabilities. Columns of names become zeros and ones unless it is a Pipeline.
    n_partitions : int, default=64
        Number of parts; at most one a row.
    part_size : int, default=None
        Rows a part, in place of ``n_partitions``.
    confidence : float, default=0.997
        How sure the rule has to be.
    benefit : matrix, mapping or function, default=None
        What decisions bring; None is accuracy. A matrix has a row for each true label and a column
        for each decision, in the order of ``classes_``. A mapping from (true label, decision) gives
        a number, the name of a column, a pair (column, number to be added), or a function of the
        rows; other pairs bring 0. A function of the rows and the classes gives ``(n, L, L)``.
    early_stop : bool, default=True
        False reads all parts: exactly one scan.
    bound : {"betting", "hoeffding", "hoeffding-finite"}, default="betting"
        See `bayes_lcs.classification.agreement`. The last two are the paper's, and do not keep the
        confidence that they state.
    rule : {"tolerance", "every"}, default="tolerance"
        Whether a share of the validation rows need not be settled, or every one must.
    tolerance : float, default=0.1
        That share.
    validation : {"batch", "sequential"}, default="batch"
        Whether all validation rows are looked at after every part, or one after another, each until
        it is settled.
    validation_size : int, default=1000
        Number of validation rows: random ones of an array, of a file out of the part that is read
        first.
    shuffle : {"auto", "parts", "rows", False}, default="auto"
        ``"parts"`` reads the parts in random order, which makes the guarantee hold whatever the
        data; ``"rows"`` puts the rows of an array in random order before it is cut. ``"auto"`` is
        ``"parts"`` where that is possible: arrays, and Parquet files with enough row groups. False
        takes all as it lies.
    on_drift : {"warn", "read_on"}, default="warn"
        What to do where the rule would stop but the order of the rows matters: stop with a
        `DriftWarning` and no guarantee, or read on.
    benefit_only : list of str, default=()
        Columns that benefits look at and that are not for learning.
    n_jobs : int, default=None
        Parts that are trained side by side. The result does not depend on it, but some parts may
        have been read for nothing.
    executor : Executor or None, default=None
        Where parts are trained, from `bayes_lcs.executor`, as many side by side as it has workers;
        ``n_jobs`` is then not looked at. Parts of a Parquet file that come in a random order are
        also read there, but for the first; all workers must see the file. Clones share it, `save`
        leaves it out.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is random.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of the columns of `predict_proba`.
    estimators_ : list
        The classifiers of the parts that were read.
    parts_ : list of int
        Which parts those are.
    n_partitions_ : int
        Number of parts in all.
    scanned_fraction_ : float
        Share of the data that was read.
    stop_reason_, guarantee_ : str
        Why reading ended, and what holds of the result.
    scan_ : Scan
        All about it: rows, bytes, a trace for `bayes_lcs.plot_scan`, and ``explain()``.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    A part that lacks a label gives it probability 0. A file's labels are those met so far, unless
    ``classes`` are given to `fit_file`. Faults in what was not read are not noticed.

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lcs as bl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3))
    >>> y = np.where(X[:, 0] + 0.1 * rng.normal(size=20_000) > 0, "yes", "no")
    >>> classifier = bl.PartialScanClassifier("tree", random_state=0).fit(X, y)
    >>> classifier.scanned_fraction_ < 0.5, classifier.score(X, y) > 0.95
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "base": "no_validation",  # type: ignore[dict-item]
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
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
        n_partitions: int = 64,
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
        """Train on as many parts of an array or a frame as are needed.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Numbers; columns of names in a frame.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : PartialScanClassifier
            The fitted classifier.
        """
        self._validate_params()
        base = base_learner(self.base, 0)
        X, y, kinds = labelled_rows(self, X, y, get_tags(base).input_tags.allow_nan)
        state = check_random_state(self.random_state)
        num_parts = self.n_partitions if self.part_size is None else -(-len(y) // self.part_size)
        num_parts = min(num_parts, len(y))
        if self.shuffle == "rows":
            rows = state.permutation(len(y))
            X, y = take_rows(X, rows), y[rows]
        moved = self.early_stop and self.shuffle in ("auto", "parts")
        parts = ArrayParts(X, y, num_parts, state.permutation(num_parts) if moved else None)
        parts.is_shuffled = moved or self.shuffle == "rows"
        chosen = np.sort(state.permutation(len(y))[: self.validation_size])
        classes = np.unique(y)
        benefits_of(self.benefit, take_rows(X, chosen[:1]), classes.tolist())
        found = scan(self._plan(base, state), parts, classes.tolist(), take_rows(X, chosen), None)
        self.classes_, self._kinds = classes, kinds
        self._keep(found)
        return self

    def fit_file(
        self,
        path: str | PathLike[str],
        *,
        label: str,
        features: Sequence[str] | None = None,
        ignore: Iterable[str] = (),
        classes: Sequence[Any] | None = None,
        missing_values: Iterable[str] | Mapping[str, Iterable[str]] = ("",),
        categorical: bool | Iterable[str] = (),
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool | Sequence[str] = True,
        progress: bool | None = None,
    ) -> PartialScanClassifier:
        """Train on as many parts of a CSV or Parquet file as are needed, and read no more.

        Parameters
        ----------
        path
            A text file, plain or gzipped, or a Parquet file.
        label
            The column to be predicted.
        features, ignore
            The columns to use, or those to leave out.
        classes
            All labels, in the order wanted; any other is then an error. Without them labels are
            those met so far, and a label met late is one that earlier parts give probability 0.
        missing_values, encoding, delimiter, header
            As in `bayes_lcs.read_grouped`.
        categorical
            Columns of names although they hold numbers; True for all. Without it a column of a text
            file is one of numbers if all its cells in the first part are.
        progress
            Whether to show a bar; None does on a terminal.

        Returns
        -------
        self : PartialScanClassifier
            The fitted classifier.
        """
        self._validate_params()
        if self.shuffle == "rows":
            raise ValueError("shuffle='rows' is for arrays: a file is read in whole parts")
        state = check_random_state(self.random_state)
        shuffle = "auto" if self.early_stop and self.shuffle == "auto" else bool(self.shuffle)
        parts = FileParts(
            path,
            label=label,
            features=features,
            ignore=ignore,
            num_parts=self.n_partitions,
            rows_per_part=self.part_size,
            missing_values=missing_values,
            categorical=categorical,
            encoding=encoding,
            delimiter=delimiter,
            header=header,
            shuffle=shuffle if self.early_stop else False,
            seed=int(state.randint(np.iinfo(np.int32).max)),
        )
        for name in (*column_names(self.benefit), *self.benefit_only):
            if name not in parts.feature_names:
                raise DataError(
                    "the benefit names this column, but it is not there or left out",
                    file=str(path),
                    column=name,
                )
        plan = self._plan(base_learner(self.base, 0), state)
        name = Path(path).name
        with naming(name):
            found = scan(plan, FilePartSource(parts, name, label), classes, None, progress)
        self._kinds = RowKinds(True, tuple(parts.name_columns))
        self.feature_names_in_ = np.array(parts.feature_names, dtype=object)
        self.n_features_in_ = len(parts.feature_names)
        self.classes_ = np.array(found.classes)
        self._keep(found)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the labels, averaged over the parts, ``(n_samples, n_classes)``."""
        return self._probabilities(self._known(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The decision with the largest expected benefit for each row."""
        decisions = self._decisions(self._known(X))
        return self.classes_[decisions]

    def expected_benefit(self, X: Any) -> FloatArray:
        """What each decision is expected to bring, ``(n_samples, n_classes)``."""
        X = self._known(X)
        benefits = benefits_of(self.benefit, X, self.classes_.tolist())
        return expected_benefits(self._probabilities(X), benefits)

    def total_benefit(self, X: Any, y: Any) -> float:
        """What the decisions bring in all, given the true labels."""
        X = self._known(X)
        labels = self.classes_.tolist()
        places = {label: place for place, label in enumerate(labels)}
        true = np.asarray(y).tolist()
        unknown = [label for label in true if label not in places]
        if unknown:
            raise ValueError(f"the label {unknown[0]!r} is none of {labels!r:.200}")
        benefits = benefits_of(self.benefit, X, labels)
        benefits = np.broadcast_to(benefits, (len(true), *benefits.shape[1:]))
        codes = np.array([places[label] for label in true], np.int64)
        return float(benefits[np.arange(len(true)), codes, self._decisions(X)].sum())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose label is decided for; weighted, if weights are given."""
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted classifier, atomically, with a checksum; no pickle.

        Parameters
        ----------
        path
            The file, for instance ``ensemble.skops``.
        """
        check_is_fitted(self, "estimators_")
        save_ensemble(self, path)

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, trusted: Iterable[str] = ()
    ) -> PartialScanClassifier:
        """Read what `save` wrote.

        Parameters
        ----------
        path
            The file.
        trusted
            Types of foreign base learners that are not known to be harmless; the error that refuses
            them lists them.
        """
        return load_ensemble(cls, path, trusted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = base_learner(self.base, 0)
        tags.input_tags.allow_nan = get_tags(base).input_tags.allow_nan
        tags.classifier_tags.multi_label = False
        return tags

    def _decisions(self, X: Any, chances: FloatArray | None = None) -> NDArray[np.int64]:
        """Places of the labels that are decided for; ``chances`` if they are known already."""
        benefits = benefits_of(self.benefit, X, self.classes_.tolist())
        chances = self._probabilities(X) if chances is None else chances
        return expected_benefits(chances, benefits).argmax(axis=1)

    def _probabilities(self, X: Any) -> FloatArray:
        rows, labels = self._features(X), self.classes_.tolist()
        total = np.zeros((len(X), len(labels)))
        for model in self.estimators_:
            total += probabilities(model, rows, labels)
        return total / len(self.estimators_)

    def _features(self, X: Any) -> Any:
        """Rows without the columns that are for benefits only."""
        if not self.benefit_only:
            return X
        if not isinstance(X, pd.DataFrame):
            raise ValueError("benefit_only names columns: X must be a DataFrame")
        missing = [name for name in self.benefit_only if name not in X.columns]
        if missing:
            raise ValueError(f"benefit_only names {missing[0]!r}, which X lacks")
        return X.drop(columns=list(self.benefit_only))

    def _known(self, X: Any) -> Any:
        check_is_fitted(self, "estimators_")
        allow_nan = get_tags(base_learner(self.base, 0)).input_tags.allow_nan
        return known_rows(self, X, self._kinds, allow_nan)

    def _plan(self, base: Any, state: np.random.RandomState) -> ScanPlan:
        rule = Agreement(1, self.confidence, self.bound, self.rule, self.tolerance)
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
            int(state.randint(np.iinfo(np.int32).max)),
            self.executor,
        )

    def _keep(self, found: Ensemble) -> None:
        self.estimators_, self.parts_ = found.models, found.parts
        self._tell(found.scan)

    def _tell(self, story: Scan) -> None:
        self.scan_, self.n_partitions_ = story, story.num_parts
        self.scanned_fraction_ = story.fraction
        self.stop_reason_, self.guarantee_ = story.stop_reason, story.guarantee
