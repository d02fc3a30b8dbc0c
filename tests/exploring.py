"""The explorer for tests: `fedscape explore` as a process of its own, and its page in headless Chromium."""

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import warm
from browsing import DESK, chromium

PLOTS = """
    const within = root => [...root.querySelectorAll('*')].flatMap(part => [
        ...(part.classList.contains('js-plotly-plot') ? [part] : []),
        ...(part.shadowRoot ? within(part.shadowRoot) : []),
    ]);"""
"""Gives a function `within(root)`: all plots below it, also in shadow roots."""

PLOT = (
    "name => {"
    + PLOTS
    + """
    const label = plot => plot.getAttribute('aria-label') ?? '';
    return within(document).filter(plot => plot.checkVisibility() && label(plot).includes(name)).map(plot => ({
        label: label(plot),
        redraws: Number(plot.dataset.drawn),
        traces: plot._fullData.map(({type, name, x, y}) => ({type, name, x: [...(x ?? [])], y: [...(y ?? [])]})),
        title: plot.layout.title?.text ?? '',
    }));
}"""
)
"""What the plots show whose label contains a text: label, redraws, traces, title."""

GO = "query => { history.pushState({}, '', `?&${query}`); dispatchEvent(new PopStateEvent('popstate')); }"
WENT = """([visit, view]) => !location.search.startsWith('?&') && location.search.includes(visit)
    && document.documentElement.dataset.explorer.split(',')[0] === view"""
"""Whether the server has written the address anew, and the view is on the page."""


@contextmanager
def exploring(*arguments, **environment):
    """The address that `fedscape explore ARGUMENTS` writes, with its token, while it runs."""
    tokens = ["--debug", "explore", *map(str, arguments), "--no-browser"]
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        with warm.command(tokens, told, OMP_NUM_THREADS="1", **environment) as server:
            while not (told.exists() and told.read_text().endswith("\n")) and server.is_alive():
                time.sleep(0.02)
            address = told.read_text().strip()
            assert address.startswith("http://"), told.with_name("told.errors").read_text()
            yield address


class Watched:
    """A page of the explorer, and what it asked for and complained about.

    Args:
        browser: That it is opened in.
        address: With its token.
        options: Of the page, such as its viewport.
    """

    def __init__(self, browser, address, **options):
        page = browser.new_page(**{"viewport": DESK, **options})
        page.set_default_timeout(60_000)
        self.browser, self.page, self.address = browser, page, address
        self.errors, self.requests, self.visits = [], [], 0
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda problem: self.errors.append(str(problem)))

    def open(self, query=""):
        """Open the explorer with a selection, and wait for its first view."""
        self.page.goto(f"{self.address}&{query}" if query else self.address)
        self.page.wait_for_selector("html[data-explorer] .view", state="attached")
        return self.page

    def go(self, query=""):
        """Go to a selection as the back button does, which loads no page; without runs, to those of the page."""
        if not self.page.url.startswith("http"):
            return self.open(query)
        fields = parse_qs(query)
        runs = fields.get("runs") or parse_qs(urlsplit(self.page.url).query).get("runs", [""])
        self.visits += 1
        rest = f"{query}&runs={runs[0]}&test.visit={self.visits}"
        self.page.evaluate(GO, rest)
        self.wait(WENT, [f"test.visit={self.visits}", fields.get("view", ["runs"])[0]])
        return self.page

    def plots(self, label=""):
        """What the visible plots show whose label contains a text."""
        return self.page.evaluate(PLOT, label)

    def wait(self, condition, argument=None):
        """Wait until a JavaScript expression is true."""
        self.page.wait_for_function(condition, arg=argument)

    @property
    def foreign(self):
        """Addresses that it asked for on other machines."""
        own = urlsplit(self.address).netloc
        return [url for url in self.requests if urlsplit(url).netloc not in ("", own)]


@contextmanager
def watched(address, **options):
    """A page in a Chromium of its own."""
    with chromium() as browser:
        yield Watched(browser, address, **options)
