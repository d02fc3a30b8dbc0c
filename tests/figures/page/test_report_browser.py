"""The report in a real browser: everything is drawn, answers to the keyboard, and asks the network for nothing."""

import pytest
from browsing import MARKS, watched

pytestmark = MARKS


@pytest.fixture(scope="module")
def opened(whole_report):
    with watched(whole_report.as_uri()) as found:
        yield found


@pytest.fixture
def told(opened):
    return opened[1]


@pytest.fixture
def page(opened):
    """The one page of these tests; it has complained of nothing when a test ends."""
    page, told = opened
    yield page
    assert told["errors"] == []


def test_every_figure_is_drawn_without_error_or_request(page, told, whole_report):
    drawn = page.evaluate("plots.map(plot => [plot.dataset.figure, plot._fullData.length])")
    assert len(drawn) == 8
    assert all(count > 0 for _, count in drawn), drawn
    lengths = page.evaluate(
        "plots.flatMap(plot => plot._fullData.filter(one => one.x && one.visible === true).map(one => one.x.length))"
    )
    assert min(lengths) >= 3
    assert page.locator(".js-plotly-plot").count() == 8
    assert page.locator("#plot-accuracy .scatterlayer .trace").count() == 6
    assert page.locator("#plot-trajectory .contourlayer .contour").count() == 1
    assert told["requests"] == [whole_report.as_uri()]


def test_nothing_offers_to_upload(page):
    words = page.evaluate("[...document.querySelectorAll('[data-title]')].map(one => one.dataset.title).join('; ')")
    assert "Zoom" in words
    assert not any(word in words.lower() for word in ("upload", "cloud", "chart studio", "edit in", "produced with"))
    assert not any(word in page.inner_text("body").lower() for word in ("cloud", "chart studio", "produced with"))
    assert page.locator(".modebar-btn--logo").count() == 0


# Rounds of the points of the path.
SHOWN = "[...document.getElementById('plot-trajectory')._fullData[2].customdata].map(row => row[0])"


def pick(page, place: int):
    page.evaluate(f"slider.value = {place}; tellRound(); Promise.all(plots.filter(isPicture).map(draw)).then(() => 0)")


def test_the_path_ends_where_the_round_slider_is(page):
    for place in (0, 2, 1):
        pick(page, place)
        assert page.evaluate(SHOWN) == list(range(place + 1))
    page.evaluate("near.add(document.getElementById('plot-trajectory'))")
    page.focus("#round")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"JSON.stringify({SHOWN}) === '[0]'")
    assert page.get_attribute("#round", "aria-valuetext") == "round 0"
    said = page.locator("#plot-trajectory + figcaption .at").text_content()
    assert said == "FedAvg, seed 5, round 0."
    assert said in page.get_attribute("#plot-trajectory", "aria-label")


def test_play_shows_the_rounds_one_after_the_other_when_it_is_asked_to(page):
    pick(page, 1)
    page.wait_for_timeout(100)
    assert page.text_content("#round-shown") == "1"
    pick(page, 2)
    page.evaluate("""window.seen = []; new MutationObserver(() => seen.push(slider.valueAsNumber)).observe(
        document.getElementById("round-shown"), { childList: true })""")
    page.focus("#play")
    page.keyboard.press("Space")
    assert page.text_content("#play") == "Pause" and page.get_attribute("#play", "aria-pressed") == "true"
    page.wait_for_function("document.getElementById('play').textContent === 'Play'")
    assert page.evaluate("seen") == [0, 1, 2]


def test_the_picker_changes_the_run_and_keeps_the_round(page):
    pick(page, 1)
    page.evaluate("near.add(document.getElementById('plot-trajectory'))")
    page.select_option("#run", "fedlaw")
    said = "document.querySelector('#plot-trajectory + figcaption .at').textContent"
    page.wait_for_function(f"{said} === 'FedLAW, seed 5, round 1.'")
    assert page.text_content("#round-shown") == "1"
    page.select_option("#run", "fedavg")


def test_a_method_can_be_hidden_in_all_curves(page):
    curves = """count => ["plot-drift-gain", "plot-accuracy"].every((name) =>
        document.getElementById(name)._fullData.filter((trace) => trace.visible === true).length === count)"""
    assert page.evaluate(curves, 6)
    page.evaluate("near.clear(); near.add(document.getElementById('plot-drift-gain'))")
    page.evaluate("near.add(document.getElementById('plot-accuracy'))")  # alone: the others would be drawn twice too
    page.uncheck("[data-method=FedLAW]")
    page.wait_for_function(curves, arg=3)
    page.check("[data-method=FedLAW]")
    page.wait_for_function(curves, arg=6)


def test_sections_fold_from_the_keyboard(page):
    page.focus("main > details:first-child > summary")
    page.keyboard.press("Enter")
    assert not page.evaluate("document.querySelector('main > details').open")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('main > details').open")


def test_figures_near_the_screen_are_drawn_unasked(page):
    page.reload()
    page.evaluate("document.getElementById('plot-accuracy').scrollIntoView()")  # below the tables
    page.wait_for_selector("#plot-accuracy .scatterlayer .trace", state="attached")
    assert page.evaluate("drawn.size") < 8


def test_a_click_on_a_curve_moves_the_round_and_picks_the_run(page):
    pick(page, 0)
    point = "{ points: [{ x: 2, data: { legendgroup: 'FedLAW' } }] }"
    page.evaluate(f"document.getElementById('plot-accuracy').emit('plotly_click', {point})")
    page.wait_for_function("document.getElementById('round-shown').textContent === '2'")
    assert page.input_value("#run") == "fedlaw"
    lines = "[...document.getElementById('plot-accuracy').layout.shapes].map(one => one.x0)"
    page.wait_for_function(f"JSON.stringify({lines}) === '[2]'")
    page.select_option("#run", "fedavg")


def test_tab_reaches_the_plot_and_its_download_and_no_mode_bar(page):
    inside = "[...document.querySelectorAll('#plot-accuracy, #plot-accuracy *')].filter(one => one.tabIndex >= 0)"
    assert page.evaluate(f"{inside}.length") == 1
    assert page.locator("figure [data-download]").count() == 8


def test_the_numbers_of_every_picture_can_be_downloaded(page):
    with page.expect_download() as got:
        page.locator("#plot-accuracy + figcaption [data-download]").click()
    lines = got.value.path().read_text().splitlines()
    assert got.value.suggested_filename == "accuracy.csv"
    assert lines[0] == "round,trace,round,test accuracy,z"
    assert len(lines) > 12
    sizes = page.evaluate("plots.map(plot => [plot.dataset.figure, csv(figureOf(plot)).split('\\n').length])")
    assert [name for name, size in sizes if size <= 3] == []
    path = page.evaluate("csv(figures['trajectory:fedavg'])").splitlines()
    assert {line.split(",")[0] for line in path[1:]} >= {"0", "1", "2"}


def test_the_contents_lead_to_every_section(page):
    targets = page.evaluate("[...document.querySelectorAll('.contents a')].map(one => one.hash.slice(1))")
    assert targets == page.evaluate("[...document.querySelectorAll('main h2')].map(one => one.id)")
