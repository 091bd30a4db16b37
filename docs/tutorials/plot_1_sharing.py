"""
Should groups share? Evidence and partitions
============================================

The same decision is recorded for many people. Does everybody decide alike, everybody for
themselves, or are there a few kinds of people? Four models say it in four ways, and the evidence
of the data says which of them to believe.
"""

# %%
# Data in groups
# --------------
#
# :func:`bayes_lcs.meeting_requests` makes up people who accept or reject meeting requests, each
# described by 15 features. It knows the truth: who decides like whom. Here are 15 of the people
# with 12 requests each, few enough that the answer is in doubt (other seeds leave less), and 40
# more of everybody to predict later. Your own data come from
# ``bl.read_grouped("meetings.csv", group="user", label="decision")``, or from a data frame by
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
# Four answers
# ------------
#
# ``NoSharing`` gives every person a naive Bayes model of their own, ``CompleteSharing`` one to all
# of them. Under ``Prototype`` everybody is a noisy copy of one; under ``ClusteredNaiveBayes`` some
# people have the same model, and who does is not known. :func:`bayes_lcs.compare` reckons how
# probable the data are under each of them, all parameters (and all partitions) integrated out.

models = [bl.NoSharing(), bl.CompleteSharing(), bl.Prototype(), bl.ClusteredNaiveBayes()]
comparison = bl.compare(models, data, seed=0)
print(comparison)
bl.plot_evidence([comparison.evidences[i] for i in comparison.order])
assert comparison.names[comparison.order[0]] == "Clustered Naive Bayes"

# %%
# Bars show how many nats (units of the natural logarithm) a model lies below the best one, so the
# best has no bar. A difference of 20 nats is odds of half a billion to one. The line at the end
# of a bar is a 95 % interval, which for three of the four has no width: two have a closed form, and
# the clustered model was summed over all 1,382,958,545 partitions of 15 people by a recursion over
# subsets. Only the prototype's integrals are estimated, and their error is far below the
# differences, so there is a verdict.
#
# Who decides like whom?
# ----------------------
#
# The exact posterior of the clustered model says how probably each two people belong together.

posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
together = posterior.coclustering()
best = posterior.map_partition()
bl.plot_coclustering(together, best, posterior.group_names)

# %%
# Dark squares are people who almost surely share. They are ordered by the most probable partition,
# whose blocks have frames. Shades between dark and white, inside of a frame or outside, are pairs
# about which the data are not sure: a single partition hides that, the matrix shows it.

probability = np.exp(posterior.log_probability(best))
print(f"the most probable partition has probability {probability:.2f}")
for block in np.unique(best):
    members = np.flatnonzero(best == block)
    numbers = " ".join(posterior.group_names[u].removeprefix("person-") for u in members)
    print(f"cluster {block + 1}: people {numbers} ({institutions[members[0]]})")
assert probability < 0.9
for block in np.unique(best):
    assert len({institutions[u] for u in np.flatnonzero(best == block)}) == 1

# %%
# Every cluster lies in one institution, which the model was not told. It does not find all that is
# true: the truth has smaller blocks of people who resemble each other, and 12 requests are not
# enough to tell these apart. That is what evidence does with few rows: it makes no more
# distinctions than the data pay for. Here is how sure the number of clusters is.

bl.plot_num_clusters(posterior.num_clusters())
print("clusters in the truth:", len(np.unique(truth.partition[:15])))
assert len(np.unique(best)) < len(np.unique(truth.partition[:15]))

# %%
# What tells them apart
# ---------------------
#
# One column a cluster: blue values speak for accepting, red ones against it, white ones say
# nothing.

ax = bl.plot_cluster_profiles(bl.ClusteredNaiveBayes(), data, best)
ax.figure.set_figheight(13)

# %%
# Predictions and decisions
# -------------------------
#
# A prediction averages over all partitions, also for a person never seen (who joins a cluster, or
# none). A decision weighs the probabilities by what mistakes cost.

losses = {}
for model in (bl.ClusteredNaiveBayes(), bl.CompleteSharing(), bl.NoSharing()):
    proba = bl.exact(model, data).predict_proba(later)
    losses[model.name] = bl.mean_loss(proba, later.labels, "log")
    found = losses[model.name]
    print(f"{model.name:22s} log loss {found.value:.3f} ± {found.standard_error:.3f}")
least = losses.pop("Clustered Naive Bayes").value
assert all(least < other.value for other in losses.values())

proba = posterior.predict_proba(later)
# A missed meeting costs four, a meeting for nothing one.
missed_costs_four = 4.0 * proba[:, 1] > proba[:, 0]
print(f"accepted: {(proba[:, 1] > 0.5).mean():.0%}, and {missed_costs_four.mean():.0%} if a missed")
print("meeting costs four times a meeting for nothing")
plt.show()

# %%
# What to try next
# ----------------
#
# * More requests: set ``rows_per_person=60`` and see clusters split into the true blocks.
# * More people than can be summed over (the limit is 24): :func:`bayes_lcs.sample` draws
#   partitions in their place; :ref:`sphx_glr_auto_tutorials_plot_6_reading.py` shows how to read
#   them.
# * The same as a scikit-learn classifier: :class:`bayes_lcs.SharedNaiveBayesClassifier`.
# * From a terminal: ``bayes-lcs compare meetings.csv --group user --label decision --out results``.
#
# The theory: :doc:`/theory/models`, :doc:`/theory/partitions` and :doc:`/theory/evidence`. What
# was found on the data of the thesis's shape, and on real people:
# ``experiments/clustered_naive_bayes``.
