"""
Clustering with any classifier inside
=====================================

k-means learns means and assigns every row to the nearest; EM learns probabilities and assigns rows
in shares. Both train a learner on the clusters as if they were classes, let it predict the
clusters of the rows, and repeat. Means and probabilities can therefore be replaced by any
classifier.
"""

# %%
# Two shapes of clusters
# ----------------------
#
# Three round clusters, and three long, tilted clusters that lie side by side.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

import bayes_lcs as bl

rng = np.random.default_rng(0)
classes = np.repeat([0, 1, 2], 100)
clouds = rng.normal(size=(300, 2)) + np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 5.0]])[classes]
turn = np.array([[np.cos(0.7), np.sin(0.7)], [-np.sin(0.7), np.cos(0.7)]])
tilted = rng.normal(size=(300, 2)) * [4.0, 0.5] @ turn
tilted += np.array([[0.0, 0.0], [0.0, 4.0], [0.0, 8.0]])[classes]
data = {"round": clouds, "tilted": tilted}

# %%
# Learners
# --------
#
# Three of the paper's four learners by name, and a scikit-learn classifier. ``"strict"`` assigns a
# row to one cluster, ``"weighted"`` in shares. Prototypes with strict assignment are k-means, and
# naive Bayes with weighted assignment is EM. Quadratic discriminant analysis learns a normal
# distribution with full covariance for each class, so with it the loop is EM for full covariances,
# without further code. Each run is the best of five initialisations (``n_init``) by its score.

learners = {
    "prototype, strict": ("prototype", "strict"),
    "naive Bayes, weighted": ("naive_bayes", "weighted"),
    "stump, strict": ("stump", "strict"),
    "QDA, weighted": (QuadraticDiscriminantAnalysis(reg_param=0.01), "weighted"),
}
fig, axes = plt.subplots(2, 4, figsize=(12, 5.6), layout="constrained")
accuracy = {}
for row, (shape, X) in zip(axes, data.items(), strict=True):
    for ax, (name, (learner, assignment)) in zip(row, learners.items(), strict=True):
        clusterer = bl.GeneralizedClusterer(
            learner, 3, assignment=assignment, max_iter=500, tol=1e-3, n_init=5, random_state=0
        )
        clusterer.fit(X)
        accuracy[shape, name] = bl.clustering_accuracy(clusterer, X, classes, folds=3)
        ax.scatter(*X.T, c=clusterer.labels_, s=5, cmap="viridis")
        ax.set_title(f"{shape}: {name}\n{accuracy[shape, name].mean:.0%} right", fontsize=10)
        ax.set(xticks=[], yticks=[])
        print(f"{shape:7s} {name:22s} {clusterer.n_iter_:3d} iterations; {clusterer.stop_reason_}")
assert accuracy["round", "prototype, strict"].mean > 0.9
assert accuracy["round", "naive Bayes, weighted"].mean > 0.9
for name in learners:
    assert (accuracy["tilted", name].mean > 0.9) == (name == "QDA, weighted")

# %%
# Colours are the clusters found; their numbers are arbitrary. "Right" is
# :func:`bayes_lcs.clustering_accuracy`: every cluster predicts the most frequent class of its
# rows, for rows of a fold that was left out, in three folds. The clusterers never use the classes.
#
# Round clusters are easy. Only the learner with full covariances finds the tilted classes:
# prototypes and naive Bayes cut across them, and a stump splits on one axis. The hypotheses of the
# learner determine which clusters can be found. The reverse does not hold: a good classifier is
# not necessarily a good clusterer, since a flexible learner can explain clusters that do not
# exist. The paper found that supervised and unsupervised accuracy are partly related;
# ``experiments/generalized_clustering`` reproduces its tables and says which claims held.
#
# Dependence on the initialisation
# --------------------------------
#
# For learners other than means and probabilities the objective need not increase in each
# iteration. Use several initialisations, with ``n_init`` or as here with one per fit, and compare
# the results.

spread = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for name in ("prototype, strict", "QDA, weighted"):
        learner, assignment = learners[name]
        spread[name] = []
        for seed in range(8):
            clusterer = bl.GeneralizedClusterer(
                learner, 3, assignment=assignment, max_iter=500, tol=1e-3, random_state=seed
            )
            right = bl.clustering_accuracy(clusterer, tilted, classes, folds=3)
            spread[name].append(right.mean)
print(f"{len(caught)} of 48 fits warned; the last: {caught[-1].message}")
fig, ax = plt.subplots(figsize=(6.5, 2.4), layout="constrained")
for height, (name, values) in enumerate(spread.items()):
    ax.plot(values, np.full(8, height), "o", alpha=0.5)
    print(f"{name}: {min(values):.2f} to {max(values):.2f}")
ax.set_yticks(range(len(spread)), list(spread))
ax.set(xlabel="accuracy of eight initialisations on the tilted clusters", ylim=(-0.5, 1.5))
plt.show()
assert max(spread["prototype, strict"]) < np.median(spread["QDA, weighted"])
assert max(spread["QDA, weighted"]) - min(spread["QDA, weighted"]) > 0.05

# %%
# With the same learner and the same rows, most initialisations find the classes and some do not.
# Some of the latter give a warning: a cluster has become so small that nothing can be learned from
# it. Others do not. Prototypes agree with each other and are always wrong, so agreement does not
# imply correctness.
#
# What to try next
# ----------------
#
# * Categorical rows, or mixed rows: pass a data frame; ``nominal=`` names the categorical columns.
# * Any classifier of your own, with ``predict_proba`` or without, with ``assignment="weighted"``.
# * ``clusterer.trace_`` has the changes of each iteration, and ``stop_reason_`` says whether the
#   run converged, went into a cycle or was stopped.
# * For naive Bayes on many rows use :class:`bayes_lcs.MixtureClusterer`, which is the same model.
#
# The theory is in :doc:`/clustering`, section "A classifier inside", and in
# :doc:`/theory/mixtures`.
