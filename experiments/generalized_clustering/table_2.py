"""Table 2: accuracy of clusters made with the four learners, strict and weighted."""

from __future__ import annotations

from bayes_lcs.clustering.generalized.estimator import LEARNERS
from experiments.benchmarks.tables import Table
from experiments.generalized_clustering.accuracies import natural_accuracies
from experiments.generalized_clustering.data_sets import PAPER
from experiments.generalized_clustering.pictures import bars
from experiments.generalized_clustering.setting import Setting
from experiments.papers.outcome import Finding, Outcome

PUBLISHED = {
    "promoters": ((62.0, 77.0), (52.0, 41.0), (49.0, 57.0), (19.0, 26.0)),
    "iris": ((27.3, 51.3), (83.3, 88.0), (26.7, 32.0), (55.3, 53.3)),
    "hayes-roth": ((37.7, 39.2), (30.0, 40.0), (38.5, 38.5), (34.6, 36.2)),
    "glass": ((84.8, 51.0), (44.8, 61.9), (26.2, 34.3), (77.1, 74.3)),
}
ALIKE = 1.0  # per cent


def run(setting: Setting) -> Outcome:
    found = natural_accuracies(setting, PAPER)
    at = found.set_index(["data", "learner"])
    rows = []
    for name in PAPER:
        own = [at.loc[(name, k)] for k in LEARNERS]
        rows.append((name, *(f"{row['strict']:.1f}/{row['weighted']:.1f}" for row in own)))
    rows += [(f"{name}, published", *(f"{a}/{b}" for a, b in PUBLISHED[name])) for name in PAPER]
    gain = (at["weighted"] - at["strict"]).unstack("learner")[list(LEARNERS)]
    wins = {k: int((gain[k] > ALIKE).sum()) for k in LEARNERS}
    losses = {k: int((gain[k] < -ALIKE).sum()) for k in LEARNERS}
    one_sided = [k for k in LEARNERS if wins[k] == len(PAPER) or losses[k] == len(PAPER)]
    words = ", ".join(f"{k} {wins[k]} to {losses[k]}" for k in LEARNERS)
    table = Table(
        "table_2", "Accuracy of clusters, per cent, strict/weighted", ("data", *LEARNERS), rows
    )
    shown = found.assign(case=found["data"] + "\n" + found["learner"].str[:9])
    figure = bars(shown.set_index("case")[["strict", "weighted"]], "accuracy of clusters, per cent")
    figure.set_size_inches(13, 4)
    return Outcome(
        [table],
        found,
        {"": figure},
        {
            "no_paradigm_is_always_better": Finding(
                f"data sets on which weighted is better to those on which strict is: {words}",
                not one_sided,
            )
        },
    )
