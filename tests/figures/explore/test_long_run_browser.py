"""A run of 300 rounds on the live page: readable, quick to walk through, and followed while it grows."""

import pytest
import tiny
from browsing import MARKS
from exploring import exploring, idle

pytestmark = [*MARKS, pytest.mark.timeout(600)]
VIEW = "document.getElementById('stage').view"
CROWDED = """(selector) => { const boxes = [...document.querySelectorAll(selector)].filter(one => one.textContent)
        .map(one => one.getBoundingClientRect());
    return boxes.filter((a, i) => boxes.slice(i + 1).some(b => a.left < b.right - 3 && b.left < a.right - 3
        && a.top < b.bottom - 5 && b.top < a.bottom - 5)).length; }"""
"""How many texts lie over another one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    tiny.trained(folder, "rounds=300", "local.lr=0.001")
    return folder


def test_three_hundred_rounds_are_readable_and_walked_through(browser, folder):
    page, errors = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce"), []
    page.set_default_timeout(120_000)
    page.on("pageerror", lambda problem: errors.append(str(problem)))
    with exploring(folder) as address:
        page.goto(address + "#round=150&view=path")
        idle(page)
        page.wait_for_function(f"() => {VIEW}.runs[0].rounds.length === 300")
        idle(page)
        assert page.locator("#stage .mark.round").count() == 300
        assert page.evaluate(CROWDED, "#stage .mark.round text") == 0
        assert page.evaluate(CROWDED, "#stage .curves .tick") == 0
        stops = "[...document.querySelectorAll('#stage .mark.round')].filter(one => one.tabIndex >= 0).length"
        assert page.evaluate(stops) == 1
        page.locator("#stage .curves").press("End")
        page.locator("#stage .curves").press("PageDown")
        assert page.evaluate(f"{VIEW}.state.round") == 296
        page.evaluate(f"{VIEW}.set({{ view: 'map', smooth: 21, span: [100, 120] }})")
        idle(page)
        assert page.evaluate(f"{VIEW}.state.round") == 296 and page.locator("#stage .plate:visible").count() == 1
        assert page.evaluate(CROWDED, "#stage .curves .tick") == 0
        assert "mean of 21 rounds" in page.text_content("#stage .curves")
        page.goto("about:blank")  # before the server ends
    page.close()
    assert errors == []
