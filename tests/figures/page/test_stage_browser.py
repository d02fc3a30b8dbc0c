"""The stage in a real browser: it shows the numbers of its scene, answers to mouse and keys, and asks for nothing."""

import base64
import copy
import pathlib
import re

import numpy as np
import packed_pages
import pytest
from browsing import MARKS

from figures.axes.interpolated import interpolated

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
PICTURE = f"{VIEW}.pictures"


def losses(content, place, index, u, v):
    """Loss at a point of a plane of the scene, by the project's other interpolation."""
    plane = content["runs"][place]["shown"][str(index)]["plane"]
    values = np.frombuffer(base64.b64decode(plane["metrics"]["loss"]), "<f4").reshape(plane["points"]).astype(float)
    a, b = (np.linspace(*extent, points) for extent, points in zip(plane["extent"], plane["points"], strict=True))
    return 10 ** interpolated(a, b, np.log10(values), np.array([u]), np.array([v]))[0, 0]


def test_a_click_is_read_in_every_picture_and_says_that_it_is_interpolated(opened, content, text, tmp_path):
    bare, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in bare["runs"]:
        run.pop("network")
        run["interpolated"] = "its model has 5 wheels"
    path.write_text(packed_pages.changed(text, "scene", bare))
    page = opened("#round=1&runs=fedavg,fedlaw&view=map", path)
    box = page.locator(".picture .ground").first.bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"])
    u, v = page.evaluate(f"{VIEW}.state.point")
    half = page.evaluate(f"{PICTURE}[0].shown.half")
    assert (u, v) == pytest.approx((-0.4 * half, -0.2 * half), abs=0.02 * half)
    for place, name in enumerate(("fedavg", "fedlaw")):
        read = float(page.text_content(f"#stage .point td[data-run={name}]").removeprefix("≈ "))
        assert read == pytest.approx(losses(content, place, 1, u, v), rel=1e-3), name
    assert "interpolated between 4 x 4 evaluated models: its model has 5 wheels" in page.text_content("#stage .point")
    assert "at=" in page.evaluate("location.hash")


def test_seeds_are_one_line_with_a_band_and_one_entry_with_its_range(opened, content):
    page = opened("#round=1&runs=fedavg&view=map")
    assert page.locator("#stage .curves .spread").count() == 4  # two methods, two numbers
    assert page.locator("#stage .card").count() == 2
    low, high = (100 * end(content["runs"][0]["accuracies"]) for end in (min, max))
    card = page.locator("#stage .card").first.text_content()
    assert f"{(low + high) / 2:.1f} % ({low:.1f} to {high:.1f}) · mean of seeds 5, 6" in card
    before = page.evaluate("[...document.querySelectorAll('#stage .curves .spread')].map(one => one.outerHTML)")
    page.evaluate(f"{VIEW}.set({{ span: [0, 1] }})")
    after = page.evaluate("[...document.querySelectorAll('#stage .curves .spread')].map(one => one.outerHTML)")
    assert len(after) == 4 and not set(before) & set(after)  # a span zooms all of them


def test_a_band_that_lies_above_and_below_the_ticked_runs_is_not_drawn(opened):
    page = opened("#round=2&runs=fedavg&view=map")
    spread = "[...document.querySelectorAll('#stage .curves .spread')].map(one => one.getAttribute('d')[0])"
    assert page.evaluate(spread) == ["M"] * 4
    page.evaluate(f"""() => {{ const run = {VIEW}.runs[1], above = (values) => values.map(value => value + 50);
        run.curves.accuracy = above(run.curves.accuracy);
        run.ends.accuracy = run.ends.accuracy.map(above);
        {VIEW}.version += 1;
        {VIEW}.render(); }}""")
    assert page.evaluate(spread) == ["M"] * 3


def test_compared_losses_have_equally_many_decimals(opened):
    page = opened("#round=2&runs=fedavg,fedlaw&view=map")
    text = page.locator("#stage .sentences li").first.text_content()
    first, second = re.findall(r" (\d+\.\d+)(?=, against| of )", text)
    assert len(first.partition(".")[2]) == len(second.partition(".")[2])


