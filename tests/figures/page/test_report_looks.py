"""The report is readable: in light and dark, on a phone, on paper, and to those who do not see it."""

import pytest
from browsing import MARKS, watched

pytestmark = MARKS

CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => rgb.reduce((sum, part, at) => sum + [0.2126, 0.7152, 0.0722][at] * linear(part / 255), 0);
  const ratio = (one, other) => {
    const [low, high] = [light(one.slice(0, 3)), light(other.slice(0, 3))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length === 3) return found;
    }
    return [255, 255, 255];
  };
  const rgb = (text) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = text;
    const found = parse(getComputedStyle(probe).color);
    probe.remove();
    return found;
  };
  const written = (one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const elements = [...document.querySelectorAll("body *:not(script):not(style)")];
  const own = elements.filter((one) => !one.closest(".plot, noscript") && written(one));
  const texts = own.map((one) => [one.outerHTML.slice(0, 60), ratio(parse(getComputedStyle(one).color), ground(one))]);
  const page = parse(getComputedStyle(document.body).backgroundColor);
  const fonts = plots.map((plot) => [plot.id, ratio(rgb(plot._fullLayout.font.color), page)]);
  const traces = plots.filter((plot) => !isPicture(plot)).flatMap((plot) => plot._fullData);
  const curves = traces.map((one) => [one.name, ratio(rgb((one.line && one.line.color) || one.marker.color), page)]);
  return { texts: [...texts, ...fonts], curves };
}"""


@pytest.fixture(scope="module")
def opened(whole_report):
    with watched(whole_report.as_uri()) as found:
        yield found


@pytest.fixture
def page(opened):
    """The one page of these tests, which go from light to dark, to a phone and to paper; it complains of nothing."""
    page, told = opened
    yield page
    assert told["errors"] == []


PALE = "#e4e8ec"
"""Of text on a dark page."""

DRAWN = "colour => plots.every(plot => plot._fullLayout && plot._fullLayout.font.color === colour)"


def ratios(page, scheme, colour):
    """Contrasts of texts and curves, once the figures have followed the scheme of the page."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(DRAWN, arg=colour)
    found = page.evaluate(CONTRAST)
    assert len(found["texts"]) > 100
    assert min(ratio for _, ratio in found["texts"]) >= 4.5, sorted(found["texts"], key=lambda one: one[1])[:5]
    return found


def test_text_stands_out_from_a_light_page(page):
    ratios(page, "light", "#1d2329")


def test_everything_that_can_be_worked_has_a_name(page):
    nameless = page.evaluate("""
        [...document.querySelectorAll("input, select, button, .plot, [role=region], fieldset, figure")]
        .filter((one) => !(one.labels && one.labels[0] && one.labels[0].textContent.trim()) && !one.ariaLabel
          && !one.textContent.trim()).map((one) => one.outerHTML.slice(0, 80))""")
    assert nameless == []
    assert page.evaluate("plots.every(plot => plot.getAttribute('role') === 'img' && plot.tabIndex === 0)")
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.locator("h1").count() == 1


def test_a_dark_page_has_pale_text_and_curves_that_stand_out(page):
    found = ratios(page, "dark", PALE)
    assert min(ratio for _, ratio in found["curves"]) >= 3
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)"


def test_a_phone_need_not_scroll_sideways(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("plots.every(plot => plot._fullLayout.width <= 390)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bars = "document.getElementById('plot-trajectory')._fullData.find(one => one.colorbar).colorbar.orientation"
    page.wait_for_function(f"{bars} === 'h'")
    heights = page.evaluate(
        "[...document.querySelectorAll('select, button:not(.term), .methods label')]"
        ".filter(one => one.checkVisibility()).map(one => one.clientHeight)"
    )
    assert min(heights) >= 24


def test_paper_has_every_section_and_figure(page):
    page.evaluate("near.clear()")  # what the screen would show is not drawn for it
    page.emulate_media(color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('.report details')].every(part => part.open)")
    assert page.evaluate(
        "plots.every(plot => plot._fullLayout.width === (plot.closest('.grid') ? PAPER_WIDTH / 2 - 8 : PAPER_WIDTH))"
    )
    assert page.evaluate("document.getElementById('plot-accuracy')._fullLayout.font.color") == "#1d2329"
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") > 0
