"""The table of docs/input.md: every cell is tried, and what is accepted gives equal results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from tests.journeys.inputs import in_all_forms

PAGE = Path(__file__).parents[2] / "docs" / "input.md"

rng = np.random.default_rng(0)
HIDDEN = rng.integers(0, 2, 240)
FRAME = pd.DataFrame(
    {
        "user": rng.choice(["ann", "bob", "cleo", "dan"], 240),
        "x": np.where(rng.random(240) < 0.8, HIDDEN, 1 - HIDDEN),
        "z": rng.integers(0, 2, 240),
        "w": np.where(rng.random(240) < 0.7, HIDDEN, 1 - HIDDEN),
        "y": HIDDEN,
    }
)
FEATURES, LABEL, USER = FRAME[["x", "z", "w"]], FRAME["y"].to_numpy(), FRAME["user"].to_numpy()
ROWS = {
    "grouped": FRAME,
    "labelled": FRAME[["x", "z", "w", "y"]],
    "features": FEATURES,
    "points": FEATURES + rng.normal(0, 0.1, FEATURES.shape),
}
GROUPED = {"group": "user", "label": "y"}


class Entry(NamedTuple):
    """Rows that an entry wants, and a call that returns a number or an array to compare."""

    rows: str
    call: Callable[[Any], Any]


@cache
def fit_way(way: str) -> Any:
    data = bl.GroupedTable.from_frame(FRAME, **GROUPED)
    if way == "compare":
        return bl.compare([bl.NoSharing(), bl.CompleteSharing()], data)
    if way == "exact":
        return bl.exact(bl.ClusteredNaiveBayes(), data)
    return bl.sample(bl.ClusteredNaiveBayes(), data, draws=200, chains=2)


def shown(data: Any) -> list[Any]:
    return [data.num_rows, sorted(data.group_names), data.values, data.label_values]


def classifier() -> bl.SharedNaiveBayesClassifier:
    return bl.SharedNaiveBayesClassifier("complete")


def mixture() -> bl.MixtureClusterer:
    return bl.MixtureClusterer(2, random_state=0)


def trees() -> bl.PartialScanClassifier:
    return bl.PartialScanClassifier("tree", n_partitions=4, random_state=0)


def online() -> bl.OnlineKMeans:
    return bl.OnlineKMeans(2, n_init=2, random_state=0)


def generalized() -> bl.GeneralizedClusterer:
    return bl.GeneralizedClusterer("naive_bayes", 2, random_state=0)


def push(rows: Any) -> Any:
    stream = bl.CoresetStream(2, 40, random_state=0)
    stream.push(rows)
    return stream.coreset().weights


def sampled(rows: Any) -> Any:
    seconds = iter(range(1_000_000))  # a clock that does not depend on the machine
    found = bl.learning_curve_sample(
        mixture(), rows, clock=lambda: float(next(seconds)), warm_up=False, progress=False
    )
    return found.model.weights_


def take(rows: Any) -> Any:
    found = bl.row_source(rows, seed=1).take(0, 5).X
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found, dtype=float)


def command(name: str, *options: Any) -> Callable[[Any], Any]:
    """Run a command on whatever a shell can name: a path."""

    def call(rows: Any) -> Any:
        if not isinstance(rows, Path):
            raise TypeError("a command takes a path")
        out = rows.parent / f"{name}-{rows.stem}{rows.suffix}-out"
        target = out / "small.csv" if name == "coreset" else out
        words = [name, rows, *options, "--out", target, "--json"]
        found = CliRunner().invoke(app, [str(word) for word in words])
        if found.exit_code == 2:
            raise bl.DataError(found.output)
        assert found.exit_code == 0, found.output
        return len(list(out.iterdir()))

    return call


ENTRIES = {
    "`read_grouped`": Entry("grouped", lambda rows: shown(bl.read_grouped(rows, **GROUPED))),
    "`GroupedTable.from_frame`": Entry(
        "grouped", lambda rows: shown(bl.GroupedTable.from_frame(rows, **GROUPED))
    ),
    "`GroupedTable.from_arrays`": Entry(
        "features", lambda rows: shown(bl.GroupedTable.from_arrays(rows, LABEL, USER))
    ),
    "`read_counts`": Entry("grouped", lambda rows: shown(bl.read_counts(rows, **GROUPED))),
    "`compare(…).predict_proba`": Entry(
        "grouped", lambda rows: fit_way("compare").predict_proba(rows)
    ),
    "`exact(…).predict_proba`": Entry("grouped", lambda rows: fit_way("exact").predict_proba(rows)),
    "`sample(…).predict_proba`, `decide`": Entry(
        "grouped",
        lambda rows: [fit_way("sample").predict_proba(rows), fit_way("sample").decide(rows)],
    ),
    "`SharedNaiveBayesClassifier.fit`": Entry(
        "features",
        lambda rows: (
            classifier().fit(rows, LABEL, USER).predict_proba(FEATURES.to_numpy(), USER)
            if isinstance(rows, np.ndarray)
            else classifier().fit(rows, LABEL, USER).predict_proba(FEATURES, USER)
        ),
    ),
    "`SharedNaiveBayesClassifier.predict`": Entry(
        "features",
        lambda rows: classifier().fit(like(rows), LABEL, USER).predict_proba(rows, USER),
    ),
    "`MixtureClusterer.fit`": Entry("features", lambda rows: mixture().fit(rows).weights_),
    "`MixtureClusterer.fit_file`": Entry(
        "features", lambda rows: mixture().fit_file(rows).weights_
    ),
    "`MixtureClusterer.predict`": Entry(
        "features", lambda rows: mixture().fit(like(rows)).predict_proba(rows)
    ),
    "`KMeans.fit`": Entry(
        "points", lambda rows: bl.KMeans(2, random_state=0).fit(rows).cluster_centers_
    ),
    "`KMeans.fit_file`": Entry(
        "points", lambda rows: bl.KMeans(2, random_state=0).fit_file(rows).cluster_centers_
    ),
    "`KMeans.predict`": Entry(
        "points",
        lambda rows: bl.KMeans(2, random_state=0).fit(like(rows, "points")).predict(rows),
    ),
    "`OnlineKMeans.fit`, `partial_fit`": Entry(
        "points",
        lambda rows: [
            online().fit(rows).cluster_centers_,
            online().partial_fit(rows).cluster_centers_,
        ],
    ),
    "`OnlineKMeans.predict`": Entry(
        "points", lambda rows: online().fit(like(rows, "points")).predict(rows)
    ),
    "`GeneralizedClusterer.fit`": Entry("features", lambda rows: generalized().fit(rows).labels_),
    "`GeneralizedClusterer.predict`": Entry(
        "features", lambda rows: generalized().fit(like(rows)).predict(rows)
    ),
    "`coreset`": Entry("points", lambda rows: bl.coreset(rows, 2, 40, random_state=0).weights),
    "`CoresetStream.push`": Entry("points", push),
    "`coreset_tree`": Entry("points", lambda rows: bl.coreset_tree(rows, 2, 40).weights),
    "`learning_curve_sample`": Entry("features", sampled),
    "`row_source`": Entry("features", take),
    "`PartialScanClassifier.fit`": Entry(
        "features", lambda rows: trees().fit(rows, LABEL).predict(like(rows))
    ),
    "`PartialScanClassifier.fit_file`": Entry(
        "labelled", lambda rows: trees().fit_file(rows, label="y").predict(FEATURES)
    ),
    "`PartialScanClassifier.predict`": Entry(
        "features", lambda rows: trees().fit(like(rows), LABEL).predict(rows)
    ),
    "`bayes-lcs compare`": Entry("grouped", command("compare", "--group", "user", "--label", "y")),
    "`bayes-lcs cluster`": Entry("features", command("cluster", "-k", 2)),
    "`bayes-lcs scan`": Entry("labelled", command("scan", "--label", "y", "--parts", 4)),
    "`bayes-lcs coreset`": Entry("points", command("coreset", "-k", 2, "--size", 40)),
}


def like(rows: Any, kind: str = "features") -> Any:
    """Training rows with column names, or without if the rows of the call have none."""
    has_names = not (isinstance(rows, np.ndarray) or hasattr(rows, "tocsr"))
    return ROWS[kind] if has_names else ROWS[kind].to_numpy()


def read_table() -> dict[str, dict[str, bool]]:
    """The table of the page: entry, kind of input, accepted or not."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    header = next(row for row in rows if row[0] == "entry")
    found = {}
    for row in rows[rows.index(header) + 2 :]:
        assert set(row[1:]) <= {"yes", "no"}, row
        found[row[0]] = {kind: cell == "yes" for kind, cell in zip(header, row, strict=True)}
        del found[row[0]]["entry"]
    return found


