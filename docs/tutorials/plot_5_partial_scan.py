"""
Less than one scan of the data
==============================

A classifier is trained on each of many parts of a file, and the predicted probabilities are
averaged. If the ensemble so far decides like the ensemble of all parts would, the rest of the file
need not be read. :class:`bayes_lcs.PartialScanClassifier` tests this with a stated confidence.
"""

# %%
# A file
# ------
#
# 30,000 simulated transactions in a CSV file, in random order, and 10,000 more to test on; 4 % are
# frauds.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayes_lcs as bl

rng = np.random.default_rng(0)
size = 40_000
fraud = rng.random(size) < 0.04
frame = pd.DataFrame(
    {
        "amount": np.exp(rng.normal(3.2 + 1.6 * fraud, 1.0)).round(2),
        "hour": np.where(fraud, rng.integers(0, 9, size), rng.integers(6, 24, size)),
        "country": np.where(
            fraud & (rng.random(size) < 0.5), "abroad", rng.choice(["home", "near"], size)
        ),
        "kind": np.where(fraud, "fraud", "honest"),
    }
)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "transactions.csv"
frame.iloc[:30_000].to_csv(path, index=False)
test = frame.iloc[30_000:]
print(frame.head(4).to_string(index=False))

# %%
# Reading as much as necessary
# ----------------------------
#
# The file is divided into 128 parts, each with rows from all over the file. ``label`` is the
# column to predict; ``classes`` lists its values, so that the rule need not allow for others. The
# default would be 30 parts of 1,000 rows. Fewer parts give better models, and more parts save more
# reading.

classifier = bl.PartialScanClassifier("naive_bayes", n_partitions=128, random_state=0)
classifier.fit_file(path, label="kind", classes=["fraud", "honest"], progress=False)
print(classifier.scan_.explain())
bl.plot_scan(classifier)
assert classifier.scanned_fraction_ < 0.5

# %%
# Read the plot from left to right. Blue is the share of validation rows whose decision is settled:
# the remaining parts are unlikely to change it. At 90 % (the rest is the ``tolerance``) reading
# stops, and the grey part of the file is not read. Orange is the performance that the ensemble
# expects of its decisions, here the accuracy.
#
# The loss against a scan of the whole file is small:

whole = bl.PartialScanClassifier("naive_bayes", n_partitions=128, early_stop=False, random_state=0)
whole.fit_file(path, label="kind", classes=["fraud", "honest"], progress=False)
X, y = test.drop(columns="kind"), test["kind"]
same = (classifier.predict(X) == whole.predict(X)).mean()
print(f"accuracy: {classifier.score(X, y):.4f} with early stop, {whole.score(X, y):.4f} without")
print(f"the same decision for {same:.1%} of 10,000 new rows")
assert same > 0.9

# %%
# What exactly is guaranteed
# --------------------------
#
# ``guarantee_`` is a sentence with all conditions. It is about the decisions of the ensemble of
# *all parts*, not about the true labels; about the validation rows; and over the random order of
# the parts. Since each part has rows from all over the file, it holds even if the file is sorted.
# For the true labels, ``performance`` compares decisions on the validation rows, which are not
# trained on, with those of a single model.
#
# With ``shuffle=False`` parts are read in file order, as in the paper. Then nothing is guaranteed
# unless all is read. If neighbouring parts are more alike than others, this is detected and gives
# a warning. Here are the same rows, sorted by amount:

print(classifier.guarantee_)
print(classifier.scan_.performance.explain())
by_amount = Path(folder.name) / "sorted.csv"
frame.iloc[:30_000].sort_values("amount").to_csv(by_amount, index=False)
options = {"n_partitions": 128, "random_state": 0}
in_file_order = bl.PartialScanClassifier("naive_bayes", shuffle=False, **options)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    in_file_order.fit_file(by_amount, label="kind", classes=["fraud", "honest"], progress=False)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")
print(in_file_order.guarantee_)
assert any(issubclass(warning.category, bl.DriftWarning) for warning in caught)
scattered = bl.PartialScanClassifier("naive_bayes", random_state=0)
scattered.fit_file(by_amount, label="kind", classes=["fraud", "honest"], progress=False)
print(f"accuracy in file order {in_file_order.score(X, y):.4f}")
print(f"accuracy of scattered parts {scattered.score(X, y):.4f}")
assert scattered.scan_.is_guaranteed
assert not in_file_order.scan_.is_guaranteed

# %%
# With ``on_drift="read_on"`` reading then continues.
#
# Maximising benefit
# ------------------
#
# To inspect a transaction costs 5; a detected fraud saves its amount. The decision is the one with
# the greatest expected benefit, so it depends on the amount. Such decisions are closer, and need
# more reading.

benefit = {("fraud", "fraud"): ("amount", -5.0), ("honest", "fraud"): -5.0}
careful = bl.PartialScanClassifier("naive_bayes", n_partitions=128, benefit=benefit, random_state=0)
careful.fit_file(path, label="kind", classes=["fraud", "honest"], progress=False)
print(f"read for benefit {careful.scanned_fraction_:.0%} of the file,")
print(f"for accuracy {classifier.scanned_fraction_:.0%}")
gained = {}
for name, decided in (
    ("for benefit", careful.predict(X)),
    ("for accuracy", classifier.predict(X)),
    ("inspect all", np.full(len(y), "fraud")),
):
    inspected, found = decided == "fraud", (decided == "fraud") & (y == "fraud")
    gained[name] = float(X.loc[found, "amount"].sum() - 5.0 * inspected.sum())
    print(f"{name:12s} inspects {inspected.sum():6,d} of {len(y):,}, gains {gained[name]:8,.0f}")
assert max(gained, key=gained.get) == "for benefit"
assert careful.scanned_fraction_ > classifier.scanned_fraction_
plt.show()
folder.cleanup()

# %%
# What to try next
# ----------------
#
# * ``"tree"`` instead of naive Bayes, or any scikit-learn classifier with probabilities.
# * More and smaller parts: rows on which all models agree are settled after a dozen, whatever the
#   number of parts.
# * ``tolerance``, ``confidence``; ``rule="every"`` and ``bound="hoeffding"``, which are the
#   paper's.
# * From a terminal: ``bayes-lcs scan transactions.csv --label kind --learner tree --out results``.
#
# The theory is in :doc:`/theory/partial_scans`, and all options are in :doc:`/partial_scan`. The
# paper's claims, and which of them were reproduced: ``experiments/partial_scan``.
