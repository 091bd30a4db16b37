"""Coresets of streams: trees that grow with the logarithm, and go on where they were left."""

import subprocess
import sys

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.clustering.kmeans.init import nearest
from bayes_lcs.core.errors import DataError


def rows(seed=0, num_rows=8000):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(num_rows, 2)) + 8.0 * rng.integers(4, size=(num_rows, 1))


def cost(points, weights, centers):
    return float(weights @ nearest(points, centers)[1])


def same(one, two):
    np.testing.assert_array_equal(one.points, two.points)
    np.testing.assert_array_equal(one.weights, two.weights)


def test_leaves_are_cut_by_count_not_by_push():
    X = rows()
    trees = []
    for step in (8000, 1000, 313):
        stream = bl.CoresetStream(4, 100, random_state=5)
        for start in range(0, 8000, step):
            stream.push(X[start : start + step])
        trees.append(stream)
    assert trees[0].num_rows == 8000
    for other in trees[1:]:
        same(other.coreset(), trees[0].coreset())


def test_memory_and_height_grow_with_the_logarithm():
    stream = bl.CoresetStream(3, 50, leaf_size=100, random_state=0)
    most, heights = 0, {}
    for leaf in range(1, 129):
        stream.push(rows(leaf, 100))
        most = max(most, stream.num_points)
        heights[leaf] = stream.height
    assert [heights[leaf] for leaf in (1, 2, 4, 64, 128)] == [0, 1, 2, 6, 7]
    assert most <= 50 * 8 + 100


def test_the_cost_is_unbiased_through_the_tree():
    X = rows(1, 1600)
    centers = np.array([[0.0, 0.0], [8.0, 8.0], [20.0, 20.0]])
    exact = cost(X, np.ones(1600), centers)
    ratios = []
    for seed in range(200):
        stream = bl.CoresetStream(3, 60, leaf_size=200, random_state=seed)
        stream.push(X)
        small = stream.coreset(checked=False)
        ratios.append(cost(small.points, small.weights, centers) / exact)
    assert abs(np.mean(ratios) - 1.0) < 4.0 * np.std(ratios) / np.sqrt(200)


def test_merged_streams_agree_with_one():
    X = rows(2)
    one, left, right = (bl.CoresetStream(4, 200, random_state=s) for s in (0, 1, 2))
    one.push(X)
    left.push(X[:3000])
    right.push(X[3000:])
    left.merge(right)
    assert left.num_rows == 8000
    centers = bl.KMeans(4, n_init=5, random_state=0).fit(X).cluster_centers_
    exact = cost(X, np.ones(8000), centers)
    for stream in (one, left):
        small = stream.coreset()
        assert cost(small.points, small.weights, centers) == pytest.approx(exact, rel=0.2)
        less = stream.coreset(reduced=True)
        assert len(less) <= 200
        assert less.num_rows == 8000
        assert less.indices is None
    with pytest.raises(ValueError, match="same k, size and method"):
        left.merge(bl.CoresetStream(4, 100))


def test_a_stream_that_was_saved_goes_on_to_the_same_tree(tmp_path):
    X = rows(3)
    whole = bl.CoresetStream(4, 150, random_state=1)
    whole.push(X)
    stream = bl.CoresetStream(4, 150, random_state=1)
    stream.push(X[:3333])
    path = tmp_path / "stream.nc"
    stream.save(path)
    again = bl.CoresetStream.load(path)
    again.push(X[3333:])
    same(again.coreset(), whole.coreset())
    assert (again.num_rows, again.height) == (whole.num_rows, whole.height)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="checksum"):
        bl.CoresetStream.load(path)


WORKER = """
import os, signal, sys
import numpy as np
import bayes_lcs as bl

path, rows, die_at = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3])
stream = bl.CoresetStream.load(path) if os.path.exists(path) else bl.CoresetStream(
    4, 100, random_state=1)
while stream.num_rows < len(rows):
    stream.push(rows[stream.num_rows : stream.num_rows + 500])
    if stream.num_rows >= die_at:
        os.kill(os.getpid(), signal.SIGKILL)
    stream.save(path)
"""


