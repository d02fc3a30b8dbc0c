"""Who may talk to the explorer's server: the holder of its token, from the server's own address."""

import hmac
import html
import ipaddress
import re
import secrets
import socket
from typing import Any
from urllib.parse import urlsplit

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.routing import Matcher
from tornado.web import OutputTransform, RequestHandler

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine for itself."""


ELSEWHERE = ("cross-site", "same-site")
"""What a browser says of a request that a page of another site, or of another port of this machine, makes."""

OPEN = """<a href="/?open">Open the explorer</a><script nonce="{}">const link = document.links[0];
link.hash = location.hash; link.search += location.search.replace("?", "&")</script>"""
"""A link to what another page led to; its query makes it another address, which is loaded, with the cookie."""


NO_TOKEN = "This address is of an earlier start or has no token. Open the one that `fedscape explore` printed last."
"""Why an address is refused that does not have the token of this start."""


class Guard(Matcher):
    """Matches the requests that are not allowed, so that `RefusedRequest` answers them before any other handler does.

    A request is allowed if its Host is a name of the server, its Origin (if it states one) is that Host, it does not
    come from the page of another site, and it has the cookie. The page that is asked for with `?token=`, as the printed
    address has it, brings the cookie, also where a link elsewhere leads to it. A link without the token opens the page
    once the reader agrees, so that no page elsewhere starts work. A web page elsewhere can therefore neither read nor
    control anything, nor by a name of its own that it points to this machine (DNS rebinding): such a name is no name of
    the server.

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
        """Why a request is refused; None if it is allowed."""
        if foreign := self._foreign(request):
            return {"target_kwargs": {"reason": foreign}}
        if self.has_token(request):
            return None
        if request.headers.get("Sec-Fetch-Site", "") in ELSEWHERE:
            return {"target_kwargs": {"reason": "A page of another site led here.", "asks": True}}
        morsel = request.cookies.get(self.cookie)
        if morsel is not None and hmac.compare_digest(morsel.value.encode(), self.secret.encode()):
            return None
        return {"target_kwargs": {"reason": NO_TOKEN}}

    def has_token(self, request: HTTPServerRequest) -> bool:
        """Whether it asks for the page with the token of this start."""
        token = request.arguments.get("token", [b""])[0]
        return (request.method, request.path) == ("GET", "/") and hmac.compare_digest(token, self.token.encode())

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
        return "A page of another site asked." if site in ELSEWHERE and mode != "navigate" else ""

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this server; with a wide host its numbers count, since none is rebound."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or (self.wide and _is_number(name))


class RefusedRequest(RequestHandler):
    """Says in one line why a request is refused, and asks whether to open the page all the same."""

    def initialize(self, reason: str, asks: bool = False) -> None:
        """What to answer."""
        self.reason, self.asks = reason, asks

    def prepare(self) -> None:
        """Answer, whatever the method."""
        self.set_status(403)
        words = f"<p>{html.escape(self.reason)}</p>{OPEN.format(secrets.token_urlsafe(16)) if self.asks else ''}"
        self.finish(f"<!doctype html><html lang=en><title>fedscape explore</title>{words}</html>")


class SafeHeaders(OutputTransform):
    """What the browser may do with an answer: run the explorer's own code only, load nothing from elsewhere."""

    def __init__(self, request: HTTPServerRequest) -> None:
        host = request.headers.get("Host", "")
        self.sockets = "" if "[" in host else f" ws://{host} wss://{host}"  # no source for a policy; there 'self' is it

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Add the headers; inline scripts run if they have the nonce that the page's template wrote."""
        nonce = re.search(rb'<script nonce="([A-Za-z0-9_-]+)"', chunk[:100_000])
        scripts = f"'self' blob: 'nonce-{nonce[1].decode()}'" if nonce else "'none'"
        headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
            f"font-src 'self' data:; connect-src 'self' blob:{self.sockets}; "
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