def test_two_runs_are_compared_with_the_error_of_their_difference(opened, content, text, tmp_path):
    frames = [run["shown"]["2"] for run in content["runs"]]
    ends = [next(mark["loss"] for mark in frame["marks"] if mark["kind"] == "end") for frame in frames]
    one, two = (np.frombuffer(base64.b64decode(frame["parts"]["end"]), "<f4") for frame in frames)
    error = (one - two).std(ddof=1) / np.sqrt(len(one))
    line = "#stage .sentences li >> nth=0"
    said = opened("#round=2&runs=fedavg,fedlaw&view=map").text_content(line)
    difference, stated = (
        float(part.replace("\N{MINUS SIGN}", "-")) for part in re.match(r"(\S+) ± (\S+) nats", said).groups()
    )
    assert (difference, stated) == pytest.approx((-abs(ends[0] - ends[1]), error), rel=0.06)
    for noise, words in ((1e-6, ", seed 5 lies lowest after round 2"), (9.0, "No clear difference after round 2: ")):
        changed = copy.deepcopy(content)
        parts = [run["shown"]["2"]["parts"] for run in changed["runs"]]
        for part, sign in zip(parts, (1, -1), strict=True):
            values = sign * noise * np.resize([1, -1], len(one)).astype("<f4")
            part["end"] = base64.b64encode(values.tobytes()).decode()
        path = tmp_path / f"{noise}.html"
        path.write_text(packed_pages.changed(text, "scene", changed))
        assert words in opened("#round=2&runs=fedavg,fedlaw&view=map", path).text_content(line)
        parts[0]["of"] = "other samples"  # then the differences do not cancel, nor add
        path.write_text(packed_pages.changed(text, "scene", changed))
        assert " ± " in opened("#round=2&runs=fedavg,fedlaw&view=map", path).text_content(line)
    for run in changed["runs"]:
        next(mark for mark in run["shown"]["2"]["marks"] if mark["kind"] == "end")["loss"] = 1.25
    path.write_text(packed_pages.changed(text, "scene", changed))
    said = opened("#round=2&runs=fedavg,fedlaw&view=map", path).text_content(line)
    assert said.startswith("FedAvg, seed 5 and FedLAW, seed 5 are equal after round 2: 1.25 nats.")


def test_the_number_of_no_clear_difference_is_that_of_the_runs_it_names(opened, content, text, tmp_path):
    three, path = copy.deepcopy(content), tmp_path / "page.html"
    three["runs"].append({**copy.deepcopy(content["runs"][0]), "key": "third", "label": "IMA"})
    size = len(np.frombuffer(base64.b64decode(three["runs"][0]["shown"]["2"]["parts"]["end"]), "<f4"))
    for run, loss, noise in zip(three["runs"], (1, 1.1, 1.2), (0.001, -0.001, 9), strict=True):
        frame = run["shown"]["2"]
        values = loss + noise * np.resize([1, -1], size).astype("<f4")
        frame["parts"]["end"] = base64.b64encode(values.tobytes()).decode()
        next(mark for mark in frame["marks"] if mark["kind"] == "end")["loss"] = loss
    path.write_text(packed_pages.changed(text, "scene", three))
    said = opened("#round=2&runs=fedavg,fedlaw,third&view=map", path).text_content("#stage .sentences li >> nth=0")
    assert said.startswith("\N{MINUS SIGN}0.2 ± ") and "1.0 of FedAvg, seed 5; 1.2 of IMA" in said


@pytest.mark.parametrize(
    ("ticked", "first"),
    [("fedavg,fedlaw", ["lies lowest|No clear difference", "lient", "kind"]), ("fedavg", ["lient", "kind", "verag"])],
)
def test_three_sentences_say_why_and_the_others_are_in_a_drawer(opened, ticked, first):
    page = opened(f"#round=2&runs={ticked}&view=map")
    sentences = page.locator("#stage .sentences li")
    told = [one for one in sentences.all() if one.is_visible()]
    assert [bool(re.search(words, one.text_content())) for words, one in zip(first, told, strict=True)] == [True] * 3
    for one in told:
        assert re.search(r"\d", one.locator(".number").text_content())
        assert one.locator(".term").last.get_attribute("aria-label").count(": "), "what its term means"
    page.click("#stage .why summary:has-text('More reasons')")
    page.evaluate(f"{VIEW}.render()")
    assert [one.is_visible() for one in sentences.all()] == [True] * (5 if "," in ticked else 4)


def test_a_term_in_a_sentence_has_its_meaning(opened, content):
    page, terms = opened("#round=2&runs=fedavg&view=map"), content["terms"]
    word = page.locator("#stage .sentences .term.inside")
    assert word.get_attribute("aria-label") == f"mean cosine: {terms['Mean cosine']}"
    assert page.locator("#stage .sentences .meaning:visible").count() == 0
    word.hover()
    assert page.locator("#stage .sentences .meaning:visible").text_content() == terms["Mean cosine"]
    below = page.get_attribute("#stage select[aria-label='Second curve of the time line']", "title")
    assert below == f"Client drift: {terms['Client drift']}"


