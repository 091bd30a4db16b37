"""Importing the package is cheap: nothing heavy comes along before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import bayes_lcs

HEAVY = (
    "jax",
    "numpyro",
    "pandas",
    "scipy",
    "sklearn",
    "arviz_base",
    "arviz_stats",
    "xarray",
    "matplotlib",
    "pyarrow",
)


def modules_after(statement: str) -> set[str]:
    """Top-level modules loaded after a statement in a fresh interpreter."""
    program = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_import_is_light():
    loaded = modules_after("import bayes_lcs; bayes_lcs.__version__; dir(bayes_lcs)")
    assert "bayes_lcs" in loaded
    assert not loaded & set(HEAVY)


def test_the_probe_would_notice():
    assert "scipy" in modules_after("import bayes_lcs; bayes_lcs.ClusteredNaiveBayes")


def test_the_exact_posterior_needs_no_jax():
    loaded = modules_after(
        "import bayes_lcs as bl\n"
        "table = bl.GroupedTable.from_arrays([[0], [1]], [0, 1], [0, 1], num_values=2)\n"
        "bl.exact(bl.ClusteredNaiveBayes(), table)"
    )
    assert not loaded & {"jax", "numpyro", "pandas", "matplotlib"}


def test_what_is_exact_is_judged_without_arviz():
    loaded = modules_after(
        "import bayes_lcs as bl\n"
        "table = bl.GroupedTable.from_arrays([[0], [1]] * 4, [0, 1] * 4, [0, 1] * 4)\n"
        "bl.cross_validate(bl.ClusteredNaiveBayes(), table, fraction=0.5, progress=False)"
    )
    assert not loaded & {"jax", "numpyro", "arviz_base", "arviz_stats", "xarray"}


@pytest.mark.parametrize("name", bayes_lcs.__all__)
def test_every_public_name_is_there(name):
    assert getattr(bayes_lcs, name) is not None
    assert name in dir(bayes_lcs)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = bayes_lcs.nothing
