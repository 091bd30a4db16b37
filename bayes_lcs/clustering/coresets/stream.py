"""Coreset of an endless stream, in bounded memory: merge and reduce.

Two facts make it: the union of coresets is a coreset of the union, and a coreset of a coreset is
one of the data, with the errors multiplied. The stream is cut into leaves; each becomes a coreset
at level 0, and whenever two stand at one level they are merged, reduced, and stand one level
higher: a binary tree of which only the right edge is kept. A row is reduced once for every level
above it, so the error grows with the height of the tree, the logarithm of the number of leaves, and
not with their number (Bentley and Saxe 1980; Har-Peled and Mazumdar 2004).

A sample of the rows is kept beside the tree, by which coresets are checked
(`bayes_lcs.clustering.coresets.checks`).
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_array

from bayes_lcs.clustering.coresets.checks import SAMPLE_FORMAT, CheckSample, check_on_sample
from bayes_lcs.clustering.coresets.coreset import Coreset
from bayes_lcs.clustering.coresets.sampling_scores import check_method, reduce_points
from bayes_lcs.core.errors import DataError
from bayes_lcs.io.frames import numeric_rows
from bayes_lcs.runtime.atomic_files import load_datatree, save_datatree
from bayes_lcs.runtime.checksums import as_data_errors

__all__ = ["CoresetStream"]

FloatArray = NDArray[np.float64]


class _Weighted(NamedTuple):
    points: NDArray[Any]
    weights: FloatArray

    @property
    def num_points(self) -> int:
        return len(self.weights)


class CoresetStream:
    """Coreset of all rows so far, kept up to date row by row.

    A weighted sample of 1,000 to 4,000 rows, or one to four times ``size``, is kept too. Rows far
    from all others are kept in it almost surely. The errors that a coreset reports are estimated on
    this sample.

    Parameters
    ----------
    k
        Number of clusters for which it is made.
    size
        Points of each coreset in the tree.
    leaf_size
        Rows of the stream that are reduced at once; four times ``size`` by default.
    method
        As for :func:`bayes_lcs.coreset`.
    random_state
        Seed. The same rows give the same tree, however they are cut into pieces.

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lcs as bl
    >>> rng = np.random.default_rng(0)
    >>> stream = bl.CoresetStream(k=3, size=200, random_state=0)
    >>> for _ in range(10):
    ...     stream.push(rng.normal(size=(1000, 2)))
    >>> small = stream.coreset()
    >>> stream.num_rows, stream.height, bool(abs(small.weights.sum() - 10_000) < 1000)
    (10000, 3, True)
    """

    def __init__(
        self,
        k: int,
        size: int,
        *,
        leaf_size: int | None = None,
        method: str = "sensitivity",
        random_state: int | None = None,
    ) -> None:
        self.k, self.size, self.method = int(k), int(size), method
        self.leaf_size = 4 * self.size if leaf_size is None else int(leaf_size)
        if self.k < 1 or self.size < 1 or self.leaf_size < 1:
            raise ValueError("k, size and leaf_size must be at least 1")
        check_method(method)
        self.num_rows = 0
        self._rng = np.random.default_rng(random_state)
        self._waiting: list[_Weighted] = []
        self._levels: dict[int, _Weighted] = {}
        self._sample: CheckSample | None = CheckSample.for_coreset(self.k, self.size)

    @property
    def height(self) -> int:
        """Largest number of times that a row was reduced after its first reduction."""
        return max(self._levels, default=0)

    @property
    def num_points(self) -> int:
        """Points of all levels, and rows that wait for a whole leaf."""
        return sum(part.num_points for part in (*self._levels.values(), *self._waiting))

    def push(self, X: Any, sample_weight: Any = None) -> None:
        """Take more rows in, with their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        sample_weight : array-like of shape (n_samples,)
            Their weights.
        """
        X = check_array(numeric_rows(X), dtype=[np.float64, np.float32])
        self._check_width(X.shape[1])
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.num_rows += len(X)
        kept = weights > 0
        self._wait(_Weighted(X[kept].copy(), weights[kept]))

    def merge(self, other: CoresetStream) -> None:
        """Take in all that another stream has taken in, such as that of another process."""
        if (self.k, self.size, self.method) != (other.k, other.size, other.method):
            raise ValueError("streams that are merged must have the same k, size and method")
        for level, part in sorted(other._levels.items()):
            self._check_width(part.points.shape[1])
            self._carry(level, part)
        self.num_rows += other.num_rows
        if self._sample is None or other._sample is None:
            self._sample = None
        else:
            self._sample.merge(other._sample)
        for part in other._waiting:
            self._wait(part)

    def coreset(self, *, reduced: bool = False, checked: bool = True) -> Coreset:
        """Return the coreset of all rows so far.

        Parameters
        ----------
        reduced
            Reduce it once more, to ``size`` points. The stream itself is left as it is.
        checked
            Estimate the errors of costs on the sample of rows that the stream keeps, and warn if
            they are large. `Coreset.checked_on` says on how many rows.

        Returns
        -------
        Coreset
            Points and weights; row numbers are not known.
        """
        parts = [*self._levels.values(), *self._waiting]
        if not parts:
            raise ValueError("the stream has no rows yet: push some first")
        points = np.concatenate([part.points for part in parts])
        weights = np.concatenate([part.weights for part in parts])
        total = float(weights.sum())
        if reduced:
            # Looking at the coreset does not change the stream's own draws.
            rng = np.random.default_rng(self.num_rows)
            points, weights, _ = reduce_points(self.method, points, weights, self.k, self.size, rng)
        found: dict[str, Any] = {}
        if checked and self._sample is not None:
            whole = [*self._waiting] or [_Weighted(points[:0], weights[:0])]
            data = self._sample.with_rows(*map(np.concatenate, zip(*whole, strict=True)))
            found = check_on_sample(data, self.num_rows, points, weights, self.k, self.method)
        return Coreset(points, weights, None, self.method, "kmeans", self.num_rows, total, **found)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree as netCDF, atomically, with a checksum; a run goes on from it.

        An existing file is replaced.
        """
        import xarray as xr

        described = {
            "k": self.k,
            "size": self.size,
            "leaf_size": self.leaf_size,
            "method": self.method,
            "num_rows": self.num_rows,
            "random": self._rng.bit_generator.state,
            "sample_format": SAMPLE_FORMAT,
        }
        tree = xr.DataTree(xr.Dataset(attrs={"coreset_stream": json.dumps(described)}))
        parts = {f"level_{level}": part for level, part in self._levels.items()}
        if self._waiting:
            parts["waiting"] = self._all_waiting()
        for name, part in parts.items():
            tree[name] = xr.DataTree(
                xr.Dataset(
                    {
                        "points": (("point", "feature"), part.points),
                        "weights": ("point", part.weights),
                    }
                )
            )
        if self._sample is not None and len(self._sample.rows):
            tree["sample"] = xr.DataTree(
                xr.Dataset(
                    {
                        "rows": (("row", "feature"), self._sample.rows),
                        "numbers": (("number", "row"), self._sample.numbers),
                    }
                )
            )
        save_datatree(tree, Path(path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> CoresetStream:
        """Load the stream that `save` wrote; further rows give what they would have given then.

        Coresets of streams that earlier versions saved, without a sample of rows or with one that
        may have missed far rows, are not checked.
        """
        tree = load_datatree(Path(path))
        if "coreset_stream" not in tree.attrs:
            raise DataError("this file holds no CoresetStream", file=str(path))
        with as_data_errors(path, "CoresetStream"):
            described = json.loads(tree.attrs["coreset_stream"])
            stream = cls(
                described["k"],
                described["size"],
                leaf_size=described["leaf_size"],
                method=described["method"],
            )
            stream.num_rows = described["num_rows"]
            stream._rng.bit_generator.state = described["random"]
            children = dict(tree.children)
            sample_format = described.get("sample_format", 1)
            if sample_format > SAMPLE_FORMAT:
                raise DataError(
                    "this CoresetStream was saved by a later version of bayes_lcs; update "
                    "bayes_lcs to load it"
                )
            kept = children.pop("sample", None)
            if kept is not None and sample_format == SAMPLE_FORMAT:
                stream._sample = CheckSample.for_coreset(stream.k, stream.size)
                stream._sample.restore(
                    {str(name): kept[str(name)].to_numpy() for name in kept.data_vars}
                )
            elif any(name != "waiting" for name in children):
                stream._sample = None
            for name, part in children.items():
                held = _Weighted(np.array(part["points"]), np.array(part["weights"]))
                if name == "waiting":
                    stream._waiting = [held]
                else:
                    stream._levels[int(name.removeprefix("level_"))] = held
            return stream

    def _wait(self, part: _Weighted) -> None:
        """Keep rows until they fill a leaf; leaves are cut by count, not by push."""
        self._waiting.append(part)
        if sum(part.num_points for part in self._waiting) < self.leaf_size:
            return
        rows = self._all_waiting()
        whole = rows.num_points // self.leaf_size * self.leaf_size
        for start in range(0, whole, self.leaf_size):
            leaf = _Weighted(*(field[start : start + self.leaf_size] for field in rows))
            self._carry(0, self._reduce_part(leaf, is_leaf=True))
        rest = _Weighted(*(field[whole:].copy() for field in rows))
        self._waiting = [rest] if rest.num_points else []

    def _carry(self, level: int, part: _Weighted) -> None:
        """Add a coreset to a level and merge upwards, as in adding one to a binary number."""
        while level in self._levels:
            other = self._levels.pop(level)
            both = _Weighted(*(np.concatenate(pair) for pair in zip(other, part, strict=True)))
            part, level = self._reduce_part(both), level + 1
        self._levels[level] = part

    def _reduce_part(self, part: _Weighted, is_leaf: bool = False) -> _Weighted:
        points, weights, found = reduce_points(
            self.method, part.points, part.weights, self.k, self.size, self._rng
        )
        if is_leaf and self._sample is not None:
            self._sample.add_leaf(part.points, part.weights, self._rng, found)
        return _Weighted(points, weights)

    def _all_waiting(self) -> _Weighted:
        return _Weighted(*(np.concatenate(field) for field in zip(*self._waiting, strict=True)))

    def _check_width(self, width: int) -> None:
        for part in (*self._levels.values(), *self._waiting):
            if part.points.shape[1] != width:
                raise ValueError(
                    f"rows have {width} columns, but those before had {part.points.shape[1]}"
                )
            return