def test_the_difference_is_the_one_minus_the_other(opened, content):
    page = opened("#round=2&runs=fedavg,fedlaw&look=fedavg&view=difference")
    assert page.locator(".picture-title").nth(1).text_content() == "FedLAW, seed 5 minus FedAvg, seed 5"
    (low, high), (bottom, top) = page.evaluate(f"[{PICTURE}[1].shown.surface.u, {PICTURE}[1].shown.surface.v]")
    points = [(low + a * (high - low), bottom + b * (top - bottom)) for a in (0.1, 0.5, 0.83) for b in (0.27, 0.6)]
    read = page.evaluate(f"points => points.map(([u, v]) => {PICTURE}[1].shown.surface.value(u, v))", points)
    wanted = [losses(content, 1, 2, *point) - losses(content, 0, 2, *point) for point in points]
    assert read == pytest.approx(wanted, abs=1e-5)
    scale = page.evaluate(f"{PICTURE}[1].shown.scale")
    assert scale["low"] == -scale["high"] and scale["difference"]
    assert page.locator(".reading").nth(1).text_content() == "Blue: FedLAW lies lower; red: FedAvg does"
    red, _, blue = page.evaluate(f"[...{VIEW}.tables.difference.slice(0, 3)]")
    assert blue > red, "below zero"


def test_the_colours_of_a_nearly_flat_landscape_have_different_numbers(opened, content, text, tmp_path):
    flat, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in flat["runs"]:
        plane = run["shown"]["2"]["plane"]
        values = 2.3 + 1e-4 * np.linspace(0, 1, np.prod(plane["points"]))
        plane["metrics"]["loss"] = base64.b64encode(values.astype("<f4").tobytes()).decode()
    path.write_text(packed_pages.changed(text, "scene", flat))
    ticks = opened("#round=2&runs=fedavg&view=map", path).locator("#stage .key .ticks span").all_text_contents()
    assert len(ticks) == len(set(ticks)) == 5, ticks


def test_the_map_of_a_path_fills_its_axes_and_a_click_meets_its_models(opened, content, text, tmp_path):
    flat, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in flat["runs"]:
        (_, (low, high)), marks = run["path"]["plane"]["extent"], run["path"]["marks"]
        run["path"]["plane"]["extent"][1] = [0.5 * low, 0.5 * high]
        marks[:] = [{**mark, "v": 0.5 * mark["v"]} for mark in marks]
    path.write_text(packed_pages.changed(text, "scene", flat))
    page = opened("#round=2&runs=fedavg,fedlaw&view=path", path)
    for place, run in enumerate(flat["runs"][:2]):
        across, up = (high - low for low, high in run["path"]["plane"]["extent"])
        box = page.evaluate(f"{PICTURE}[{place}].box")
        assert box["height"] / box["width"] == pytest.approx(up / across, rel=1e-6)
        opaque = page.evaluate(f"""(({{ box, canvas, side }}) => {{
            const ratio = canvas.width / side, pen = canvas.getContext("2d");
            return [3, box.width - 3].flatMap(x => [3, box.height - 3].map(y =>
                pen.getImageData(ratio * (box.x + x), ratio * (box.y + y), 1, 1).data[3]));
        }})({PICTURE}[{place}])""")
        assert opaque == [255] * 4, "the map reaches the four corners of its axes"
    mark = run["path"]["marks"][1]
    x, y = page.evaluate(f"{PICTURE}[1].seen({mark['u']}, {mark['v']})")
    drawn = page.locator(".picture .over").nth(1).bounding_box()
    page.mouse.click(drawn["x"] + x, drawn["y"] + y)
    page.wait_for_function(f"{VIEW}.state.round === {mark['round']}")


def test_what_dots_and_arrows_are_stands_below_the_pictures(opened):
    page = opened("#round=2&runs=fedavg&view=map")
    for view, words in (("map", "Dots: clients"), ("relief", "Dots: clients"), ("path", "the global model after each")):
        page.evaluate(f"{VIEW}.set({{ view: {view!r} }})")
        assert words in page.locator("#stage .about").text_content()


def test_all_pictures_have_one_scale_and_one_extent(opened):
    page = opened("#round=0&runs=fedavg,fedlaw")
    first, second = page.evaluate(f"{PICTURE}.map(({{ shown }}) => [shown.half, shown.scale.low, shown.scale.high])")
    assert first == second
    lowest = page.evaluate(f"Math.min(...{PICTURE}.map(({{ shown }}) => shown.surface.low))")
    assert first[1] == pytest.approx(lowest)


