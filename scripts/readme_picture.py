"""Draw the picture of the README, on the table of the first tutorial.

python scripts/readme_picture.py docs/sharing.png
"""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import bayes_lcs as bl

mpl.use("Agg")
table, _ = bl.meeting_requests(seed=2, rows_per_person=52)
table = table.select_groups(range(15))
data = table.take(np.flatnonzero(np.arange(table.num_rows) % 52 < 12))
models = [bl.NoSharing(), bl.CompleteSharing(), bl.Prototype(), bl.ClusteredNaiveBayes()]
comparison = bl.compare(models, data, seed=0)
posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
fig, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.8), layout="constrained", width_ratios=(1, 1.1)
)
bl.plot_evidence([comparison.evidences[i] for i in comparison.order], left)
left.set_title("Which model do the data support?")
left.set_xlabel("nats below the best (shorter is better)")
bl.plot_coclustering(
    posterior.coclustering(), posterior.map_partition(), posterior.group_names, right
)
right.set_title("Who decides like whom?")
right.tick_params(labelsize=8)
fig.savefig(sys.argv[1], dpi=100)
