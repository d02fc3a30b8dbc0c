"""The explorer at an address of this machine: one page, one websocket, and a guard before both."""

from __future__ import annotations

import gc
import importlib
import json
import secrets
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from tornado.routing import Rule
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from figures.explore.guard import Guard, RefusedRequest, SafeHeaders
from figures.explore.work.first_scene import stored_scene
from figures.explore.work.unread_runs import unread_runs

if TYPE_CHECKING:  # the port is open before torch is loaded
    from figures.explore.session import Session
    from figures.explore.work.workspace import Workspace

PORT = 7333
"""Usual port."""

LOADED = ("point", "weights", "series", "numbers")
"""Modules of what a page asks after its landscapes, loaded before it asks."""

LARGEST = 2**20
"""Bytes of a message of a page."""


class WorkspaceOpening:
    """The workspace, which is opened in a thread while the page is on its way.

    Args:
        make: Opens it.
        folders: Of its runs; `first` is their scene until it is open, where they are as they were last time, else
            `unread` is what is known without it.
    """

    def __init__(self, make: Callable[[], Workspace], folders: Sequence[Path] = ()) -> None:
        self._make, self._done = make, threading.Event()
        self.first = stored_scene(folders) if folders else None
        self.workspace: Workspace | None = None
        self.problem = ""
        threading.Thread(target=self._open, name="explore-opening", daemon=True).start()
        self.unread = [] if self.first else unread_runs(folders)  # while the thread loads torch

    def wait(self) -> None:
        """Wait until it is open, or cannot be."""
        self._done.wait()

    def _open(self) -> None:
        gc.disable()  # looking for garbage takes a sixth of the time of loading
        from figures.explore.session import plain_line

        try:
            self.workspace = self._make()
            importlib.import_module("figures.explore.answers.changed_scene")
        except Exception as reason:  # noqa: BLE001 - every page says it
            self.problem = plain_line(reason)
        self.first = None
        self._done.set()
        if self.workspace is not None:
            from figures.explore.answers.landscape import begin

            begin(self.workspace)
            for name in LOADED:
                importlib.import_module(f"figures.explore.answers.{name}")
        gc.enable()


class StageHandler(RequestHandler):
    """Answers with the page, and with the cookie where the address has the token."""

    def initialize(self, guard: Guard) -> None:
        """Who may talk to it."""
        self.guard = guard

    def get(self) -> None:
        """The page, which asks for all else by its websocket."""
        from figures.explore.live_page import live_page

        self.set_header("Cache-Control", "no-store")
        if self.guard.has_token(self.request):
            self.set_cookie(self.guard.cookie, self.guard.secret, httponly=True, samesite="Strict", path="/")
        self.finish(live_page(secrets.token_urlsafe(16)))

    def head(self) -> None:
        """Say that the server is there."""

    def write_error(self, status_code: int, **about: Any) -> None:
        """One plain line."""
        failed = about.get("exc_info")
        words = f"{failed[0].__name__}: the terminal has more." if failed and status_code == 500 else "no such page."
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"fedscape explore: {words}\n")


class NoPage(StageHandler):
    """Answers that there is no such page."""

    def get(self) -> None:
        """404."""
        self.send_error(404)

    def head(self) -> None:
        """404."""
        self.set_status(404)


class SocketHandler(WebSocketHandler):
    """The connection of one page: messages as JSON, both ways."""

    def initialize(self, opening: WorkspaceOpening) -> None:
        """Whose runs it shows."""
        self.opening = opening
        self.session: Session | None = None
        self.early: list[Any] | None = []
        self.loop, self.ended = IOLoop.current(), False

    def check_origin(self, origin: str) -> bool:
        """The guard has compared it with the Host."""
        return True

    def open(self, *args: str, **kwargs: str) -> None:
        """Begin a session once the runs are open."""
        threading.Thread(target=self._begin, name="explore-page", daemon=True).start()

    def on_message(self, message: str | bytes) -> None:
        """Hand a message to the session."""
        try:
            content = json.loads(message)
        except ValueError:
            self.close(1003, "messages are JSON")
            return
        if self.early is not None:
            self.early.append(content)
            if isinstance(content, dict) and content.get("ask") == "scene":
                known = {"rough": self.opening.unread} if self.opening.first is None else {"value": self.opening.first}
                self._write(json.dumps({"id": content.get("id"), **known}))  # a second value is ignored
        elif self.session is not None:
            self.session.receive(content)
        elif isinstance(content, dict):
            self._write(json.dumps({"id": content.get("id"), "error": self.opening.problem}))

    def on_close(self) -> None:
        """End the session."""
        self.ended = True
        if self.session is not None:
            threading.Thread(target=self.session.close, daemon=True).start()

    def _begin(self) -> None:
        self.opening.wait()
        from figures.explore.session import Session

        workspace = self.opening.workspace
        session = None if workspace is None else Session(workspace, self._send)
        self.loop.add_callback(self._begun, session)

    def _begun(self, session: Session | None) -> None:
        early, self.early, self.session = self.early or [], None, session
        if self.ended and session is not None:
            session.close()
            return
        for content in early:
            self.on_message(json.dumps(content))

    def _send(self, message: dict[str, Any]) -> None:
        """Send a message, from any thread."""
        text = json.dumps(message, separators=(",", ":"), allow_nan=False)
        self.loop.add_callback(self._write, text)

    def _write(self, text: str) -> None:
        if not self.ended:
            try:
                sent = self.write_message(text)
                sent.add_done_callback(lambda done: done.cancelled() or done.exception())  # of a page that was closed
            except WebSocketClosedError:
                self.ended = True


def serve(
    make: Callable[[], Workspace], port: int | None = None, host: str = "127.0.0.1", folders: Sequence[Path] = ()
) -> tuple[HTTPServer, str, bool]:
    """A server that listens, the address to open with its token, and whether others than this machine can connect.

    `IOLoop.current().start()` lets it answer.

    Args:
        make: Opens the runs; called in a thread.
        port: 0 for a free one; None for the usual one, or a free one where that is taken.
        host: Address to listen on.
        folders: The runs' folders, where they say all: their last scene is shown while they are opened.

    Raises:
        ValueError: If the port is taken or not allowed, or the host is none of this machine's.
    """
    guard, opening = Guard(host), WorkspaceOpening(make, folders)
    handlers: Any = [("/", StageHandler, {"guard": guard}), ("/ws", SocketHandler, {"opening": opening})]
    application = Application(
        handlers,
        default_handler_class=NoPage,
        default_handler_args={"guard": guard},
        log_function=lambda handler: None,  # addresses have the token in them
        websocket_max_message_size=LARGEST,
        websocket_ping_interval=20,
    )
    application.add_handlers(".*", [Rule(guard, RefusedRequest), *handlers])
    application.add_transform(SafeHeaders)
    server = HTTPServer(application)
    listens = _listen(server, (PORT, 0) if port is None else (port,), host)
    return server, f"http://{guard.name}:{listens}/?token={guard.token}", guard.wide


def _listen(server: HTTPServer, ports: Sequence[int], host: str) -> int:
    """Listen on the first of the ports that it can have.

    Raises:
        ValueError: If it can have none.
    """
    for port in ports:
        try:
            sockets = bind_sockets(port, address=host)
        except OSError as reason:
            why = f"cannot listen on port {port} of {host}: {reason.strerror or reason}"
            problem = ValueError(f"{why}. Give another --port (0: a free one) or --host.")
            continue
        server.add_sockets(sockets)
        return int(sockets[0].getsockname()[1])
    raise problem
