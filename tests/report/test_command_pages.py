"""The pages of cluster, scan and coreset: what they say, read as text."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.report.cluster import mixture_page
from bayes_lcs.report.coreset import coreset_page
from bayes_lcs.report.html import Provenance, provenance_table, render, truncate
from bayes_lcs.report.scan import scan_page
from bayes_lcs.report.svg import Axis, bar, line_chart, scatter


@pytest.fixture(scope="module")
def clustered():
    """Two kinds of rows: "a" and "b" in nine cells of ten."""
    rng = np.random.default_rng(0)
    kind = rng.random(3000) < 0.3
    cells = np.where((rng.random((3000, 4)) < 0.9) == kind[:, None], "b", "a")
    frame = pd.DataFrame(cells, columns=["w", "x", "y", "z"])
    clusterer = bl.MixtureClusterer(2, random_state=0)
    return bl.learning_curve_sample(clusterer, frame, initial_size=200, holdout_size=400, alpha=0.2)


def test_cluster_tells_rows_reason_and_every_stage(clustered):
    page = mixture_page(clustered, Provenance("cluster", "visits.csv", 3, {"clusters": 2}))
    assert f"{clustered.sample_size:,}" in page
    assert clustered.stop_reason.removeprefix("stops: ") in page
    stages = re.search(r'<table id="stages">.*?</table>', page, re.DOTALL)[0]
    assert stages.count("<tr>") == 1 + len(clustered.stages)
    assert "visits.csv" in page
    assert "clusters: 2" in page


def test_cluster_profiles_are_shares_here_and_overall(clustered):
    page = mixture_page(clustered, counts=np.array([900, 2100]))
    model = clustered.model
    cards = page.split('<section class="card">')[1:]
    largest = int(np.argmax(model.weights_))
    assert f"Cluster {largest}: {model.weights_[largest]:.1%} of rows" in cards[0]
    assert f"{[900, 2100][largest]:,} rows are assigned" in cards[0]
    first = re.search(
        r"<bdi>(\w)</bdi> = <bdi>(\w)</bdi>.*?([\d.]+)%.*?([\d.]+)%", cards[0], re.DOTALL
    )
    column = "wxyz".index(first[1])
    value = list(model.categories_[column]).index(first[2])
    own = model.probabilities_[column][largest, value]
    overall = model.weights_ @ model.probabilities_[column][:, value]
    assert float(first[3]) == pytest.approx(100 * own, abs=0.051)
    assert float(first[4]) == pytest.approx(100 * overall, abs=0.051)
    assert own > overall


def test_an_interrupted_curve_says_so_first(clustered):
    run = replace(clustered.run, interrupted="interrupted after 2 stages")
    page = mixture_page(replace(clustered, run=run))
    assert page.index("--resume") < page.index("<h1>")
    assert "interrupted after 2 stages" in page


def test_scan_tells_what_was_read_why_it_stopped_and_what_holds():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    scan = bl.PartialScanClassifier("tree", 16, random_state=0).fit(X, X[:, 0] > 0)
    page = scan_page(scan, Provenance("scan", "t.csv", 0, {"label": "kind"}))
    story = scan.scan_
    assert f"{story.rows_read:,} rows" in page
    for words in (story.stop_reason, story.guarantee):
        assert words in page.replace("&#39;", "'")
    trace = re.search(r'<table id="trace">.*?</table>', page, re.DOTALL)[0]
    assert trace.count("<tr>") == 1 + story.parts_read
    assert "Interrupted" not in page
    scan.scan_ = replace(story, stop_reason="interrupted", drift=0.0005)
    page = scan_page(scan)
    assert page.index("--resume") < page.index("<h1>")
    assert "The order of the rows matters (p = 0.0005)" in page


def test_scan_with_benefits_keeps_its_decisions_and_has_no_slider():
    X = np.random.default_rng(0).normal(size=(500, 2))
    scan = bl.PartialScanClassifier(
        "tree", 8, benefit=[[1.0, 0.0], [0.0, 5.0]], random_state=0
    ).fit(X, X[:, 0] > 0)
    probabilities = np.array([[0.7, 0.3]])
    page = scan_page(scan, probabilities=probabilities, decisions=[True], predicted="new.csv")
    assert '<td class="decision"><bdi>True</bdi></td>' in page
    assert 'type="range"' not in page


def test_coreset_tells_points_weights_and_checks():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    small = bl.coreset(X, 4, 100, random_state=0)
    page = coreset_page(
        small, ["u", "v", "w"], Provenance("coreset", "x.csv", 0, {"clusters": 4, "size": 100})
    )
    assert f"{len(small):,} weighted points stand for 1,000 rows" in page
    assert page.count("<circle") == len(small)
    for value in small.distortions:
        assert f"{value:+.2%}" in page
    assert f"{small.weights.sum():,.6g}" in page


def test_coreset_of_one_column_has_no_scatter():
    X = np.random.default_rng(0).normal(size=(100, 1))
    page = coreset_page(bl.coreset(X, 2, 20, random_state=0), ["u"])
    assert "<circle" not in page


def test_provenance_has_the_hash_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"abc")
    rows = dict(
        provenance_table(
            Provenance("scan", path, 7, {"alpha": 0.0, "ignore": ["x"], "whole": False})
        )
    )
    assert rows["content of the file (sha256)"].startswith("ba7816bf8f01cfea414140de5dae2223")
    assert rows["data"] == "a.csv"
    assert rows["seed"] == "7"
    assert rows["options"] == "alpha: 0.0; ignore: x"


def test_large_files_are_known_by_size_and_time(tmp_path, monkeypatch):
    monkeypatch.setattr("bayes_lcs.report.html.MAX_HASHED_BYTES", 2)
    (tmp_path / "a.csv").write_bytes(b"abc")
    rows = dict(provenance_table(Provenance("scan", tmp_path / "a.csv")))
    assert rows["content"].startswith("3 bytes, last changed 20")
    folder = dict(provenance_table(Provenance("coreset", tmp_path)))
    assert folder["content"] == "1 files, 3 bytes"


def test_a_template_without_a_value_is_an_error():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        render("coreset.html.j2", title="t", provenance=[])


def test_charts_put_values_where_they_belong():
    x = Axis("x", 0.0, 10.0)
    y = Axis("y", 0.0, 1.0)
    drawing = line_chart(x, y, [("line", [0.0, 10.0], [0.0, np.nan])], marks=[(5.0, "<b>")])
    assert "nan" not in drawing
    assert "&lt;b&gt;" in drawing
    assert [text for _, text in x.ticks()] == ["0", "2", "4", "6", "8", "10"]
    assert Axis.over("n", [100, 90_000], is_log=True, form="{:,.0f}".format).ticks()[0][1] == "100"
    assert float(Axis("n", 1.0, 100.0, is_log=True).place(10.0)) == pytest.approx(0.5)


def test_axes_of_one_value_or_none_still_have_a_scale():
    for values in ([3.0], [], [np.nan], [0.0, 0.0]):
        axis = Axis.over("x", values)
        assert axis.low < axis.high
        assert len(axis.ticks()) >= 1


def test_areas_are_in_the_proportion_of_weights():
    drawing = scatter(Axis("x", 0, 1), Axis("y", 0, 1), [0.2, 0.8], [0.5, 0.5], [1.0, 4.0], "t")
    radius = [float(r) for r in re.findall(r'r="([\d.]+)"', drawing)]
    assert radius[0] / radius[1] == pytest.approx(2.0, abs=0.01)


def test_bars_go_left_and_right_and_no_farther_than_full():
    assert 'x="-0.5000" y=".12" width="0.5000"' in bar(-1.0, 2.0)
    assert 'x="0.0000" y=".12" width="1.0000"' in bar(9.0, 2.0)
    assert 'd="M0.2500 0V1"' in bar(1.0, 2.0, 0.5)


def test_short_names_are_left_alone():
    assert truncate("a" * 60) == "a" * 60
    assert len(truncate("a" * 61)) == 60
