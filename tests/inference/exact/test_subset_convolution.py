"""Subset convolutions in their three arithmetics, against loops over every pair of subsets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_lcs.inference.exact import subset_convolution
from bayes_lcs.inference.exact.subset_convolution import (
    ConvolutionCheckpoint,
    convolve,
    convolve_max,
    convolve_relative,
)

# Sums of at most 2^15 positive terms in another order: 2^15 / 2 roundings of 1.1e-16 at the worst.
SUM_TOLERANCE = 2e-12

THREADED_BITS = subset_convolution.CHUNK_BITS + subset_convolution.THREAD_BITS
ARITHMETICS = ["products", "maxima", "logs"]


def subsets(mask: int) -> list[int]:
    """The classical walk through the subsets of a mask, downwards and with the empty set."""
    found, part = [mask], mask
    while part:
        part = (part - 1) & mask
        found.append(part)
    return found


def naive_products(f, g):
    return np.array([sum(f[t] * g[s ^ t] for t in subsets(s)) for s in range(f.size)])


def naive_maxima(f, g):
    return np.array([max(f[t] + g[s ^ t] for t in subsets(s)) for s in range(f.size)])


def cases(bits: int, seed: int):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=1 << bits), rng.exponential(size=1 << bits)


def check(arithmetic: str, f, g, targets=None):
    """Compare the targets of one convolution with naive sums (or maxima) over their subsets."""
    targets = range(f.size) if targets is None else targets
    if arithmetic == "maxima":
        found = convolve_max(f, g)
        expected = [max(f[t] + g[s ^ t] for t in subsets(s)) for s in targets]
        np.testing.assert_array_equal(found[targets], expected)  # the same additions: no rounding
        return
    expected = [sum(f[t] * g[s ^ t] for t in subsets(s)) for s in targets]
    if arithmetic == "products":
        found = convolve(f, g)
    else:
        log_f, log_g = np.log(f), np.log(g)
        best = convolve_max(log_f, log_g)
        found = convolve_relative(log_f, log_g, best) * np.exp(best)
    np.testing.assert_allclose(found[targets], expected, rtol=SUM_TOLERANCE)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("bits", range(11))
def test_every_subset(bits, arithmetic):
    check(arithmetic, *cases(bits, seed=bits))


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("bits", [11, 12, 13])
def test_medium_sizes(bits, arithmetic):
    """Sizes around a chunk: 100 subsets at random, the smallest and the largest ones."""
    rng = np.random.default_rng(bits)
    size = 1 << bits
    targets = np.unique([0, 1, 127, 128, size - 2, size - 1, *rng.integers(size, size=100)])
    check(arithmetic, *cases(bits, seed=bits), targets)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_shared_between_threads(arithmetic):
    """One subset of every leading part, since each part is written by another task."""
    rng = np.random.default_rng(1)
    width = 1 << subset_convolution.CHUNK_BITS
    targets = np.arange(1 << subset_convolution.THREAD_BITS) * width + rng.integers(
        width, size=1 << subset_convolution.THREAD_BITS
    )
    targets[-1] = (1 << THREADED_BITS) - 1
    check(arithmetic, *cases(THREADED_BITS, seed=7), targets)


def test_threads_and_one_task_agree(monkeypatch):
    """All 2^15 subsets: the same numbers whether or not the work is split by leading bits."""
    f, g = cases(THREADED_BITS, seed=3)
    log_f, log_g = np.log(f), np.log(g)
    split = convolve(f, g), convolve_max(log_f, log_g)
    split += (convolve_relative(log_f, log_g, split[1]),)
    monkeypatch.setattr(subset_convolution, "THREAD_BITS", 0)
    whole = convolve(f, g), convolve_max(log_f, log_g)
    whole += (convolve_relative(log_f, log_g, whole[1]),)
    for one, other in zip(split, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=SUM_TOLERANCE)


@pytest.mark.parametrize("bits", [0, 1, 3, 7, 8, 10])
@pytest.mark.parametrize("leading", [(1,), (3,), (2, 3)])
def test_leading_axes_are_carried_along(bits, leading):
    rng = np.random.default_rng(bits)
    f = rng.exponential(size=1 << bits)
    g = rng.exponential(size=(*leading, 1 << bits))
    found = convolve(f, g)
    assert found.shape == g.shape
    for index in np.ndindex(*leading):
        np.testing.assert_allclose(found[index], convolve(f, g[index]), rtol=SUM_TOLERANCE)
        np.testing.assert_allclose(found[index], naive_products(f, g[index]), rtol=SUM_TOLERANCE)


def test_leading_axes_when_shared_between_threads():
    f, g = cases(THREADED_BITS, seed=5)
    batch = np.stack([g, g[::-1]])
    found = convolve(f, batch)
    for row, expected in zip(found, (convolve(f, g), convolve(f, g[::-1])), strict=True):
        np.testing.assert_allclose(row, expected, rtol=SUM_TOLERANCE)


def test_arguments_are_left_alone():
    f, g = cases(9, seed=2)
    copies = f.copy(), g.copy()
    best = convolve_max(f, g)
    convolve(f, g)
    convolve_relative(f, g, best)
    np.testing.assert_array_equal(f, copies[0])
    np.testing.assert_array_equal(g, copies[1])


def test_terms_that_do_not_count():
    """Minus infinity, the log of zero, is a legal score on either side."""
    rng = np.random.default_rng(4)
    f, g = rng.normal(size=(2, 256))
    f[rng.random(256) < 0.5] = -np.inf
    g[rng.random(256) < 0.5] = -np.inf
    f[0] = g[0] = 0.0
    np.testing.assert_array_equal(convolve_max(f, g), naive_maxima(f, g))
    best = np.maximum(convolve_max(f, g), -1e3)
    found = convolve_relative(f, g, best)
    expected = naive_products(np.exp(f), np.exp(g))
    np.testing.assert_allclose(found * np.exp(best), expected, rtol=SUM_TOLERANCE)


def test_logs_do_not_care_for_range():
    """Scores of a million nats: no exponential of a score itself would be representable."""
    rng = np.random.default_rng(8)
    f, g = rng.normal(scale=1e6, size=(2, 1 << 9))
    best = convolve_max(f, g)
    found = convolve_relative(f, g, best)
    for s in range(f.size):
        terms = [f[t] + g[s ^ t] for t in subsets(s)]
        # Scores of 1e6 have a spacing of 1e-10, which each exponential inherits.
        assert found[s] == pytest.approx(sum(np.exp(t - max(terms)) for t in terms), rel=1e-9)


@given(data=st.data(), bits=st.integers(0, 5))
def test_random_arrays(data, bits):
    entries = st.lists(st.floats(0.0, 1e6), min_size=1 << bits, max_size=1 << bits)
    f, g = np.array(data.draw(entries)), np.array(data.draw(entries))
    expected = naive_products(f, g)
    np.testing.assert_allclose(convolve(f, g), expected, rtol=SUM_TOLERANCE, atol=1e-300)
    np.testing.assert_array_equal(convolve_max(f, g), naive_maxima(f, g))


@pytest.mark.parametrize("bits", [4, THREADED_BITS])
def test_progress_ticks(bits):
    """Every pair of leading parts reports once: 1, or 3^THREAD_BITS when work is shared."""
    ticks = []
    f, g = cases(bits, seed=0)
    convolve(f, g, ticks.append)
    assert len(ticks) == (1 if bits == 4 else 3**subset_convolution.THREAD_BITS)
    assert sum(ticks) == 3**bits


@pytest.fixture
def small_parts(monkeypatch):
    """Even small convolutions are shared, and looked at on their way."""
    monkeypatch.setattr(subset_convolution, "CHUNK_BITS", 3)
    monkeypatch.setattr(subset_convolution, "LONG_SIZE", 1 << 7)


def convolutions(f, g):
    best = naive_maxima(f, g)
    return [
        lambda checkpoint: convolve(f, np.stack([g, 2 * g]), checkpoint=checkpoint),
        lambda checkpoint: convolve_max(f, g, checkpoint=checkpoint),
        lambda checkpoint: convolve_relative(f, g, best, checkpoint=checkpoint),
    ]


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("bits", [6, 7])
def test_begun_and_gone_on_with(small_parts, bits, which):
    run = convolutions(*cases(bits, seed=1))[which]
    seen = []
    expected = run(ConvolutionCheckpoint(save=lambda so_far: seen.append(so_far())))
    parts = 3 ** (3 + (bits == 7))
    assert seen[-1]["done"].sum() == parts
    for so_far in seen:
        np.testing.assert_array_equal(run(ConvolutionCheckpoint(state=so_far)), expected)
    # What is said to be done is not done again.
    none = {"out": np.zeros_like(expected), "done": seen[-1]["done"]}
    np.testing.assert_array_equal(run(ConvolutionCheckpoint(state=none)), none["out"])


def test_whoever_looks_can_stop_it(small_parts):
    f, g = cases(THREADED_BITS, seed=0)
    ticks = []

    def look(_so_far):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convolve(f, g, ticks.append, ConvolutionCheckpoint(save=look))
    assert sum(ticks) < 3**THREADED_BITS
