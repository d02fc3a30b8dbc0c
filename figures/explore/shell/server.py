"""The explorer at an address of this machine."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import bokeh
import panel as pn
from bokeh.document import Document
from bokeh.server.server import Server
from bokeh.server.tornado import BokehTornado
from jinja2 import Template
from panel.io.server import DocHandler
from panel.io.state import set_curdoc
from plotly.offline import get_plotlyjs
from tornado.routing import Rule
from tornado.web import RequestHandler
from tornado.websocket import WebSocketClosedError

from figures.explore.guard import Guard, RefusedRequest, SafeHeaders
from figures.explore.shell.app import Explorer
from figures.explore.shell.plot import LIBRARY
from figures.explore.work.workspace import Workspace

PORT = 7333
"""Usual port. An address that stays lets the browser keep the explorer's scripts, which are half of a page's time."""

UNUSED = 60_000
"""Milliseconds that a page without connection is remembered; one that returns later opens anew by its address."""


COMPILED_EARLY = "//# allFunctionsCalledOnLoad\n"
"""Tells the browser to compile a script beside the page, before it runs, not function by function while it does."""

CHUNK = 2**18
"""Bytes sent at a time, so that other answers come between them."""


HERE = Path(__file__).parent


class PageHandler(DocHandler):
    """Answers with the page."""

    def head(self) -> None:
        """Say that the server is there, to a page whose connection was lost."""


class PlotlyHandler(RequestHandler):
    """plotly.py's own plotly.js."""

    async def get(self) -> None:
        """Send it; its address has the version, so the browser need not ask again."""
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=86400, immutable")
        text = (COMPILED_EARLY + get_plotlyjs()).encode()
        for start in range(0, len(text), CHUNK):
            self.write(text[start : start + CHUNK])
            await self.flush()


def serve(workspace: Workspace, port: int | None = None, host: str = "127.0.0.1") -> tuple[Server, str, bool]:
    """A server, the address to open, which has its token, and whether others than this machine can connect.

    `server.start()` and `server.io_loop.start()` let it answer.

    Args:
        workspace: The runs.
        port: 0 for a free one; None for the usual one, or a free one where that is taken.
        host: Address to listen on.

    Raises:
        ValueError: If the port is taken or not allowed, or the host is none of this machine's.
    """
    guard = Guard(host)
    logging.getLogger("bokeh.server.util").setLevel(logging.ERROR)  # warns of the wildcard below
    logging.getLogger("asyncio").addFilter(_is_no_closed_page)
    server = _listening(workspace, (PORT, 0) if port is None else (port,), host)
    application: Any = _application(server)
    page = {"application_context": application.applications["/"], "bokeh_websocket_path": "/ws"}
    application.add_handlers(".*", [Rule(guard, RefusedRequest), ("/", PageHandler, page)])
    application.add_transform(SafeHeaders)
    server.io_loop.add_callback(_load, workspace)
    return server, f"http://{guard.name}:{server.port}/?token={guard.token}", guard.wide


def _application(server: Server) -> BokehTornado:
    """What answers requests, which the server gives no public name.

    Raises:
        LookupError: If the server has none; without it the guard cannot be set.
    """
    for handler in vars(server).values():
        if isinstance(handler, BokehTornado):
            return handler
    raise LookupError(f"bokeh {bokeh.__version__} hides its web application, so the page cannot be guarded; use 3.9.")


def _listening(workspace: Workspace, ports: Sequence[int], host: str) -> Server:
    """A server on the first of the ports that it can have.

    Raises:
        ValueError: If it can have none.
    """
    for port in ports:
        try:
            return pn.io.server.get_server(
                {"/": lambda: _page(workspace)},
                port=port,
                address=host,
                start=False,
                show=False,
                websocket_origin=["*"],  # the guard is stricter: Origin is the Host that was asked for
                extra_patterns=[("/plotly.js", PlotlyHandler)],
                unused_session_lifetime_milliseconds=UNUSED,
            )
        except OSError as reason:
            why = reason.strerror or str(reason)
            message = f"cannot listen on port {port} of {host}: {why}. Give another --port (0: a free one) or --host."
            problem = ValueError(message)
    raise problem


def _is_no_closed_page(record: logging.LogRecord) -> bool:
    """Whether a message is about something else than a page that was closed while it got an answer."""
    return not (record.exc_info and isinstance(record.exc_info[1], WebSocketClosedError))


def _load(workspace: Workspace) -> None:
    """Make a page that nobody sees, so that what the first page needs is loaded while the browser starts."""
    with set_curdoc(Document()):
        _extend()
        explorer = Explorer(workspace, address=True)
        explorer.__panel__().server_doc(pn.state.curdoc)
    explorer.close()


def _extend() -> None:
    # signatures serve editors, and what the browser is is asked by a WebGL context: both take time for every page
    pn.extension("tabulator", apply_signatures=False, browser_info=False)


def _page(workspace: Workspace) -> pn.viewable.Viewable:
    """The explorer of one page that was opened; its selection stands in the address."""
    document: Any = pn.state.curdoc
    arguments = document.session_context.request.arguments
    query = urlencode([(name, text.decode()) for name, texts in arguments.items() for text in texts])
    _extend()
    explorer = Explorer(workspace, query, address=True)
    document.on_session_destroyed(lambda _: explorer.close())
    nonce, sheet = secrets.token_urlsafe(16), (HERE / "page.css").read_text(encoding="utf-8")
    document.template = Template((HERE / "page.html.j2").read_text(encoding="utf-8"), autoescape=False)
    document.template_variables.update(
        nonce=nonce,
        plotly=LIBRARY,
        sheet=sheet,
        with_nonce=lambda scripts: scripts.replace("<script", f'<script nonce="{nonce}"'),
    )
    return explorer.__panel__()
