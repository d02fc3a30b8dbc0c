"""The explorer in a browser: address, back button, keys, two views, problems, nothing from elsewhere."""

import shutil
from urllib.parse import parse_qs, urlsplit

import pytest
import tiny
from browsing import MARKS
from exploring import Watched, exploring, watched

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
pytestmark = [*MARKS, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs in a folder."""
    runs = tmp_path_factory.mktemp("explored")
    tiny.trained(runs)
    tiny.trained(runs, "seed=6")
    return runs


@pytest.fixture(scope="module")
def shown(folder):
    with exploring(folder) as address, watched(address) as page:
        yield page


def query(page):
    """The selection in the address of the page."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def at(shown, **fields):
    """Wait until the address has these fields."""
    text = "&".join(f"{name}={value}" for name, value in fields.items())
    shown.wait("text => text.split('&').every(part => location.search.slice(1).split('&').includes(part))", text)


def test_the_page_is_opened_by_its_token_and_asks_no_other_machine(shown):
    page = shown.open()
    assert "token" not in page.url
    assert query(page)["runs"].count(",") == 1, "both runs are selected"
    page.get_by_role("button", name="Round", exact=True).click()
    at(shown, view="round")
    page.wait_for_selector(".view-round", state="attached")
    assert page.locator(".view-runs").count() == 0
    assert shown.foreign == [] and shown.errors == []


def test_an_address_reopens_what_was_seen(shown):
    page = shown.open("view=round&round=1&clients=0,2&second=drift")
    assert page.locator(".view-round").count() == 1 and page.locator(".view-drift").count() == 1
    page.get_by_text("clients 0, 2: clear").wait_for()
    page.get_by_text("round: 1").wait_for()
    page.reload()
    page.get_by_text("clients 0, 2: clear").wait_for()
    assert query(page)["round"] == "1" and query(page)["second"] == "drift"


def test_keys_work_where_a_plot_or_a_slider_was_used_last(shown):
    page = shown.go("view=weights&round=1")
    slider = page.get_by_role("slider", name="gamma")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    shown.wait("() => location.search.includes('gamma=')")
    assert query(page)["round"] == "1", "arrows are the slider's"
    page.keyboard.press("7")
    at(shown, view="drift", round=1)
    page.locator(".js-plotly-plot").first.focus()
    page.keyboard.press("2")
    at(shown, view="round", round=1)
    assert shown.errors == []


def test_keys_step_through_rounds_and_the_back_button_goes_back(shown):
    page = shown.go("view=path&round=2")
    page.keyboard.press("ArrowLeft")
    at(shown, round=1)
    page.keyboard.press("3")
    at(shown, view="plane")
    page.keyboard.press("End")
    shown.wait("() => !location.search.includes('round=')")
    page.go_back()
    at(shown, view="plane", round=1)
    page.go_back()
    at(shown, view="path", round=1)
    page.wait_for_selector(".view-path", state="attached")
    page.go_back()
    at(shown, view="path", round=2)
    page.get_by_text("round: 2").wait_for()
    page.go_forward()
    at(shown, view="path", round=1)
    assert shown.errors == []


def test_wrong_parts_of_an_address_are_said_in_a_line(shown):
    page = shown.open("view=<b>nowhere</b>&round=minus&runs=%3Cimg+src=x+onerror=alert(1)%3E")
    page.get_by_text("the address has round=minus, which is not accepted").wait_for()
    page.get_by_text("no run <img src=x onerror=alert(1)> here; select another one.").wait_for()
    assert page.evaluate("document.querySelectorAll('img, b').length") == 0
    page.wait_for_timeout(200)
    assert shown.errors == []


def test_a_run_that_vanishes_is_said_in_a_line(shown, folder, tmp_path):
    copy = tmp_path / "runs"
    shutil.copytree(folder, copy)
    with exploring(copy) as address:
        other = Watched(shown.browser, address)
        page = other.open("view=round")
        name = query(page)["runs"].split(",")[0]
        page.wait_for_timeout(600)
        shutil.rmtree(copy / name)
        page.get_by_text(f"run {name} is gone").first.wait_for()
        assert other.errors == []
    page.get_by_text("The connection to the explorer is lost").wait_for()
    page.close()
