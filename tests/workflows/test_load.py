"""Saved results that were damaged, swapped or forged: each is refused, and none runs code."""

from __future__ import annotations

import ast
import json
import random
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import bayes_lcs as bl
from bayes_lcs.inference.datatree import exact_datatree
from bayes_lcs.runtime import memory
from bayes_lcs.runtime.atomic_files import load_datatree, save_datatree
from bayes_lcs.runtime.checksums import append_checksum, is_resaved, verify_appended_checksum

LOADERS: dict[str, Callable[[Path], Any]] = {
    "posterior.nc": bl.load,
    "exact.nc": bl.load,
    "mixture.nc": bl.load,
    "ensemble.skops": bl.load,
    "stream.nc": bl.CoresetStream.load,
}
NUM_DAMAGED = 100


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of every kind that can be saved."""
    folder = tmp_path_factory.mktemp("saved")
    rng = np.random.default_rng(0)
    X, y = rng.choice(["a", "b"], (60, 2)), rng.choice(["n", "y"], 60)
    data = bl.GroupedTable.from_arrays(X, y, np.repeat(["u", "v", "w"], 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws say nothing, as they should
        bl.sample(bl.ClusteredNaiveBayes(), data, draws=5, chains=2, warmup=2, seed=0).save(
            folder / "posterior.nc"
        )
    exact = exact_datatree(bl.exact(bl.ClusteredNaiveBayes(), data), draws=5)
    save_datatree(exact, folder / "exact.nc")
    bl.MixtureClusterer(2, random_state=0).fit(X).save(folder / "mixture.nc")
    ensemble = bl.PartialScanClassifier("naive_bayes", 2, random_state=0)
    ensemble.fit(rng.integers(3, size=(60, 2)), y).save(folder / "ensemble.skops")
    stream = bl.CoresetStream(k=2, size=10, random_state=0)
    stream.push(rng.normal(size=(100, 2)))
    stream.save(folder / "stream.nc")
    return folder


def refusal(load: Callable[[Path], Any], path: Path) -> str | None:
    """What is said of a file that is not loaded."""
    try:
        load(path)
    except bl.DataError as error:
        return str(error)
    return None


def damage(content: bytes, rng: random.Random, number: int) -> tuple[str, bytes]:
    """One of the ways in which a disk, a copy or a download spoils a file."""
    while True:
        data = bytearray(content)
        place = rng.randrange(len(data))
        kind = ("cut short", "a bit", "zeros", "lost bytes", "more bytes")[number % 5]
        if kind == "cut short":
            del data[place:]
        elif kind == "a bit":
            data[place] ^= 1 << rng.randrange(8)
        elif kind == "zeros":
            size = min(rng.choice((16, 512, 4096)), len(data) - place)
            data[place : place + size] = bytes(size)
        elif kind == "lost bytes":
            del data[place : place + rng.randint(1, 64)]
        else:
            data[place:place] = rng.randbytes(rng.randint(1, 64))
        if data != content:
            return f"{kind} at {place}", bytes(data)


@pytest.mark.parametrize("with_checksum", [True, False])
@pytest.mark.parametrize("name", LOADERS)
def test_every_damaged_file_is_refused(
    saved: Path, tmp_path: Path, name: str, with_checksum: bool
) -> None:
    path, rng = tmp_path / name, random.Random(f"{name} {with_checksum}")
    content = (saved / name).read_bytes()
    if with_checksum:
        shutil.copy(saved / f"{name}.sha256", tmp_path)
    path.write_bytes(content)
    LOADERS[name](path)
    damaged = [damage(content, rng, number) for number in range(NUM_DAMAGED)]
    damaged += [("empty", b""), ("the first byte", content[1:]), ("the last byte", content[:-1])]
    for what, spoilt in damaged:
        path.write_bytes(spoilt)
        told = refusal(LOADERS[name], path)
        assert told is not None, f"{name} was loaded although damaged: {what}"
        assert told.startswith(f"{path}: "), what
        assert len(told.splitlines()) == 1, what


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("checksum", [b"", b"\xff\xfe\x00", b"0" * 64, b"no checksum\n"])
def test_a_damaged_checksum_file_is_noticed(
    saved: Path, tmp_path: Path, name: str, checksum: bytes
) -> None:
    shutil.copy(saved / name, tmp_path)
    (tmp_path / f"{name}.sha256").write_bytes(checksum)
    with pytest.raises(bl.DataError, match="does not match its checksum in"):
        LOADERS[name](tmp_path / name)


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("other", LOADERS)
def test_swapped_files_are_noticed(saved: Path, tmp_path: Path, name: str, other: str) -> None:
    if name == other:
        return
    path = tmp_path / name
    shutil.copy(saved / other, path)
    shutil.copy(saved / f"{name}.sha256", tmp_path)
    with pytest.raises(bl.DataError, match="does not match its checksum"):
        LOADERS[name](path)
    (tmp_path / f"{name}.sha256").unlink()
    if LOADERS[name] != LOADERS[other]:
        with pytest.raises(bl.DataError, match=r"holds|contains no|not a complete netCDF"):
            LOADERS[name](path)


def test_each_class_refuses_the_files_of_others(saved: Path) -> None:
    for kind, own in (
        (bl.MixtureClusterer, "mixture.nc"),
        (bl.PartialScanClassifier, "ensemble.skops"),
        (bl.CoresetStream, "stream.nc"),
    ):
        for name in LOADERS:
            if name != own:
                with pytest.raises(bl.DataError, match=rf"{name}: this"):
                    kind.load(saved / name)


def test_files_of_other_programs_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "theirs.zip", "w") as archive:
        archive.writestr("a.txt", "nothing of ours")
    np.savez(tmp_path / "theirs.npz", x=np.arange(3))
    for path in tmp_path.iterdir():
        with pytest.raises(
            bl.DataError, match=rf"{path.name}: the file does not end with the checksum"
        ):
            bl.load(path)
    path = tmp_path / "theirs.nc"
    xr.Dataset({"x": ("i", [1.0])}).to_netcdf(path, engine="h5netcdf")
    with (
        pytest.warns(bl.DataWarning, match="another program saved"),
        pytest.raises(bl.DataError, match=r"theirs\.nc: this netCDF file holds no posterior"),
    ):
        bl.load(path)


NETCDF = [name for name in LOADERS if name.endswith(".nc")]


@pytest.mark.parametrize("name", NETCDF)
def test_a_file_saved_again_by_xarray_is_loaded_with_a_warning(
    saved: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    with xr.open_datatree(saved / name, engine="h5netcdf") as tree:
        before = tree.load()
        before.to_netcdf(path, engine="h5netcdf")
    with pytest.warns(bl.DataWarning, match=rf"{name}: another program saved this file again"):
        LOADERS[name](path)
    with pytest.warns(bl.DataWarning):
        assert load_datatree(path).identical(before)
    content = path.read_bytes()
    for place in range(1, len(content), len(content) // 20):
        (tmp_path / "short.nc").write_bytes(content[:place])
        assert refusal(LOADERS[name], tmp_path / "short.nc") is not None
    shutil.copy(saved / f"{name}.sha256", tmp_path)
    with pytest.raises(
        bl.DataError, match=rf"if you saved it with another program, remove {name}.sha256"
    ):
        LOADERS[name](path)


@pytest.mark.parametrize("version", ["earliest", "v108", "latest"])
def test_every_version_of_hdf5_notes_the_length_of_its_data(tmp_path: Path, version: str) -> None:
    path = tmp_path / "x.nc"
    with h5py.File(path, "w", libver=(version, "latest")) as file:
        file["x"] = np.arange(1000)
    assert is_resaved(path)
    content = path.read_bytes()
    for damaged in (content[:-1], content + b"x", content[:20]):
        path.write_bytes(damaged)
        assert not is_resaved(path)


def test_sealed_files_are_what_they_were_to_other_programs(saved: Path) -> None:
    for path in saved.glob("*.nc"):
        verify_appended_checksum(path)
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            assert tree.attrs
    with zipfile.ZipFile(saved / "ensemble.skops") as archive:
        assert archive.testzip() is None
        assert archive.comment.startswith(b"\nbayes_lcs sha256 ")


@pytest.mark.parametrize("name", ["posterior.nc", "mixture.nc", "stream.nc"])
def test_forged_contents_are_refused(saved: Path, tmp_path: Path, name: str) -> None:
    """With a seal that fits: every attribute spoilt in turn, and every array left out."""
    with xr.open_datatree(saved / name, engine="h5netcdf") as opened:
        tree = opened.load()
    told = [key for key in ("model", "table", "mixture", "coreset_stream") if key in tree.attrs]
    forgeries = []
    for key in told:
        for text in ("", "[]", "{}", "null", "[" * 50_000, '{"model": "os.system"}'):
            forged = tree.copy(deep=True)
            forged.attrs[key] = text
            forgeries.append(forged)
        known = json.loads(tree.attrs[key])
        for entry in known:
            forged = tree.copy(deep=True)
            forged.attrs[key] = json.dumps({k: v for k, v in known.items() if k != entry})
            if entry not in ("label_prior", "feature_prior", "concentration"):
                forgeries.append(forged)
    read = 0
    for number, forged in enumerate(forgeries):
        path = save_datatree(forged, tmp_path / f"{number}.nc")
        told = refusal(LOADERS[name], path)
        assert told is None or told.startswith(f"{path}: ")
        read += told is None  # what has a default may be left out
    assert read < len(forgeries) / 3


@pytest.mark.parametrize("name", ["posterior.nc", "mixture.nc", "stream.nc"])
def test_arrays_larger_than_the_memory_are_refused(
    saved: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A small netCDF file can declare arrays of any size."""
    monkeypatch.setattr(memory, "available_memory", lambda: 64)
    with pytest.raises(bl.DataError, match=rf"{name}: .*its content needs about .* of memory"):
        LOADERS[name](saved / name)


