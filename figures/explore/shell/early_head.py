"""The head of the explorer's page, sent before the page is made, so that its scripts run in the browser meanwhile."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from pathlib import Path
from typing import Any

from bokeh.document import Document
from bokeh.resources import Resources
from jinja2 import Template
from panel.io.resources import bundle_resources
from panel.io.server import DocHandler
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import OutputTransform

HERE = Path(__file__).parent

QUIET = 0.1
"""Seconds without an answer after which the browser wants no more scripts: it has kept those of an earlier page."""

LONGEST = 1.0
"""Seconds that a page waits for its scripts to be sent."""


class Sent(OutputTransform):
    """Notes when the files of `times` were sent: by path the last byte, and by "" the last part of any of them."""

    def __init__(self, times: dict[str, float], request: HTTPServerRequest) -> None:
        self.times, self.path = times, request.path

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Note the first part."""
        return status_code, headers, self.transform_chunk(chunk, finishing)

    def transform_chunk(self, chunk: bytes, finishing: bool) -> bytes:
        """Note a part; the last one comes when the others are sent."""
        if self.path in self.times:
            self.times[""] = time.monotonic()
            if finishing:
                self.times[self.path] = self.times[""]
        return chunk


class Head:
    """Everything of a page that does not depend on its content: style sheets, scripts, the line that says to wait.

    Args:
        plotly: Address of plotly.js.
    """

    def __init__(self, plotly: str) -> None:
        self.plotly = plotly
        self.scripts = self.sheets = ""
        self.sent: dict[str, float] = {"": 0.0}

    def learn(self, document: Document, resources: Resources) -> None:
        """Take the scripts and style sheets of a document as those of every page."""
        self.scripts, self.sheets = bundle_resources(document.roots, resources)
        addresses = [*_addresses(self.scripts), self.plotly]
        self.sent.update({"/" + address.partition("?")[0]: 0.0 for address in addresses})

    def text(self, nonce: str) -> str:
        """HTML up to the content; inline scripts have the nonce."""
        return _template("head").render(
            nonce=nonce,
            plotly=self.plotly,
            sheet=(HERE / "page.css").read_text(encoding="utf-8"),
            sheets=self.sheets,
            scripts=with_nonce(self.scripts, nonce),
        )

    def describe(self, document: Any, nonce: str) -> None:
        """Let a document's page be what follows the head: its content, and scripts that the head does not have."""
        document.template = _template("page")
        document.template_variables.update(
            missing=lambda scripts: with_nonce("\n".join(self._missing(scripts)), nonce),
            with_nonce=lambda scripts: with_nonce(scripts, nonce),
        )

    async def taken(self) -> None:
        """Wait until the browser has the scripts: while a page is made, the server sends nothing."""
        begun = time.monotonic()
        while min(self.sent.values()) < begun:
            await asyncio.sleep(0.005)
            now = time.monotonic()
            if now - max(begun, self.sent[""]) > QUIET or now - begun > LONGEST:
                break

    def _missing(self, scripts: str) -> list[str]:
        """Those of a page's scripts that the head does not have."""
        known = set(_tags(self.scripts))
        return [tag for tag in _tags(scripts) if tag not in known]


class PageHandler(DocHandler):
    """Answers with the head at once, and with the page's content when it is made."""

    def __init__(self, *arguments: Any, head: Head, **options: Any) -> None:
        self.head_of_page = head
        super().__init__(*arguments, **options)

    def head(self) -> None:
        """Say that the server is there, to a page whose connection was lost."""

    async def get_session(self, *arguments: Any, **options: Any) -> Any:
        """The session of a new page, whose head is sent before."""
        nonce = secrets.token_urlsafe(16)
        self.set_header("Content-Type", "text/html")
        self.write(self.head_of_page.text(nonce))
        await self.flush()
        await self.head_of_page.taken()
        making: Any = super().get_session(*arguments, **options)
        session = await making
        self.head_of_page.describe(session.document, nonce)
        return session


def with_nonce(scripts: str, nonce: str) -> str:
    """Script tags with a nonce, without which the browser does not run them."""
    return scripts.replace("<script", f'<script nonce="{nonce}"')


def _addresses(scripts: str) -> list[str]:
    return re.findall(r'<script[^>]* src="([^"]+)"', scripts)


def _tags(scripts: str) -> list[str]:
    return re.findall(r"<script.*?</script>", scripts, flags=re.DOTALL)


def _template(name: str) -> Template:
    return Template((HERE / f"{name}.html.j2").read_text(encoding="utf-8"), autoescape=False)
