"""
How to read evidence and partitions
===================================

This tutorial explains what a log evidence says and what it does not, why there is sometimes no
verdict, what a posterior over partitions is, and how to report one partition without hiding the
others. Everything is run on one small table whose truth is known.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

import bayes_lcs as bl

table, truth = bl.meeting_requests(seed=0, rows_per_person=8)
data = table.select_groups(range(12))
model = bl.ClusteredNaiveBayes()
print(data)

# %%
# Log evidence
# ------------
#
# The evidence of a model is the probability of the data before they were observed, integrated over
# everything unknown: parameters, and for the clustered model all partitions. It is a tiny number,
# so its logarithm is reported, in nats. A single value has no meaning, because it decreases with
# every row. Only *differences between models on the same rows* are meaningful. Such a difference
# is a log Bayes factor:
#
# ============  ============== =====================================
# nats           odds           in words (Kass and Raftery 1995)
# ============  ============== =====================================
# below 1        below 3 to 1   barely worth a mention
# 1 to 3         3 to 20        positive
# 3 to 5         20 to 150      strong
# above 5        above 150      very strong
# ============  ============== =====================================
#
# The evidence evaluates the model *with its priors*, on features and labels together. It does not
# measure how well labels are predicted: for that see :func:`bayes_lcs.leave_one_out`, or
# ``conditional=True``, which gives the evidence of the labels given the features.

comparison = bl.compare([bl.NoSharing(), bl.CompleteSharing(), model], data, seed=0)
print(comparison.table()[["model", "log_evidence", "log_bayes_factor", "method"]].to_string())
print(comparison.verdict())
assert comparison.verdict().startswith("The data support Clustered Naive Bayes positively")

# %%
# Intervals, and no verdict
# -------------------------
#
# The three values above have no error: two are closed forms, and one is an exact sum over all
# partitions. Estimated values have a standard error and a 95 % interval, and everything derived
# from them (Bayes factors, probabilities of models) has an interval as well. Here are two
# prototype models that hardly differ:

close = bl.compare(
    [bl.Prototype(label_prior=1.0), bl.Prototype(label_prior=1.005)], data, precision=0.2, seed=0
)
print(close.table()[["log_evidence", "lower", "upper", "standard_error"]].to_string())
print(close.verdict())
assert close.verdict().startswith("No verdict")

# %%
# The difference is smaller than the possible error of the estimates. So there is no verdict, and
# the order of the table has no meaning. Ask for a smaller error with ``precision=``, or accept
# that the models cannot be distinguished, which is usual if the factor is below three to one.
#
# The bracket
# -----------
#
# Evidence without a closed form is estimated by annealed importance sampling or by SMC. Runs that
# start from the prior tend to underestimate it (the estimate of the evidence is unbiased, so that
# of the logarithm is too low on average). Runs that start from the posterior and go backwards tend
# to overestimate it. If both agree, the value can be trusted; if they do not, there is a warning,
# and the truth is most likely between them. Here are the last six people, whose evidence is also
# known exactly:

few = data.select_groups(range(6, 12))
annealed = bl.evidence(model, few, method="ais", precision=0.2, seed=0, progress=False)
ends = annealed.bracket
print(f"from the prior     {ends.forward.value:10.3f} ± {ends.forward.standard_error:.3f}")
print(f"from the posterior {ends.reverse.value:10.3f} ± {ends.reverse.standard_error:.3f}")
known = bl.exact(model, few).log_evidence
print(f"exact              {known:10.3f}")
print(f"the two ends agree: {ends.agrees}")
assert ends.agrees
assert abs(annealed.value - known) < 5 * annealed.standard_error

# %%
# ``bracket.rigorous`` says whether the runs from the posterior started at exact draws. If they
# started at draws of a chain, the upper end is as good as that chain.
#
# Sensitivity to priors
# ---------------------
#
# The evidence depends on the priors, so do not report it for one setting only. A check is cheap:

settings = [0.25, 0.5, 1.0, 2.0, 4.0]
curves = {
    "No-Sharing": [bl.evidence(bl.NoSharing(feature_prior=b), data).value for b in settings],
    "Complete-Sharing": [
        bl.evidence(bl.CompleteSharing(feature_prior=b), data).value for b in settings
    ],
}
for concentration in (0.3, 1.0, 3.0):
    curves[f"Clustered, concentration {concentration}"] = [
        bl.exact(
            bl.ClusteredNaiveBayes(feature_prior=b, concentration=concentration), data
        ).log_evidence
        for b in settings
    ]
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, values in curves.items():
    ax.plot(settings, values, "o-", markersize=4, label=name)
ax.set(xscale="log", xlabel="feature prior (pseudo-counts a value)", ylabel="log evidence")
ax.legend(fontsize=8)
ax.grid(alpha=0.25)
clustered = np.max([v for name, v in curves.items() if name.startswith("Clustered")], axis=0)
complete = np.array(curves["Complete-Sharing"])
print("feature prior          ", *(f"{b:7.2f}" for b in settings))
print("clustered over complete", *(f"{d:7.1f}" for d in clustered - complete))
assert (clustered > complete).any()
assert (clustered < complete).any()
assert (np.minimum(clustered, complete) > np.array(curves["No-Sharing"]) + 50).all()

# %%
# No sharing is excluded for every prior. But whether people form clusters or are all alike depends
# on the prior of the features: at a feature prior of 1 clusters are ahead by 2.3 nats, at 2 they
# are behind. So the verdict above, "positively", comes from that prior and not from the data.
# Eight requests per person are too few to decide. The concentration hardly matters. If the order
# depends on a setting, say so; or give it a prior and let the data weight the settings:
# ``feature_prior=bl.Gamma(1.0, 1.0)`` and ``concentration=bl.Gamma(1.0, 1.0)`` are learned.
#
# A posterior over partitions
# ---------------------------
#
# The knowledge about which people belong together is a distribution over partitions. Up to 24
# groups it is exact; for more groups it is a set of draws. Here are draws for the same table, so
# that they can be compared with the exact values:

exact = bl.exact(model, data)
post = bl.sample(model, data, draws=500, chains=4, seed=0, progress=False)
draws = post.partitions()
different, times = np.unique(draws, axis=0, return_counts=True)
print(f"{len(different)} different partitions in {len(draws)} draws; the five most frequent:")
for z, share in sorted(zip(different, times / len(draws), strict=True), key=lambda p: -p[1])[:5]:
    print(f"  {share:.3f} (exact {np.exp(exact.log_probability(z)):.3f})", *z)
print("the last draw:   ", *draws[-1])
assert len(different) > 5
assert times.max() / len(draws) < 0.5

# %%
# *The last draw is not "the clustering".* It is one of many, and so is the most frequent one,
# which has less than half of the probability here. The answer is what the draws have in common.
#
# The co-clustering matrix has the probability of each pair. It needs no alignment of labels and
# keeps all uncertainty about pairs:

matrix = post.coclustering()
error = abs(matrix - exact.coclustering()).max()
print(f"largest error of a pair against the exact sum: {error:.3f}")
bl.plot_coclustering(matrix, post.partition(), post.group_names)
assert error < 0.1

# %%
# One partition to report
# -----------------------
#
# If one partition has to be reported, take the one with the least expected distance from the
# truth. Two distances are available. Binder's loss is the share of pairs that are wrongly together
# or apart. The variation of information, the default, is the information that each partition lacks
# about the other, in nats per group. The estimate has a *credible ball*: all partitions within a
# radius that contains 95 % of the posterior. Its extremes show how different the truth may be.

for loss in ("vi", "binder"):
    estimate = post.partition_estimate(loss=loss)
    ball = estimate.ball
    print(f"{loss:6s} estimate      ", *estimate.partition)
    print("       coarsest in ball", *ball.coarsest)
    print("       finest in ball  ", *ball.finest)
    print("       farthest in ball", *ball.farthest, f" radius {ball.radius:.3f}")
    assert not np.array_equal(estimate.partition, exact.map_partition())
print("       truth           ", *truth.partition[:12])

# %%
# The estimate is not the most probable partition. The three most probable ones disagree about the
# cluster of person-12; leaving this person alone is the least wrong on average.
#
# If the extremes of the ball would lead to other conclusions than the estimate, the data do not
# decide the question, and the report should say so.
#
# Have the chains converged?
# --------------------------
#
# Cluster numbers are arbitrary, so R-hat of ``z`` has no meaning. The diagnostics use quantities
# that do not change if clusters are renumbered: the number of clusters, the size of the largest,
# the entropy of the sizes and the log joint density.

for name, values in post.diagnostics().items():
    print(f"{name:13s}", {key: round(float(value), 3) for key, value in values.items()})
plt.show()

# %%
# R-hat compares chains with different initial partitions (all groups together, each alone,
# random): above 1.01 they do not agree yet. Fewer than 400 effective draws are not enough for
# tails. A constant quantity has no R-hat: either the posterior is that certain, or all chains are
# stuck; ``bl.sample`` warns in each case and says what to do.
#
# What to try next
# ----------------
#
# * The same with ``rows_per_person=60``: the posterior becomes certain, and the diagnostics say
#   that nothing varied.
# * ``bl.compare(models, data, conditional=True)``: evidence of the labels given the features.
# * ``bl.leave_one_out(post)``: how well rows are predicted from all others.
#
# The theory is in :doc:`/theory/evidence` and :doc:`/theory/partitions`.