class Harmful:
    """Pickled, it would make a file when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def forged_ensemble(path: Path, source: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """An ensemble whose description was changed, with a seal that fits."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.namelist():
            content = old.read(entry)
            if entry == "schema.json":
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            new.writestr(entry, content)
    append_checksum(path)
    return path


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("bayes_lcs.runtime.atomic_files", "os"),
        ("bayes_lcs.runtime.atomic_files", "write_atomically"),
        ("bayes_lcs.runtime.atomic_files", "Path"),
        ("bayes_lcs.runtime.atomic_files.os", "system"),
        ("bayes_lcs.nowhere", "Thing"),
    ],
)
@pytest.mark.parametrize("loader", ["FunctionNode", "ObjectNode", "TypeNode"])
def test_an_ensemble_that_names_foreign_code_is_refused(
    saved: Path, tmp_path: Path, module: str, name: str, loader: str
) -> None:
    def change(schema: dict[str, Any]) -> None:
        schema["content"]["fitted"] = {
            "__class__": name,
            "__module__": module,
            "__loader__": loader,
            "__id__": 7,
            "content": None,
        }

    path = forged_ensemble(tmp_path / "forged.skops", saved / "ensemble.skops", change)
    with pytest.raises(bl.DataError, match=r"forged\.skops: .*not trusted|no file of|not a saved"):
        bl.load(path)


