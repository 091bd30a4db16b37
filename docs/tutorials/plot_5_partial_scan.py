"""
Less than one scan of the data
==============================

A classifier is trained on each of many parts of a file, and their probabilities are averaged. When
the ensemble so far decides as that of all parts would, the rest of the file need not be read.
:class:`bayes_lcs.PartialScanClassifier` knows when that is, and with which confidence.
"""

# %%
# A file
# ------
#
# 40,000 made-up transactions in a CSV file, in no particular order; 4 % are frauds.

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
# Reading as much as it takes
# ---------------------------
#
# The file is divided into 128 parts, each of rows from all over the file. ``label`` is the column
# to predict; ``classes`` says which labels there are, so that the rule need not reckon with others.
# By default there would be 30 parts of 1,000 rows: fewer parts are better models, and more of them
# save more reading.

classifier = bl.PartialScanClassifier("naive_bayes", n_partitions=128, random_state=0)
classifier.fit_file(path, label="kind", classes=["fraud", "honest"], progress=False)
print(classifier.scan_.explain())
bl.plot_scan(classifier)
assert classifier.scanned_fraction_ < 0.5

# %%
# Read the picture from left to right. Blue is the share of the validation rows on which the
# decision is settled: the parts still to come could hardly turn it. At 90 % (the rest is the
# ``tolerance``) reading stops, and the grey part of the file is never read. Orange is what the
# ensemble expects of its decisions, here the share that is right.
#
# What was lost? Nothing much, against one whole scan:

whole = bl.PartialScanClassifier("naive_bayes", n_partitions=128, early_stop=False, random_state=0)
whole.fit_file(path, label="kind", classes=["fraud", "honest"], progress=False)
X, y = test.drop(columns="kind"), test["kind"]
same = (classifier.predict(X) == whole.predict(X)).mean()
print(f"accuracy: {classifier.score(X, y):.4f} of part of the file, {whole.score(X, y):.4f} of all")
print(f"the same decision for {same:.1%} of 10,000 new rows")
assert same > 0.9

# %%
# What exactly is promised
# ------------------------
#
# ``guarantee_`` is a sentence with all its conditions. It is about the decisions of the ensemble
# of *all parts*, not about the truth; on the validation rows; and over the random order of the
# parts. As the parts are scattered over the file, it holds even if the file is sorted. For the
# truth, ``performance`` compares decisions for the validation rows, which were held out of
# training, with those of a single model.
#
# With ``shuffle=False`` parts are read as they lie, as in the paper. Then nothing is guaranteed
# unless all is read; and if neighbouring parts are more alike than others, that is noticed. The
# same rows, sorted by amount:

print(classifier.guarantee_)
print(classifier.scan_.performance.explain())
by_amount = Path(folder.name) / "sorted.csv"
frame.iloc[:30_000].sort_values("amount").to_csv(by_amount, index=False)
options = {"n_partitions": 128, "random_state": 0}
trapped = bl.PartialScanClassifier("naive_bayes", shuffle=False, **options)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trapped.fit_file(by_amount, label="kind", classes=["fraud", "honest"], progress=False)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")
print(trapped.guarantee_)
assert any(issubclass(warning.category, bl.DriftWarning) for warning in caught)
scattered = bl.PartialScanClassifier("naive_bayes", random_state=0)
scattered.fit_file(by_amount, label="kind", classes=["fraud", "honest"], progress=False)
print(f"accuracy as it lies {trapped.score(X, y):.4f}, scattered {scattered.score(X, y):.4f}")
assert scattered.scan_.is_guaranteed
assert not trapped.scan_.is_guaranteed

# %%
# With ``on_drift="read_on"`` reading then goes on.
#
# For money
# ---------
#
# To look into a transaction costs 5; a fraud that is found saves its amount. The decision is the
# one that is expected to bring most, so it depends on the amount. Such decisions are closer
# calls, and take more reading.

benefit = {("fraud", "fraud"): ("amount", -5.0), ("honest", "fraud"): -5.0}
careful = bl.PartialScanClassifier("naive_bayes", n_partitions=128, benefit=benefit, random_state=0)
careful.fit_file(path, label="kind", classes=["fraud", "honest"], progress=False)
print(f"read for money {careful.scanned_fraction_:.0%} of the file,")
print(f"for accuracy {classifier.scanned_fraction_:.0%}")
brought = {}
for name, decided in (
    ("for money", careful.predict(X)),
    ("for accuracy", classifier.predict(X)),
    ("look at all", np.full(len(y), "fraud")),
):
    looked, found = decided == "fraud", (decided == "fraud") & (y == "fraud")
    brought[name] = float(X.loc[found, "amount"].sum() - 5.0 * looked.sum())
    print(f"{name:12s} looks into {looked.sum():6,d} of {len(y):,}, brings {brought[name]:8,.0f}")
assert max(brought, key=brought.get) == "for money"
assert careful.scanned_fraction_ > classifier.scanned_fraction_
plt.show()
folder.cleanup()

# %%
# What to try next
# ----------------
#
# * ``"tree"`` in place of naive Bayes, or any classifier of scikit-learn with probabilities.
# * More and smaller parts: rows on which all agree are settled after a dozen, however many there
#   are in all.
# * ``tolerance``, ``confidence``; ``rule="every"`` and ``bound="hoeffding"``, the paper's own.
# * From a terminal: ``bayes-lcs scan transactions.csv --label kind --learner tree --out results``.
#
# The theory: :doc:`/theory/partial_scans`; all options: :doc:`/partial_scan`. What the paper
# claims, and what held: ``experiments/partial_scan``.
