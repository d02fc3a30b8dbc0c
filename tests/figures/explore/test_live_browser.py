"""The stage with a server, in a real browser: each change is drawn as its address is drawn when it is opened."""

import threading

import numpy as np
import pytest
import tiny
from browsing import MARKS
from exploring import VIEW, exploring, idle, slide

pytestmark = MARKS
DRAWN = """() => ({
    address: location.hash, title: document.title,
    pictures: [...document.querySelectorAll('#stage .picture')].map(one => [one.textContent,
        one.querySelector('.over').outerHTML, one.querySelector('canvas').toDataURL()]),
    text: ['.why', '.timeline', '.rail ul', '.keys', '.tour', '.figure-shown'].map(
        name => document.querySelector(name)?.textContent ?? ''),
    curves: document.querySelector('.curves').innerHTML,
    controls: [...document.querySelectorAll('#stage :is(input, select)')].map(one =>
        [one.type, one.checked, one.value]),
    pressed: [...document.querySelectorAll('[aria-pressed="true"]')].map(one => one.textContent),
})"""
"""All that is seen."""


def brush(page):
    box = page.locator("#stage .curves").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 50, steps=4)
    page.mouse.up()


def click_map(page):
    box = page.locator("#stage .picture .ground").first.bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"])


def click_round(page, number):
    idle(page)
    box = page.locator(f"#stage .mark.round[data-mark='round {number}'] circle").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def segment(name):
    return lambda page: page.check(f"#stage .segments input[value={name}]", force=True)


def select(label, value):
    return lambda page: page.select_option(f"#stage select[aria-label='{label}']", value)


CHANGES = {
    "round": lambda page: page.locator("#stage .curves").press("ArrowLeft"),
    "point": click_map,
    "client": lambda page: page.locator("#stage .clients button").first.click(),
    "weights": slide,
    "samples of the weights": select("of model", "weights"),
    "relief": segment("relief"),
    "cell": lambda page: page.locator("#stage .confusion button:not(:empty)").nth(1).click(),
    "error": select("Number on the map", "error"),
    "difference": segment("difference"),
    "curve": select("First curve of the time line", "mean_cosine"),
    "smoothing": select("Smoothing of the curves", "3"),
    "brush": brush,
    "looked at": lambda page: page.locator("#stage .look").nth(1).click(),
    "path": segment("path"),
    "round of the path": lambda page: click_round(page, 0),
    "map": segment("map"),
    "tour": lambda page: page.get_by_role("button", name="Tour").click(),
    "next step": lambda page: page.get_by_role("button", name="Next").click(),
    "one run": lambda page: page.locator("#stage .card input").first.uncheck(),
    "back": lambda page: page.go_back(),
}


def test_after_each_change_the_page_is_as_its_address_is_opened(opened):
    page = opened("#round=2&view=map")
    for name, change in CHANGES.items():
        before = page.evaluate("location.hash")
        change(page)
        idle(page)
        assert page.evaluate("location.hash") != before, name
        page.mouse.move(3, 3)
        page.evaluate("document.activeElement.blur()")
        fresh = opened(page.evaluate("location.hash"))
        idle(page)
        now, then = page.evaluate(DRAWN), fresh.evaluate(DRAWN)
        fresh.close()
        for part in now:
            assert now[part] == then[part], f"{name}: {part}"


