"""The public names in ``__init__.pyi`` and the reference in the docs agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bayes_lcs

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "theory").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.py")),
]
PUBLIC = set(bayes_lcs.__all__) - {"__version__"}


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    described = re.findall(r"^\.\. auto(?:class|function):: (\w+)$", text, re.MULTILINE)
    assert sorted(described) == sorted(PUBLIC)
    table = re.search(r"\.\. autosummary::\n((?: +.*\n|\n)*)", text)
    assert table is not None
    listed = re.findall(r"^   (\w+)$", table.group(1), re.MULTILINE)
    assert set(listed) == PUBLIC


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_names_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    used = set(re.findall(r"\b(?:bl|bayes_lcs)\.([A-Za-z]\w*)", text))
    modules = {path.stem for path in Path(bayes_lcs.__file__).parent.iterdir()}
    assert used <= PUBLIC | modules


def test_tutorials_are_linked_to_pages_that_exist() -> None:
    for tutorial in (ROOT / "docs" / "tutorials").glob("*.py"):
        text = tutorial.read_text(encoding="utf-8")
        for page in re.findall(r":doc:`/([\w/]+)`", text):
            assert (ROOT / "docs" / f"{page}.md").exists(), f"{tutorial.name}: {page}"
        assert "What to try next" in text
