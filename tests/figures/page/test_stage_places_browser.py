"""Where a reader is on the stage: addresses, flags, and pictures that fit into the window."""

import base64
import copy
import itertools
import re

import numpy as np
import packed_pages
import pytest
from browsing import MARKS

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
PICTURE = f"{VIEW}.pictures"

NONSENSE = {
    "round=NaN": "round is NaN, not the number of a round",
    "round=99": "there is no landscape of round 99; round 2 is shown",
    "runs=fedavg,nobody": "there is no run nobody here",
    "runs=fedavg,%ff%": "there is no run %ff% here",
    "seeds=%E0%A4%A": "seeds is %E0%A4%A, not names of runs here",
    "look=nobody": "look is nobody, not a run on the stage",
    "view=upside": "view is upside, not map, relief, difference, path",
    "metric=happiness": "metric is happiness, not loss, error or class 3",
    "at=1": "at is 1, not two numbers",
    "at=NaN,2": "at is NaN,2, not two numbers",
    "turn=1e308,-1e308": "turn is 1e308,-1e308, not two angles up to 1000000 degrees",
    "client=-2": "client is -2, not the number of a client",
    "smooth=4": "smooth is 4, not 1, 3, 5, 9, 21",
    "span=9-3": "span is 9-3, not two rounds, such as 3-9",
    "span=100-200": "span is 100-200, and the rounds are 0 to 2",
    "span=1-200": "span is 1-200, and the rounds are 0 to 2",
    "model=nosuch": "model is nosuch, not end, start, aggregate, point, weights or client 3",
    "truth=99": "truth is 99, not the number of a class",
    "metric=class%2099": "metric is class 99, not loss, error or class 3",
    "more=999": "more is 999, not a whole number up to 19",
    "with=points": "with is points, not option:value",
    "tour=7": "tour is 7, not 1, 2, 3, 4, 5",
    "mix=x": "mix is x, not run, round, gamma and client:weight",
    "%ff=1": "%ff is no field",
    "colour=red": "colour is no field",
    "round=": "round is empty, not the number of a round",
    "&&&===": "a part without a name is no field",
    "round=1&round=2": "round is there twice; the last one counts",
    "figure=zzz": "figure is zzz, not a figure of the explorer; a file has none",
    "mix=fedavg,2,1e9,0:1": "client:weight of each client, numbers up to 10",
    "round=2&look=fedavg&mix=fedavg,2,1,0:0,1:0": "mix is fedavg,2,1,0:0,1:0, not run, round, gamma",
    "round=2&look=fedavg&mix=fedavg,2,0,0:1": "where neither gamma nor the sum of the weights is 0",
    "round=2&look=fedavg&mix=fedavg,2,1,0:0.2,0:0.8": "mix is fedavg,2,1,0:0.2,0:0.8, not run, round, gamma",
    "round=2&look=fedavg&mix=fedavg,2,1,0:4,1:6": "its weights sum to 10 and are scaled to sum 1",
    "runs=": "runs is empty, not names of runs here",
    "view=difference&runs=fedavg": "view is difference, and a difference is that of two runs",
    "round=1&look=fedavg&mix=fedavg,2,1,0:1": "its weights are of round 2 of FedAvg, which is not looked at",
}


def test_what_an_address_says_wrongly_is_one_plain_line_until_the_next_change(opened):
    page, line = opened(), "#stage .complaint"
    assert page.locator(line).is_hidden()
    for words, complaint in NONSENSE.items():
        page.evaluate("hash => { location.hash = hash; }", f"#{words}")
        page.wait_for_function(
            "words => document.querySelector('#stage .complaint').textContent.includes(words)", arg=complaint
        )
        said = page.text_content(line)
        assert (
            said.startswith("This address cannot be shown as it is: ") and said.count("The rest of it is shown.") == 1
        )
        assert page.locator("#stage .plate:visible").count() >= 1, words
    page.evaluate(f"{VIEW}.set({{ runs: ['fedavg', 'fedlaw'], view: 'difference' }})")
    page.locator("#stage .card input").first.uncheck()
    assert page.text_content(line) == "The map is shown: a difference is that of two runs."
    assert page.evaluate(f"{VIEW}.state.view") == "map"
    page.evaluate(f"location.hash = '#{'&'.join(NONSENSE)}'")
    page.wait_for_selector(f"{line}:has-text('more')")
    page.locator("#stage .curves").press("ArrowLeft")
    assert page.locator(line).is_hidden()
    assert "round=2&" in opened("#round=99&runs=fedavg").evaluate("location.hash"), "a bookmark of what is shown"
    fresh = opened(
        "#round=2&runs=fedlaw&view=relief&look=fedlaw&metric=error&at=0.1,0&client=1&smooth=3&span=0-2&tour=1"
    )
    assert fresh.locator(line).is_hidden(), "a right address is shown without a word"