def test_an_unknown_figure_is_said_and_weights_say_when_they_are_forgotten(opened):
    page = opened("#round=2&view=map&figure=zzz")
    page.wait_for_selector("#stage .complaint:has-text('There is no figure zzz here')")
    assert "figure=" not in page.evaluate("location.hash") and page.locator(".figure-shown").is_hidden()
    slide(page)
    idle(page)
    assert "forgotten at another round, and when another run is looked at" in page.text_content("#stage .weights")
    said = page.evaluate(f"{VIEW}.state.mix.run")
    asked = page.evaluate(f"""() => new Promise((go) => {{ const {{ link }} = {VIEW}, {{ ask }} = link;
        link.ask = (kind, args) => {{ if (kind !== 'publish') return ask.call(link, kind, args);
            link.ask = ask; go(args); return new Promise(() => null); }};
        [...document.querySelectorAll('#stage .save button')].find(one => /This page/.test(one.textContent)).click();
        }})""")
    assert f"mix={said},2," in asked["address"], "the file has the weights"
    assert asked["what_if"]["value"]["loss"] != asked["what_if"]["own"]["loss"]
    fedlaw = page.evaluate(f"{VIEW}.scene.terms")["FedLAW"]
    assert page.get_attribute("#stage .presets button:has-text('FedLAW')", "title") == fedlaw
    pressed = "#stage .presets button[aria-pressed=true]"
    assert page.locator(pressed).count() == 0, "no rule gave these weights"
    for name in ("FedLAW's", "The round's own"):
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_function(f"name => document.querySelector('{pressed}')?.textContent === name", arg=name)
    assert page.locator("#stage .weights .term").all_text_contents()[0].startswith("FedLAW")


def test_a_clicked_point_has_the_loss_of_its_model(opened, runs):
    page = opened("#round=2&view=map&at=0.05,-0.02")
    state = page.evaluate(f"(() => {{ const {{ asks, looked, land }} = {VIEW}; "
                          "const { value, args } = [...asks.entries.values()].find(one => one.kind === 'point');"
                          "const here = land.weights(land.frame(looked).frame, [0.05, -0.02]);"
                          "return { value, args, here } })()")  # fmt: skip
    run = next(run for run in runs if run.name == state["args"]["run"])
    weights = {int(client): weight for client, weight in state["value"]["weights"].items()}
    assert dict(state["here"]) == pytest.approx(weights, abs=1e-4)
    record = run.round(2)
    ids = record.ids.tolist()
    theta = sum(weight * record.kept("clients")[ids.index(client)].double() for client, weight in weights.items())
    samples = run.task.split("test")
    wanted = float(run.task.per_sample(run.task.outputs(theta.float(), samples), samples.targets).mean())
    assert state["value"]["loss"] == pytest.approx(wanted, rel=1e-4)
    assert "evaluated exactly" in page.text_content("#stage .point")
    assert "client" in page.text_content("#stage .point .sum")
    assert page.locator("#stage .class-bars tbody tr").count() == len(run.dataset.classes)


def test_the_next_round_is_computed_ahead(opened):
    page = opened("#round=0&view=map")
    asked = f"""[...{VIEW}.asks.entries.values()].filter(one => one.kind === 'landscape').map(one => one.args.round)"""
    page.wait_for_function(f"() => {asked}.filter(round => round === 1).length === {VIEW}.shown.length")
    idle(page)
    assert set(page.evaluate(asked)) == {0, 1}
    assert page.evaluate(f"{VIEW}.land.ready(1)")
    page.evaluate(f"""() => {{
        const {{ link, asks, looked }} = {VIEW}, {{ ask }} = link, never = new Promise(() => {{}});
        never.cancel = () => {{ window.cancelled = true; }};
        link.ask = () => never;
        asks.want('landscape', {{ run: looked.key, round: 2 }});
        link.ask = ask;
        {VIEW}.set({{ view: 'path' }});
    }}""")
    page.evaluate(f"{VIEW}.set({{ view: 'path', round: 1 }})")
    assert 2 not in page.evaluate(asked) and page.evaluate("window.cancelled")  # nobody waits for it any more


def test_what_stays_until_a_round_is_there_is_what_was_looked_at(opened):
    page = opened("#round=0&view=map")
    page.wait_for_function(f"() => {VIEW}.land.ready(1)")
    idle(page)
    seen = page.evaluate(f"""() => {{
        {VIEW}.link.ask = () => Object.assign(new Promise(() => null), {{ cancel: () => null }});
        {VIEW}.set({{ round: 2 }});
        return {VIEW}.pictures.map(({{ shown: {{ at }} }}) => [at.stale, at.round, at.coming]); }}""")
    assert seen == [[True, 0, 2]] * 2, "not round 1, which was computed ahead"


