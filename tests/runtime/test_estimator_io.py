"""Saved estimators: what is trusted, that it is enough, and that nothing else is run."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import pickle
import pkgutil
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree

import bayes_lcs as bl
from bayes_lcs.classification.partial_scan.base_learners import fit_base_learner, make_base_learner
from bayes_lcs.clustering.generalized.learners.naive_bayes import NaiveBayesLearner
from bayes_lcs.clustering.generalized.learners.perceptron_list import PerceptronListLearner
from bayes_lcs.clustering.generalized.learners.prototype import PrototypeLearner
from bayes_lcs.clustering.generalized.learners.sklearn_adapter import ClassifierLearner
from bayes_lcs.clustering.generalized.learners.stump import StumpLearner
from bayes_lcs.runtime.checksums import append_checksum
from bayes_lcs.runtime.estimator_io import (
    TRUSTED_TYPES,
    load_trusted,
    model_from_arrays,
    model_to_arrays,
    untrusted_types,
)

OURS = {name for name in TRUSTED_TYPES if name.startswith("bayes_lcs.")}


def node(name: str, loader: str, **more: Any) -> dict[str, Any]:
    """A part of a skops file: a class or function, and what skops does with it."""
    module, _, own = name.rpartition(".")
    return {"__module__": module, "__class__": own, "__loader__": loader, **more}


def as_tuple(*parts: dict[str, Any]) -> dict[str, Any]:
    return node("builtins.tuple", "TupleNode", content=list(parts))


def as_list(*parts: dict[str, Any]) -> dict[str, Any]:
    return node("builtins.list", "ListNode", content=list(parts))


def as_dict(**parts: dict[str, Any]) -> dict[str, Any]:
    keys = as_list(*[node("builtins.str", "TypeNode")] * len(parts))
    return node("builtins.dict", "DictNode", content=parts, key_types=keys)


def as_json(value: Any) -> dict[str, Any]:
    return node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)


def skops_bytes(root: dict[str, Any], protocol: int = 2, **files: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        schema = {**root, "protocol": protocol, "_skops_version": skops.__version__}
        archive.writestr("schema.json", json.dumps(schema))
    return written.getvalue()


# What is trusted ----------------------------------------------------------------------------------


LOADERS: dict[str, dict[str, Any]] = {
    "ConstructorFromReduceNode": {"content": as_tuple()},
    "FunctionNode": {},
    "ListNode": {"content": []},
    "ObjectNode": {},
    "SetNode": {"content": []},
    "TupleNode": {"content": []},
    "TypeNode": {},
}
"""Ways in which a skops file can use a name: call it, build it, or return it."""


def all_names() -> set[str]:
    """Everything that can be reached as an attribute of a module of the package."""
    names = set()
    for found in pkgutil.walk_packages(bl.__path__, "bayes_lcs."):
        module = importlib.import_module(found.name)
        names |= {f"{found.name}.{name}" for name in vars(module)}
    return names


@pytest.mark.parametrize("loader", LOADERS)
def test_only_the_list_is_trusted(loader: str) -> None:
    names = all_names()
    assert len(names) > 3000
    parts = [node(name, loader, **LOADERS[loader]) for name in sorted(names)]
    content = skops_bytes(as_list(*parts))
    assert names - set(untrusted_types(io.BytesIO(content))) == OURS


def test_the_list_names_classes_where_they_are_defined() -> None:
    assert list(TRUSTED_TYPES) == sorted(set(TRUSTED_TYPES))
    for name in TRUSTED_TYPES:
        module, _, own = name.rpartition(".")
        found = getattr(importlib.import_module(module), own)
        assert isinstance(found, type)
        assert (found.__module__, found.__qualname__) == (module, own)


def fitted_models() -> dict[str, Any]:
    """Every estimator of ours that skops is asked to keep, in all its kinds."""
    rng = np.random.default_rng(0)
    X, groups = rng.integers(3, size=(120, 3)), rng.integers(3, size=120)
    y = (X[:, 0] + rng.integers(2, size=120)) % 3
    numbers = X + rng.normal(size=X.shape)
    frame = pd.DataFrame({"name": rng.choice(list("abc"), 120), "number": numbers[:, 0]})
    models: dict[str, Any] = {
        "one label": fit_base_learner(make_base_learner("tree", 0), X, y * 0, 0)
    }
    for name in ("tree", "naive_bayes", "rules"):
        if name != "rules" or importlib.util.find_spec("wittgenstein"):
            models[name] = fit_base_learner(make_base_learner(name, 0), frame, y, 0)
    few = {"draws": 20, "chains": 2}
    for model in (
        bl.NoSharing(),
        bl.CompleteSharing(feature_prior=bl.Gamma(1.0, 1.0)),
        bl.Prototype(),
        bl.ClusteredNaiveBayes(),
        bl.ClusteredNaiveBayes(concentration=bl.Gamma(1.0, 1.0)),
    ):
        models[repr(model)] = bl.SharedNaiveBayesClassifier(model, **few).fit(X, y, groups=groups)
    models["k-means"] = bl.KMeans(3, random_state=0).fit(numbers)
    models["online k-means"] = bl.OnlineKMeans(3, random_state=0).fit(numbers)
    for learner in (
        PrototypeLearner(),
        NaiveBayesLearner(),
        PerceptronListLearner(),
        StumpLearner(),
        ClassifierLearner(LogisticRegression()),
    ):
        clusterer = bl.GeneralizedClusterer(learner, 3, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models[type(learner).__name__] = clusterer.fit(numbers)
    return models


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_the_list_is_enough_for_our_estimators_and_no_longer() -> None:
    pytest.importorskip("wittgenstein")
    rows = np.random.default_rng(1).integers(3, size=(20, 3))
    frame = pd.DataFrame({"name": ["a", "b", "c", "a"], "number": [0.1, 1.0, 2.0, 3.0]})
    used = set()
    for name, model in fitted_models().items():
        written = model_to_arrays(model)
        assert written is not None, name
        again = model_from_arrays(written, model)
        asked: Any = frame if name in ("tree", "naive_bayes", "rules") else rows
        np.testing.assert_array_equal(_answers(again, asked), _answers(model, asked), name)
        used |= set(skops.io.get_untrusted_types(data=written["model"].tobytes()))
    assert used == set(TRUSTED_TYPES)


def _answers(model: Any, rows: Any) -> Any:
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)


# What is not --------------------------------------------------------------------------------------


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


class HarmfulState:
    """Makes a file when its state is set."""

    def __setstate__(self, state: dict[str, str]) -> None:
        Path(state["mark"]).touch()


def gadgets(mark: Path) -> dict[str, tuple[dict[str, Any], dict[str, bytes], int]]:
    """Crafted files that make a file if they are loaded without a look at their types."""
    shell = f"touch '{mark}'"
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    parcel = pickle.dumps(Harmful(mark))
    files = {
        "parcel": parcel,
        "pair": pickle.dumps((parcel,)),
        "array": array_bytes(["touch", str(mark)]),
    }
    bytes_of = {
        name: node("builtins.bytes", "BytesNode", file=name, __id__=number)
        for number, name in enumerate(files, 1)
    }
    executors = "bayes_lcs.runtime.executors"

    def called(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
        return node(name, "ConstructorFromReduceNode", content=as_tuple(*arguments))

    found = {
        "os.system": called("os.system", as_json(shell)),
        "posix.system": called("posix.system", as_json(shell)),
        "eval": called("builtins.eval", as_json(code)),
        "exec": called("builtins.exec", as_json(code)),
        "pickle": called("pickle.loads", bytes_of["parcel"]),
        "our parcels": called(f"{executors}.pickling.unpack", bytes_of["parcel"]),
        "our blocks": called(
            f"{executors}.dask._LoadedBlock", bytes_of["pair"], bytes_of["parcel"]
        ),
        "a call": called("operator.call", node("os.system", "FunctionNode"), as_json(shell)),
        "an operator": node(
            "operator.call",
            "OperatorFuncNode",
            attrs=as_tuple(node("os.system", "FunctionNode"), as_json(shell)),
        ),
        "keys of a dict": node(
            "builtins.dict",
            "DictNode",
            content={code: as_json(1)},
            key_types=as_list(node("builtins.eval", "TypeNode")),
        ),
        "a list": node(
            "subprocess.check_call", "ListNode", content=[as_json("touch"), as_json(str(mark))]
        ),
        "a loss": node(
            "os.system",
            "LossNode",
            __reduce__={"args": as_tuple(as_json(shell))},
            content=as_dict(),
        ),
        "a state": node(
            f"{__name__}.HarmfulState", "ObjectNode", content=as_dict(mark=as_json(str(mark)))
        ),
        "an array": node("subprocess.check_call", "NdArrayNode", type="numpy", file="array"),
    }
    return {name: (root, files, 2) for name, root in found.items()}


def array_bytes(values: list[str]) -> bytes:
    written = io.BytesIO()
    np.save(written, np.array(values), allow_pickle=False)
    return written.getvalue()


def harmless_until_used(mark: Path) -> dict[str, tuple[dict[str, Any], dict[str, bytes], int]]:
    """Those that run something only when the object that was loaded is worked with."""
    shell = f"touch '{mark}'"
    transformer = "sklearn.preprocessing._function_transformer.FunctionTransformer"
    found = {
        "a transformer": node(
            transformer, "ObjectNode", content=as_dict(func=node("os.system", "FunctionNode"))
        ),
        "a transformer of ours": node(
            transformer,
            "ObjectNode",
            content=as_dict(
                func=node("bayes_lcs.runtime.executors.pickling.unpack", "FunctionNode")
            ),
        ),
        "a partial": node(
            "functools.partial",
            "PartialNode",
            content={
                "func": node("os.system", "FunctionNode"),
                "args": as_tuple(as_json(shell)),
                "kwds": as_dict(),
                "namespace": as_json(None),
            },
        ),
        "methodcaller": node(
            "operator.methodcaller", "OperatorFuncNode", attrs=as_tuple(as_json("touch"))
        ),
        "a factory": node(
            "collections.defaultdict",
            "DefaultDictNode",
            content={"main": as_dict(), "default_factory": node("os.system", "FunctionNode")},
        ),
        "a bound method": node(
            "sklearn.linear_model._logistic.LogisticRegression",
            "MethodNode",
            content={
                "func": "fit",
                "obj": node(
                    "sklearn.linear_model._logistic.LogisticRegression",
                    "ObjectNode",
                    content=as_dict(),
                ),
            },
        ),
        "an executor": node("bayes_lcs.runtime.executors.dask.DaskExecutor", "ObjectNode"),
        "a module of ours": node(
            "bayes_lcs.runtime.atomic_files.os.system",
            "ConstructorFromReduceNode",
            content=as_tuple(as_json(shell)),
        ),
        "a worker": node("bayes_lcs.runtime.executors.dask._Held", "ObjectNode", content=as_dict()),
    }
    others = {name: (root, {}, 2) for name, root in found.items()}
    old = node("numpy.sqrt", "FunctionNode", content={"module_path": "os", "function": "system"})
    return {**others, "an old function": (old, {}, 0)}


NAMES = [*gadgets(Path()), *harmless_until_used(Path())]


@pytest.mark.parametrize("name", NAMES)
def test_crafted_files_run_nothing(name: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    root, files, protocol = {**gadgets(mark), **harmless_until_used(mark)}[name]
    content = skops_bytes(root, protocol, **files)
    path = tmp_path / "crafted.skops"
    path.write_bytes(content)
    append_checksum(path)
    for load in (bl.load, bl.PartialScanClassifier.load):
        with pytest.raises(bl.DataError, match=r"crafted\.skops: .*not trusted: \w"):
            load(path)
    checkpoint = {"model": np.frombuffer(content, np.uint8)}
    with pytest.raises(bl.DataError, match=r"not trusted: .*; remove the check"):
        model_from_arrays(checkpoint, DecisionTreeClassifier())
    assert not mark.exists()


@pytest.mark.parametrize("name", list(gadgets(Path())))
def test_the_crafted_files_do_run_where_everything_is_trusted(name: str, tmp_path: Path) -> None:
    """So that the test above means something."""
    mark = tmp_path / "ran"
    root, files, protocol = gadgets(mark)[name]
    content = skops_bytes(root, protocol, **files)
    everything = skops.io.get_untrusted_types(data=content)
    with suppress(Exception):  # after it has run
        skops.io.loads(content, trusted=everything)
    assert mark.exists()


def test_names_in_a_file_do_nothing_to_a_terminal() -> None:
    content = skops_bytes(node("os.\x1b[31m\nsystem" + "m" * 5000, "FunctionNode"))
    with pytest.raises(bl.DataError) as caught:
        load_trusted(io.BytesIO(content), advice="leave it")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "content", [b"", b"no zip", skops_bytes({}), skops_bytes({"__loader__": "Nothing"})]
)
def test_what_is_no_skops_file_is_refused(content: bytes) -> None:
    with pytest.raises(bl.DataError, match="skops cannot read it"):
        load_trusted(io.BytesIO(content), advice="leave it")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left_child", 10**9),
        ("right_child", 10**9),
        ("left_child", -7),
        ("right_child", 0),
        ("feature", 10**9),
        ("feature", -1),
    ],
)
@pytest.mark.parametrize("owner", ["tree", "forest", "bags"])
def test_trees_that_lead_out_of_their_memory_are_refused(
    field: str, value: int, owner: str
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    model: Any = {
        "tree": DecisionTreeClassifier(random_state=0),
        "forest": RandomForestClassifier(3, random_state=0),
        "bags": BaggingClassifier(n_estimators=3, max_features=2, random_state=0),
    }[owner].fit(X, y)
    again = load_trusted(io.BytesIO(skops.io.dumps(model)), advice="")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    one = model if owner == "tree" else model.estimators_[-1]
    make, arguments, state = one.tree_.__reduce__()
    assert make is Tree
    nodes = state["nodes"].copy()
    nodes[field][0] = value
    forged = Tree(*arguments)
    forged.__setstate__({**state, "nodes": nodes})
    one.tree_ = forged
    content = skops.io.dumps(model)
    with pytest.raises(bl.DataError, match="refers to nodes or columns that do not exist"):
        load_trusted(io.BytesIO(content), advice="")


def test_a_tree_of_more_columns_than_its_estimator_asks_for_is_refused() -> None:
    rng = np.random.default_rng(0)
    model = DecisionTreeClassifier().fit(rng.normal(size=(60, 3)), rng.integers(2, size=60))
    model.n_features_in_ = 1
    with pytest.raises(bl.DataError, match="the number of columns of a tree differs"):
        load_trusted(io.BytesIO(skops.io.dumps(model)), advice="")


def forge_tree(tree: Tree, **changes: Any) -> Tree:
    """A copy of a tree with other values in its state."""
    _, arguments, state = tree.__reduce__()
    forged = Tree(*arguments)
    forged.__setstate__({**state, **changes})
    return forged


@pytest.mark.parametrize("depth", [-1, 0, 2**62])
def test_trees_of_another_depth_than_they_say_are_refused(depth: int) -> None:
    """`decision_path` reserves memory for the depth that a tree says it has."""
    rng = np.random.default_rng(0)
    model = DecisionTreeClassifier().fit(rng.normal(size=(60, 3)), rng.integers(2, size=60))
    model.tree_ = forge_tree(model.tree_, max_depth=depth)
    with pytest.raises(bl.DataError, match=f"a tree has depth .* but declares {depth}"):
        load_trusted(io.BytesIO(skops.io.dumps(model)), advice="")


def test_trees_with_two_ways_to_a_node_are_refused() -> None:
    rng = np.random.default_rng(0)
    model = DecisionTreeClassifier().fit(rng.normal(size=(60, 3)), rng.integers(2, size=60))
    nodes = model.tree_.__getstate__()["nodes"].copy()
    nodes["left_child"][0] = nodes["right_child"][0]
    model.tree_ = forge_tree(model.tree_, nodes=nodes)
    with pytest.raises(bl.DataError, match="nodes without a parent or with several parents"):
        load_trusted(io.BytesIO(skops.io.dumps(model)), advice="")


@pytest.mark.parametrize(
    "tree",
    [
        DecisionTreeClassifier(max_depth=1),
        DecisionTreeClassifier(max_leaf_nodes=7),
        DecisionTreeClassifier(ccp_alpha=0.02),
        DecisionTreeClassifier(min_samples_split=1000),
        ExtraTreesClassifier(3),
        IsolationForest(n_estimators=3),
        GradientBoostingClassifier(n_estimators=3),
        GradientBoostingClassifier(n_estimators=3, init="zero"),
        GradientBoostingRegressor(n_estimators=3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("num_classes", [2, 3])
def test_trees_of_all_kinds_are_loaded(tree: Any, num_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(num_classes, size=200)
    model = clone(tree).set_params(random_state=0).fit(X, y)
    again = load_trusted(io.BytesIO(skops.io.dumps(model)), advice="")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("what", ["outputs", "input"])
def test_gradient_boosting_that_would_write_beyond_its_output_is_refused(what: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    model = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, y)
    if what == "outputs":
        model.estimators_ = np.concatenate([model.estimators_] * 50, axis=1)
    else:
        wide = GradientBoostingClassifier(n_estimators=2).fit(rng.normal(size=(60, 9)), y)
        model.estimators_[1] = wide.estimators_[1]
    with pytest.raises(bl.DataError, match="of gradient boosting"):
        load_trusted(io.BytesIO(skops.io.dumps(model)), advice="")


@pytest.mark.parametrize("name", ["schema.json", "array"])
def test_zip_files_that_grow_when_they_are_read_are_refused(name: str) -> None:
    root = node("numpy.ndarray", "NdArrayNode", type="numpy", file="array")
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for own in ("array", "schema.json"):
            padding = b" " * (20_000_000 if own == name else 0)
            schema = json.dumps({**root, "protocol": 2}).encode()
            archive.writestr(own, padding + (schema if own == "schema.json" else array_bytes([])))
    assert len(written.getvalue()) < 100_000
    with pytest.raises(
        bl.DataError, match=r"its members have 19\.1 MiB, which is more than the file"
    ):
        load_trusted(written, advice="")
