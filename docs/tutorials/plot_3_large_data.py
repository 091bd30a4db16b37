"""
Clustering large data: k-means, one pass, coresets, streams
===========================================================

Four ways to cluster points, from all rows to a handful of weighted ones: k-means on everything,
online k-means in one pass, a coreset that stands for all rows, and a coreset that is kept up to
date while rows stream by.
"""

# %%
# Points with a catch
# -------------------
#
# 20,000 points in five clouds, and two small ones far away with 24 points together. The small ones
# are what sampling misses.

import matplotlib.pyplot as plt
import numpy as np

import bayes_lcs as bl

rng = np.random.default_rng(0)
clouds = rng.normal(scale=4.0, size=(5, 2))
near = clouds[rng.integers(5, size=20_000)] + rng.normal(size=(20_000, 2))
far = np.vstack([rng.normal([60.0, 45.0], 0.7, (12, 2)), rng.normal([-55.0, 50.0], 0.7, (12, 2))])
X = rng.permutation(np.vstack([near, far]))
k = 7

# %%
# All rows
# --------
#
# The yardstick: k-means with ten starts on all points. ``inertia_`` is the cost, the sum of squared
# distances to the nearest centre.

whole = bl.KMeans(k, n_init=10, random_state=0).fit(X)
print(f"cost of k-means on all rows: {whole.inertia_:,.0f}")

# %%
# One pass
# --------
#
# ``OnlineKMeans`` sees every row once and moves the nearest centre a little towards it; several
# restarts share the pass. It takes batches by ``partial_fit``, or a file by ``fit_stream``.

online = bl.OnlineKMeans(k, random_state=0)
for start in range(0, len(X), 5_000):
    online.partial_fit(X[start : start + 5_000])
print(f"one pass over all rows: {-online.score(X) / whole.inertia_:.3f} times that cost")

# %%
# A few weighted rows
# -------------------
#
# A coreset is a weighted sample on which any centres cost about what they cost on all rows.
# Uniform draws lose the small clouds; draws by sensitivity (how much a point can matter to
# any centres) keep them, and give points that are drawn often a small weight.

uniform = bl.coreset(X, k, 300, method="uniform", random_state=1)
careful = bl.coreset(X, k, 300, method="sensitivity", random_state=1)
costs, missed = {}, {}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, small in zip(axes, (uniform, careful), strict=True):
    clusters = small.kmeans(k, random_state=0)
    costs[small.method] = -clusters.score(X) / whole.inertia_
    ax.scatter(*X[::20].T, s=1, color="0.8")
    ax.scatter(*far.T, s=4, color="0.6")
    ax.scatter(*np.asarray(small.points).T, s=small.weights / 10, color="C0", alpha=0.5)
    ax.scatter(*clusters.cluster_centers_.T, marker="x", color="C3", s=60)
    apart = np.linalg.norm(far[:, None] - clusters.cluster_centers_, axis=2).min(axis=1)
    missed[small.method] = int((apart > 10.0).sum())
    ax.set_title(f"{small.method}: cost {costs[small.method]:.2f} times that of all rows")
    print(small)
assert costs["sensitivity"] < 1.3 < 2.0 < costs["uniform"]
assert missed["sensitivity"] == 0 < missed["uniform"]

# %%
# Grey are rows (every twentieth, and the far ones), blue the points of the coreset, larger where
# they stand for more rows, and crosses are the centres found on the coreset. On the left a far
# cloud has no centre near it. On the right every cloud has its own, from the same number of points.
#
# How large must a coreset be? Costs of two sets of centres, on coresets and on all rows: those
# found above on all rows, and some that miss the far clouds.

good = whole.cluster_centers_
missing = bl.KMeans(k - 2, random_state=0).fit(near).cluster_centers_
sizes = [100, 300, 1_000, 3_000]
errors = {}
for method in ("uniform", "lightweight", "sensitivity"):
    for size in sizes:
        drawn = [
            bl.coreset(X, k, size, method=method, queries=0, random_state=repeat)
            for repeat in range(4)
        ]
        for name, centers in (("good centres", good), ("centres that miss", missing)):
            each = [abs(small.distortion(X, centers)) for small in drawn]
            errors[name, method, size] = np.median(each)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, name in zip(axes, ("good centres", "centres that miss"), strict=True):
    for method in ("uniform", "lightweight", "sensitivity"):
        curve = [errors[name, method, size] for size in sizes]
        ax.loglog(sizes, curve, "o-", markersize=4, label=method)
    ax.set(title=name, xlabel="points of the coreset")
    ax.grid(alpha=0.25)
axes[0].set_ylabel("median relative error of the cost")
axes[1].legend()
wrong = {method: errors["centres that miss", method, 300] for method in ("uniform", "sensitivity")}
assert wrong["sensitivity"] < 0.5 * wrong["uniform"]

# %%
# Errors fall about with the square root of the size. Seen from good centres uniform draws look as
# good as any: a far point that has a centre nearby costs no more than another one. It is centres
# that *miss* the far clouds whose cost uniform draws get wrong, and such centres look cheap on them
# and are then found. No one set of centres proves a coreset good. ``small.distortions`` has the
# errors of a few sets drawn from the data and of some found on the coreset, with a warning if these
# are large; ``small.distortion(X, centers)`` has that of yours. ``epsilon=`` in place of a size
# gives a bound that holds with a stated probability, for one set of centres chosen beforehand.

# %%
# An endless stream
# -----------------
#
# ``CoresetStream`` keeps a binary tree of coresets: memory grows with the logarithm of the rows.

stream = bl.CoresetStream(k, size=300, random_state=0)
held = []
for start in range(0, len(X), 1_000):
    stream.push(X[start : start + 1_000])
    held.append(stream.num_points)
clusters = stream.coreset().kmeans(k, random_state=0)
streamed = -clusters.score(X) / whole.inertia_
print(f"{stream.num_rows:,} rows seen, {stream.num_points:,} points held, height {stream.height}")
print(f"cost of the centres found: {streamed:.3f} times that of all rows")
assert max(held) < 5_000
assert streamed < 1.3

fig, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
ax.step(np.arange(1, len(held) + 1) * 1_000, held)
ax.set_xlabel("rows seen")
ax.set_ylabel("points held")
plt.show()

# %%
# The saw teeth are rows that wait for a whole leaf, and levels of the tree that are merged.
#
# What to try next
# ----------------
#
# * A file that does not fit into memory: ``bl.OnlineKMeans(7).fit_stream("points.parquet")``, or
#   ``bayes-lcs coreset points.parquet -k 7 --size 1000 --out small.parquet``.
# * Streams of several processes: ``stream.save``, ``CoresetStream.load`` and ``merge``.
# * Rows of categories: ``objective="categorical"``, then ``bl.MixtureClusterer`` with
#   ``sample_weight``.
# * Sets, by the Jaccard distance: ``bl.min_hash``.
#
# The theory: :doc:`/theory/coresets`; how to use all this: :doc:`/clustering`. Measurements on
# real data: ``experiments/coresets``; against scikit-learn, faiss, dask-ml and river:
# :doc:`/benchmarks`.