def test_the_table_lists_every_entry():
    assert list(read_table()) == list(ENTRIES)


@pytest.fixture(scope="module")
def forms(tmp_path_factory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("forms")
    return {name: in_all_forms(rows, folder / name) for name, rows in ROWS.items()}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_every_cell_of_the_table_is_true(name, forms):
    entry, told = ENTRIES[name], read_table()[name]
    results: dict[str, Any] = {}
    refusals: dict[str, str] = {}
    for kind, rows in forms[entry.rows].items():
        try:
            results[kind] = entry.call(rows)
        except (bl.DataError, TypeError, ValueError) as error:
            refusals[kind] = str(error)
    accepted = {kind: kind in results for kind in told}
    if "sparse" not in forms[entry.rows]:
        accepted["sparse"] = False  # names of groups are no numbers
    assert accepted == told
    for kind, message in refusals.items():  # not Python's own words
        assert "os.PathLike object" not in message, (kind, message)
    first, *others = results
    for kind in others:
        assert_same(results[kind], results[first], f"{kind} is not {first}")


def assert_same(found: Any, expected: Any, message: str) -> None:
    """Compare arrays, numbers, or lists of them."""
    if isinstance(found, list):
        assert len(found) == len(expected), message
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, message)
    elif isinstance(found, np.ndarray) and found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=message)
    elif isinstance(found, np.ndarray):
        assert found.tolist() == expected.tolist(), message
    else:
        assert found == expected, message
