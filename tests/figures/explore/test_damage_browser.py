"""What happens under an open page: the server stops, runs are cut, damaged or taken away, folders are empty."""

import shutil
from urllib.parse import urlsplit

import pytest
import tiny
from browsing import MARKS, chromium
from exploring import Watched, exploring

from figures.commands.explore import _folder

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
pytestmark = [*MARKS, pytest.mark.timeout(240)]

NOTICES = """() => {
    const within = root => [...root.querySelectorAll('*')].flatMap(part => [part,
        ...(part.shadowRoot ? within(part.shadowRoot) : [])]);
    return within(document).filter(part => part.tagName === 'P' && part.checkVisibility()
        && part.getRootNode().host?.classList.contains('line')).map(part => part.textContent);
}"""
"""Lines above the views and in them."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("trained"), "rounds=4")


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def watched(browser):
    """A page of its own in the browser of these tests; it is closed at the end."""
    pages = []

    def opened(address):
        pages.append(Watched(browser, address))
        return pages[-1]

    yield opened
    for shown in pages:
        shown.page.close()


@pytest.fixture
def run(trained, tmp_path):
    """A copy of a run in a folder of its own."""
    folder = tmp_path / "runs" / trained.name
    shutil.copytree(trained.folder, folder)
    return folder


def test_a_server_that_stops_and_one_that_starts_anew_are_said_in_a_line(run, watched):
    with exploring(run.parent, "--port", 0) as address:  # no other test listens there
        page = watched(address).open("view=round&round=1")
        lost = page.locator("#lost")
        assert not lost.is_visible()
    page.get_by_text("The connection to the explorer is lost; trying to open it again ...").wait_for()
    assert "\n" not in lost.inner_text() and page.locator(".view-round").count() == 1, "what was shown stays"
    with exploring(run.parent, "--port", urlsplit(address).port):
        page.get_by_text("The explorer was started again: open the address that it printed.").wait_for()
        assert "view=round" in page.url


@pytest.mark.slow
def test_a_page_whose_connection_was_lost_opens_again(run, watched):
    kept = """window.sockets = []; window.WebSocket = class extends WebSocket {
        constructor(...all) { super(...all); window.sockets.push(this); }
    }"""
    with exploring(run.parent) as address:
        shown = watched(address)
        shown.page.add_init_script(kept)
        page = shown.open("view=round&round=1")
        page.evaluate("sockets.forEach((socket) => socket.close())")
        shown.wait("() => performance.getEntriesByType('navigation')[0].type === 'reload'")
        page.wait_for_selector("html[data-explorer=round] .view", state="attached")
        assert "round=1" in page.url and not page.locator("#lost").is_visible()


@pytest.mark.slow
def test_a_run_that_is_cut_under_the_page_has_one_line(run, watched):
    with exploring(run.parent) as address:
        shown = watched(address)
        page = shown.open("view=drift")
        shown.wait("() => document.documentElement.dataset.explorer === 'drift'")
        (run / "rounds" / "000002.safetensors").unlink()
        page.get_by_text("000002.safetensors is missing").first.wait_for()
        assert len(page.evaluate(NOTICES)) == 1 and shown.errors == []


def test_a_round_whose_file_is_damaged_under_the_page_has_one_line_in_the_view(run, watched):
    with exploring(run.parent) as address:
        shown = watched(address)
        page = shown.open("view=plane&round=1")
        page.get_by_text("points exact").first.wait_for()
        path = run / "rounds" / "000002.safetensors"
        path.write_bytes(path.read_bytes()[:-64])
        page.keyboard.press("ArrowRight")
        page.get_by_text("000002.safetensors").first.wait_for()
        notices = page.evaluate(NOTICES)
        assert notices and all("000002.safetensors" in text for text in notices), notices
        page.keyboard.press("ArrowLeft")
        page.get_by_text("points exact").first.wait_for()
        assert shown.errors == []


def test_an_empty_folder_waits_for_runs_and_an_absent_one_is_refused(trained, tmp_path, watched):
    with pytest.raises(LookupError, match=r"no such folder.*mkdir -p"):
        _folder(str(tmp_path / "absent"), tmp_path, asked=True)
    folder = tmp_path / "to come"
    folder.mkdir()
    assert _folder(str(folder), tmp_path, asked=True) == folder
    with exploring(folder) as address:
        shown = watched(address)
        for view in ("plane", "diagnosis", "runs"):
            page = shown.go(f"view={view}")
            page.get_by_text(f"fedscape train digits-shards2 --runs '{folder}'").first.wait_for()
        shutil.copytree(trained.folder, folder / trained.name)
        page.locator(".run-table").get_by_text(trained.name).wait_for()
        assert shown.errors == []


@pytest.mark.slow
def test_a_page_of_many_runs_shows_all_of_them_in_its_table(trained, tmp_path, watched):
    folder = tmp_path / "many"
    for number in range(30):
        shutil.copytree(trained.folder, folder / f"run-{number:02}")
    with exploring(folder) as address:
        shown = watched(address)
        page = shown.open("view=runs")
        page.get_by_role("button", name="select all shown").click()
        shown.wait("() => decodeURIComponent(location.search).split(',').length === 30")
        assert shown.errors == []
