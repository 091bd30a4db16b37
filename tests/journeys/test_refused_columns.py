"""A survey with identifiers, dates and measurements: everything refused is named in one message."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(5)
    rows = 120
    frame = pd.DataFrame(
        {
            "id": np.arange(rows) + 1000,
            "site": rng.choice(["north", "south", "west"], rows),
            "name": [f"person {row}" for row in range(rows)],
            "height": rng.normal(170, 8, rows).round(1),
            "comment": np.full(rows, np.nan),
            "smokes": rng.choice(["yes", "no"], rows),
            "ill": rng.integers(0, 2, rows),
        }
    )
    path = tmp_path / "survey.csv"
    frame.to_csv(path)
    return path, frame


def follow(message):
    """Return the options that a message of the command proposes for all columns."""
    return shlex.split(re.search(r"To leave out all: (.*)", message).group(1))


def test_compare_names_all_refused_columns_and_its_advice_works(survey, tmp_path):
    path, _ = survey
    words = [
        "compare",
        str(path),
        "--group",
        "site",
        "--label",
        "ill",
        "--out",
        str(tmp_path / "o"),
    ]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    for name in ("id", "name", "height", "comment"):
        assert repr(name) in refused.stderr
    accepted = CliRunner().invoke(app, [*words, *follow(" ".join(refused.stderr.split()))])
    assert accepted.exit_code == 0, accepted.output


@pytest.mark.parametrize("read", [bl.read_grouped, bl.read_counts])
def test_readers_name_all_refused_columns(survey, read):
    path, _ = survey
    with pytest.raises(bl.DataError, match=r"ignore=\['id', 'name', 'height', 'comment'\]"):
        read(path, group="site", label="ill")


def test_mixtures_name_all_measurements_and_the_advice_works(survey):
    _, frame = survey
    frame = frame.assign(weight=frame["height"] / 2)[["height", "weight", "smokes"]]
    with pytest.raises(bl.DataError) as refused:
        bl.MixtureClusterer(2, random_state=0).fit(frame)
    advice = re.search(r"categorical=(\[.*\])", str(refused.value)).group(1)
    assert advice == "['height', 'weight']"
    bl.MixtureClusterer(2, random_state=0, categorical=["height", "weight"]).fit(frame)


def test_a_value_of_another_type_is_explained(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": ["0", "1", "2"] * 9, "b": ["x", "y", "x"] * 9}).to_csv(path, index=False)
    model = bl.MixtureClusterer(2, random_state=0).fit(path)
    with pytest.warns(bl.DataWarning, match="training data have the number 0, this is a text"):
        model.predict(pd.read_csv(path, dtype=str))
