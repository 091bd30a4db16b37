"""
Clustering with any classifier inside
=====================================

k-means learns means and puts every row to the nearest; EM learns probabilities and gives every row
in shares. Both fit a learner to the clusters as if these were classes, let it say where the rows
belong, and begin again. So any classifier can be put in the place of means and probabilities.
"""

# %%
# Two shapes of clusters
# ----------------------
#
# Three round clouds, and three long and tilted ones, which lie side by side.

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
# Three of the paper's four by name, and a classifier of scikit-learn. ``"strict"`` puts a row into
# one cluster, ``"weighted"`` gives shares. Prototypes with strict assignment are k-means, naive
# Bayes with weighted assignment is EM. Quadratic discriminant analysis learns a normal distribution
# of each class, its directions included: with it the loop is EM for full covariances, which nobody
# had to write. Each run is the best of five starts (``n_init``) by its score.

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
        found = clusterer.fit(X)
        accuracy[shape, name] = bl.clustering_accuracy(clusterer, X, classes, folds=3)
        ax.scatter(*X.T, c=found.labels_, s=5, cmap="viridis")
        ax.set_title(f"{shape}: {name}\n{accuracy[shape, name].mean:.0%} right", fontsize=10)
        ax.set(xticks=[], yticks=[])
        print(f"{shape:7s} {name:22s} {found.n_iter_:3d} iterations; {found.stop_reason_}")
assert accuracy["round", "prototype, strict"].mean > 0.9
assert accuracy["round", "naive Bayes, weighted"].mean > 0.9
for name in learners:
    assert (accuracy["tilted", name].mean > 0.9) == (name == "QDA, weighted")

# %%
# Colours are the clusters found; their numbers mean nothing. "Right" is
# :func:`bayes_lcs.clustering_accuracy`: every cluster foretells the class that most of its rows
# have, on rows that were left out, three folds over. The classes were never shown to a clusterer.
#
# Round clouds are easy. Of the tilted ones only the learner that knows about directions finds the
# classes: prototypes and naive Bayes cut them across, and a stump has one axis to cut. What the
# learner can say decides what can be found. The reverse does not hold: a good classifier is not
# yet a good clusterer, since clusters that a flexible learner can explain need not be there. The
# paper found supervised and unsupervised accuracy to go together in part; we made its tables
# again, and ``experiments/generalized_clustering`` says what held.
#
# The start matters
# -----------------
#
# Other learners than means and probabilities promise no ascent. So begin often, with ``n_init`` or
# as here with one start each, and look how far the results agree.

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
            found = bl.clustering_accuracy(clusterer, tilted, classes, folds=3)
            spread[name].append(found.mean)
print(f"{len(caught)} of 48 fits warned; the first: {caught[0].message}")
fig, ax = plt.subplots(figsize=(6.5, 2.4), layout="constrained")
for place, (name, values) in enumerate(spread.items()):
    ax.plot(values, np.full(8, place), "o", alpha=0.5)
    print(f"{name}: {min(values):.2f} to {max(values):.2f}")
ax.set_yticks(range(len(spread)), list(spread))
ax.set(xlabel="accuracy of eight starts on the tilted clouds", ylim=(-0.5, 1.5))
plt.show()
assert max(spread["prototype, strict"]) < np.median(spread["QDA, weighted"])
assert max(spread["QDA, weighted"]) - min(spread["QDA, weighted"]) > 0.05

# %%
# The same learner on the same rows: most starts find the classes and some do not. Some of those say
# so: a cluster has become so small that nothing can be learned of it. Others do not. Prototypes
# agree with each other, and are wrong every time: agreement is not truth.
#
# What to try next
# ----------------
#
# * Rows of names, or of names and numbers: give a data frame; ``nominal=`` says which columns are
#   names.
# * Any classifier of yours, with ``predict_proba`` or without; with ``assignment="weighted"``.
# * ``clusterer.trace_`` tells what changed in each iteration, ``stop_reason_`` whether the run
#   converged, went in circles or was cut off.
# * For naive Bayes on many rows use :class:`bayes_lcs.MixtureClusterer`, which is the same model.
#
# The theory: :doc:`/clustering`, section "A classifier inside", and :doc:`/theory/mixtures`.
