"""`MixtureClusterer.fit_file`: the same as in memory, in bounded memory, and refusals by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs import MixtureClusterer
from bayes_lcs.data.rows import encoded_dataset
from bayes_lcs.inference.em import distributed_e_step

pytestmark = pytest.mark.filterwarnings("ignore:EM has not converged")

SETTINGS = {"max_iter": 12, "tol": 0.0, "precision": "double", "random_state": 1}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(distributed_e_step, "BLOCK_ROWS", 300)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 1000)
    columns = {}
    for f, letters in enumerate(["abc", "de", "fghi", "kl"]):
        codes = (z * (f + 1) + rng.integers(0, 2, len(z))) % len(letters)
        columns[f"c{f}"] = np.array(list(letters), dtype=object)[codes]
    frame = pd.DataFrame(columns)
    return frame.mask(rng.random(frame.shape) < 0.03)


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet", index=False)
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, 1000, 350)):
        piece = frame.iloc[start : start + 350]
        piece.to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    return folder


def same(one, two, rtol=1e-10):
    np.testing.assert_allclose(one.weights_, two.weights_, rtol=rtol)
    np.testing.assert_allclose(one.trace_, two.trace_, rtol=rtol)
    for a, b in zip(one.probabilities_, two.probabilities_, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "parts"])
@pytest.mark.parametrize("memory", [1 << 20, 0])
def test_files_give_what_memory_gives(frame, files, name, memory, tmp_path):
    found = MixtureClusterer(2, **SETTINGS).fit_file(files / name, memory=memory, folder=tmp_path)
    plain = MixtureClusterer(2, **SETTINGS).fit(frame)
    same(found, plain)
    for mine, theirs in zip(found.categories_, plain.categories_, strict=True):
        assert mine.tolist() == theirs.tolist()
    np.testing.assert_array_equal(found.predict(frame), plain.predict(frame))
    assert found.feature_names_in_.tolist() == list(frame.columns)
    with bl.executor("serial") as serial:
        blocks = MixtureClusterer(2, executor=serial, **SETTINGS).fit(frame)
    same(found, blocks, rtol=0)  # the same blocks: every bit is the same
    assert not list(tmp_path.iterdir())


def test_layouts_are_on_disk_only_if_memory_is_short(files, tmp_path, monkeypatch):
    seen = []
    statistics = distributed_e_step.DistributedEStep.statistics

    def look(self, requests):
        seen.append(len(list(tmp_path.glob("*/layout-*"))))
        return statistics(self, requests)

    monkeypatch.setattr(distributed_e_step.DistributedEStep, "statistics", look)
    for memory, layouts in ((1000 * (2 * 4 + 8), 0), (1000 * (2 * 4 + 8) - 1, 4)):
        MixtureClusterer(2, **SETTINGS).fit_file(files / "parts", memory=memory, folder=tmp_path)
        assert set(seen) == {layouts}
        seen.clear()


def test_it_goes_on_and_is_saved(frame, files, tmp_path):
    found = MixtureClusterer(2, **SETTINGS).fit_file(files / "a.csv")
    found.save(tmp_path / "a.nc")
    again = MixtureClusterer.load(tmp_path / "a.nc")
    np.testing.assert_array_equal(again.predict(frame), found.predict(frame))
    plain = MixtureClusterer(2, **SETTINGS).fit(frame)
    same(again.partial_fit(frame[:100]), plain.partial_fit(frame[:100]))


@pytest.mark.parametrize("criterion", ["bic", "icl", "cheeseman_stutz"])
@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_the_number_of_components_is_chosen(frame, files, criterion, precision):
    settings = {**SETTINGS, "precision": precision, "criterion": criterion}
    found = MixtureClusterer([1, 2], **settings).fit_file(files / "parts")
    plain = MixtureClusterer([1, 2], **settings).fit(frame)
    assert found.criterion_scores_ == pytest.approx(plain.criterion_scores_, rel=1e-6)
    assert found.n_components_ == plain.n_components_


def test_what_begins_elsewhere_is_refused(files):
    for settings in ({"warm_start": True}, {"categories": [["a"]] * 4}):
        with pytest.raises(ValueError, match="starts afresh"):
            MixtureClusterer(2, **settings).fit_file(files / "a.csv")


# Drift and damage ---------------------------------------------------------------------------------


def parts(frame, folder, change):
    for number in range(3):
        piece = frame.iloc[number * 100 : number * 100 + 100].copy()
        piece["number"] = np.arange(100) % 3
        change(piece) if number == 1 else None
        piece.to_parquet(folder / f"{number}.parquet", index=False)
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda piece: piece.pop("c1"), r"1\.parquet: .*0\.parquet: there is no column 'c1'"),
        (
            lambda piece: piece.insert(0, "new", 1),
            r"1\.parquet: has other columns .*additional column 'new'",
        ),
        (
            lambda piece: piece.__setitem__("number", piece["number"].astype(str)),
            r"1\.parquet, column 'number': holds text .* but integers .* 0\.parquet",
        ),
    ],
)
def test_drift_between_files_is_refused(frame, tmp_path, change, message):
    with pytest.raises(bl.DataError, match=message):
        MixtureClusterer(2).fit_file(parts(frame, tmp_path, change))


@pytest.mark.parametrize("kind", ["int8", "float64"])
def test_numbers_match_by_value_whatever_their_type(frame, tmp_path, kind):
    def other(piece):
        piece["number"] = piece["number"].astype(kind)
        piece["c0"] = None

    found = MixtureClusterer(2, max_iter=2).fit_file(parts(frame, tmp_path, other))
    assert found.categories_[-1].tolist() == [0, 1, 2]
    assert len(found.categories_[0]) > 1


def test_a_damaged_file_is_named(frame, tmp_path):
    folder = parts(frame, tmp_path, lambda piece: None)
    whole = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(bl.DataError, match=r"1\.parquet"):
        MixtureClusterer(2).fit_file(folder)


@pytest.mark.parametrize(
    ("how", "kind"),
    [("gone", "serial"), ("cut", "serial"), ("changed", "serial"), ("gone", "processes")],
)
def test_a_block_that_a_worker_cannot_read_is_named(files, tmp_path, monkeypatch, how, kind):
    code_files = encoded_dataset.code_files

    def damaging(source, folder, **options):
        coded = code_files(source, folder, **options)
        path = Path(folder, "rows-000002.npy")
        whole = path.read_bytes()
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(whole[:-20] if how == "cut" else whole[:-1] + b"\x05")
        return coded

    monkeypatch.setattr("bayes_lcs.clustering.mixture.out_of_core.code_files", damaging)
    options = {"workers": 1, "timeout": 120.0} if kind == "processes" else {}
    with bl.executor(kind, **options) as executor:
        clusterer = MixtureClusterer(2, executor=executor, **SETTINGS)
        with pytest.raises(bl.DataError, match=r"rows-000002\.npy: a file of encoded rows"):
            clusterer.fit_file(files / "parts", folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how", ["gone", "cut", "changed"])
def test_a_layout_that_is_damaged_between_passes_is_named(files, tmp_path, monkeypatch, how):
    statistics = distributed_e_step.DistributedEStep.statistics

    def damaging(self, requests):
        path = min(tmp_path.glob("*/layout-*"))
        whole = path.read_bytes()
        if how == "gone":
            path.unlink()
        else:
            middle = len(whole) // 2
            changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
            path.write_bytes(whole[:middle] if how == "cut" else changed)
        return statistics(self, requests)

    monkeypatch.setattr(distributed_e_step.DistributedEStep, "statistics", damaging)
    with pytest.raises(bl.DataError, match=r"layout-.*rows: the row layout in this file"):
        MixtureClusterer(2, **SETTINGS).fit_file(files / "parts", memory=0, folder=tmp_path)
    assert not list(tmp_path.iterdir())


# Memory -------------------------------------------------------------------------------------------

PROGRAM = """
import resource, sys
import bayes_lcs as bl
clusterer = bl.MixtureClusterer(4, max_iter=2, tol=0.0, random_state=0)
clusterer.fit_file(sys.argv[1], memory=int(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    """40 columns of 2^22 rows are 160 MiB as codes, ten times the limit; so much must not show."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    peaks = []
    for number, pieces in enumerate((4, 64)):
        path = tmp_path / f"{number}.parquet"
        schema = pa.schema([(f"c{f}", pa.int8()) for f in range(40)])
        with parquet.ParquetWriter(path, schema) as writer:
            for _ in range(pieces):
                codes = rng.integers(0, 6, (1 << 16, 40), dtype=np.int8)
                writer.write_table(pa.table(list(codes.T), schema=schema))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(path), str(1 << 24)],
            capture_output=True,
            text=True,
            timeout=900,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 1 << 26