def test_a_pickle_in_an_ensemble_is_not_run(saved: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    cell = np.empty(1, dtype=object)
    cell[0] = Harmful(trace)
    np.save(tmp_path / "harm.npy", cell, allow_pickle=True)
    path = tmp_path / "forged.skops"
    with (
        zipfile.ZipFile(saved / "ensemble.skops") as old,
        zipfile.ZipFile(path, "w") as new,
    ):
        for entry in old.namelist():
            harm = entry.endswith(".npy")
            new.writestr(entry, (tmp_path / "harm.npy").read_bytes() if harm else old.read(entry))
    append_checksum(path)
    with pytest.raises(bl.DataError, match=r"forged\.skops: "):
        bl.load(path)
    assert not trace.exists()
    # The payload does what it says where pickles are read.
    np.load(tmp_path / "harm.npy", allow_pickle=True)
    assert trace.exists()


PACKAGE = Path(bl.__file__).parent
NEVER = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "yaml"}
ONLY_HERE = {
    "ForkingPickler": "runtime/executors/pickling.py",  # between processes, never a file
    "import_module": "__init__.py",  # of names in a table
    "io.load": "runtime/estimator_io.py",  # skops, with a list of what is trusted
    "io.loads": "",
}
"""Functions that may run code, and the one file that may use each."""


def test_nothing_loads_pickles_or_runs_text() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 100
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            fault = _fault(node, path.relative_to(PACKAGE).as_posix())
            assert fault is None, f"{path.relative_to(PACKAGE)}, line {node.lineno}: {fault}"


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "from joblib import load",
        "joblib.load(path)",
        "pd.read_pickle(path)",
        "eval(text)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "xr.open_datatree(path)",
        "yaml.load(text)",
        "importlib.import_module(name)",
        "from multiprocessing.reduction import ForkingPickler",
        "skops.io.load(path)",
        "io.loads(content)",
        "from skops.io import load",
    ],
)
def test_the_look_at_the_source_sees(line: str) -> None:
    assert any(_fault(node) for node in ast.walk(ast.parse(line)))


def _fault(node: ast.AST, file: str = "any.py") -> str | None:
    """What a piece of source does that may run what is in a file."""
    elsewhere = {name for name, home in ONLY_HERE.items() if home != file}
    if isinstance(node, ast.Import):
        return next((a.name for a in node.names if a.name.split(".")[0] in NEVER), None)
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        is_joblib = node.module == "joblib" and names & {"load", "dump"}
        is_skops = node.module == "skops.io"
        is_elsewhere = names & elsewhere and node.module != "importlib"
        is_bad = is_joblib or is_skops or is_elsewhere
        return node.module if is_bad or (node.module or "").split(".")[0] in NEVER else None
    if not isinstance(node, ast.Call):
        return None
    called = ast.unparse(node.func)
    given = {word.arg: ast.unparse(word.value) for word in node.keywords}
    is_bad = (
        called in ("eval", "exec", "compile", "__import__")
        or called.endswith(("read_pickle", "joblib.load", "yaml.load", *elsewhere))
        or given.get("allow_pickle", "False") != "False"
        or (called in ("np.load", "numpy.load") and "allow_pickle" not in given)
        or (called.endswith("open_datatree") and given.get("engine") != "'h5netcdf'")
    )
    return called if is_bad else None