def test_a_curve_or_span_that_is_not_there_is_said_and_the_nearest_is_shown(opened):
    page = opened("#top=nosuch&below=loss&span=1-200")
    said = page.text_content("#stage .complaint")
    assert "the rounds are 0 to 2" in said and said.endswith("no number nosuch here: the time line shows accuracy.")
    top, below, span = page.evaluate(f"[{VIEW}.state.top, {VIEW}.state.below, {VIEW}.state.span]")
    assert (top, below, span) == ("accuracy", "loss", [1, 2])
    assert "nosuch" not in page.url and "span=1-2" in page.url
    page.locator("#stage .curves").press("0")
    assert page.locator("#stage .complaint").is_hidden()


def test_a_run_to_look_at_comes_on_the_stage_where_the_address_states_no_others(opened):
    page = opened("#runs=fedavg")
    page.evaluate("location.hash = '#look=fedlaw'")
    page.wait_for_function(f"{VIEW}.state.look === 'fedlaw'")
    assert page.locator("#stage .complaint").is_hidden()
    assert page.evaluate(f"{VIEW}.state.runs") == ["fedavg", "fedlaw"]


def test_an_address_without_a_round_opens_on_the_last_one_of_the_first_run_that_it_names(
    opened, content, text, tmp_path
):
    short, path = copy.deepcopy(content), tmp_path / "page.html"
    del short["runs"][0]["shown"]["2"]
    path.write_text(packed_pages.changed(text, "scene", short))
    for named, last in (("fedlaw", 2), ("fedlaw,fedavg", 2), ("fedavg,fedlaw", 1)):
        assert opened(f"#runs={named}", path).evaluate(f"{VIEW}.state.round") == last, named


def test_a_round_is_not_said_to_be_shown_where_no_round_has_a_landscape(opened):
    page = opened()
    page.evaluate(f"""{VIEW}.runs.forEach(run => {{ run.shown = {{}}; }}); location.hash = '#round=9&view=map'""")
    page.wait_for_selector("#stage .complaint:has-text('there is no landscape of round 9, nor of round 2')")
    assert "round 2 is shown" not in page.text_content("#stage .complaint")


FOREIGN = ["client=9999", "model=client%209999", "against=9999", "mix=fedavg,2,1,0:1", "mix=fedavg,2,1,9999:1"]


@pytest.mark.parametrize("field", FOREIGN)
def test_clients_that_a_round_has_not_are_said_in_a_line(opened, content, field):
    ids = ", ".join(str(one["id"]) for one in content["runs"][0]["shown"]["2"]["cohort"])
    page = opened(f"#round=2&look=fedavg&{field}")
    said = page.text_content("#stage .complaint")
    assert "round 2 of FedAvg" in said and f"has clients {ids}" in said
    assert field.split("=")[0] not in page.evaluate("location.hash")
    page.locator("#stage .curves").press("ArrowLeft")
    assert page.locator("#stage .complaint").is_hidden()


