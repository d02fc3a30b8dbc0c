"""The stage in a real browser answers to its address, mouse, keys and phones, and saves its pictures."""

import base64
import copy
import pathlib

import packed_pages
import pytest
from browsing import MARKS

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"


def test_the_address_is_the_state_and_back_works(opened):
    page = opened("#round=0&runs=fedlaw&view=map")
    assert page.text_content("#stage .round-at") == "Round 0"
    page.focus("#stage .curves")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"{VIEW}.state.round === 1 && !{VIEW}.tween && !{VIEW}.due")
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
    page.set_viewport_size({"width": 320, "height": 700})
    page.wait_for_function("document.documentElement.scrollWidth <= 320")


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


@pytest.mark.parametrize("view", ["map", "difference"])
@pytest.mark.parametrize("width", [390, 700, 1400])
def test_words_of_a_saved_picture_do_not_lie_over_one_another(opened, width, view):
    page = opened(f"#round=2&runs=fedavg,fedlaw&view={view}", viewport={"width": width, "height": 900})
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
