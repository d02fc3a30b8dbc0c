"""fedscape explore: runs in the browser, live."""

from __future__ import annotations

import webbrowser
from typing import Annotated

from cyclopts import Parameter

from figures import console
from figures.commands.options import flag

Port = Annotated[int, Parameter(name="--port", help="Port; 0 for a free one.")]
Host = Annotated[str, Parameter(name="--host", help="Address to listen on; by default only this machine can connect.")]
NoBrowser = Annotated[bool, flag("--no-browser", "Print the address only.")]


def explore(*runs: str, port: Port = 0, host: Host = "127.0.0.1", no_browser: NoBrowser = False) -> None:
    """Explore runs in the browser.

    Args:
        runs: Folders of runs, or folders that contain them.
    """
    from figures.explore.server import serve
    from figures.explore.workspace import Workspace

    workspace = Workspace(runs or ("runs",))
    server, address = serve(workspace, port, host)
    server.start()
    console.put(address)
    if not no_browser:
        webbrowser.open(address)
    try:
        server.io_loop.start()
    finally:
        workspace.close()