def test_a_client_of_another_round_is_said_and_stays_picked(opened, content):
    cohorts = {index: {one["id"] for one in frame["cohort"]} for index, frame in content["runs"][0]["shown"].items()}
    index, client = next((index, max(other - ids)) for index, ids in cohorts.items() for other in cohorts.values()
                         if other - ids)  # fmt: skip
    page = opened(f"#round={index}&look=fedavg&client={client}&model=client%20{client}")
    assert page.text_content("#stage .lost-weights").startswith(f"Client {client} is not in this round, which has cl")
    assert page.locator("#stage .complaint").is_hidden(), "it is where it was when the round was changed"
    assert f"Round {index} has no client {client}: choose another model." in page.text_content("#stage .samples")
    assert not page.locator("#stage .samples option").filter(has_text=f"client {client}").count()
    assert f"client={client}&" in page.evaluate("location.hash"), "it is marked in rounds that it trains in"


def test_flags_lie_beside_one_another_and_follow_their_rounds(opened, content, text, tmp_path):
    flagged, path = copy.deepcopy(content), tmp_path / "page.html"
    for run, rounds in zip(flagged["runs"], ([93, 100, 0], [90, 93, 100]), strict=True):
        run["events"] = [{"round": index, "words": "averaging starts"} for index in rounds]
    path.write_text(packed_pages.changed(text, "scene", flagged))
    page = opened("#round=2&view=map", path, viewport={"width": 390, "height": 844})
    page.evaluate(f"for (const run of {VIEW}.runs) run.rounds = [...Array(101).keys()]; {VIEW}.set({{ smooth: 3 }})")
    flags = page.locator("#stage .flags .event")
    boxes = [flags.nth(place).locator("path").bounding_box() for place in range(flags.count())]
    assert [re.search(r"round (\d+)", flags.nth(place).get_attribute("aria-label"))[1] for place in range(6)] == (
        ["0", "90", "93", "93", "100", "100"]
    )
    assert all(one["x"] + one["width"] < other["x"] for one, other in itertools.pairwise(boxes))
    assert boxes[-1]["x"] + boxes[-1]["width"] <= 390


def test_a_point_is_written_alike_below_its_picture_and_in_its_card(opened, content, text, tmp_path):
    bare, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in bare["runs"]:
        run.pop("network")
    path.write_text(packed_pages.changed(text, "scene", bare))
    page = opened("#round=1&runs=fedavg&view=map", path)
    box = page.locator(".picture .ground").first.bounding_box()
    page.mouse.click(box["x"] + 0.31 * box["width"], box["y"] + 0.63 * box["height"])
    for place in ((0, 0), (3, 3)):  # where the point was clicked, and away
        page.mouse.move(*place) if place != (0, 0) else None
        card = page.text_content("#stage .point td[data-run=fedavg]").removeprefix("≈ ")
        assert f": {card}, interpolated" in page.locator("#stage .reading").first.text_content()


def test_a_point_beyond_the_planes_is_said_and_has_no_number(opened):
    page = opened("#round=2&look=fedavg&at=1e308,1e308")
    said = page.text_content("#stage .complaint")
    assert said == "The point (1.0e+308, 1.0e+308) is beyond the plane of round 2 of FedAvg."
    card = page.text_content("#stage .point")
    assert card.count("beyond its plane") == 2 and "not evaluated there" in card
    assert not re.search("interpolated|evaluated exactly|not finite|Here FedAvg", card)


@pytest.mark.parametrize("view", ["map", "difference"])
def test_the_colours_of_one_value_have_one_number(opened, view):
    page = opened("#round=2&view=map&metric=error")
    page.evaluate(f"""view => {{ {VIEW}.runs.forEach(({{ shown: {{ 2: {{ plane }} }} }}) => {{
        plane.points = [5, 5];
        plane.metrics.error = btoa(String.fromCharCode(...new Uint8Array(new Float32Array(25).fill(1).buffer)));
        }}); {VIEW}.land.surfaces_ = new WeakMap(); {VIEW}.set({{ view }}); }}""", view)  # fmt: skip
    ticks = [key.locator(".ticks *").all_text_contents() for key in page.locator("#stage .key").all()]
    assert ticks == [["100"], ["0"]][: 1 + (view == "difference")]
    bar = page.locator("#stage .colours").last.evaluate("one => one.style.background")
    assert len(set(re.findall(r"rgb\([^)]*\)", bar))) == 1
    with page.expect_download() as saved:
        page.evaluate("[...document.querySelectorAll('.save button')].find(one => /SVG/.test(one.textContent)).click()")
    assert "NaN" not in saved.value.path().read_text()


