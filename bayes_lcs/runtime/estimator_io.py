"""Fitted estimators as plain arrays, to be written down with a checkpoint; without pickle.

An estimator that has ``save`` and ``load`` is asked to use them, any other goes through skops. One
that has something in it that neither knows is not kept, and fitted again.

A skops file names the classes that it is made of, and to build an object of a class is to run its
code: `bayes_lcs` has classes that unpickle what they are given. So only the classes in
`TRUSTED_TYPES` are built, besides those that skops itself trusts.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bayes_lcs.core.errors import DataError, one_line
from bayes_lcs.core.escape import visible
from bayes_lcs.runtime.checkpoints import Arrays
from bayes_lcs.runtime.memory import human_bytes

__all__ = ["TRUSTED_TYPES", "load_trusted", "model_arrays", "model_from_arrays", "untrusted_types"]

TRUSTED_TYPES = (
    "bayes_lcs.classification.partial_scan.base_learners.OneLabel",
    "bayes_lcs.classification.partial_scan.one_hot.NameColumns",
    "bayes_lcs.classification.partial_scan.ripper.RuleClassifier",
    "bayes_lcs.classification.partial_scan.ripper.RuleSet",
    "bayes_lcs.classification.shared_naive_bayes.SharedNaiveBayesClassifier",
    "bayes_lcs.clustering.generalized.estimator.GeneralizedClusterer",
    "bayes_lcs.clustering.generalized.estimator.Step",
    "bayes_lcs.clustering.generalized.learners.naive_bayes.FittedNaiveBayes",
    "bayes_lcs.clustering.generalized.learners.naive_bayes.NaiveBayesLearner",
    "bayes_lcs.clustering.generalized.learners.perceptron_list.FittedPerceptronList",
    "bayes_lcs.clustering.generalized.learners.perceptron_list.PerceptronListLearner",
    "bayes_lcs.clustering.generalized.learners.prototype.FittedPrototypes",
    "bayes_lcs.clustering.generalized.learners.prototype.PrototypeLearner",
    "bayes_lcs.clustering.generalized.learners.sklearn_adapter.ClassifierLearner",
    "bayes_lcs.clustering.generalized.learners.sklearn_adapter.FittedClassifier",
    "bayes_lcs.clustering.generalized.learners.stump.FittedStump",
    "bayes_lcs.clustering.generalized.learners.stump.StumpLearner",
    "bayes_lcs.clustering.generalized.learners.unit_scaling.UnitSpace",
    "bayes_lcs.clustering.generalized.mixed_columns.ColumnKinds",
    "bayes_lcs.clustering.kmeans.estimator.KMeans",
    "bayes_lcs.clustering.kmeans.lloyd.KMeansResult",
    "bayes_lcs.clustering.kmeans.online.OnlineKMeans",
    "bayes_lcs.clustering.kmeans.online_kernel.OnlineState",
    "bayes_lcs.core.counts.GroupCounts",
    "bayes_lcs.core.model_protocols.MixtureParameters",
    "bayes_lcs.core.priors.Gamma",
    "bayes_lcs.core.schema.Schema",
    "bayes_lcs.data.grouped_table.GroupedTable",
    "bayes_lcs.inference.diagnostics.Convergence",
    "bayes_lcs.inference.exact.partition_function.PartitionSums",
    "bayes_lcs.inference.exact.posterior.ClusteredPosterior",
    "bayes_lcs.inference.exact.posterior.KnownPartitionPosterior",
    "bayes_lcs.inference.posterior_draws.PosteriorDraws",
    "bayes_lcs.models.clustered_naive_bayes.ClusteredNaiveBayes",
    "bayes_lcs.models.complete_sharing.CompleteSharing",
    "bayes_lcs.models.no_sharing.NoSharing",
    "bayes_lcs.models.prototype.Prototype",
    "sklearn.tree._tree.Tree",
)
"""Full names of the classes that saved estimators consist of and that skops does not trust itself.

