"""The page of a comparison: nothing unescaped, no requests, decisions by the formula."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.report.comparison_files import compare_table
from bayes_lcs.report.comparison_page import comparison_page, save_page

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}",
    "[bold]$x^2$[/bold]",
    "=cmd|' /C calc'!A0",
    "\u202eright to left",
]


@pytest.fixture(scope="module")
def found():
    data, _ = bl.meeting_requests(seed=0, rows_per_person=30)
    frame = data.select_groups(list(range(len(HOSTILE)))).to_frame()
    names = dict(zip(dict.fromkeys(frame["person"]), HOSTILE, strict=True))
    frame["person"] = frame["person"].map(names)
    frame.loc[[1, 40, 80, 120], "decision"] = None
    features = [name for name in frame if name not in ("person", "decision")]
    frame = frame.rename(columns={name: f"<b>{name}</b>" for name in features})
    table = bl.GroupedTable.from_frame(frame, group="person", label="decision")
    return compare_table(table, seed=0)


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text, self.script = [], [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script":
            self.script += data
        self.text.append(data)


def test_names_are_text_and_nothing_else(found):
    reader = Reader()
    reader.feed(comparison_page(found, "a <file>.csv"))
    assert reader.tags.count("script") == 1
    assert not {"img", "svg", "b>", "iframe", "link"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert not [name for name, _ in reader.attributes if name in ("src", "href")]
    shown = " ".join(reader.text)
    for name in (*HOSTILE, "a <file>.csv"):
        assert name in shown
    assert re.search("<b>[a-z ]+</b> = ", shown)
    assert "http" not in reader.script


def test_the_page_says_what_was_found(found, tmp_path):
    page = save_page(found, tmp_path).read_text(encoding="utf-8")
    best = found.comparison.table().iloc[0]
    assert f"{best['log_evidence']:,.2f}" in page
    assert page.count('<td style="--p:') == len(HOSTILE) ** 2
    assert found.comparison.data.content_hash() in page
    assert "The posterior over partitions is exact" in page
    assert page.count('class="decision"') == 4


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
@pytest.mark.parametrize("exponent", [-8, -1.5, 0, 3, 8])
def test_the_slider_decides_as_the_formula_says(found, tmp_path, exponent):
    """A missed positive costs 2^n: decide for it from 1 / (1 + 2^n) on (thesis eq. 3.1)."""
    event = "slider.dispatchEvent(new Event('input'));"
    moved = f"<script>slider.value = {exponent}; {event}</script></body>"
    page = comparison_page(found).replace("</body>", moved)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    run = subprocess.run(
        [BROWSER, *options, f"--user-data-dir={tmp_path}/own", (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    decided = re.findall(r'<td class="decision">([^<]*)</td>', run.stdout)
    labels = found.comparison.data.label_values
    chances = found.predictions[f"P({labels[1]})"].to_numpy()
    expected = np.where(chances >= 1.0 / (1.0 + 2.0**exponent), labels[1], labels[0])
    assert decided == expected.tolist()
