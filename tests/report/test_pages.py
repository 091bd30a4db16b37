"""Every command's page in a browser: it loads, asks for nothing, fits a phone, runs no name."""

import re

import pytest

from tests.browsing import HOSTILE, complaints, requests, visit

PAGES = ("compare", "compare-three-labels", "compare-200-groups", "cluster", "scan", "coreset")
SCRIPTS = {"compare": 2, "compare-three-labels": 2, "compare-200-groups": 1, "scan": 1}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_without_complaint_or_request(name, scheme, pages, browser):
    visit(browser, pages[name], scheme=scheme)
    assert complaints(browser) == []
    asked = [url for url in requests(browser) if not url.startswith("data:")]
    assert asked == [pages[name].as_uri()]
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_a_phone(name, pages, browser):
    visit(browser, pages[name], width=360)
    wide = browser.execute_script(
        "return [document.documentElement.scrollWidth, ...[...document.body.children].map("
        "e => Math.ceil(e.getBoundingClientRect().right))]"
    )
    assert max(wide) <= 360


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_on_paper(name, pages, browser):
    visit(browser, pages[name], width=680, medium="print")  # A4 with margins of 1.5 cm
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 680
    shown = browser.execute_script(
        "return [...document.querySelectorAll('input, .screen')].filter(e => e.checkVisibility())"
    )
    assert shown == []


@pytest.mark.parametrize("name", PAGES)
def test_no_name_runs_or_becomes_an_element(name, pages, browser):
    visit(browser, pages[name])
    found = browser.execute_script(
        """
        const all = [...document.querySelectorAll("*")];
        return {
          pwned: typeof window.__pwned,
          strange: document.querySelectorAll("img,iframe,object,embed,link,base,form,a").length,
          inside: document.querySelectorAll("bdi *, option *, text *, td > td").length,
          handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith("on"))).length,
          addresses: all.filter(e => e.hasAttribute("src")).length,
          scripts: document.scripts.length,
        };
        """
    )
    assert found == {
        "pwned": "undefined",
        "strange": 0,
        "inside": 0,
        "handlers": 0,
        "addresses": 0,
        "scripts": SCRIPTS.get(name, 0),
    }


@pytest.mark.parametrize("name", PAGES)
def test_pages_stay_small_and_say_where_they_come_from(name, pages, browser):
    page = pages[name].read_text(encoding="utf-8")
    assert len(page) < 1_000_000
    assert "W" * 200 not in page
    visit(browser, pages[name])
    end = browser.execute_script("return document.getElementById('provenance').innerText")
    assert "<b>data<b>.csv" in end
    assert re.search(r"sha256\)\s+[0-9a-f]{64}", end)
    assert re.search(r"seed\s+0", end)
    assert "made with\tbayes_lcs" in end
    assert re.search(r"made on\s+20\d\d-", end)


def test_hostile_names_are_shown_as_they_are_written(pages, browser):
    visit(browser, pages["compare"])
    members = browser.execute_script(
        "return [...document.querySelectorAll('#clusters .members bdi')].map(e => e.textContent)"
    )
    assert sorted(members) == sorted(
        name if len(name) <= 60 else name[:59] + "…" for name in HOSTILE
    )


def test_a_field_of_the_map_tells_its_pair_by_pointer_and_by_key(pages, browser):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    visit(browser, pages["compare-200-groups"], width=360)
    map_ = browser.find_element("id", "coclustering")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", map_)
    width = map_.size["width"]
    # From the middle of the map to the middle of the field in row 2, column 150.
    across, down = (150.5 / 200 - 0.5) * width, (2.5 / 200 - 0.5) * width
    ActionChains(browser).move_to_element_with_offset(map_, across, down).click().perform()
    said = browser.find_element("id", "pair").text
    assert re.fullmatch(r"g\d{3} and g\d{3}: [01]\.\d{3}", said)
    order = browser.execute_script(
        "return [...document.querySelectorAll('.heat .here')].map("
        "e => [Number(e.getAttribute('y')), Number(e.getAttribute('x'))])[0]"
    )
    assert abs(order[0] - 2) <= 1
    assert abs(order[1] - 150) <= 1
    browser.find_element("id", "larger").click()
    assert map_.size["width"] > 2000
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    map_.send_keys(Keys.ARROW_DOWN, Keys.ARROW_LEFT)
    assert browser.find_element("id", "pair").text != said