All hold data only: neither to make them nor to set their attributes does anything else. Trees are
checked after loading (`_check_trees`). A class that moves is renamed here, and files that were
saved before are then refused.
"""

_LONGEST = 1000
"""Characters that an error shows of the names in a file."""


def untrusted_types(stream: BinaryIO, trusted: Iterable[str] = ()) -> list[str]:
    """Return the types in a skops file that are not trusted, without loading any of them.

    Parameters
    ----------
    stream
        The file, opened for reading bytes.
    trusted
        Full names of types that are trusted besides `TRUSTED_TYPES`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from skops import io
    >>> untrusted_types(BytesIO(io.dumps([1.5, Fraction(3, 2)])))
    ['fractions.Fraction']
    """
    from skops import io

    found: Any = stream  # skops declares a path, and opens what zipfile opens
    return sorted(set(io.get_untrusted_types(file=found)) - {*TRUSTED_TYPES, *trusted})


def load_trusted(stream: BinaryIO, trusted: Iterable[str] = (), *, advice: str) -> Any:
    """Return the object in a skops file; raise a `DataError` if a type in it is not trusted.

    Parameters
    ----------
    stream, trusted
        As for `untrusted_types`.
    advice
        What the user can do about types that are not trusted.
    """
    from skops import io

    allowed = tuple(trusted)
    try:
        _check_size(stream)
        refused = untrusted_types(stream, allowed)
        if not refused:
            # Not the types that were found: the file could have been changed in between.
            loaded = io.load(stream, trusted=[*TRUSTED_TYPES, *allowed])
            _check_trees(loaded)
            return loaded
    except Exception as error:  # whatever skops and zipfile say of a file that is none
        raise DataError(
            f"it holds nothing that skops can read ({type(error).__name__}: {one_line(error)})"
        ) from error
    names = visible(", ".join(refused), _LONGEST)
    raise DataError(f"types in it are not known to be harmless: {names}; {advice}")


def _check_size(stream: BinaryIO) -> None:
    """Raise if the parts of a zip file are larger than the file, so that reading fills the memory.

    Estimators are saved without compression.
    """
    with zipfile.ZipFile(stream) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > stream.seek(0, 2):
        raise ValueError(f"its parts are {human_bytes(size)}, which is more than the file has")


def _check_trees(loaded: Any) -> None:
    """Raise if a decision tree refers to nodes or columns that are not there.

    scikit-learn does not check these numbers, and would read or write memory of others.
    """
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.tree._tree import Tree

    waiting, seen = [loaded], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple | set):
            waiting.extend(value)
        elif isinstance(value, np.ndarray):
            waiting.extend(value.flat if value.dtype.kind == "O" else ())
        elif isinstance(value, Tree):
            _check_tree(value)
        else:
            waiting.extend(getattr(value, "__dict__", {}).values())
            tree = getattr(value, "tree_", None)
            if isinstance(tree, Tree) and tree.n_features != value.n_features_in_:
                raise ValueError("a tree has another number of columns than its estimator")
            if isinstance(value, BaseGradientBoosting) and hasattr(value, "estimators_"):
                _check_stages(value)


def _check_stages(boosting: Any) -> None:
    """Raise if the trees of gradient boosting do not fit its input or its output."""
    trees = np.asarray(boosting.estimators_, dtype=object)
    widths = {tree.n_features_in_ for tree in trees.flat}
    if trees.ndim != 2 or len(widths) != 1:
        raise ValueError("gradient boosting has trees of different input")
    output = boosting._raw_predict_init(np.zeros((1, *widths)))
    if output.shape != (1, trees.shape[1]):
        raise ValueError("gradient boosting has another number of trees than of outputs")


def _check_tree(tree: Any) -> None:
    numbers = np.arange(tree.node_count)
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    is_leaf = left == -1
    # Children stand after their parent, so that every way down has an end.
    inside = (numbers < left) & (left < tree.node_count)
    inside &= (numbers < right) & (right < tree.node_count)
    inside &= (feature >= 0) & (feature < tree.n_features)
    if not tree.node_count or not np.all(inside | is_leaf):
        raise ValueError("a tree refers to nodes or columns that it does not have")
    children = np.concatenate([left[~is_leaf], right[~is_leaf]])
    if not np.array_equal(np.sort(children), numbers[1:]):
        raise ValueError("a tree has nodes with no parent, or with several")
    depth, level = 0, np.flatnonzero(~is_leaf[:1])
    while len(level):
        depth += 1
        level = np.concatenate([left[level], right[level]])
        level = level[~is_leaf[level]]
    if depth != tree.max_depth:
        raise ValueError(f"a tree has depth {depth} and says {tree.max_depth}")


def model_arrays(model: Any) -> Arrays | None:
    """A fitted estimator as bytes, or None if it cannot be kept."""
    try:
        if hasattr(model, "save") and hasattr(model, "load"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model")
                model.save(path)
                return {"model": np.frombuffer(path.read_bytes(), dtype=np.uint8)}
        from skops import io

        dumped = io.dumps(model)
        is_known = not untrusted_types(BytesIO(dumped))
    except Exception:  # whatever the estimator has in it that cannot be written, or no room
        return None
    return {"model": np.frombuffer(dumped, dtype=np.uint8)} if is_known else None


def model_from_arrays(written: Arrays, like: Any) -> Any:
    """The estimator that `model_arrays` wrote, of the class of another."""
    content = written["model"].tobytes()
    if hasattr(like, "save") and hasattr(like, "load"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            path.write_bytes(content)
            return type(like).load(path)
    return load_trusted(BytesIO(content), advice="remove the checkpoints and begin anew")
