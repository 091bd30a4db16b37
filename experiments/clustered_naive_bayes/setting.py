"""What an experiment is run on: a data set or part of one, its truth if known, and the seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import bayes_lcs as bl

BUILT_IN = "meeting"
DATASETS = ("verbagg", "bank_conjoint", "insteval", "coupon", "restaurant_rc")

NUM_GROUPS = 21
"""As many as the thesis has users; the sum over all their partitions takes some seconds."""

SMOKE_GROUPS, SMOKE_ROWS = 6, 30


@dataclass(frozen=True)
class Setting:
    """One data set, ready for any experiment.

    Attributes
    ----------
    name
        Name of the data set.
    data
        The groups taken from it.
    about
        A sentence saying what was taken.
    partition, institutions
        The true block and the institution of each group, where the data is simulated.
    """

    name: str
    data: bl.GroupedTable
    about: str
    smoke: bool
    seed: int
    partition: NDArray[np.int64] | None = None
    institutions: tuple[str, ...] | None = None


def setting_for(
    name: str, *, smoke: bool = False, seed: int = 0, num_groups: int | None = None
) -> Setting:
    """The built-in data, or some groups of a real data set chosen at random by the seed."""
    wanted = num_groups or (SMOKE_GROUPS if smoke else NUM_GROUPS)
    if wanted < 2:
        raise bl.DataError(f"at least two groups are needed, got {wanted}")
    if name == BUILT_IN:
        return _meeting(wanted, smoke, seed)
    whole = bl.load_dataset(name).labelled()
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.permutation(whole.num_groups)[:wanted])
    data = whole.select_groups(codes.tolist())
    taken = f"{data.num_groups} of {whole.num_groups} groups drawn with seed {seed}"
    if data.num_groups == whole.num_groups:
        taken = f"all {whole.num_groups} groups"
    return Setting(name, data, f"{name}, {taken}, {_size(data)}", smoke, seed)


def _meeting(wanted: int, smoke: bool, seed: int) -> Setting:
    rows = SMOKE_ROWS if smoke else 180
    data, truth = bl.meeting_requests(seed=seed, rows_per_person=rows)
    data = data.select_groups(range(min(wanted, data.num_groups)))
    about = f"simulated meeting requests with seed {seed}, {data.num_groups} people, {_size(data)}"
    institutions = truth.institutions[: data.num_groups]
    partition = truth.partition[: data.num_groups]
    return Setting(BUILT_IN, data, about, smoke, seed, partition, institutions)


def _size(data: bl.GroupedTable) -> str:
    sizes = data.group_sizes
    each = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    return f"{data.num_rows} rows ({each} a group), {data.num_labels} labels"