def test_errors_are_in_percent_wherever_they_stand(opened):
    page = opened("#round=2&runs=fedavg&view=map&metric=error&at=0.02,0.01")
    page.wait_for_selector("#stage .point:has-text('evaluated exactly')")
    exact = page.evaluate(f"{VIEW}.land.exactNumber({VIEW}.looked, {VIEW}.land.frame({VIEW}.looked))")
    card = page.text_content("#stage .point td[data-run=fedavg]")
    assert card.endswith(" %") and float(card[:-2]) == pytest.approx(100 * exact, abs=0.01)
    assert f": {card}, evaluated exactly" in page.locator("#stage .reading").first.text_content()
    assert page.text_content("#stage .key-name") == "Test error [%]"
    assert float(page.locator("#stage .ticks span").last.text_content()) > 1


def test_flags_are_reached_by_mouse_and_keyboard(opened, content, text, tmp_path):
    flagged, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in flagged["runs"]:
        words = "critical point [0, 2]: coherence is negative from here on"
        run["events"] = [{"round": 1, "words": words, "span": [0, 2]}]
        del run["shown"]["1" if run["key"] == "fedlaw" else "2"]
    flagged["runs"][1]["events"].append({"round": 2, "words": "averaging starts"})
    path.write_text(packed_pages.changed(text, "scene", flagged))
    page = opened("#round=0&runs=fedavg&view=map", path)
    flag = page.locator("#stage .flags .event")
    assert flag.count() == 1 and "FedAvg, round 1: critical point" in flag.get_attribute("aria-label")
    assert f" Critical point: {content['terms']['Critical point']}" in flag.get_attribute("aria-label")
    assert flag.text_content().endswith("critical point [0, 2]")
    places = "[0, 1].map(round => document.getElementById('stage').view.line.x(2 * round))"
    band = page.locator("#stage .event-span").evaluate("one => [+one.getAttribute('x'), +one.getAttribute('width')]")
    assert [band[0], sum(band)] == pytest.approx(page.evaluate(places))
    box = flag.locator("path").bounding_box()
    page.mouse.click(box["x"] + 4, box["y"] + 4)
    assert page.evaluate(f"[{VIEW}.state.round, {VIEW}.state.span]") == [1, None]
    page = opened("#round=0&runs=fedlaw&view=map", path)
    page.focus("#stage .curves")
    page.keyboard.press("Tab")
    assert "FedLAW, round 1" in page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate(f"{VIEW}.state.round") == 2
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert "This file has no landscape of round 1. Round 0, the nearest" in page.text_content("#stage .complaint")


def test_the_time_line_is_that_of_the_runs_on_the_stage(opened, content, text, tmp_path):
    short, path = copy.deepcopy(content), tmp_path / "page.html"
    run = next(run for run in short["runs"] if run["key"] == "fedlaw")
    run |= {"rounds": [0], "shown": {"0": run["shown"]["0"]}, "spread": {}}
    run["series"] = dict.fromkeys(run["series"], base64.b64encode(np.array([0.5], "<f4").tobytes()).decode())
    path.write_text(packed_pages.changed(text, "scene", short))
    page = opened("#round=2&runs=fedavg,fedlaw&look=fedlaw&view=map", path)
    page.evaluate(f"{VIEW}.set({{ runs: ['fedlaw'] }})")
    line = "No run on the stage has a landscape of round 2: round 0, the nearest, is shown."
    assert page.text_content("#stage .complaint") == line
    assert page.evaluate(f"[{VIEW}.state.round, {VIEW}.lastRound]") == [0, 0]
    ticks = page.locator("#stage .curves .tick").all_text_contents()
    assert len(set(ticks)) == len(ticks) and ticks[-1] == "0"
    assert page.locator("#stage .curves circle.alone:not(.pale)").count() == 2
    assert "1 round" in page.text_content("#stage .card[data-run=fedlaw]")
    assert "1 rounds" not in page.text_content("#stage .card[data-run=fedlaw]")


