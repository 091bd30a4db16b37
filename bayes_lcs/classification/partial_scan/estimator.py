"""An ensemble over disjoint parts of the data that reads no more of them than it needs.

W. Fan, H. Wang, P. S. Yu and S. Lo, "Inductive learning in less than one sequential data scan",
IJCAI 2003. A classifier is trained on each part; their probabilities are averaged, and the decision
with the largest expected benefit is taken. Reading stops when the ensemble so far decides as that
of all parts would (see the module `stopping_bound`): with a bound that may be looked at after
every part, which the paper's is not. Parts are random samples of the data, which those of the paper
are only if the data lie in a random order (``shuffle=False``).
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

from bayes_lcs.classification.partial_scan.base_learners import base_learner, probabilities
from bayes_lcs.classification.partial_scan.loop import Ensemble, scan
from bayes_lcs.classification.partial_scan.payoff import (
    benefits_of,
    check_benefit_labels,
    column_names,
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
from bayes_lcs.classification.partial_scan.stopping_bound import BOUNDS, RULES, Agreement
from bayes_lcs.classification.partial_scan.train import ScanPlan
from bayes_lcs.classification.partial_scan.validate_input import (
    InputSpec,
    check_known_rows,
    check_labelled_rows,
    take_rows,
)
from bayes_lcs.core.errors import DataError, DataNote, DataWarning, naming
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
    """Classifiers of disjoint parts, averaged, and no more parts read than needed.

    With the defaults, data of less than 16,000 rows are read whole and trained as one model.

    Parameters
    ----------
    base : {"tree", "naive_bayes", "rules"} or classifier, default="tree"
        What is trained on each part: an unpruned tree grown by entropy, naive Bayes with all
        parameters integrated out, RIPPER (extra ``rules``), or any scikit-learn classifier with
        probabilities. Columns of names become zeros and ones unless it is a Pipeline.
    n_partitions : int or "auto", default="auto"
        Number of parts; at most one a row. ``"auto"`` makes parts of at least 1,000 rows, and 200
        for each class, and at most 128 of them; data that do not make 16 such parts (16,000 rows of
        up to five classes) are read whole and trained as one model.
    part_size : int, default=None
        Rows a part, in place of ``n_partitions``.
    confidence : float, default=0.997
        How sure the rule has to be.
    benefit : matrix, mapping or function, default=None
        What decisions bring; None is accuracy. A matrix has a row for each true label and a column
        for each decision, in the order of ``classes_``. A mapping from (true label, decision) gives
        a number, the name of a column, a pair (column, number to be added), or a function of the
        rows; other pairs bring 0. Labels match by value (1, 1.0 and True are one, "1" is another);
        one that does not occur is an error, or a warning if only a part of a file was read. A
        function of the rows and the classes gives ``(n, L, L)``.
    early_stop : bool, default=True
        False reads all parts: exactly one scan.
    bound : {"betting", "hoeffding", "hoeffding-finite"}, default="betting"
        See the module `stopping_bound`. The last two are the paper's, and do not keep the
        confidence that they state.
    rule : {"tolerance", "every"}, default="tolerance"
        Whether a share of the validation rows need not be settled, or every one must.
    tolerance : float, default=0.1
        That share.
    validation : {"batch", "sequential"}, default="batch"
        Whether all validation rows are looked at after every part, or one after another, each until
        it is settled.
    validation_size : int, default=1000
        Number of validation rows, which are held out of training: random ones of an array, a fifth
        at most; of a file, up to half of the part that is read first. With ``early_stop=False``
        none is held out.
    shuffle : {"auto", "rows", "parts", True, False}, default="auto"
        ``"auto"`` makes parts of rows from all over the data, in random order: of rows of an array
        or of a small file; of small blocks of bytes of a plain CSV file; of row groups of a Parquet
        file, which is read whole if it has too few. Files that cannot be sought in (gzip of more
        than 16 MiB, UTF-16, Parquet of more than 33 million cells in few row groups) are then read
        as they lie, without a guarantee and with a warning; True makes that an error. ``"rows"`` is
        the same for arrays; ``"parts"`` takes parts of neighbouring rows of an array in random
        order. False takes all as it lies, as the paper does, and guarantees nothing unless all is
        read.
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
        Share of the data that was read, validation rows and rows read ahead included.
    stop_reason_, guarantee_ : str
        Why reading ended, and what is guaranteed of the result.
    scan_ : Scan
        All about it: rows, bytes, ``is_guaranteed`` and ``caveats``, ``performance`` on validation
        rows beside the commonest label and a single model, a trace for `bayes_lcs.plot_scan`, and
        ``explain()``.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    A part that lacks a label gives it probability 0. A file's labels are those met so far, unless
    ``classes`` are given to `fit_file`. Faults in what was not read are not noticed.

    Nothing is guaranteed if only one label was met, if a label was first met in the second half of
    the parts that were read, if the order of the rows matters or is not random, if there are fewer
    than 100 validation rows, or if reading was interrupted; ``scan_.caveats`` says which. A
    `DataWarning` is given if there is one label only, and if the ensemble is not better than the
    commonest label or clearly worse than a single model on the validation rows. The single model is
    trained on at most 10,000 rows of all parts read (4,000 unless it is a tree or naive Bayes).

    Columns are numbers or text, and labels have the type of their column, by the same rule for
    files, frames and Arrow tables. Rows without a label are left out with a `DataWarning`. Texts
    that no part has seen are reported at prediction with a `DataWarning`.

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
        """Train on as many parts of an array or a frame as are needed.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            A pandas or polars frame or an Arrow table, with columns of numbers or text; or an array
            of numbers.
        y : array-like of shape (n_samples,)
            Labels. Rows whose label is missing in a column of a frame are left out.

        Returns
        -------
        self : PartialScanClassifier
            The fitted classifier.
        """
        self._validate_params()
        base = base_learner(self.base, 0)
        allow_nan = get_tags(base).input_tags.allow_nan
        X, y, is_known, spec, notes = check_labelled_rows(self, X, y, allow_nan)
        state = check_random_state(self.random_state)
        plan, seed = self._plan(base, state), _draw_seed(state)
        known = np.flatnonzero(is_known)
        classes = np.unique(y[known])
        check_benefit_labels(self.benefit, classes.tolist())
        benefits_of(self.benefit, take_rows(X, known[:1]), classes.tolist())
        parts = self._divide(X, y, known, spec.text, seed)
        found = scan(plan, parts, classes.tolist(), None)
        self.classes_ = classes
        self._keep(found, spec)
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
        """Train on as many parts of a CSV or Parquet file as are needed, and read no more.

        Parameters
        ----------
        path
            A text file, plain or gzipped, or a Parquet file.
        label
            The column to be predicted. Rows without a label are left out and counted.
        features, ignore
            The columns to use, or those to leave out. A first column without a name is an index and
            left out.
        classes
            All labels, in the order wanted; any other is then an error. Without them labels are
            those met so far, and a label met late is one that earlier parts give probability 0.
        missing_values, encoding, delimiter, header
            As in `bayes_lcs.read_grouped`.
        categorical
            Columns to take as text although they hold numbers; True for all. The type of a column
            of a text file is that of its cells in the first part; where a later part holds text,
            the scan starts again with the column as text.
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
        base = base_learner(self.base, 0)
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
            # Markers for "missing" are counted again; rows and bytes were read twice.
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
        self._keep(found, spec)
        for error in changed.values():
            warnings.warn(
                f"{error}; the scan was started again with the whole column as text "
                "(missing_values= or categorical= change this)",
                DataNote,
                stacklevel=2,
            )
        _warn(shards.count.notes, shards.count.unlabelled, name)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the labels, averaged over the parts, ``(n_samples, n_classes)``.

        Parameters
        ----------
        X : DataFrame, path or array-like of shape (n_samples, n_features)
            A frame, an Arrow table, the path of a CSV or Parquet file, or an array. The label and
            other columns of the file that `fit_file` read are ignored.
        """
        return self._probabilities(self._known(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The decision with the largest expected benefit for each row; rows as `predict_proba`."""
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
            The file, for instance ``ensemble.skops``. An existing file is replaced.
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
            Full names of the types of foreign base learners, such as ``"package.module.Class"``.
            The error that refuses a file lists those that it needs. To load a type is to run its
            code: name only what you know, in files whose origin you know.
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
        return check_known_rows(self, X, self._spec, allow_nan)

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
        known: NDArray[np.int64],
        text: Sequence[Any],
        seed: int,
        file: FilePartSource | None = None,
    ) -> ArrayParts:
        """Divide rows in memory into parts, with validation rows held out."""
        number = self._num_parts_or_rule
        if self.part_size is not None:
            number = -(-len(known) // self.part_size)
        elif not isinstance(number, int):
            number = number(len(known), len(np.unique(y[known])))
        number = min(number, len(known))
        rng, size = np.random.default_rng(seed), 0
        order = rng.permutation(known)
        if self.early_stop and number > 1:
            most = min(int(VALIDATION_SHARE * len(known)), len(known) - number)
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
        """Divide the rows of a file that is read at once."""
        whole = file.read_whole()
        number, rows = self.n_partitions, len(whole.y)
        if self.part_size is None and not isinstance(number, str) and number > rows:
            raise DataError(
                f"there are only {rows} rows, too few for {number} parts; ask for {rows} parts or "
                "fewer",
                file=file.where,
            )
        return self._divide(whole.X, whole.y, np.arange(rows), list(whole.texts), seed, file)

    def _check_benefit_columns(self, shards: FileShards, name: str) -> None:
        for column in (*column_names(self.benefit), *self.benefit_only):
            if column not in shards.feature_names:
                raise DataError(
                    "the benefit names this column, but it is not there or left out",
                    file=name,
                    column=column,
                )

    def _keep(self, found: Ensemble, spec: InputSpec) -> None:
        for texts in found.texts:
            spec.learn_texts({c: own for c, own in texts.items() if c not in self.benefit_only})
        spec.finish()
        self._spec = spec
        self.estimators_, self.parts_ = found.models, found.parts
        self._tell(found.scan)
        story = found.scan
        if self.shuffle is not False and story.is_cut_short and not found.is_shuffled:
            warnings.warn(
                f"{story.headline} {story.fraction:.0%} were read in the order of the file, which "
                "cannot be read in another one; accuracy is that of these rows",
                DataWarning,
                stacklevel=3,
            )

    def _tell(self, story: Scan) -> None:
        self.scan_, self.n_partitions_ = story, story.num_parts
        self.scanned_fraction_ = story.fraction
        self.stop_reason_, self.guarantee_ = story.stop_reason, story.guarantee


def _draw_seed(state: np.random.RandomState) -> int:
    return int(state.randint(np.iinfo(np.int32).max))


def _plain_values(given: MissingValues) -> Any:
    """Return texts that mean "missing" as lists of texts, which can be saved."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(name): _plain_values(own) for name, own in given.items()}
    return [value_name(value) for value in as_list(given) if not is_null(value)]


def _warn(notes: Notes, unlabelled: int, file: str | None) -> None:
    """Give the notes about the data that a fit has read."""
    notes.warn()
    if unlabelled:
        where = f"{file}: " if file else ""
        warnings.warn(
            f"{where}{unlabelled:,} rows without a label are left out", DataWarning, stacklevel=3
        )
