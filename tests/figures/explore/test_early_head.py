"""The page's head is sent before the page is made, with every script of it."""

import re
import socket
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import tiny

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
from exploring import exploring

from figures.explore.shell import early_head


@contextmanager
def request(address, path, **headers):
    """A socket that asked for a path."""
    place = urlsplit(address)
    lines = [f"{name}: {value}" for name, value in {"Host": place.netloc, "Connection": "close", **headers}.items()]
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
        connection.sendall("\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode())
        yield connection


def rest(connection):
    """What comes until the connection is closed."""
    return b"".join(iter(lambda: connection.recv(2**16), b"")).decode()


def test_the_head_has_all_scripts_and_comes_first(tmp_path):
    tiny.trained(tmp_path)
    with exploring(tmp_path) as address:
        with request(address, f"/?{urlsplit(address).query}") as connection:
            cookie = re.search(r"Set-Cookie: ([^;]+)", rest(connection))[1]
        with request(address, "/", Cookie=cookie) as connection:
            first = connection.recv(2**16).decode()
            assert "Opening the runs" in first and "<main>" not in first
            page = rest(connection)
    assert "<main>" in page and "src=" not in page
    scripts = set(re.findall(r"([\w.-]+\.js)\b", first))
    assert {"bokeh.min.js", "panel.min.js", "tabulator.min.js", "plotly.js"} <= scripts
    assert set(re.findall(r'nonce="([^"]+)"', first)) == set(re.findall(r'nonce="([^"]+)"', page))


def test_a_script_that_the_head_lacks_comes_with_the_page():
    head = early_head.Head("plotly.js")
    head.scripts = '<script src="one.js"></script>\n<script>two()</script>'

    class Document:
        template, template_variables = None, {}

    head.describe(Document, "x")
    scripts = head.scripts + '\n<script src="three.js"></script>'
    assert Document.template_variables["missing"](scripts) == '<script nonce="x" src="three.js"></script>'
