"""What takes long is cancelled on the page, which says so, and can be asked for again."""

import pytest
import tiny
from browsing import MARKS
from exploring import exploring, idle

pytestmark = [*MARKS, pytest.mark.timeout(300)]
VIEW = "document.getElementById('stage').view"
SOCKET = "window.WebSocket = class extends WebSocket { constructor(...it) { super(...it); window.socket = this; } };"


def no_work(page):
    """Wait until no work is listed; else say which is."""
    from playwright.sync_api import expect

    expect(page.locator("#stage .jobs")).to_have_text("", timeout=60_000)


def test_a_file_that_is_cancelled_is_not_made_and_the_next_one_is(page):
    started = []
    page.on("download", lambda file: started.append(file))
    page.click("#stage .save summary")
    page.click("#stage .save button:has-text('This page')")
    page.click("#stage .saved button:has-text('Cancel')")
    page.wait_for_selector("#stage .saved:has-text('No file: you cancelled it.')")
    no_work(page)
    assert started == [] and page.locator("#stage .saved button").is_hidden()
    page.click("#stage .save summary")
    with page.expect_download(timeout=120_000):
        page.click("#stage .save button:has-text('This page')")
    page.wait_for_selector("#stage .saved:has-text('fedscape.html is in your downloads')")


def test_a_file_is_cancelled_while_its_weights_are_evaluated(page):
    page.evaluate(f"{{ {VIEW}.why.weights.toSave = () => new Promise(go => {{ window.go = go; }}); null; }}")
    page.evaluate(f"{{ {VIEW}.link.ask = kind => {{ window.asked = kind; return new Promise(() => null); }}; null; }}")
    page.click("#stage .save summary")
    page.click("#stage .save button:has-text('This page')")
    page.click("#stage .saved:has-text('Evaluating') button:has-text('Cancel')")
    page.evaluate("window.go({})")
    page.wait_for_timeout(50)
    assert page.evaluate("window.asked") is None
    assert "No file: you cancelled it." in page.text_content("#stage .saved")


def test_a_page_that_lost_its_connection_lists_no_work_that_has_ended(browser, address):
    page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    page.add_init_script(SOCKET)
    page.goto(address)
    idle(page)
    no_work(page)
    job = {"job": 7, "title": "landscape", "done": 1, "total": 4, "left": 9}
    page.evaluate(f"job => {VIEW}.link.receive({{ push: 'jobs', value: [job] }})", job)
    assert "landscape: 25 %" in page.text_content("#stage .jobs li")
    page.evaluate("window.socket.close()")
    no_work(page)
    page.close()


def test_work_that_is_cancelled_says_so_and_begins_again_when_it_is_looked_at_again(page):
    page.evaluate(f"""() => {{ const {{ link }} = {VIEW}, {{ ask }} = link, waiting = [];
        link.ask = (kind, args, more) => {{
            if (kind === 'cancel') {{ for (const stop of waiting.splice(0)) stop(new Error('It was cancelled.')); }}
            if (kind === 'cancel') {{ link.ask = ask; window.cancelled = args.job; return Promise.resolve(true); }}
            if (args.points !== 41) return ask.call(link, kind, args, more);
            return new Promise((go, stop) => waiting.push(stop)); }};
        {VIEW}.set({{ points: 41 }}); }}""")
    page.wait_for_function("() => !document.querySelector('#stage .jobs li')")
    job = {"job": 7, "title": "landscape", "done": 1, "total": 4, "left": 9}
    page.evaluate(f"job => {VIEW}.link.receive({{ push: 'jobs', value: [job] }})", job)
    assert "landscape: 25 %, 9 s left" in page.text_content("#stage .jobs li")
    page.click("#stage .jobs button:has-text('Cancel')")
    page.wait_for_selector("#stage .absent:has-text('was cancelled')")
    assert page.evaluate("window.cancelled") == 7
    page.evaluate(f"{VIEW}.set({{ points: 15 }})")
    page.evaluate(f"{VIEW}.set({{ points: 41 }})")
    idle(page)
    assert page.locator("#stage .absent:visible").count() == 0


def test_a_chart_that_is_cancelled_says_that_it_does_not_begin_again_by_itself(page):
    page.evaluate(f"""() => {{ const {{ link }} = {VIEW}, {{ ask }} = link;
        link.ask = (kind, args, more) => (kind === 'charts' && !args.stored
            ? Promise.reject(new Error('It was cancelled. It begins again when you come back to it.'))
            : ask.call(link, kind, args, more));
        {VIEW}.set({{ charts: 'noise-rounds' }}); }}""")
    page.click("[data-figure=noise-rounds] .compute")
    page.wait_for_selector("[data-figure=noise-rounds] :text-is('Compute again')")
    line = "It was cancelled, and does not begin again by itself."
    assert page.text_content("[data-figure=noise-rounds] [role=status]") == line


def test_a_shorter_run_shows_its_last_round_and_says_so(browser, tmp_path):
    tiny.trained(tmp_path, "rounds=5")
    tiny.trained(tmp_path, "rounds=3", "method=fedprox")
    page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    with exploring(tmp_path) as address:
        page.goto(address + "#round=4&view=map")
        page.wait_for_function(f"() => {VIEW}?.runs.length === 2")
        page.evaluate(f"{VIEW}.set({{ runs: {VIEW}.runs.map(run => run.key) }})")
        idle(page)
        places = page.locator("#stage .picture-title .at").all_text_contents()
        assert sorted(places) == ["", " round 2, its last"]
        page.locator("#stage .curves").press("Home")
        idle(page)
        assert page.locator("#stage .picture-title .at").all_text_contents() == ["", ""]
        page.goto("about:blank")  # before the server ends
    page.close()
