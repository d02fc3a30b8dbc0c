"""What a page shows before its first picture: the runs, and what is being done. Nothing is white without a word."""

import json

import pytest
from browsing import MARKS

pytest.importorskip("tornado", reason="no tornado here; pip install 'fedscape[explore]'")
from asking import page as asked

from figures.explore.live_page import live_page
from figures.explore.work.unread_runs import unread_runs

pytestmark = MARKS
SOCKET = """window.WebSocket = class {
    constructor() { window.socket = this; this.asked = []; setTimeout(() => this.onopen()); }
    send(text) { const { id, ask } = JSON.parse(text); this.asked.push({ id, ask });
        if (ask === "scene") this.scene = id; }
    tell(content) { this.onmessage({ data: JSON.stringify({ id: this.scene, ...content }) }); }
    asks(kind) { return this.asked.filter(({ ask }) => ask === kind).map(({ id }) => id); } }"""
"""A server that says what the test says."""


@pytest.mark.parametrize("width", [1400, 390])
def test_runs_are_there_before_they_are_open_and_maps_have_their_places_before_they_are_computed(
    browser, runs, jobs, width
):
    folder = runs[0].folder.parent
    with asked(folder, jobs=jobs) as one:
        scene = one.ask("scene")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.add_init_script(SOCKET)
    page.goto("about:blank")
    page.set_content(live_page())
    page.wait_for_function("window.socket?.scene")
    assert page.locator("#beginning:visible").count() == 1
    unread = unread_runs([folder])
    page.evaluate("runs => socket.tell({ rough: runs })", unread)
    assert page.locator("#stage .card").count() == len(unread) == len(runs)
    text = page.inner_text("#stage")
    assert all(f"{run.name} · 3 of 3 rounds" in text for run in runs) and "Opening 4 runs" in text
    assert page.locator("#stage .beginning svg path").count() == page.locator("#stage .spark").count() == 4
    low, high = (round(100 * end(value for run in unread for value in run["accuracies"])) for end in (min, max))
    assert f"Test accuracy, {low} % to {high} %, of rounds 0 to 2" in text
    page.evaluate("scene => socket.tell({ value: scene })", json.loads(json.dumps(scene)))
    page.wait_for_selector("#stage .absent.coming")
    for place, run in zip(page.locator("#stage .absent.coming").all(), ("FedAvg", "FedLAW"), strict=True):
        assert place.text_content() == "Computing the map of round 2: 15 x 15 models ..."
        box, title = place.bounding_box(), page.locator("#stage .picture-title", has_text=run)
        assert min(box["width"], box["height"]) > 200 and title.is_visible()
    assert page.locator("#stage .beginning").count() == 0
    page.close()


def test_a_figure_of_the_address_is_drawn_once_while_runs_are_read_and_again_when_they_have_grown(browser, runs, jobs):
    with asked(runs[0].folder.parent, jobs=jobs) as one:
        scene = one.ask("scene")
    page = browser.new_page()
    page.add_init_script(SOCKET)
    page.goto("about:blank")
    page.evaluate("location.hash = 'figure=lines-globals'")
    page.set_content(live_page())
    page.wait_for_function("window.socket?.scene")
    first = scene["runs"][0]
    assert first["done"] == [[[2], []], [[2], []]]
    page.evaluate("scene => socket.tell({ value: scene })", scene)
    listed = [{"name": "lines-globals", "question": "Where?", "shows": "Lines.", "needs": "", "cost": ""}]
    page.wait_for_function("socket.asks('figures').length")
    page.evaluate("value => socket.tell({ id: socket.asks('figures')[0], value })", listed)
    page.wait_for_function("socket.asks('draw').length")
    push = "run => socket.tell({ id: 0, push: 'scene', value: { runs: [run], keys: null, problems: [] } })"
    page.evaluate(push, {**first, "note": "read further"})
    refused = "This figure shows one run; tick one."
    page.evaluate("error => socket.tell({ id: socket.asks('draw')[0], error })", refused)
    page.wait_for_function("socket.asks('draw').length === 2")
    drawn = {"svg": "<svg/>", "alt": "", "caption": "", "command": "", "python": ""}
    page.evaluate("value => socket.tell({ id: socket.asks('draw')[1], value })", drawn)
    page.evaluate(push, {**first, "note": "and further"})
    page.wait_for_timeout(300)
    assert page.evaluate("socket.asks('draw').length") == 2
    page.evaluate(push, {**first, "done": [[[3], []], [[2], []]]})
    page.wait_for_function("socket.asks('draw').length === 3")
    page.close()
