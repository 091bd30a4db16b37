"""Interactive heat map of co-clustering probabilities for a report.

The image has one pixel per pair of groups and is scaled by the browser, so it is small for many
groups.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.partitions import blocks, first_occurrence
from bayes_lcs.report.html import truncate

__all__ = ["coclustering_map"]

MAX_NAMES = 60
"""Maximum number of groups whose names fit beside the image."""
TINT = (31, 119, 230)


def coclustering_map(
    matrix: NDArray[np.float64], partition: NDArray[np.int64], names: Sequence[str]
) -> dict[str, Any]:
    """Return the variables of the template ``coclustering.html.j2``.

    Parameters
    ----------
    matrix : (U, U)
        Probability that each pair of groups is in the same cluster.
    partition : (U,)
        Partition that orders the groups; its clusters are framed.
    names
        Names of the groups.
    """
    members = blocks(first_occurrence(partition))
    order = [u for block in members for u in block]
    sizes = [len(block) for block in members]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    ordered = np.asarray(matrix, dtype=np.float64)[np.ix_(order, order)]
    return {
        "size": len(order),
        "names": [truncate(names[u], 40) for u in order],
        "named": len(order) <= MAX_NAMES,
        "thousandths": np.rint(1000.0 * ordered).astype(int).tolist(),
        "frames": [(int(start), size) for start, size in zip(starts, sizes, strict=True)],
        "picture": _picture(ordered),
    }


def _picture(shares: NDArray[np.float64]) -> str:
    """Return a PNG as a data URL: one colour, with the probability as opacity."""
    from matplotlib.image import imsave

    pixels = np.empty((*shares.shape, 4), dtype=np.uint8)
    pixels[..., :3] = TINT
    pixels[..., 3] = np.rint(255.0 * np.clip(shares, 0.0, 1.0))
    stream = io.BytesIO()
    imsave(stream, pixels, format="png")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
