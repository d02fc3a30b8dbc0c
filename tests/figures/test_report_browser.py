"""The report in a real browser: everything is drawn, answers to the keyboard, and asks the network for nothing."""

import importlib.util
import shutil

import pytest

from figures.report import report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; apt-get install chromium"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="no playwright here; pip install it"),
]
DESK = {"width": 1200, "height": 900}
DRAW_ALL = "Promise.all(plots.map(draw)).then(() => 0)"


@pytest.fixture(scope="module")
def address(runs, tmp_path_factory):
    return report(runs, tmp_path_factory.mktemp("browser") / "report.html", points=4).as_uri()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def told():
    """What the page asked for and complained about."""
    return {"requests": [], "errors": []}


@pytest.fixture(scope="module")
def opened(browser, address, told):
    found = browser.new_page(viewport=DESK)
    found.on("request", lambda request: told["requests"].append(request.url))
    found.on("console", lambda line: told["errors"].append(line.text) if line.type == "error" else None)
    found.on("pageerror", lambda problem: told["errors"].append(str(problem)))
    found.goto(address)
    found.evaluate(DRAW_ALL)
    return found


@pytest.fixture
def page(opened, told):
    """The one page of these tests, light and on a desk; it has complained of nothing when the test ends."""
    yield opened
    opened.emulate_media(color_scheme="light")
    opened.set_viewport_size(DESK)
    assert told["errors"] == []


def test_every_figure_is_drawn_without_error_or_request(page, told, address):
    drawn = page.evaluate("plots.map(plot => [plot.dataset.figure, plot._fullData.length])")
    assert len(drawn) == 11
    assert all(count > 0 for _, count in drawn), drawn
    lengths = page.evaluate(
        "plots.flatMap(plot => plot._fullData.filter(one => one.visible === true).map(one => one.x.length))"
    )
    assert min(lengths) >= 3
    assert page.locator(".js-plotly-plot").count() == 11
    assert page.locator(".gl-container canvas").count() >= 1
    assert page.locator("#plot-accuracy .scatterlayer .trace").count() == 6
    assert page.locator("#plot-contour .contourlayer .contour").count() == 1
    assert told["requests"] == [address]


def test_nothing_offers_to_upload(page):
    words = page.evaluate(
        "document.body.innerText + [...document.querySelectorAll('[data-title]')].map(e => e.dataset.title)"
    )
    assert "Zoom" in words
    assert not any(word in words.lower() for word in ("upload", "cloud", "chart studio", "edit in", "produced with"))
    assert page.locator(".modebar-btn--logo").count() == 0


def shown(page, plot: str) -> list:
    """Values of the visible map of a figure."""
    code = """name => { const trace = document.getElementById(name)._fullData.find(one => one.visible === true);
              return [...trace.z].map(row => [...row]) }"""
    return page.evaluate(code, plot)


def test_the_round_slider_changes_both_landscapes_from_the_keyboard(page):
    before = [shown(page, name) for name in ("plot-surface", "plot-contour")]
    assert page.text_content("#round-shown") == "2"
    page.focus("#round")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.getElementById('round-shown').textContent === '1'")
    after = [shown(page, name) for name in ("plot-surface", "plot-contour")]
    assert before[0] != after[0] and before[1] != after[1]
    assert page.get_attribute("#round", "aria-valuetext") == "round 1"


def test_the_picker_changes_the_method_and_keeps_the_round(page):
    page.evaluate("slider.value = 1; slider.dispatchEvent(new Event('input'))")
    before = shown(page, "plot-surface")
    page.select_option("#landscape", "fedlaw")
    page.wait_for_timeout(100)
    assert shown(page, "plot-surface") != before
    assert page.text_content("#round-shown") == "1"


def test_arrow_keys_turn_the_surface(page):
    eye = "document.getElementById('plot-surface')._fullLayout.scene.camera.eye.x"
    before = page.evaluate(eye)
    page.focus("#plot-surface")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(100)
    assert page.evaluate(eye) != before


def test_a_method_can_be_hidden_in_all_curves(page):
    count = "name => document.getElementById(name)._fullData.filter(trace => trace.visible === true).length"
    assert page.evaluate(count, "plot-drift-gain") == 6
    page.uncheck("[data-method=FedLAW]")
    page.wait_for_timeout(100)
    assert page.evaluate(count, "plot-drift-gain") == page.evaluate(count, "plot-accuracy") == 3
    page.check("[data-method=FedLAW]")
    page.wait_for_timeout(100)
    assert page.evaluate(count, "plot-accuracy") == 6


def test_dark_pages_have_pale_text_in_figures(page):
    colour = "document.getElementById('plot-accuracy')._fullLayout.font.color"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{colour} !== '{light}'")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)"


def test_a_phone_need_not_scroll_sideways(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("plots.every(plot => plot._fullLayout.width <= 390)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bars = "document.getElementById('plot-contour')._fullData.find(one => one.colorbar).colorbar.orientation"
    assert page.evaluate(bars) == "h"


def test_printing_opens_every_section(page):
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(part => part.open)")


def test_figures_near_the_screen_are_drawn_unasked(page):
    page.reload()
    page.wait_for_selector("#plot-accuracy .scatterlayer .trace", state="attached")
    assert page.evaluate("drawn.size") < 11
