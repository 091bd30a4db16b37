"""Simulated meeting requests with known parameters, modelled on the private data of the thesis.

Twenty-one people accept or reject meeting requests described by the 15 features of Roy (2006),
*Clustered Naive Bayes*, Appendix B. The people form the nine blocks of Table 4.1 there, and the
rows are drawn from the Clustered Naive Bayes model itself:

* each institution (military, SRI, professors) has a prototype for every label and feature, drawn
  around a rough guess of typical meeting requests;
* each block's parameters are drawn around its institution's prototype,
  ``theta[k, y, f] ~ Dir(strength * prototype)``, so that blocks of one institution are similar;
* every person has an individual acceptance rate, ``phi[u] ~ Dir``, independent of the partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["MeetingTruth", "meeting_requests"]

_IMPORTANCE = (
    "other",
    "unimportant",
    "possibly important",
    "important",
    "very important",
    "critical",
)
_BUSY = ("light-free", "light-busy", "busy-free", "busy-busy", "booked-free", "booked-busy")

# Appendix B, with the thesis's "XXX" spelt "more". Beside each value: how common it is (any
# scale), and how much it speaks for accepting (positive) or rejecting (negative).
_FEATURES: dict[str, tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]] = {
    "start time": (
        ("morning", "afternoon", "early", "mid", "late"),
        (6, 6, 2, 4, 2),
        (0.2, 0.2, -0.5, 0.1, -0.6),
    ),
    "duration": (("15", "30", "60", "more"), (2, 5, 6, 2), (0.4, 0.3, -0.1, -0.6)),
    "message importance": (_IMPORTANCE, (3, 3, 4, 4, 2, 1), (-0.2, -0.8, -0.2, 0.3, 0.6, 0.8)),
    "topic importance": (_IMPORTANCE, (2, 3, 4, 5, 2, 1), (-0.1, -0.9, -0.3, 0.3, 0.7, 0.9)),
    "invitee job": (
        ("other", "officer", "planner", "student", "faculty", "administrator", "funding"),
        (3, 3, 2, 3, 3, 2, 1),
        (-0.3, 0.1, 0.0, 0.0, 0.1, -0.2, 0.7),
    ),
    "invitee relation": (
        ("other", "subordinate", "peer", "supervisor", "family"),
        (3, 4, 6, 3, 0.5),
        (-0.4, -0.1, 0.0, 0.7, 0.5),
    ),
    "invitee recent": (("0", "1", "3", "7", "more"), (2, 3, 4, 3, 4), (0.1, 0.1, 0.0, 0.0, -0.1)),
    "invitee soon": (("0", "1", "3", "7", "more"), (2, 3, 4, 3, 4), (-0.2, -0.1, 0.0, 0.1, 0.1)),
    "busy fday": (_BUSY, (4, 2, 4, 3, 1, 2), (0.5, -0.2, 0.3, -0.4, 0.0, -0.7)),
    "busy hday": (_BUSY, (4, 2, 4, 3, 1, 3), (0.6, -0.3, 0.4, -0.5, 0.1, -0.8)),
    "free slot time": (
        ("0", "15", "30", "60", "90", "135", "more"),
        (4, 1, 2, 3, 2, 1, 4),
        (-0.9, -0.4, 0.0, 0.2, 0.3, 0.3, 0.4),
    ),
    "conflict?": (("no", "yes"), (7, 4), (0.6, -0.9)),
    "conflict importance": (_IMPORTANCE, (8, 2, 2, 2, 1, 1), (0.4, 0.2, -0.2, -0.6, -0.8, -1.0)),
    "conflict frequency": (
        ("other", "one time", "occasionally", "regularly"),
        (7, 3, 2, 3),
        (0.3, -0.6, -0.2, -0.1),
    ),
    "location": (
        ("local-none", "away-none", "local-local", "away-local", "local-away", "away-away"),
        (7, 1, 4, 1, 1, 1),
        (0.4, -0.3, 0.0, -0.6, -0.4, -0.4),
    ),
}
_LABELS = ("reject", "accept")

# Table 4.1: the people of each block, counted from 1, and the institution the block belongs to.
_BLOCKS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("military", (1, 2, 3, 5, 6, 8)),
    ("military", (4, 7)),
    ("professors", (9, 11)),
    ("SRI", (10, 14, 15, 21)),
    ("professors", (12, 17, 20)),
    ("SRI", (13,)),
    ("professors", (16,)),
    ("SRI", (18,)),
    ("professors", (19,)),
)
_NUM_PEOPLE = 21


@dataclass(frozen=True)
class MeetingTruth:
    """True partition and parameters of simulated rows of `meeting_requests`.

    Parameters
    ----------
    partition
        Block of each person, shape ``(21,)``, numbered by first occurrence.
    institutions
        The institution of each person.
    theta
        Feature probabilities, shape ``(9, 2, C)``: block, label, flat cells of the schema.
    phi
        Label probabilities of each person, shape ``(21, 2)``.
    """

    partition: NDArray[np.int64]
    institutions: tuple[str, ...]
    theta: NDArray[np.float64]
    phi: NDArray[np.float64]


def meeting_requests(
    seed: int = 0,
    rows_per_person: int | Sequence[int] = 180,
    *,
    strength: float = 25.0,
    missing_fraction: float = 0.0,
) -> tuple[GroupedTable, MeetingTruth]:
    """Simulate 21 people answering meeting requests.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    rows_per_person
        Number of requests per person: one number, or one for each of the 21.
    strength
        Similarity of the blocks of one institution; blocks are harder to distinguish if it is
        larger.
    missing_fraction
        Share of feature cells that are missing, at random.

    Returns
    -------
    table
        Groups ``"person-01"`` to ``"person-21"``, labels ``"reject"`` and ``"accept"``.
    truth
        The partition and the parameters behind it.

    Examples
    --------
    >>> table, truth = meeting_requests(seed=0)
    >>> table
    GroupedTable(3780 rows, 21 groups by 'person', 15 features, label 'decision' with 2 values)
    >>> truth.partition.tolist()
    [0, 0, 0, 1, 0, 0, 1, 0, 2, 3, 2, 4, 5, 3, 3, 6, 4, 7, 8, 4, 3]
    >>> truth.institutions[3]
    'military'
    """
    sizes = np.broadcast_to(np.asarray(rows_per_person, dtype=np.int64), (_NUM_PEOPLE,))
    if (sizes < 0).any():
        raise DataError("rows_per_person must not be negative")
    if not strength > 0:
        raise DataError(f"strength must be positive, got {strength}")
    if not 0 <= missing_fraction < 1:
        raise DataError(f"missing_fraction must lie in [0, 1), got {missing_fraction}")
    rng = np.random.default_rng(seed)
    schema = Schema(len(_LABELS), [len(values) for values, _, _ in _FEATURES.values()])
    theta = _draw_theta(rng, schema, strength)
    phi = rng.dirichlet([2.5, 3.5], size=_NUM_PEOPLE)

    partition = np.empty(_NUM_PEOPLE, np.int64)
    institutions = [""] * _NUM_PEOPLE
    for block, (institution, people) in enumerate(_BLOCKS):
        for person in people:
            partition[person - 1] = block
            institutions[person - 1] = institution

    groups = np.repeat(np.arange(_NUM_PEOPLE, dtype=np.int32), sizes)
    labels = (rng.random(groups.size) < phi[groups, 1]).astype(np.int32)
    features = np.empty((groups.size, schema.num_features), np.int32)
    for feature in range(schema.num_features):
        probabilities = theta[partition[groups], labels, schema.cells_of(feature)]
        drawn = (rng.random((groups.size, 1)) > np.cumsum(probabilities, axis=1)).sum(axis=1)
        features[:, feature] = np.minimum(drawn, schema.num_values[feature] - 1)
    if missing_fraction:
        features[rng.random(features.shape) < missing_fraction] = -1

    table = GroupedTable(
        features=features,
        labels=labels,
        groups=groups,
        feature_names=tuple(_FEATURES),
        values=tuple(values for values, _, _ in _FEATURES.values()),
        label_name="decision",
        label_values=_LABELS,
        group_name="person",
        group_names=tuple(f"person-{number:02d}" for number in range(1, _NUM_PEOPLE + 1)),
    )
    return table, MeetingTruth(partition, tuple(institutions), theta, phi)


def _draw_theta(rng: np.random.Generator, schema: Schema, strength: float) -> NDArray[np.float64]:
    """Draw the parameters of every block around the prototypes of its institution."""
    prototypes = {}
    for institution in dict(_BLOCKS):
        cells = np.empty((schema.num_labels, schema.num_cells))
        for feature, (_, common, accepting) in enumerate(_FEATURES.values()):
            usual = rng.dirichlet(3.0 * len(common) * _normalize(common))
            for label, sign in enumerate((-1.0, 1.0)):
                guess = _normalize(usual * np.exp(0.7 * sign * np.asarray(accepting)))
                # The small constant gives every value a positive probability.
                cells[label, schema.cells_of(feature)] = _normalize(guess + 0.01)
        prototypes[institution] = cells
    theta = np.empty((len(_BLOCKS), schema.num_labels, schema.num_cells))
    for block, (institution, _) in enumerate(_BLOCKS):
        for label in range(schema.num_labels):
            for feature in range(schema.num_features):
                span = schema.cells_of(feature)
                centre = prototypes[institution][label, span]
                theta[block, label, span] = rng.dirichlet(strength * centre)
    return theta


def _normalize(weights: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    array = np.asarray(weights, dtype=np.float64)
    return array / array.sum()