def test_the_address_is_the_state_and_back_works(opened):
    page = opened("#round=0&runs=fedlaw&view=map")
    assert page.text_content("#stage .round-at") == "Round 0"
    page.focus("#stage .curves")
    page.keyboard.press("ArrowRight")
    page.check("#stage .segments input[value=relief]", force=True)
    assert page.evaluate("location.hash") == "#round=1&runs=fedlaw&look=fedlaw&view=relief"
    assert page.title() == "FedLAW · round 1 · relief - fedscape"
    page.go_back()
    assert page.evaluate(f"{VIEW}.state.view") == "map" and page.text_content("#stage .round-at") == "Round 1"
    page.go_back()
    assert page.text_content("#stage .round-at") == "Round 0"
    page.evaluate("location.hash = '#round=x&runs=nobody&at=1&client=-2&view=none'")
    page.wait_for_timeout(50)
    assert page.evaluate(f"{VIEW}.state.runs") == ["fedavg", "fedlaw"], "as at the beginning: an address is one page"


def test_points_and_clients_are_reached_without_a_mouse(opened):
    page = opened("#round=2&runs=fedavg")
    page.focus("#stage .ground")
    page.keyboard.press("ArrowRight")
    u, v = page.evaluate(f"{VIEW}.state.point")
    assert u > 0 and v == 0
    stops = page.evaluate("[...document.querySelectorAll('#stage .clients button')].filter(one => one.tabIndex >= 0)")
    assert len(stops) == 1
    page.focus("#stage .clients tr:first-child button")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    picked = page.evaluate(f"{VIEW}.state.client")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"client {picked}"
    said = page.get_attribute(f"#stage .mark[data-mark='client {picked}']", "aria-label")
    assert "loss" in said and "samples" in said and "labels" in said
    assert page.get_attribute(f"#stage .mark[data-mark='client {picked}']", "aria-pressed") == "true"


def test_a_relief_is_lit_and_turns_from_the_keyboard(opened):
    page = opened("#round=2&runs=fedavg&view=relief")
    colours = """() => { const canvas = document.querySelector('#stage canvas'), { width, height } = canvas;
        const data = canvas.getContext('2d').getImageData(0, 0, width, height).data, seen = new Set();
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) seen.add(data.slice(i, i + 3).join());
        return seen.size }"""
    assert page.evaluate(colours) > 500
    before = page.evaluate(f"{VIEW}.camera.azimuth")
    page.focus("#stage .ground")
    page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate(f"{VIEW}.camera.azimuth") != before
    assert page.evaluate(f"{VIEW}.state.point") is None


def test_a_relief_after_a_map_is_as_a_relief_that_is_opened_on_a_fine_screen_too(opened):
    drawn = "document.querySelector('#stage canvas').toDataURL()"
    page = opened("#round=2&runs=fedavg&view=map", device_scale_factor=2)
    page.check("#stage .segments input[value=relief]", force=True)
    page.wait_for_timeout(100)
    fresh = opened("#round=2&runs=fedavg&view=relief", device_scale_factor=2)
    assert page.evaluate(drawn) == fresh.evaluate(drawn)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda run: run.update(shown={}, note="recorded without its data."), "recorded without its data"),
        (lambda run: [frame["plane"]["metrics"].update(loss=base64.b64encode(b"\0\0\xc0\x7f" * 16).decode())
                      for frame in run["shown"].values()], "no finite value"),
        (lambda run: run.update(shown={"2": "could not be drawn: <b>disk</b>"}), "could not be drawn: <b>disk</b>"),
    ],
)  # fmt: skip
def test_a_run_without_a_landscape_has_one_plain_line(opened, content, text, tmp_path, change, line):
    broken = copy.deepcopy(content)
    change(broken["runs"][0])
    path = tmp_path / "page.html"
    path.write_text(packed_pages.changed(text, "scene", broken))
    page = opened("#runs=fedavg,fedlaw&round=2", path)
    assert line in page.locator("#stage .absent").first.text_content()
    assert page.locator("#stage .plate:visible").count() == 1


