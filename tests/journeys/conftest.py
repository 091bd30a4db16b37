"""Tables that several journeys share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def visits() -> pd.DataFrame:
    """Visits of shops: two hidden kinds of customer, columns of every type, none missing."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    often = rng.random((4, 400)) < 0.85
    return pd.DataFrame(
        {
            "town": np.where(often[0] == (kind == 1), "Ulm", "Bonn"),
            "member": often[1] == (kind == 1),
            "children": np.where(often[2], kind * 2, rng.integers(0, 4, 400)),
            "rating": np.where(often[3], 1.5 + kind, 0.5),
            "shop": rng.choice(["north", "south", "west"], 400),
            "buys": (rng.random(400) < 0.1 + 0.8 * kind).astype(np.int64),
        }
    )


@pytest.fixture
def points() -> pd.DataFrame:
    """Three groups of points in the plane, far apart."""
    rng = np.random.default_rng(1)
    centers = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    return pd.DataFrame(
        np.repeat(centers, 100, axis=0) + rng.normal(size=(300, 2)), columns=["width", "height"]
    )
