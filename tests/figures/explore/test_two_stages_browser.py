"""Two stages on one page, as two cells of a notebook have them: controls of one never change the other."""

import pytest
from browsing import MARKS
from exploring import idle

pytestmark = MARKS
SECOND = """async () => {
    const root = document.createElement('div');
    root.id = 'stage';
    root.className = 'second';
    document.body.append(root);
    let text = '';
    const link = new Link((receive, opened, lost) => {
        const socket = new WebSocket(`ws://${location.host}/ws`);
        Object.assign(socket, { onopen: opened, onmessage: (event) => receive(JSON.parse(event.data)), onclose: lost });
        return { send: (message) => socket.send(JSON.stringify(message)) };
    });
    link.address = { read: () => text, write: (changed) => { text = changed; }, follow: () => null };
    root.view = stage(root, await link.ask('scene'), link);
}"""
SEEN = """(which) => { const root = document.querySelectorAll('#stage')[which], { state, camera } = root.view; return {
    state: JSON.stringify(state), turn: [camera.azimuth, camera.elevation],
    controls: [...root.querySelectorAll('input, select')].map(one => [one.type, one.checked, one.value]),
    pressed: [...root.querySelectorAll('[aria-pressed="true"]')].map(one => one.textContent),
    open: [...root.querySelectorAll('details[open]')].length,
    pictures: [...root.querySelectorAll('canvas')].map(one => one.toDataURL()),
    text: [...root.querySelectorAll('.rail > ul, .centre, .why, .timeline')].map(one => one.innerText) } }"""
"""What is seen of a stage, but the work of the server, which all pages list."""
READY = """(which) => { const view = document.querySelectorAll('#stage')[which].view;
    return view && !view.due && view.root.querySelector('.diagnosis li')
        && [...view.asks.entries.values()].every(one => !one.pending) }"""


ACTS = {
    "view": lambda root: root.locator(".segments input[value=relief]").check(force=True),
    "turned": lambda root: root.locator(".ground").first.press("Shift+ArrowRight"),
    "map": lambda root: root.locator(".segments input[value=map]").check(force=True),
    "point": lambda root: root.locator(".ground").first.press("ArrowRight"),
    "number": lambda root: root.locator("select[aria-label='Number on the map']").select_option("error"),
    "drawer": lambda root: root.locator(".detail summary").press("Enter"),
    "closed": lambda root: root.locator(".detail summary").press("Escape"),
    "client": lambda root: root.locator(".clients button").first.press("Enter"),
    "weights": lambda root: root.locator(".presets button").nth(1).press("Enter"),
    "samples": lambda root: root.locator("select[aria-label='of model']").select_option("start"),
    "round": lambda root: root.locator(".curves").press("Home"),
    "smoothing": lambda root: root.locator("select[aria-label='Smoothing of the curves']").select_option("3"),
    "run": lambda root: root.locator(".card input").first.press("Space"),
    "tour": lambda root: root.get_by_role("button", name="Tour").press("Enter"),
}


@pytest.mark.parametrize(("acts", "rests"), [(0, 1), (1, 0)])
def test_controls_of_one_stage_never_change_the_other(browser, address, acts, rests):
    page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(60_000)
    page.goto(address + "#round=2&view=map")
    idle(page)
    page.evaluate(SECOND)
    for which in (0, 1):
        page.wait_for_function(READY, arg=which)
    page.wait_for_timeout(500)
    before, root = page.evaluate(SEEN, rests), page.locator("#stage").nth(acts)
    for name, act in ACTS.items():
        own = page.evaluate(SEEN, acts)
        act(root)
        page.wait_for_timeout(60)
        page.wait_for_function(READY, arg=acts)  # and the diagnosis of the run looked at
        assert page.evaluate(SEEN, acts) != own, f"{name} does something"
        assert page.evaluate(SEEN, rests) == before, name
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id).filter(id => id !== 'stage')")
    assert len(set(ids)) == len(ids)
    page.close()