def test_a_killed_stream_resumes_to_the_same_tree(tmp_path):
    """Killed twice after a push that was not saved yet."""
    X = rows(7)
    np.save(tmp_path / "rows.npy", X)
    path = tmp_path / "stream.nc"
    for die_at, ended in ((2500, -9), (6000, -9), (10**9, 0)):
        command = [sys.executable, "-c", WORKER, path, tmp_path / "rows.npy", die_at]
        assert subprocess.run(list(map(str, command)), check=False).returncode == ended
    whole = bl.CoresetStream(4, 100, random_state=1)
    whole.push(X)
    again = bl.CoresetStream.load(path)
    same(again.coreset(), whole.coreset())
    assert (again.num_rows, again.height) == (whole.num_rows, whole.height)


PART = """
import sys
import numpy as np
import bayes_lcs as bl

stream = bl.CoresetStream(4, 200, random_state=int(sys.argv[3]))
stream.push(np.load(sys.argv[1]))
stream.save(sys.argv[2])
"""


def test_streams_of_other_processes_are_merged(tmp_path):
    """Each process leaves a file; merged, they are what one process would have made of them."""
    here, there = [], []
    for part in range(3):
        X = rows(10 + part, 4000)
        np.save(tmp_path / "rows.npy", X)
        path = tmp_path / f"{part}.nc"
        command = [sys.executable, "-c", PART, tmp_path / "rows.npy", path, part]
        subprocess.run(list(map(str, command)), check=True)
        there.append(bl.CoresetStream.load(path))
        here.append(bl.CoresetStream(4, 200, random_state=part))
        here[-1].push(X)
        same(there[-1].coreset(), here[-1].coreset())
    for streams in (here, there):
        streams[0].merge(streams[1])
        streams[0].merge(streams[2])
    same(there[0].coreset(), here[0].coreset())
    assert there[0].num_rows == 12_000


@pytest.mark.slow
def test_streamed_merged_and_one_shot_costs_agree_within_their_bound():
    """The bound of one reduction, to the power of the reductions that a row went through."""
    X, epsilon, delta = np.concatenate([rows(seed, 20_000) for seed in range(4)]), 0.5, 0.1
    size = bl.coreset(X, 3, epsilon=epsilon, delta=delta, queries=0, random_state=0).bound.size
    leaf = 2 * size
    assert 2 * leaf < len(X)
    centers = bl.KMeans(3, random_state=0).fit(X[::50]).cluster_centers_
    exact = cost(X, np.ones(len(X)), centers)
    for seed in range(5):
        streamed = bl.CoresetStream(3, size, leaf_size=leaf, random_state=seed)
        streamed.push(X)
        merged, other = (
            bl.CoresetStream(3, size, leaf_size=leaf, random_state=10 * s + seed) for s in (1, 2)
        )
        merged.push(X[: len(X) // 2])
        other.push(X[len(X) // 2 :])
        merged.merge(other)
        shot = bl.coreset(X, 3, size, queries=0, random_state=seed)
        for small, times in (
            (streamed.coreset(), streamed.height + 1),
            (merged.coreset(), merged.height + 1),
            (shot, 1),
        ):
            off = cost(small.points, small.weights, centers) / exact
            assert (1.0 - epsilon) ** times <= off <= (1.0 + epsilon) ** times


def test_looking_does_not_change_the_stream():
    X = rows(4)
    one, two = (bl.CoresetStream(4, 100, random_state=1) for _ in range(2))
    for start in range(0, 8000, 1000):
        one.push(X[start : start + 1000])
        two.push(X[start : start + 1000])
        two.coreset(reduced=True)
    same(one.coreset(), two.coreset())


def test_what_is_refused(tmp_path):
    stream = bl.CoresetStream(2, 10)
    with pytest.raises(ValueError, match="no rows yet"):
        stream.coreset()
    stream.push([[1.0, 2.0]])
    with pytest.raises(ValueError, match="3 columns, but those before had 2"):
        stream.push([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="at least 1"):
        bl.CoresetStream(0, 10)
    clusterer = bl.MixtureClusterer(1).fit([["a"], ["b"]])
    clusterer.save(tmp_path / "mixture.nc")
    with pytest.raises(DataError, match="no CoresetStream"):
        bl.CoresetStream.load(tmp_path / "mixture.nc")
