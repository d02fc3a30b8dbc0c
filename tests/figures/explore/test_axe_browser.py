"""axe-core in every view of the stage, light and dark: nothing serious, nothing critical."""

import importlib.util
from pathlib import Path

import pytest
from browsing import MARKS
from exploring import idle

AXE = importlib.util.find_spec("axe_playwright_python")
pytestmark = [
    *MARKS,
    pytest.mark.skipif(AXE is None, reason="no axe here; make test-extras ARGS=accessibility"),
]
VIEW = "document.getElementById('stage').view"
WRONG = """async () => (await axe.run(document, { resultTypes: ['violations'] })).violations
    .filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => [one.id, ...one.nodes.map(node => `${node.html.slice(0, 120)}: ${node.failureSummary}`).slice(0, 3)])"""


def look(**fields):
    return lambda page: page.evaluate(f"fields => {VIEW}.set(fields)", fields)


VIEWS = {
    "map": look(view="map"),
    "point": look(point=[0.01, -0.01]),
    "weights": lambda page: page.evaluate(f"{VIEW}.why.weights.preset('equal')"),
    "reasons": lambda page: page.click("#stage .why summary"),
    "relief": look(view="relief"),
    "difference": look(view="difference", metric="error"),
    "path": look(view="path"),
    "models": look(view="models"),
    "samples": look(view="map", model="end", show="all", truth=0, predicted=0),
    "drawer": lambda page: page.locator("#stage .card summary").last.click(),
    "detail": lambda page: page.locator("#stage .detail summary").click(),
    "save": lambda page: page.locator("#stage .save summary").click(),
    "tour": look(tour=3, client=None),
    "figures": look(figure="accuracy-rounds", options={}),
    "diagnosis": lambda page: page.wait_for_selector("#stage .diagnosis li"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_serious_violation(browser, address, scheme):
    page = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
    page.add_init_script(path=Path(AXE.submodule_search_locations[0]) / "axe.min.js")
    page.goto(address + "#round=2&view=map")
    assert page.evaluate(WRONG) == [], "while the runs are opened"
    idle(page)
    for name, change in VIEWS.items():
        change(page)
        idle(page)
        assert page.evaluate(WRONG) == [], name
    page.set_viewport_size({"width": 390, "height": 844})
    idle(page)
    assert page.evaluate(WRONG) == [], "a phone"
    page.close()
