"""The page of a comparison: what it says, of evidence and clusters, and how far to trust it."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from bayes_lcs.evaluation.cluster_log_ratios import cluster_log_ratios
from bayes_lcs.inference.partition_estimate import credible_ball
from bayes_lcs.model_evidence.log_evidence import Bracket, LogEvidence, MeanWeight
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.report.coclustering_map import coclustering_map
from bayes_lcs.report.compare import comparison_page, save_page
from bayes_lcs.report.diagnostic_advice import draws_advice, evidence_advice
from bayes_lcs.report.html import Provenance
from tests.browsing import HOSTILE


class Reader(HTMLParser):
    """Elements and attributes as a browser would find them, and the text outside of scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        if self.tags and self.tags[-1] != "script":
            self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def words_of(page):
    return " ".join("".join(read(page).text).split())


def test_names_are_text_and_nothing_else(compared):
    reader = read(comparison_page(compared, Provenance("compare", "a <file>.csv", 0)))
    assert reader.tags.count("script") == 2
    assert not {"img", "iframe", "link", "a", "form"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name == "src"]
    addresses = [value for name, value in reader.attributes if name == "href"]
    assert len(addresses) == 1
    assert addresses[0].startswith("data:image/png;base64,")
    shown = "".join(reader.text)
    for name in (*HOSTILE[:10], "a <file>.csv"):
        assert name in shown
    assert "W" * 59 + "…" in shown


def test_the_page_says_what_was_found(compared, tmp_path):
    path = save_page(compared, tmp_path)
    assert path.name == "report.html"
    said = words_of(path.read_text(encoding="utf-8"))
    best = compared.comparison.table().iloc[0]
    assert said.index(compared.comparison.verdict()) < said.index("Evidence")
    assert f"{best['log_evidence']:,.2f}" in said
    assert "-40.00" in said  # below the best
    assert compared.comparison.data.content_hash() in said
    assert "The posterior over partitions is exact" in said


def test_models_close_to_the_best_get_a_picture_of_their_own(three_labels):
    page = comparison_page(three_labels)
    assert page.count("The same, near the best") == 1
    near = page[page.index("The same, near the best") :]
    near = near[: near.index("<table")]
    assert "Prototype" in near
    assert "No-Sharing" not in near
    assert page.count('class="interval"') == 3 + 2


def test_profiles_are_the_log_ratios_farthest_from_those_of_others(compared):
    data = compared.comparison.data
    ratios = cluster_log_ratios(ClusteredNaiveBayes(), data, compared.partition)
    cards = re.findall(
        r'<section class="card">(.*?)</section>', comparison_page(compared), re.DOTALL
    )
    assert len(cards) == len(ratios) > 1
    for k, card in enumerate(cards):
        apart = np.abs(ratios[k] - np.delete(ratios, k, axis=0).mean(axis=0))
        farthest = ratios[k, np.argsort(-apart)[:8]]
        shown = re.findall(r'<span class="number">([+-][\d.]+)</span>', card)
        assert shown == [f"{ratio:+.2f}" for ratio in farthest]
        assert card.count('<rect class="speaks"') == (farthest > 0).sum()


def test_the_map_is_ordered_by_the_partition():
    matrix = np.array([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]])
    heat = coclustering_map(matrix, np.array([0, 1, 0]), ["a", "b", "c"])
    assert heat["names"] == ["a", "c", "b"]
    assert heat["thousandths"] == [[1000, 900, 100], [900, 1000, 200], [100, 200, 1000]]
    assert heat["frames"] == [(0, 2), (2, 1)]
    from_picture = _pixels(heat["picture"])
    np.testing.assert_array_equal(from_picture, np.rint(255 * matrix[np.ix_([0, 2, 1], [0, 2, 1])]))


def _pixels(address):
    import base64
    import io

    from matplotlib.image import imread

    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    return np.rint(255 * imread(io.BytesIO(data), format="png")[..., 3])


def test_the_credible_ball_holds_its_share_and_no_more():
    draws = np.array([[0, 0, 1, 1]] * 90 + [[0, 0, 1, 2]] * 6 + [[0, 1, 2, 3]] * 4)
    ball = credible_ball([0, 0, 1, 1], draws)
    assert ball.radius == pytest.approx(2 * np.log(2) / 4)
    assert ball.finest.tolist() == [0, 0, 1, 2]
    assert ball.coarsest.tolist() == [0, 0, 1, 1]
    assert credible_ball([1, 1, 0, 0], draws, level=0.9).radius == 0.0
    with pytest.raises(ValueError, match="level"):
        credible_ball([0, 0], [[0, 0]], level=0.0)
    with pytest.raises(ValueError, match="draws"):
        credible_ball([0, 0], [0, 0])


def test_the_ball_is_told_in_words(three_labels):
    said = words_of(comparison_page(three_labels))
    ball = credible_ball(three_labels.partition, three_labels.posterior.partitions())
    if ball.radius:
        assert f"within a distance of {ball.radius:.3f}" in said
    else:
        assert "At least 95% of the posterior is this one partition" in said


def test_doubtful_evidence_comes_with_advice(three_labels):
    said = words_of(comparison_page(three_labels))
    assert "-903.00 and -890.00, disagree" in said
    assert "A few draws carry nearly all of the weight" in said
    assert said.count("Check this.") >= 2
    assert "max_chains" in said


def test_evidence_is_trusted_where_its_ends_agree():
    ends = Bracket(MeanWeight(-10.0, 0.1, 50.0), MeanWeight(-9.9, 0.1, 50.0), True)
    good = LogEvidence.estimated(ends.forward, "ais", "m", bracket=ends)
    assert evidence_advice("m", good).is_ok
    assert evidence_advice("m", LogEvidence.exact(-1.0, "exact", "m")).is_ok


@pytest.mark.parametrize(
    ("numbers", "fine", "advice"),
    [
        ({"rhat": 1.001, "ess_bulk": 900.0, "ess_tail": 800.0}, True, "chains agree"),
        ({"rhat": 1.2, "ess_bulk": 900.0, "ess_tail": 800.0}, False, "--draws"),
        ({"rhat": 1.001, "ess_bulk": 900.0, "ess_tail": 80.0}, False, "--draws"),
        ({"rhat": np.nan, "ess_bulk": 900.0, "ess_tail": 800.0}, False, "--chains 4"),
        ({"rhat": np.nan, "ess_bulk": np.nan, "ess_tail": np.nan}, False, "Too few draws"),
    ],
)
def test_diagnostics_say_what_to_do(numbers, fine, advice):
    found = {"log_joint": {**numbers, "mean": 1.0, "constant": False}}
    rows, told = draws_advice(found, 4)
    assert rows[0]["name"] == "log probability of the draw"
    assert [entry.is_ok for entry in told] == [fine]
    assert advice in told[0].text


def test_what_never_varied_is_fine_if_several_chains_agree():
    numbers = {"rhat": np.nan, "ess_bulk": np.nan, "ess_tail": np.nan}
    found = {"num_clusters": {**numbers, "mean": 2.0, "constant": True}}
    assert [draws_advice(found, chains)[1][0].is_ok for chains in (1, 4)] == [False, True]


def test_an_interrupted_run_says_so_first(three_labels):
    assert "Interrupted" not in comparison_page(three_labels)
    tree = three_labels.posterior.datatree
    tree.attrs["interrupted"] = "true"
    try:
        said = words_of(comparison_page(three_labels))
    finally:
        del tree.attrs["interrupted"]
    assert said.index("Interrupted:") < said.index("should they share one model?")
    assert "--resume" in said
