"""Links to the explorer on pages of other sites: with the token they open it, without it they start nothing."""

import http.server
import threading
from urllib.parse import urlsplit

import pytest
from browsing import MARKS
from exploring import exploring, idle

pytestmark = MARKS


@pytest.fixture(scope="module")
def elsewhere(address):
    """Port of a page with links to the explorer: one with the token, one without."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            base = address.partition("?")[0]
            links = {"token": address, "bare": base + "?metric=error"}
            for name, target in links.items():
                self.wfile.write(f'<a id="{name}" href="{target}#round=1&view=path">{name}</a> '.encode())

        def log_message(self, *about):
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_link_of_another_site_or_port_opens_at_the_first_click_and_starts_nothing_without_the_token(
    browser, elsewhere, host
):
    page = browser.new_page(reduced_motion="reduce")
    page.goto(f"http://{host}:{elsewhere}/")
    page.click("#bare")
    assert "led here" in page.text_content("body")
    page.click("a")
    page.wait_for_selector("text=or has no token")

    page.goto(f"http://{host}:{elsewhere}/")
    page.click("#token")
    idle(page)
    assert "token" not in page.url and page.evaluate("document.getElementById('stage').view.state.view") == "path"
    page.reload()
    idle(page)

    sockets = []
    page.on("websocket", lambda socket: sockets.append(socket))
    page.goto(f"http://{host}:{elsewhere}/")
    page.click("#bare")
    assert "led here" in page.text_content("body") and page.locator("#stage").count() == 0 and sockets == []
    page.click("text=Open the explorer")
    idle(page)
    state = page.evaluate("(({ view, metric }) => [view, metric])(document.getElementById('stage').view.state)")
    assert state == ["path", "error"] and len(sockets) == 1 and "?" not in page.url
    page.close()


def test_a_bookmark_opens_again_after_a_restart_once_the_new_address_was_opened(browser, runs):
    folder, page = runs[0].folder.parent, browser.new_page(reduced_motion="reduce")
    with exploring(folder, "--port", "0") as address:
        page.goto(address + "#round=1&view=path")
        idle(page)
        bookmark = page.url
        page.goto("about:blank")
    with exploring(folder, "--port", str(urlsplit(address).port)) as again:
        page.goto(bookmark)
        page.wait_for_selector("text=This address is of an earlier start or has no token. Open the one that")
        page.goto(again)
        idle(page)
        page.goto("about:blank")
        page.goto(bookmark)
        idle(page)
        assert page.evaluate("document.getElementById('stage').view.state.view") == "path" and page.url == bookmark
        page.goto("about:blank")
    page.close()
