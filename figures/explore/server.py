"""The explorer at an address of this machine."""

from __future__ import annotations

from urllib.parse import urlencode

import panel as pn
from bokeh.server.server import Server
from plotly.offline import get_plotlyjs
from tornado.web import RequestHandler

from figures.explore.app import Explorer
from figures.explore.workspace import Workspace

PATH = "/explore"


class PlotlyHandler(RequestHandler):
    """plotly.py's own plotly.js."""

    def get(self) -> None:
        """Send it; the browser keeps it for an hour."""
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=3600")
        self.write(get_plotlyjs())


def serve(workspace: Workspace, port: int = 0, host: str = "127.0.0.1") -> Server:
    """A server that listens; start its loop by `server.io_loop.start()`."""

    def page() -> pn.viewable.Viewable:
        document = pn.state.curdoc
        arguments = document.session_context.request.arguments
        query = urlencode([(name, one.decode()) for name, many in arguments.items() for one in many])
        explorer = Explorer(workspace, query, address=True)
        document.on_session_destroyed(lambda _: explorer.close())
        return explorer.__panel__()

    return pn.io.server.get_server(
        {PATH: page},
        port=port,
        address=host,
        start=False,
        show=False,
        title="fedscape explore",
        extra_patterns=[("/plotly.js", PlotlyHandler)],
    )
