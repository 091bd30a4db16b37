"""
Clustering large data: k-means, one pass, coresets, streams
===========================================================

Four methods to cluster points, from all rows to a small weighted sample: k-means on everything,
online k-means in one pass, a coreset that represents all rows, and a coreset that is updated while
rows arrive.
"""

# %%
# Points with small distant clusters
# ----------------------------------
#
# 20,000 points in five clusters, and two small distant clusters with 24 points together. Sampling
# easily misses the small ones.

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
# The reference is k-means with ten initialisations on all points. ``inertia_`` is the cost, the
# sum of squared distances to the nearest centre.

whole = bl.KMeans(k, n_init=10, random_state=0).fit(X)
print(f"cost of k-means on all rows: {whole.inertia_:,.0f}")

# %%
# One pass
# --------
#
# ``OnlineKMeans`` reads every row once and moves the nearest centre a little towards it; several
# restarts share the pass. It takes batches with ``partial_fit``, or a file with ``fit_stream``.

online = bl.OnlineKMeans(k, random_state=0)
for start in range(0, len(X), 5_000):
    online.partial_fit(X[start : start + 5_000])
print(f"one pass over all rows: {-online.score(X) / whole.inertia_:.3f} times that cost")

# %%
# A weighted sample
# -----------------
#
# A coreset is a weighted sample on which the cost of any centres is close to their cost on all
# rows. Uniform draws lose the small clusters. Draws by sensitivity (the largest share of the cost
# that a point can have for any centres) keep them, and give frequently drawn points a small
# weight.

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
# Rows are grey (every twentieth, and the distant ones), and points of the coreset are blue, larger
# if they represent more rows. Crosses are the centres found on the coreset. On the left a distant
# cluster has no centre near it. On the right every cluster has its own centre, with the same
# number of points.
#
# How large must a coreset be? The next plot compares the costs of two sets of centres on coresets
# and on all rows: the centres found above on all rows, and centres that miss the distant clusters.

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
# Errors are roughly proportional to the inverse square root of the size. For good centres uniform
# draws look as good as any: a distant point with a centre nearby costs no more than another point.
# Uniform draws are wrong about the cost of centres that *miss* the distant clusters. Such centres
# look cheap on them and are then selected. One set of centres does not show that a coreset is
# good. ``small.distortions`` has the errors of a few sets drawn from the data and of some found on
# the coreset, with a warning if these are large; ``small.distortion(X, centers)`` has the error of
# your centres. ``epsilon=`` instead of a size gives a bound that holds with a stated probability
# for one set of centres chosen beforehand.

# %%
# An endless stream
# -----------------
#
# ``CoresetStream`` keeps a binary tree of coresets. Memory grows with the logarithm of the number
# of rows.

stream = bl.CoresetStream(k, size=300, random_state=0)
stored = []
for start in range(0, len(X), 1_000):
    stream.push(X[start : start + 1_000])
    stored.append(stream.num_points)
clusters = stream.coreset().kmeans(k, random_state=0)
streamed = -clusters.score(X) / whole.inertia_
print(f"{stream.num_rows:,} rows read, {stream.num_points:,} points stored, height {stream.height}")
print(f"cost of the centres found: {streamed:.3f} times that of all rows")
assert max(stored) < 5_000
assert streamed < 1.3

fig, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
ax.step(np.arange(1, len(stored) + 1) * 1_000, stored)
ax.set_xlabel("rows read")
ax.set_ylabel("points stored")
plt.show()

# %%
# The saw-tooth shape comes from rows that wait for a complete leaf, and from levels of the tree
# that are merged.
#
# What to try next
# ----------------
#
# * A file that does not fit into memory: ``bl.OnlineKMeans(7).fit_stream("points.parquet")``, or
#   ``bayes-lcs coreset points.parquet -k 7 --size 1000 --out small.parquet``.
# * Streams of several processes: ``stream.save``, ``CoresetStream.load`` and ``merge``.
# * Categorical rows: ``objective="categorical"``, then ``bl.MixtureClusterer`` with
#   ``sample_weight``.
# * Sets, by the Jaccard distance: ``bl.min_hash``.
#
# The theory is in :doc:`/theory/coresets`, and the methods are described in :doc:`/clustering`.
# Measurements on real data: ``experiments/coresets``; comparison with scikit-learn, faiss, dask-ml
# and river: :doc:`/benchmarks`.