CHANGE = f"([n, view]) => {VIEW}.set({{ view, runs: {VIEW}.runs.slice(0, n).map(run => run.key) }})"
SIZES = [(1920, 1080), (1400, 900), (1280, 720), (1024, 768), (900, 600), (390, 844)]
OVERLAPS = """() => {
    const boxes = selector => [...document.querySelectorAll(selector)].map(one => one.getBoundingClientRect());
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const parts = boxes('#stage :is(.tour, .tools, .picture-title, .plate, .reading, .keys, .about)')
        .filter(one => one.width && one.height);
    return parts.flatMap((a, i) => parts.slice(i + 1).filter(b => meet(a, b)).map(b => [a.toJSON(), b.toJSON()])); }"""
"""Pairs of parts of the stage that lie over one another."""
LAID_OUT = """async () => { for (let frame = 0; frame < 4; frame++) await new Promise(requestAnimationFrame); }"""
"""Waits until the sizes of pictures have followed those of the page."""


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} x {size[1]}")
def test_one_to_four_landscapes_lie_beside_one_another_without_overlap(opened, content, text, tmp_path, size):
    four, path = copy.deepcopy(content), tmp_path / "page.html"
    four["classes"] = ["Sneaker"] * len(content["classes"])
    for client in four["runs"][0]["shown"]["2"]["cohort"]:
        client |= {"cost": -0.0754, "cost_error": 0.0049, "counts": [9, 9] + [0] * (len(content["classes"]) - 2)}
    for run in content["runs"]:
        label = f"{run['label']}, candidates of a long name"
        four["runs"].append({**copy.deepcopy(run), "key": f"{run['key']}-2", "label": label})
    path.write_text(packed_pages.changed(text, "scene", four))
    width, height = size
    page = opened("#round=2&view=map", path, viewport={"width": width, "height": height})
    for number in (1, 2, 3, 4):
        for view in ("map", "difference"):
            page.evaluate(CHANGE, [number, view])
            page.evaluate(LAID_OUT)
            assert page.evaluate(OVERLAPS) == [], (number, view)
            cut = page.evaluate("""[...document.querySelectorAll('#stage .picture-title *')].filter(one =>
                one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline').length""")
            assert cut == 0 or height < 800, (number, view, "a heading is whole")
            side = page.evaluate(f"{PICTURE}[0].side")
            assert side >= (160 if height < 800 else 230), (number, view, side)
            ticks = page.evaluate("""[...document.querySelectorAll('#stage .picture:first-child .axes text')].map(one =>
                one.getBoundingClientRect()).map(({ left, right, top, bottom }) => [left, right, top, bottom])""")
            for place, (left, right, top, bottom) in enumerate(ticks):
                for low, high, above, below in ticks[:place]:
                    assert not (left < high and low < right and top < below - 2 and above + 2 < bottom), (number, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        table = page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector"
                              "('#stage .clients .scroll'))")  # fmt: skip
        assert table <= 0, "the bars of the clients are seen whole"
    line = page.locator("#stage .timeline").bounding_box()
    page.evaluate(f"{VIEW}.set({{ view: 'difference', tour: 4 }})")
    page.evaluate(LAID_OUT)
    assert page.evaluate(OVERLAPS) == [] or height < 800, (
        "the tour lies over nothing; a low window scrolls its pictures"
    )
    if width <= 600:
        page.evaluate(f"{VIEW}.set({{ view: 'map', tour: 0 }}); scrollTo(0, 0)")
        page.evaluate(LAID_OUT)
        first = page.locator("#stage .picture .ground").first.bounding_box()
        assert first["y"] + first["height"] < page.locator("#stage .timeline").bounding_box()["y"], "the map is whole"
    if width <= 1000:
        assert line["height"] < 0.25 * height, "it stays in sight, and leaves the map in sight"
        assert page.evaluate(f"{PICTURE}[0].side") + 84 < height - line["height"]
