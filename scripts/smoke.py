"""Does an installed package work at all? Import, one small exact fit, one picture.

python scripts/smoke.py [PICTURE]
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bayes_lcs as bl


def two_kinds_of_groups(seed: int) -> pd.DataFrame:
    """Six groups: features follow the label in the first three and oppose it in the others."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(6):
        label = rng.integers(2, size=80)
        agree = 0.9 if number < 3 else 0.1
        features = {
            f"feature_{f}": np.where(rng.random(80) < agree, label, 1 - label) for f in range(3)
        }
        parts.append(pd.DataFrame({"group": f"group {number}", "label": label, **features}))
    return pd.concat(parts, ignore_index=True).astype(str)


def main() -> int:
    assert bl.__version__ == importlib.metadata.version("bayes-lcs")
    data = bl.GroupedTable.from_frame(two_kinds_of_groups(seed=0), group="group", label="label")
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    together = np.asarray(posterior.coclustering())
    truth = np.kron(np.eye(2), np.ones((3, 3)))
    assert np.isfinite(posterior.log_evidence)
    assert np.abs(together - truth).max() < 0.05, together

    if len(sys.argv) > 1:
        picture = Path(sys.argv[1])
        figure = Figure()
        figure.subplots().imshow(together, vmin=0, vmax=1)
        figure.savefig(picture)
        assert picture.stat().st_size > 0
    print(
        f"Python {sys.version.split()[0]}, bayes_lcs {bl.__version__} at {bl.__path__[0]}: "
        f"log evidence {float(posterior.log_evidence):.3f}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
