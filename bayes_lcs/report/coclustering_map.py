"""The probabilities that two groups are together, as a picture on a page that can be asked.

The picture has one pixel a pair and is stretched by the browser: few bytes for many groups.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.partitions import blocks, first_occurrence
from bayes_lcs.report.html import short

__all__ = ["coclustering_map"]

MOST_NAMED = 60
"""Groups whose names fit beside the picture."""
TINT = (31, 119, 230)


def coclustering_map(
    matrix: NDArray[np.float64], partition: NDArray[np.int64], names: Sequence[str]
) -> dict[str, Any]:
    """What the template ``coclustering.html.j2`` shows.

    Parameters
    ----------
    matrix : (U, U)
        Probability that each pair is together.
    partition : (U,)
        By which groups are ordered; its clusters are framed.
    names
        Of the groups.
    """
    members = blocks(first_occurrence(partition))
    order = [u for block in members for u in block]
    sizes = [len(block) for block in members]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    ordered = np.asarray(matrix, dtype=np.float64)[np.ix_(order, order)]
    return {
        "size": len(order),
        "names": [short(names[u], 40) for u in order],
        "named": len(order) <= MOST_NAMED,
        "thousandths": np.rint(1000.0 * ordered).astype(int).tolist(),
        "frames": [(int(start), size) for start, size in zip(starts, sizes, strict=True)],
        "picture": _picture(ordered),
    }


def _picture(shares: NDArray[np.float64]) -> str:
    """A PNG as a data address: one colour, as opaque as a pair is probable."""
    from matplotlib.image import imsave

    pixels = np.empty((*shares.shape, 4), dtype=np.uint8)
    pixels[..., :3] = TINT
    pixels[..., 3] = np.rint(255.0 * np.clip(shares, 0.0, 1.0))
    stream = io.BytesIO()
    imsave(stream, pixels, format="png")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
