"""The slider of a page decides every row as the formula says, ties and last bits included."""

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.core.decisions import decide
from bayes_lcs.report.html import render
from bayes_lcs.report.prediction_table import missing_costs, missing_loss, prediction_table
from tests.browsing import visit

EXPONENTS = (-8.0, -3.0, -1.5, -1.0, -0.25, 0.0, 1.0, 2.0, 2.75, 8.0)


def decisions_in(browser, exponent, positive=None):
    """What the page shows after the slider was moved."""
    return browser.execute_script(
        """
        const [value, positive] = arguments;
        const slider = document.getElementById("cost");
        if (positive !== null) {
          const choice = document.getElementById("positive");
          choice.value = positive;
          choice.dispatchEvent(new Event("change"));
        }
        slider.value = value;
        slider.dispatchEvent(new Event("input"));
        return {
          decisions: [...document.querySelectorAll(".decision")].map(e => e.textContent),
          count: Number(document.getElementById("count").textContent),
        };
        """,
        str(exponent),
        None if positive is None else str(positive),
    )


def expected_decisions(probabilities, labels, positive, exponent):
    chosen = decide(probabilities, missing_loss(len(labels), positive, 2.0**exponent))
    return [labels[d] for d in chosen]


def test_two_labels_are_decided_by_the_threshold(pages, browser, compared):
    labels = compared.comparison.data.label_values
    probabilities = compared.predictions[[f"P({name})" for name in labels]].to_numpy()
    shown = [name[:59] + "…" if len(name) > 60 else name for name in labels]
    visit(browser, pages["compare"])
    for exponent in EXPONENTS:
        found = decisions_in(browser, exponent)
        assert found["decisions"] == expected_decisions(probabilities, shown, 1, exponent)
        assert found["count"] == found["decisions"].count(shown[1])


@pytest.mark.parametrize("positive", [0, 1, 2])
def test_with_three_labels_any_may_be_the_one_not_to_miss(positive, pages, browser, three_labels):
    labels = three_labels.comparison.data.label_values
    probabilities = three_labels.predictions[[f"P({name})" for name in labels]].to_numpy()
    visit(browser, pages["compare-three-labels"])
    ties = 0
    for exponent in EXPONENTS:
        found = decisions_in(browser, exponent, positive)
        assert found["decisions"] == expected_decisions(probabilities, labels, positive, exponent)
        assert found["count"] == found["decisions"].count(labels[positive])
        losses = np.sort(probabilities @ missing_loss(3, positive, 2.0**exponent), axis=1)
        ties += (losses[:, 0] == losses[:, 1]).sum()
    assert ties > 10


def test_ties_of_two_labels_go_to_the_first(browser, tmp_path):
    probabilities = np.array([[0.5, 0.5], [0.8, 0.2], [2 / 3, 1 / 3], [0.2, 0.8], [1.0, 0.0]])
    page = render(
        "scan.html.j2",
        title="t",
        name="t",
        story=bl.PartialScanClassifier(n_partitions=8, random_state=0)
        .fit(np.arange(80.0)[:, None], np.arange(80) % 2)
        .scan_,
        label="",
        labels=["no", "yes"],
        learner="tree",
        whole=False,
        drift="",
        performance=[],
        chart="",
        benefit="",
        steps=[],
        table=prediction_table(probabilities, ["no", "yes"]),
        predicted="new.csv",
        short_labels=["no", "yes"],
        provenance=[],
    )
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    visit(browser, path)
    for exponent in np.log2(missing_costs()):
        found = decisions_in(browser, exponent)
        assert found["decisions"] == expected_decisions(probabilities, ["no", "yes"], 1, exponent)
    assert decisions_in(browser, 0.0)["decisions"] == ["no", "no", "no", "yes", "no"]
    assert decisions_in(browser, 1.0)["decisions"][2] == "no"  # 1/3 is the threshold, not above it
    assert (
        decisions_in(browser, 2.0)["decisions"][1]
        == expected_decisions(probabilities, ["no", "yes"], 1, 2.0)[1]
    )


def test_the_table_without_a_script_has_the_most_probable_labels():
    table = prediction_table([[0.5, 0.5], [0.2, 0.8]], ["no", "yes"])
    assert [row["decision"] for row in table["rows"]] == ["no", "yes"]
    assert table["slider"]


def test_no_slider_where_benefits_were_given_or_labels_are_many():
    given = prediction_table([[0.5, 0.5]], ["no", "yes"], decisions=["yes"])
    assert not given["slider"]
    assert given["rows"][0]["decision"] == "yes"
    many = prediction_table(np.full((2, 30), 1 / 30), [str(i) for i in range(30)])
    assert not many["slider"]
    assert many["rows"][0]["shown"] == ["0.033"]


def test_a_page_has_no_more_rows_than_it_can_bear():
    table = prediction_table(np.full((6000, 2), 0.5), ["a", "b"])
    assert len(table["rows"]) == len(table["probabilities"]) == 5000
    assert table["total"] == 6000