def test_a_click_on_a_path_selects_that_round(opened):
    page = opened("#round=2&view=path")
    click_round(page, 1)
    assert page.evaluate(f"{VIEW}.state.round") == 1
    click_round(page, 0)
    assert page.evaluate(f"{VIEW}.state.round") == 0


def test_as_long_as_nothing_is_selected_the_last_round_that_is_read_is_shown(opened):
    page = opened()
    push = f"""(rounds) => {{ const {{ link, runs }} = {VIEW}, value = {{ runs: runs.map(run =>
        ({{ ...run, able: rounds, series: undefined }})), keys: runs.map(run => run.key) }};
        link.receive({{ push: 'scene', value }}); return {VIEW}.state.round }}"""
    assert page.evaluate(push, [0, 1]) == 1 and page.evaluate(push, [0, 1, 2]) == 2
    page.locator("#stage .curves").press("Home")
    assert page.evaluate(push, [0, 1, 2]) == 0, "a round that the reader selected stays"


def test_a_run_without_a_round_yet_begins_at_round_0_and_goes_to_the_first_that_are_read(opened):
    page = opened()
    push = f"""(rounds) => {{ const {{ link, runs }} = {VIEW}, value = {{ runs: runs.map(run => ({{ ...run, rounds,
        able: rounds, shown: {{}}, state: 'growing', series: undefined }})), keys: runs.map(run => run.key) }};
        link.receive({{ push: 'scene', value }}); }}"""
    page.evaluate(push, [])
    page.evaluate(f"{VIEW}.begin(); {VIEW}.render()")
    assert page.evaluate(f"{VIEW}.state.round") == 0
    assert not page.evaluate("/Infinity|NaN/.test(document.title + document.getElementById('stage').outerHTML)")
    page.evaluate(push, [0, 1])
    assert page.evaluate(f"{VIEW}.state.round") == 1
    page.evaluate(push, [0, 1, 2])
    assert page.evaluate(f"{VIEW}.state.round") == 1, "the reader follows only where that is chosen"
    idle(page)


GROW = f"""([rounds, ask]) => {{ const view = {VIEW}, {{ link, runs: [first, ...rest] }} = view;
    view.ask ||= link.ask;
    view.asked ||= [];
    link.ask = ask ? view.ask : (kind, {{ round }}) => {{ if (kind === 'landscape') view.asked.push(round);
        return Object.assign(new Promise(() => null), {{ cancel: () => view.asked.push('cancelled') }}); }};
    if (ask) view.asks.again();
    link.receive({{ push: 'scene', value: {{ runs: [{{ ...first, able: rounds, state: 'growing', series: undefined }}],
        keys: view.runs.map(run => run.key) }} }}); }}"""
"""The first run grows to some rounds; what is asked then is answered, or never."""
SEEN = f"""() => {{ const {{ pictures: [{{ shown, plate, title }}], state, asked }} = {VIEW}; return [state.round,
    shown.at.round, Boolean(shown.at.stale), plate.ariaBusy, title.querySelector('.at').textContent, asked]; }}"""


