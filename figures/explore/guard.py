"""Who may talk to the explorer's server: the holder of its token, from the server's own address."""

from __future__ import annotations

import hmac
import html
import ipaddress
import re
import secrets
import socket
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.routing import Matcher
from tornado.web import OutputTransform, RequestHandler

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine for itself."""


class Guard(Matcher):
    """Matches the requests that are not allowed, so that `RefusedRequest` answers them before any other handler does.

    A request is allowed if its Host is a name of the server, its Origin (if it states one) is that Host, it does not
    come from the page of another site, and it has the cookie. The cookie comes by `?token=`, as the printed address
    has it. A web page elsewhere can therefore neither read nor control anything, nor by a name of its own that it
    points to this machine (DNS rebinding): such a name is no name of the server.

    Args:
        host: Address that the server listens on.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.token = secrets.token_urlsafe(24)
        self.secret = secrets.token_urlsafe(24)
        self.cookie = f"fedscape-{secrets.token_hex(4)}"
        self.wide = host not in LOCAL
        names = {socket.gethostname(), socket.getfqdn(), host} if self.wide else set()
        self.names = LOCAL | {name.lower() for name in names if name}

    @property
    def name(self) -> str:
        """The name to open the server by, as it stands in an address."""
        if self.host in ("0.0.0.0", "::", ""):
            return socket.gethostname()
        return f"[{self.host}]" if ":" in self.host else self.host

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Why a request is refused, or where it is sent with its cookie; None if it is allowed."""
        foreign = self._foreign(request)
        if foreign:
            return {"target_kwargs": {"guard": self, "reason": foreign}}
        morsel = request.cookies.get(self.cookie)
        if morsel is not None and hmac.compare_digest(morsel.value.encode(), self.secret.encode()):
            return None if "token" not in request.arguments else self._sent(request)
        token = request.arguments.get("token", [b""])[0]
        if request.method == "GET" and hmac.compare_digest(token, self.token.encode()):
            return self._sent(request)
        reason = "The token is missing or of an earlier start. Open the address that `fedscape explore` printed."
        return {"target_kwargs": {"guard": self, "reason": reason}}

    def _sent(self, request: HTTPServerRequest) -> dict[str, Any]:
        """To the same address without the token, with the cookie."""
        rest = [pair for pair in parse_qsl(request.query) if pair[0] != "token"]
        return {
            "target_kwargs": {"guard": self, "to": request.path + (f"?{urlencode(rest, safe=',:')}" if rest else "")}
        }

    def _foreign(self, request: HTTPServerRequest) -> str:
        """Why a request does not come from the server's own pages; "" if it does."""
        host = request.headers.get("Host", "")
        if not self._is_ours(host):
            return "This name is not that of the server. Open the address that `fedscape explore` printed."
        origins = request.headers.get_list("Origin")
        if any(urlsplit(origin).netloc.lower() != host.lower() for origin in origins):
            return "A page of another site asked."
        if request.headers.get("Upgrade", "").lower() == "websocket" and not origins:
            return "A connection without Origin asked."
        site, mode = (request.headers.get(f"Sec-Fetch-{name}", "") for name in ("Site", "Mode"))
        return "A page of another site asked." if site == "cross-site" and mode != "navigate" else ""

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this server; with a wide host its numbers count, since none is rebound."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or (self.wide and _is_number(name))


class RefusedRequest(RequestHandler):
    """Says in one line why a request is refused, or hands out the cookie."""

    def initialize(self, guard: Guard, reason: str = "", to: str = "") -> None:
        """What to answer."""
        self.guard, self.reason, self.to = guard, reason, to

    def prepare(self) -> None:
        """Answer, whatever the method."""
        if self.to:
            self.set_cookie(self.guard.cookie, self.guard.secret, httponly=True, samesite="Strict", path="/")
            self.redirect(self.to)
            return
        self.set_status(403)
        self.finish(
            f"<!doctype html><html lang=en><title>fedscape explore</title><p>{html.escape(self.reason)}</p></html>"
        )


class SafeHeaders(OutputTransform):
    """What the browser may do with an answer: run the explorer's own code only, load nothing from elsewhere."""

    def __init__(self, request: HTTPServerRequest) -> None:
        self.host = request.headers.get("Host", "")

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Add the headers; inline scripts run if they have the nonce that the page's template wrote."""
        nonce = re.search(rb'<script nonce="([A-Za-z0-9_-]+)"', chunk[:100_000])
        scripts = f"'self' blob: 'nonce-{nonce[1].decode()}'" if nonce else "'none'"
        headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
            f"font-src 'self' data:; connect-src 'self' blob: ws://{self.host} wss://{self.host}; "
            "worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers.setdefault("Cache-Control", "no-cache")  # what has no version in its address is asked for again
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "no-referrer"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        return status_code, headers, chunk


def _is_number(name: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
