"""Serialize fitted estimators for checkpoints, without pickle.

Estimators with ``save`` and ``load`` use these methods; all others use skops. An estimator that
neither can serialize is not saved, and fitted again when a run is resumed.

A skops file names the classes of its objects, and constructing an object runs code of its class:
some classes of `bayes_lcs` unpickle their arguments. Therefore only objects of the classes in
`TRUSTED_TYPES` and of those that skops trusts are constructed.
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

__all__ = [
    "TRUSTED_TYPES",
    "load_trusted",
    "model_from_arrays",
    "model_to_arrays",
    "untrusted_types",
]

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
"""Full names of classes in saved estimators that skops does not trust by default.

All hold data only: constructing them and setting their attributes has no side effects. Trees are
checked after loading (`_check_trees`). If a class moves, its name changes here, and files that were
saved before are refused.
"""

_MAX_SHOWN = 1000
"""Maximum number of characters of type names in an error message."""


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

    found: Any = stream  # skops is typed for paths, but passes the argument to zipfile
    return sorted(set(io.get_untrusted_types(file=found)) - {*TRUSTED_TYPES, *trusted})


def load_trusted(stream: BinaryIO, trusted: Iterable[str] = (), *, advice: str) -> Any:
    """Return the object in a skops file; raise a `DataError` if a type in it is not trusted.

    Parameters
    ----------
    stream, trusted
        As for `untrusted_types`.
    advice
        Advice to the user, for the message about types that are not trusted.
    """
    from skops import io

    allowed = tuple(trusted)
    try:
        _check_size(stream)
        refused = untrusted_types(stream, allowed)
        if not refused:
            # Pass the fixed list, not the types found: the file may have changed in between.
            loaded = io.load(stream, trusted=[*TRUSTED_TYPES, *allowed])
            _check_trees(loaded)
            return loaded
    except Exception as error:  # skops and zipfile raise many types for an invalid file
        raise DataError(
            f"skops cannot read it ({type(error).__name__}: {one_line(error)})"
        ) from error
    names = visible(", ".join(refused), _MAX_SHOWN)
    raise DataError(f"it contains types that are not trusted: {names}; {advice}")


def _check_size(stream: BinaryIO) -> None:
    """Raise if the members of a zip file declare more bytes than the file has.

    Estimators are saved without compression; a compressed file could fill the memory.
    """
    with zipfile.ZipFile(stream) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > stream.seek(0, 2):
        raise ValueError(f"its members have {human_bytes(size)}, which is more than the file")


def _check_trees(loaded: Any) -> None:
    """Raise if a decision tree refers to nodes or columns that do not exist.

    scikit-learn does not check these indices, and would access memory out of bounds.
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
                raise ValueError(
                    "the number of columns of a tree differs from that of its estimator"
                )
            if isinstance(value, BaseGradientBoosting) and hasattr(value, "estimators_"):
                _check_stages(value)


def _check_stages(boosting: Any) -> None:
    """Raise if the trees of gradient boosting do not match its input or output."""
    trees = np.asarray(boosting.estimators_, dtype=object)
    widths = {tree.n_features_in_ for tree in trees.flat}
    if trees.ndim != 2 or len(widths) != 1:
        raise ValueError("trees of gradient boosting have different numbers of columns")
    output = boosting._raw_predict_init(np.zeros((1, *widths)))
    if output.shape != (1, trees.shape[1]):
        raise ValueError("the number of trees of gradient boosting differs from its outputs")


def _check_tree(tree: Any) -> None:
    numbers = np.arange(tree.node_count)
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    is_leaf = left == -1
    # Children must come after their parent, so that every path ends.
    inside = (numbers < left) & (left < tree.node_count)
    inside &= (numbers < right) & (right < tree.node_count)
    inside &= (feature >= 0) & (feature < tree.n_features)
    if not tree.node_count or not np.all(inside | is_leaf):
        raise ValueError("a tree refers to nodes or columns that do not exist")
    children = np.concatenate([left[~is_leaf], right[~is_leaf]])
    if not np.array_equal(np.sort(children), numbers[1:]):
        raise ValueError("a tree has nodes without a parent or with several parents")
    depth, level = 0, np.flatnonzero(~is_leaf[:1])
    while len(level):
        depth += 1
        level = np.concatenate([left[level], right[level]])
        level = level[~is_leaf[level]]
    if depth != tree.max_depth:
        raise ValueError(f"a tree has depth {depth} but declares {tree.max_depth}")


def model_to_arrays(model: Any) -> Arrays | None:
    """Return a fitted estimator as an array of bytes, or None if it cannot be serialized."""
    try:
        if hasattr(model, "save") and hasattr(model, "load"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model")
                model.save(path)
                return {"model": np.frombuffer(path.read_bytes(), dtype=np.uint8)}
        from skops import io

        dumped = io.dumps(model)
        is_known = not untrusted_types(BytesIO(dumped))
    except Exception:  # an attribute cannot be serialized, or the disk is full
        return None
    return {"model": np.frombuffer(dumped, dtype=np.uint8)} if is_known else None


def model_from_arrays(written: Arrays, like: Any) -> Any:
    """Return the estimator that `model_to_arrays` serialized; ``like`` gives its class."""
    content = written["model"].tobytes()
    if hasattr(like, "save") and hasattr(like, "load"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            path.write_bytes(content)
            return type(like).load(path)
    return load_trusted(BytesIO(content), advice="remove the checkpoints and start again")