def test_a_run_that_grows_is_followed_from_whole_map_to_whole_map_and_a_finished_one_is_not(opened):
    page = opened("#round=0&view=map")
    keys = page.evaluate(f"{VIEW}.runs.map(run => run.key)")
    page.evaluate(GROW, [[], True])
    page.evaluate(f"location.hash = '#round=2&follow=1&runs={keys[0]},{keys[1]}&look={keys[1]}'")
    idle(page)
    assert page.evaluate(f"{VIEW}.state.round") == 2
    page.evaluate(GROW, [[0, 1], True])
    page.wait_for_function(f"() => {VIEW}.state.round === 1")
    idle(page)
    assert page.evaluate(SEEN)[:2] == [1, 1] and page.evaluate(f"{VIEW}.state.look") == keys[1]
    for rounds in ([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
        page.evaluate(GROW, [rounds, False])
        page.wait_for_timeout(80)
    assert page.evaluate(SEEN) == [1, 1, False, "false", "", [2]], "round 2 is not given up for round 4"
    page.evaluate(GROW, [[0, 1, 2], True])
    page.wait_for_function(f"() => {VIEW}.state.round === 2")
    idle(page)
    assert page.evaluate(SEEN)[:4] == [2, 2, False, "false"] and page.is_checked("#stage .timeline input")


def test_beside_a_later_round_a_run_that_grows_keeps_its_newest_whole_map(opened):
    page = opened("#round=2&view=map")
    page.evaluate(GROW, [[0], True])
    idle(page)
    assert page.evaluate(SEEN)[:5] == [2, 0, False, "false", " round 0, its last"]
    page.evaluate(GROW, [[0, 1], False])
    page.evaluate(f"{VIEW}.land.ready(1)")
    page.wait_for_timeout(80)
    assert page.evaluate(SEEN) == [2, 0, False, "false", " round 0; 1 is coming", [1, 1]], "both runs, and not again"


def test_nodes_and_listeners_stay_few_over_changes_of_view_and_round(opened):
    page = opened("#round=2&view=map&at=0,0")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def counted():
        session.send("HeapProfiler.collectGarbage")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return np.array([metrics["Nodes"], metrics["JSEventListeners"]])

    def change(times):
        for step in range(times):
            page.evaluate(
                f"step => {VIEW}.set({{ view: ['map', 'relief', 'difference', 'path'][step % 4], round: step % 3 }})",
                step,
            )
            if step < 12:
                idle(page)

    change(24)
    page.evaluate(f"{VIEW}.set({{ view: 'map', round: 2 }})")
    idle(page)
    before = counted()
    change(200)
    page.evaluate(f"{VIEW}.set({{ view: 'map', round: 2 }})")
    idle(page)
    assert (counted() <= 1.1 * before + 50).all()


def test_an_empty_folder_a_growing_run_and_a_damaged_one(browser, tmp_path):
    page, errors = browser.new_page(reduced_motion="reduce"), []
    page.on("pageerror", lambda problem: errors.append(str(problem)))
    with exploring(tmp_path) as address:
        page.goto(address)
        page.wait_for_selector("#beginning:has-text('No run')")
        training = threading.Thread(target=tiny.trained, args=(tmp_path, "rounds=40"))
        training.start()
        page.wait_for_selector("#stage .timeline input[type=checkbox]")
        page.check("#stage .timeline input[type=checkbox]")
        training.join()
        page.wait_for_function(f"() => {VIEW}.state.round === 39", timeout=60_000)
        idle(page)
        times = page.evaluate(
            f"(() => {{ const {{ asks, runs, link }} = {VIEW}, args = {{ run: runs[0].key, points: 9, samples: 20 }};"
            "for (let i = 0; i < 5; i++) { asks.want('path', args); asks.forget(runs); } return link.open.size; })()"
        )
        assert times == 1, "what is under way is not asked again while a run grows"
        assert page.evaluate(f"{VIEW}.state.follow")
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "run.json").write_text("{")
        page.wait_for_selector("#stage .state.damaged")
        assert "broken" in page.text_content("#stage .rail")
    page.close()
    assert errors == []


def test_a_lost_connection_is_said_and_comes_back(browser, address):
    page = browser.new_page(reduced_motion="reduce")
    page.add_init_script(
        "window.sockets = []; window.WebSocket = class extends WebSocket { constructor(url) { super(url); "
        "window.sockets.push(this); } };"
    )
    page.goto(address + "#round=2&view=map")
    idle(page)
    page.evaluate("window.sockets.at(-1).close()")
    page.wait_for_selector("#lost:not([hidden])")
    page.evaluate(f"{VIEW}.set({{ round: 1 }})")
    page.wait_for_selector("#lost", state="hidden")
    page.wait_for_function(f"() => {VIEW}.land.ready(1)")
    assert page.locator("#stage .plate.stale").count() == 0
    page.close()
