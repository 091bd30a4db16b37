"""Hostile names through files and words of the Python functions, and back."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.report.safe_csv import safe_text, write_csv
from tests.hostile_names import NAMES, UNSEEN


@pytest.fixture(scope="module")
def table() -> bl.GroupedTable:
    names = np.array(NAMES, dtype=object)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(names[:2], len(NAMES)) for name in NAMES[2:-2]})
    frame[NAMES[0]], frame[NAMES[1]] = names, np.resize(names[:2], len(NAMES))
    return bl.GroupedTable.from_frame(frame, group=NAMES[0], label=NAMES[1], missing_values=())


def test_a_posterior(table: bl.GroupedTable, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two draws say nothing, as they should
        drawn = bl.sample(bl.ClusteredNaiveBayes(), table, draws=2, chains=2, warmup=1, seed=0)
    loaded = bl.load(drawn.save(tmp_path / "fit.nc"))
    assert isinstance(loaded, bl.Posterior)
    assert loaded.data == table
    assert loaded.group_names == NAMES
    assert loaded.datatree["posterior"]["z"]["group"].values.tolist() == list(NAMES)
    assert loaded.datatree["observed_data"]["feature"].values.tolist() == list(NAMES[2:-2])


@pytest.mark.parametrize("more", [(), ("nul\x00", "half \ud800")])
def test_a_mixture(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Names stand in JSON there, which holds whatever Python does."""
    names = [*NAMES, *more]
    rows = pd.DataFrame({name: [name, "other"] * 4 for name in names})
    # Nothing is missing: NA and the like are names.
    bl.MixtureClusterer(2, missing_values=[], random_state=0).fit(rows).save(tmp_path / "fit.nc")
    loaded = bl.MixtureClusterer.load(tmp_path / "fit.nc")
    assert loaded.feature_names_in_.tolist() == names
    assert [set(values) for values in loaded.categories_] == [{name, "other"} for name in names]


def test_words_about_a_table_stay_words(table: bl.GroupedTable) -> None:
    told = f"{table!r}\n{table.describe()}"
    assert not UNSEEN & set(told)
    assert len(told) < 300 * len(NAMES)


def test_a_spreadsheet_gets_names_that_can_be_told_apart(tmp_path: Path) -> None:
    safe = [safe_text(name) for name in NAMES]
    assert len(set(safe)) == len(NAMES)
    assert {safe_text(text) for text in ("-1.5", "+2", "-0", "1e5")} == {"-1.5", "+2", "-0", "1e5"}
    frame = pd.DataFrame({name: [name] for name in NAMES})
    written = pd.read_csv(write_csv(frame, tmp_path / "a.csv"), dtype=str, keep_default_na=False)
    assert written.iloc[0].tolist() == safe
    assert list(written) == safe
