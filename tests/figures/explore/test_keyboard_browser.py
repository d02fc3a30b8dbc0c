"""The stage without a mouse: Tab, Enter, Space, Escape and arrows reach and do everything."""

import pathlib
import re

import pytest
from browsing import MARKS
from exploring import idle

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
STOP = """() => {
    const one = document.activeElement, mark = one.querySelector(':scope > :is(circle, rect, path)');
    const name = one.getAttribute('aria-label') || one.closest('label')?.textContent || one.textContent;
    const outlined = (element) => element && getComputedStyle(element).outlineStyle !== 'none';
    const seen = outlined(one) || (one.type === 'radio' && outlined(one.nextElementSibling))
        || (one.matches('.ground') && getComputedStyle(one).strokeWidth === '3px')
        || (one.matches('.mark') && getComputedStyle(mark).strokeWidth === '4px');
    return { name: name.trim().replace(/\\s+/g, ' '), seen: Boolean(seen), body: one === document.body } }"""
"""The element with the focus: its name, and whether the focus can be seen."""


def tab_to(page, name):
    """Press Tab until a control of that name (a pattern) has the focus; each stop has a name and shows its focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        assert stop["body"] or (stop["name"] and stop["seen"]), stop
        if re.match(name, stop["name"]):
            return
    raise AssertionError(f"no stop {name}")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    idle(page)


def state(page, name):
    return page.evaluate(f"{VIEW}.state.{name}")


def test_all_is_done_from_the_keyboard(page, tmp_path):
    tab_to(page, "Save")
    press(page, "Enter")
    assert page.locator("#stage .save[open]").count() == 1
    press(page, "Escape")
    assert page.locator("#stage .save[open]").count() == 0 and page.evaluate(STOP)["name"] == "Save"

    tab_to(page, "Show FedLAW")
    press(page, "Space")
    assert len(state(page, "runs")) == 1
    press(page, "Space")
    assert len(state(page, "runs")) == 2
    tab_to(page, "FedLAW$")
    press(page, "Enter")
    assert "fedlaw" in state(page, "look") and page.evaluate(STOP)["name"] == "FedLAW"

    tab_to(page, "Map")
    press(page, "ArrowRight")
    assert state(page, "view") == "relief" and page.evaluate(STOP)["name"] == "Relief"
    press(page, "ArrowLeft")
    tab_to(page, "Detail")
    press(page, "Enter")
    tab_to(page, "Samples of")
    press(page, "Escape")
    assert page.locator("#stage .detail[open]").count() == 0 and page.evaluate(STOP)["name"] == "Detail"

    tab_to(page, ".*Arrow keys move the point")
    press(page, "ArrowRight", "ArrowRight", "ArrowUp")
    u, v = state(page, "point")
    assert u > v > 0
    spoken = page.text_content("#stage .centre > [role=status]")
    read = page.text_content("#stage .point td >> nth=0")
    assert re.match(r"FedAvg, seed 5: loss at \(.*\): [\d.]+, evaluated exactly; FedLAW, seed 5: loss at", spoken)
    assert float(re.search(r"\): ([\d.]+)", spoken)[1]) == pytest.approx(float(read), rel=5e-3)
    tab_to(page, "(client|start|end|aggregate)")
    press(page, "ArrowRight", "Enter")

    tab_to(page, "client \\d+$")
    press(page, "ArrowDown", "Enter")
    assert page.evaluate(STOP)["name"] == f"client {state(page, 'client')}"

    tab_to(page, "Play|▶ Play")
    tab_to(page, "Round on the stage")
    press(page, "Home")
    assert state(page, "round") == 0 and page.get_attribute("#stage .curves", "aria-valuetext") == "round 0"
    press(page, "ArrowRight")
    assert state(page, "round") == 1
    assert float(page.text_content("#stage .point td >> nth=0")) > 0

    page.keyboard.press("Shift+Tab")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    tab_to(page, "Save")
    press(page, "Enter")
    tab_to(page, "This page as one file")
    with page.expect_download(timeout=120_000) as started:
        page.keyboard.press("Enter")
    page.goto(pathlib.Path(started.value.path()).rename(tmp_path / "fedscape.html").as_uri())
    page.wait_for_selector("#stage .mark.end")
    assert "evaluated" in page.text_content("body")


def test_tables_lists_and_drawings_are_one_stop_each(page):
    stops = page.evaluate("""() => ['.clients table', '.marks', '.figure-list'].map((part) =>
        [...document.querySelectorAll(part)].map((one) =>
            [...one.querySelectorAll('[tabindex], button')].filter((item) => item.tabIndex >= 0).length))""")
    assert stops == [[1], [1, 1], [1]]
    page.focus(".figure-list button[tabindex='0']")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.figure-list button')[1]")
    seen = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(90):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(STOP))
        if seen[-1]["body"]:
            break
    assert len(seen) < 70, "one way through the page"
