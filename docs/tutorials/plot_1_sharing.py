"""
Should groups share? Evidence and partitions
============================================

The same decision is recorded for many people. Do all people decide alike, does each decide
independently, or are there a few kinds of people? Four models represent these hypotheses, and the
evidence of the data compares them.
"""

# %%
# Data in groups
# --------------
#
# :func:`bayes_lcs.meeting_requests` simulates people who accept or reject meeting requests, each
# described by 15 features. The truth is known: which people decide alike. This example uses 15 of
# the people with 12 requests each, few enough that the answer is uncertain (less so for other
# seeds), and 40 more requests of each person to predict later. Read your own data with
# ``bl.read_grouped("meetings.csv", group="user", label="decision")``, or from a data frame with
# ``bl.GroupedTable.from_frame``.

import matplotlib.pyplot as plt
import numpy as np

import bayes_lcs as bl

table, truth = bl.meeting_requests(seed=2, rows_per_person=52)
table = table.select_groups(range(15))
is_early = np.arange(table.num_rows) % 52 < 12
data, later = table.take(np.flatnonzero(is_early)), table.take(np.flatnonzero(~is_early))
institutions = truth.institutions[:15]
print(data)
print(data.to_frame().iloc[:3, :6].to_string(index=False))

# %%
# Four models
# -----------
#
# ``NoSharing`` gives every person a separate naive Bayes model, and ``CompleteSharing`` gives all
# of them the same. Under ``Prototype`` each person is a noisy copy of one prototype. Under
# ``ClusteredNaiveBayes`` some people share a model, and who does is unknown.
# :func:`bayes_lcs.compare` computes the probability of the data under each model, integrated over
# all parameters and all partitions.

models = [bl.NoSharing(), bl.CompleteSharing(), bl.Prototype(), bl.ClusteredNaiveBayes()]
comparison = bl.compare(models, data, seed=0)
print(comparison)
bl.plot_evidence([comparison.evidences[i] for i in comparison.order])
assert comparison.names[comparison.order[0]] == "Clustered Naive Bayes"

# %%
# Bars show how many nats (units of the natural logarithm) the log evidence of a model lies below
# the best one, so the best model has no bar. A difference of 20 nats corresponds to odds of half a
# billion to one. The line at the end of a bar is a 95 % interval. It has no width for three of the
# four models: two have a closed form, and the clustered model was summed over all 1,382,958,545
# partitions of 15 people by a recursion over subsets. Only the prototype's integrals are
# estimated, and their error is far below the differences, so there is a verdict.
#
# Who decides alike?
# ------------------
#
# The exact posterior of the clustered model gives the probability that two people are in one
# cluster.

posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
together = posterior.coclustering()
best = posterior.map_partition()
bl.plot_coclustering(together, best, posterior.group_names)

# %%
# Dark squares are pairs who almost surely share a model. People are ordered by the most probable
# partition, whose clusters have frames. Intermediate shades, inside or outside a frame, are pairs
# about which the data are uncertain. A single partition hides this uncertainty; the matrix shows
# it.

probability = np.exp(posterior.log_probability(best))
print(f"the most probable partition has probability {probability:.2f}")
for cluster in np.unique(best):
    members = np.flatnonzero(best == cluster)
    numbers = " ".join(posterior.group_names[u].removeprefix("person-") for u in members)
    print(f"cluster {cluster + 1}: people {numbers} ({institutions[members[0]]})")
assert probability < 0.9
for cluster in np.unique(best):
    assert len({institutions[u] for u in np.flatnonzero(best == cluster)}) == 1

# %%
# Every cluster lies within one institution, although the model does not use institutions. The
# partition is coarser than the truth, which has smaller clusters of people who resemble each
# other: 12 requests are not enough to distinguish these. With few rows, evidence supports only as
# many distinctions as the data justify. The next plot shows the posterior of the number of
# clusters.

bl.plot_num_clusters(posterior.num_clusters())
print("clusters in the truth:", len(np.unique(truth.partition[:15])))
assert len(np.unique(best)) < len(np.unique(truth.partition[:15]))

# %%
# What distinguishes the clusters
# -------------------------------
#
# Each column is a cluster. Blue values are evidence for accepting, red ones against it, and white
# ones are uninformative.

ax = bl.plot_cluster_profiles(bl.ClusteredNaiveBayes(), data, best)
ax.figure.set_figheight(13)

# %%
# Predictions and decisions
# -------------------------
#
# A prediction averages over all partitions, also for an unseen person (who joins a cluster or
# forms a new one). A decision weights the probabilities by the cost of errors.

losses = {}
for model in (bl.ClusteredNaiveBayes(), bl.CompleteSharing(), bl.NoSharing()):
    proba = bl.exact(model, data).predict_proba(later)
    losses[model.name] = bl.mean_loss(proba, later.labels, "log")
    loss = losses[model.name]
    print(f"{model.name:22s} log loss {loss.value:.3f} ± {loss.standard_error:.3f}")
least = losses.pop("Clustered Naive Bayes").value
assert all(least < other.value for other in losses.values())

proba = posterior.predict_proba(later)
# A missed meeting costs four, an unnecessary one costs one.
missed_costs_four = 4.0 * proba[:, 1] > proba[:, 0]
print(f"accepted: {(proba[:, 1] > 0.5).mean():.0%}, and {missed_costs_four.mean():.0%} if a missed")
print("meeting costs four times as much as an unnecessary one")
plt.show()

# %%
# What to try next
# ----------------
#
# * More requests: set ``rows_per_person=60``; the clusters then split into the true ones.
# * More people than can be summed over (the limit is 24): :func:`bayes_lcs.sample` draws
#   partitions instead; :ref:`sphx_glr_auto_tutorials_plot_6_reading.py` shows how to read them.
# * A scikit-learn classifier with the same models: :class:`bayes_lcs.SharedNaiveBayesClassifier`.
# * From a terminal: ``bayes-lcs compare meetings.csv --group user --label decision --out
#   results``.
#
# The theory is in :doc:`/theory/models`, :doc:`/theory/partitions` and :doc:`/theory/evidence`.
# Results on data of the thesis's shape, and on real people, are in
# ``experiments/clustered_naive_bayes``.
