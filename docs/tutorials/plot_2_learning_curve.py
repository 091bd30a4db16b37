"""
How many rows are worth training on? Learning-curve sampling
============================================================

A mixture is to be fitted to more rows than it may be worth waiting for. Learning-curve sampling
trains on samples of growing size, measures what each added and what it cost, stops when the
next is not expected to be worth its time, and returns the best model.
"""

# %%
# Rows in bulk
# ------------
#
# Made-up visits to a site: 60,000 rows of 20 yes-or-no columns, from eight kinds of visitors. In
# earnest the source is an array, a data frame, a sparse matrix, or the path of a CSV or Parquet
# file, which is then read in pieces.

import matplotlib.pyplot as plt
import numpy as np

import bayes_lcs as bl

rng = np.random.default_rng(0)
habits = rng.beta(0.4, 1.2, size=(8, 20))
kinds = rng.choice(8, size=60_000, p=rng.dirichlet(np.full(8, 4.0)))
visits = (rng.random((60_000, 20)) < habits[kinds]).astype(int)
print(visits.shape, f"{visits.mean():.0%} of the cells are 1")

# %%
# What waiting is worth
# ---------------------
#
# ``alpha`` is the price of time: how much benefit is worth an hour, or in words, as here. Benefit
# is 0 for one component (independent columns) and 1 for full training on all rows, by the
# log-likelihood of rows that nothing is trained on. ``abbreviated="fixed-3"`` makes three
# iterations of EM a stage, and trains to the end on the first sample and where these say stop.

mixture = bl.MixtureClusterer(8, random_state=0)
found = bl.learning_curve_sample(
    mixture,
    visits,
    alpha="1% per second",
    initial_size=1_000,
    holdout_size=5_000,
    baseline_size=2_000,
    abbreviated="fixed-3",
    progress=False,
)
print(found.explain())

# %%
# There is a line for each stage. Times are those of the machine that built this page: on another
# one, or on another day, the run may stop one stage earlier or later, and so the text here says
# nothing about where. That is the nature of the method: the price of a row is measured and
# not assumed.
#
# The curve
# ---------

bl.plot_sampling_curve(found)
assert found.sample_size <= found.total_rows == 55_000
assert found.gain_interval[0] < found.gain < found.gain_interval[1]

# %%
# Points are stages: the score on the rows held out, against the size of the sample (the axis of
# sizes is logarithmic). Such curves rise steeply and then flatten, which is why most rows are
# often not worth their time. Bars are two standard errors over the rows held out. A stage may also
# fall: one falling step does not stop the run. The line of stopping puts both sides on one scale:

bl.plot_stopping_line(found)

# %%
# The run goes on while the gain expected per hour may lie above the price. What is known at its end
# are measurements: the score of the model on rows held out, its gain over one component, both with
# an interval, and the time. How much full training on all rows would have added is not known, since
# that is what was spared, and ``found.benefit`` is NaN unless all rows were used. Trained on all
# rows after all, it is known:

print(f"gain {found.gain:.3f}, 95 % interval {found.gain_interval}")
full = bl.learning_curve_sample(
    mixture, visits, method="full", holdout_size=5_000, baseline_size=2_000, progress=False
)
known = found.compared_with(full)
print(f"rows: {found.sample_size:,} of {found.total_rows:,}")
print(f"benefit {known.benefit:.3f}, 95 % interval {known.benefit_interval}")
print(f"seconds: {found.runtime_seconds:.1f}, and {full.runtime_seconds:.1f} for all rows")
assert known.benefit_interval[0] <= known.benefit <= known.benefit_interval[1]

# %%
# On data as small as these training on all rows at once may well be faster: compiling EM and
# training the first sample twice may cost more than all 55,000 rows. (The second run finds EM
# compiled already, so that the two times cannot be compared.) The method is for data on which full
# training takes minutes or hours; ``experiments/learning_curve`` has measurements up to two million
# rows.
#
# The model
# ---------
#
# ``found.model`` is the fitted clusterer: it predicts for any rows. Its clusters, the largest
# first, and the eight columns that tell most about them; blue marks what is more common in a
# cluster than on the whole:

bl.plot_mixture_profiles(found.model, max_features=8)
plt.show()

# %%
# What to try next
# ----------------
#
# * Another price: ``alpha="1% per 10 minutes"`` waits longer for the same gain.
# * ``alpha=0``: time costs nothing, and all rows are used.
# * ``components=[4, 8, 16]`` chooses the number of clusters together with the size of the sample.
# * Any estimator with ``fit`` and ``score``: try it with a classifier of scikit-learn and ``y=``.
# * ``bl.convergence_curves`` shows whether abbreviated training is fair on your data.
# * From a terminal: ``bayes-lcs cluster visits.parquet -k 8 --alpha 0.2 --out results``.
#
# The theory: :doc:`/learning_curve_sampling` (rules and costs) and :doc:`/theory/mixtures` (EM).
# What the paper claims, and what held when it was made again: ``experiments/learning_curve``.