def test_names_from_elsewhere_are_text(opened, content, text, tmp_path):
    bad = "<img src=x onerror='window.ran = 1'>"
    hostile = copy.deepcopy(content)
    hostile.update(title=bad, classes=[bad] * len(content["classes"]))
    for run in hostile["runs"]:
        run.update(label=bad, note=bad, verdict=bad, settings=[[bad, bad]], seeds=[bad])
        run["events"] = [{"round": 1, "words": bad, "term": bad}]
        for frame in run["shown"].values():
            frame["why"] = [{"text": bad, "number": bad, "term": bad}]
    path = tmp_path / "page.html"
    path.write_text(packed_pages.changed(text, "scene", hostile))
    page = opened("#view=difference&client=1&at=0,0", path)
    assert page.evaluate("window.ran") is None
    assert page.locator("#stage img").count() == 0
    assert page.locator("#stage .name").first.text_content() == bad


def test_play_shows_every_round_with_a_landscape(opened):
    page = opened("#round=0&runs=fedavg")
    page.evaluate("""window.seen = []; const at = document.querySelector(".round-at");
        new MutationObserver(() => seen.push(at.textContent)).observe(at, { childList: true })""")
    page.click("#stage .play")
    page.wait_for_function("document.querySelector('#stage .play').getAttribute('aria-pressed') === 'false'")
    assert list(dict.fromkeys(page.evaluate("seen"))) == ["Round 1", "Round 2"]


def test_a_phone_shows_it_without_scrolling_sideways(opened):
    page = opened(viewport={"width": 390, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sides = page.evaluate("[...document.querySelectorAll('#stage .plate')].map(one => one.clientWidth)")
    assert all(330 <= side <= 390 for side in sides)


def test_a_phone_that_is_held_sideways_begins_with_a_picture_on_its_first_screen(opened):
    page = opened(viewport={"width": 844, "height": 390})
    assert page.evaluate("document.querySelector('#stage .plate').getBoundingClientRect().top") < 300
    assert page.evaluate("document.documentElement.scrollWidth") <= 844


def test_a_drag_across_the_curves_zooms_and_a_double_click_shows_all(opened):
    page = opened("#round=0&runs=fedavg&view=map&smooth=3")
    assert "mean of 3 rounds" in page.locator("#stage .band-name").first.text_content()
    box = page.locator("#stage .curves").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 40, steps=4)
    page.mouse.up()
    assert page.evaluate(f"{VIEW}.state.span") == [0, 1] and page.evaluate(f"{VIEW}.state.round") == 0
    page.mouse.dblclick(box["x"] + 0.9 * box["width"], box["y"] + 40)
    assert page.evaluate(f"{VIEW}.state.span") is None and page.evaluate(f"{VIEW}.state.round") == 0
    page.go_back()
    assert page.evaluate(f"{VIEW}.state.span") == [0, 1]


@pytest.mark.parametrize(("form", "begins"), [("PNG", b"\x89PNG"), ("SVG", b"<svg")])
def test_the_picture_can_be_saved(opened, form, begins):
    page = opened("#round=2&runs=fedavg,fedlaw&view=difference")
    page.click("#stage .save summary")
    with page.expect_download() as started:
        page.click(f"#stage .save button:has-text('({form})')")
    content = pathlib.Path(started.value.path()).read_bytes()
    assert content.startswith(begins) and len(content) > 20_000
    assert form == "PNG" or content.count(b">, seed 5<") == 3, "which of the seeds a landscape is of"


@pytest.mark.parametrize("width", [390, 700, 1400])
def test_words_of_a_saved_picture_do_not_lie_over_one_another(opened, width):
    page = opened("#round=2&runs=fedavg,fedlaw&view=map", viewport={"width": width, "height": 900})
    page.click("#stage .save summary")
    with page.expect_download() as started:
        page.click("#stage .save button:has-text('(SVG)')")
    drawing = pathlib.Path(started.value.path()).read_text()
    over = page.evaluate("""(drawing) => { document.body.innerHTML = drawing;
        const boxes = [...document.querySelectorAll('body > svg > text')].map(one => [one.textContent, one.getBBox()]);
        return boxes.flatMap(([words, a], i) => boxes.slice(i + 1).filter(([, b]) => a.x < b.x + b.width - 1
            && b.x < a.x + a.width - 1 && a.y < b.y + b.height - 2 && b.y < a.y + a.height - 2)
            .map(([other]) => [words, other])); }""", drawing)  # fmt: skip
    assert over == []


def test_the_tour_leads_through_five_addresses(opened):
    page = opened("#round=2&runs=fedavg,fedlaw&view=map")
    page.click("#stage .rail button:has-text('Tour')")
    for step in range(1, 6):
        assert f"tour={step}" in page.evaluate("location.hash")
        assert page.text_content("#stage .tour h2").startswith(f"{step} of 5")
        page.click("#stage .tour button >> nth=0")
    assert "tour" not in page.evaluate("location.hash") and page.locator("#stage .tour").is_hidden()
