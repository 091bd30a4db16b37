"""
How many rows are worth training on? Learning-curve sampling
============================================================

A mixture is to be fitted to more rows than may be worth the time. Learning-curve sampling trains
on samples of growing size, measures the gain and the cost of each, stops when the next sample is
not expected to be worth its time, and returns the best model.
"""

# %%
# Rows in bulk
# ------------
#
# The data are simulated visits to a web site: 60,000 rows of 20 binary columns, from eight kinds
# of visitors. In practice the source is an array, a data frame, a sparse matrix, or the path of a
# CSV or Parquet file, which is then read in batches.

import matplotlib.pyplot as plt
import numpy as np

import bayes_lcs as bl

rng = np.random.default_rng(0)
habits = rng.beta(0.4, 1.2, size=(8, 20))
kinds = rng.choice(8, size=60_000, p=rng.dirichlet(np.full(8, 4.0)))
visits = (rng.random((60_000, 20)) < habits[kinds]).astype(int)
print(visits.shape, f"{visits.mean():.0%} of the cells are 1")

# %%
# The price of time
# -----------------
#
# ``alpha`` is the price of time: the benefit that is worth one hour, or a text, as here. Benefit
# is 0 for one component (independent columns) and 1 for full training on all rows, measured by the
# log-likelihood of hold-out rows. ``abbreviated="fixed-3"`` makes three iterations of EM per
# stage, and trains to convergence on the first sample and at the stage where these runs stop.

mixture = bl.MixtureClusterer(8, random_state=0)
result = bl.learning_curve_sample(
    mixture,
    visits,
    alpha="1% per second",
    initial_size=1_000,
    holdout_size=5_000,
    baseline_size=2_000,
    abbreviated="fixed-3",
    progress=False,
)
print(result.explain())

# %%
# There is one line for each stage. Times are those of the machine that built this page. In another
# run the method may stop one stage earlier or later, because the cost of a row is measured and not
# assumed. The text therefore does not say where it stops.
#
# The curve
# ---------

bl.plot_sampling_curve(result)
assert result.sample_size <= result.total_rows == 55_000
assert result.gain_interval[0] < result.gain < result.gain_interval[1]

# %%
# Points are stages: the hold-out score against the size of the sample, on a logarithmic axis. Such
# curves rise steeply and then flatten, which is why most rows are often not worth their time. Bars
# are two standard errors over the hold-out rows. The score may also decrease at a stage: one
# decrease does not stop the run. The next plot shows both sides of the stopping rule on one scale:

bl.plot_stopping_line(result)

# %%
# The run continues while the expected gain per hour may lie above the price. Its results are
# measurements: the hold-out score of the model, its gain over one component, both with an
# interval, and the time. The gain of full training is unknown, because full training was avoided,
# so ``result.benefit`` is NaN unless all rows were used. Training on all rows makes it known:

print(f"gain {result.gain:.3f}, 95 % interval {result.gain_interval}")
full = bl.learning_curve_sample(
    mixture, visits, method="full", holdout_size=5_000, baseline_size=2_000, progress=False
)
known = result.compared_with(full)
print(f"rows: {result.sample_size:,} of {result.total_rows:,}")
print(f"benefit {known.benefit:.3f}, 95 % interval {known.benefit_interval}")
print(f"seconds: {result.runtime_seconds:.1f}, and {full.runtime_seconds:.1f} for all rows")
assert known.benefit_interval[0] <= known.benefit <= known.benefit_interval[1]

# %%
# On data as small as these, training on all rows at once may be faster: compiling EM and training
# the first sample twice may cost more than all 55,000 rows. (The second run uses the compiled EM
# of the first, so the two times cannot be compared.) The method is for data on which full training
# takes minutes or hours; ``experiments/learning_curve`` has measurements with up to two million
# rows.
#
# The model
# ---------
#
# ``result.model`` is the fitted clusterer, which predicts for any rows. The plot shows its
# clusters, the largest first, and the eight most informative columns; blue marks values that are
# more frequent in a cluster than overall:

bl.plot_mixture_profiles(result.model, max_features=8)
plt.show()

# %%
# What to try next
# ----------------
#
# * Another price: ``alpha="1% per 10 minutes"`` waits longer for the same gain.
# * ``alpha=0``: time costs nothing, and all rows are used.
# * ``components=[4, 8, 16]`` chooses the number of clusters together with the size of the sample.
# * Any estimator with ``fit`` and ``score``: try a scikit-learn classifier and ``y=``.
# * From a terminal: ``bayes-lcs cluster visits.parquet -k 8 --alpha 0.2 --out results``.
#
# The theory is in :doc:`/learning_curve_sampling` (rules and costs) and :doc:`/theory/mixtures`
# (EM). The paper's claims, and which of them were reproduced: ``experiments/learning_curve``.
