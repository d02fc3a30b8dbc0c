"""Who may talk to the explorer: only the holder of its token, from its own pages, by a name of its own."""

import asyncio
import http.client
import json
import re
import socket
import threading
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
import tiny

pytest.importorskip("tornado", reason="no tornado here; pip install 'fedscape[explore]'")
from exploring import exploring
from tornado.httpclient import HTTPRequest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.ioloop import IOLoop
from tornado.locks import Event
from tornado.websocket import websocket_connect

from figures.explore import live_page, server
from figures.explore.guard import NO_TOKEN, Guard
from figures.explore.work.workspace import Workspace


class Connection:
    """Of a request that no server got."""

    def set_close_callback(self, callback):
        """Never closed."""


def answer(guard, uri="/", **headers):
    """ "allowed", or the reason of a refusal."""
    named = {name.replace("_", "-"): value for name, value in {"Host": "127.0.0.1:8000", **headers}.items()}
    request = HTTPServerRequest(
        start_line=RequestStartLine("GET", uri, "HTTP/1.1"), headers=HTTPHeaders(named), connection=Connection()
    )
    matched = guard.match(request)
    if matched is None:
        return "allowed"
    return matched["target_kwargs"]["reason"]


@pytest.fixture
def guard():
    return Guard("127.0.0.1")


def cookie(guard):
    return f"{guard.cookie}={guard.secret}"


def test_the_cookie_opens_and_the_token_gives_the_cookie(guard):
    assert answer(guard, Cookie=cookie(guard)) == "allowed"
    assert answer(guard, f"/?token={guard.token}&x=1") == "allowed"
    assert answer(guard, f"/ws?token={guard.token}") == NO_TOKEN
    for uri, headers in (
        ("/", {}),
        ("/?token=", {}),
        (f"/?token={guard.token[:-1]}", {}),
        ("/", {"Cookie": f"{guard.cookie}=x"}),
    ):
        assert answer(guard, uri, **headers) == NO_TOKEN
    assert answer(guard, "/?token=%ff%fe") == NO_TOKEN


def test_the_token_is_not_the_cookie_and_both_are_new_at_every_start(guard):
    other = Guard("127.0.0.1")
    assert len({guard.token, guard.secret, other.token, other.secret, guard.cookie, other.cookie}) == 6
    assert answer(guard, Cookie=f"{guard.cookie}={guard.token}") == NO_TOKEN
    assert answer(guard, f"/?token={guard.secret}") == NO_TOKEN


@pytest.mark.parametrize(
    "host",
    ["evil.example:8000", "127.0.0.1.evil.example", "", "localhost.evil.example:8000", "192.168.0.7:8000", "[::1"],
)
def test_a_name_that_was_pointed_to_this_machine_is_refused(guard, host):
    assert answer(guard, f"/?token={guard.token}", Host=host, Cookie=cookie(guard)).startswith("This name is not that")


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8000", "LOCALHOST:1"])
def test_names_of_this_machine_are_accepted_at_any_port(guard, host):
    assert answer(guard, Host=host, Cookie=cookie(guard)) == "allowed"


def test_pages_of_other_sites_are_refused(guard):
    mine = {"Cookie": cookie(guard)}
    assert answer(guard, Origin="http://127.0.0.1:8000", **mine) == "allowed"
    for origin in ("http://evil.example", "http://127.0.0.1:9999", "http://localhost:8000", "null"):
        assert answer(guard, Origin=origin, **mine) == "A page of another site asked."
    for site in ("cross-site", "same-site"):
        page = {"Sec_Fetch_Site": site, **mine}
        assert answer(guard, Sec_Fetch_Mode="no-cors", **page) == "A page of another site asked."
        assert answer(guard, Sec_Fetch_Mode="navigate", **page) == "A page of another site led here."
        assert answer(guard, f"/?token={guard.token}", Sec_Fetch_Mode="navigate", **page) == "allowed"
    assert answer(guard, Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate", **mine) == "allowed"
    assert answer(guard, Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors", **mine) == "allowed"
    assert answer(guard, "/ws", Upgrade="websocket", **mine) == "A connection without Origin asked."


def test_a_wide_host_answers_to_numbers_and_its_own_names_but_not_to_others():
    wide = Guard("0.0.0.0")
    assert wide.wide and not Guard("localhost").wide
    assert answer(wide, Host="192.168.0.7:8000", Cookie=cookie(wide)) == "allowed"
    assert answer(wide, Host=f"{wide.name}:8000", Cookie=cookie(wide)) == "allowed"
    assert answer(wide, Host="evil.example:8000", Cookie=cookie(wide)).startswith("This name")
    assert Guard("::1").name == "[::1]"


def asked(address, path, **headers):
    """Status, headers and text of a request to a server."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers, text


def test_the_server_refuses_everything_without_the_cookie_and_lets_a_page_run_its_own_code_only(tmp_path):
    tiny.trained(tmp_path)
    with exploring(tmp_path) as address:
        query = urlsplit(address).query
        for path in ("/", "/ws", "/static/x.js", "/metadata", "/nothing"):
            status, headers, text = asked(address, path)
            assert (status, text.count(NO_TOKEN)) == (403, 1), path
            assert "script-src 'none'" in headers["Content-Security-Policy"]
        status, headers, text = asked(address, f"/?{query}")
        assert status == 200 and query.removeprefix("token=") not in text
        assert "HttpOnly" in headers["Set-Cookie"] and "samesite=strict" in headers["Set-Cookie"].lower()
        mine = headers["Set-Cookie"].split(";")[0]
        assert asked(address, "/", Cookie=mine, Host="evil.example")[0] == 403
        assert asked(address, "/", Cookie=mine, Origin="http://evil.example")[0] == 403
        upgrade = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec_WebSocket_Key": "x",
            "Sec_WebSocket_Version": "13",
        }
        assert asked(address, "/ws", Cookie=mine, Origin="http://evil.example", **upgrade)[0] == 403
        status, headers, text = asked(address, "/", Cookie=mine)
        assert (status, headers["Cache-Control"]) == (200, "no-store")
        policy = headers["Content-Security-Policy"]
        nonces = set(re.findall(r'<script nonce="([^"]+)"', text))
        assert len(nonces) == 1 and f"'nonce-{nonces.pop()}'" in policy
        assert "default-src 'none'" in policy and "unsafe-eval" not in policy and "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
        assert not re.findall(r"<script(?! nonce=)", text) and not re.findall(r"<[^>]* on[a-z]+=", text)
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', text), "nothing of another machine"
        assert headers["Referrer-Policy"] == "no-referrer" and headers["X-Content-Type-Options"] == "nosniff"
        again = asked(address, "/", Cookie=mine)[2]
        assert set(re.findall(r'nonce="([^"]+)"', again)) != set(re.findall(r'nonce="([^"]+)"', text))
        for path in ("/nothing", "/../run.json", "/%2e%2e/run.json"):
            assert asked(address, path, Cookie=mine)[::2] == (404, "fedscape explore: no such page.\n"), path
        assert asked(address, "/?round=%ff", Cookie=mine)[0] == 200


def test_an_exception_while_the_page_is_built_is_a_line(tmp_path, monkeypatch, serving):
    def broken(nonce):
        raise RuntimeError("a secret place")

    monkeypatch.setattr(live_page, "live_page", broken)
    address, mine = serving(tmp_path)
    status, _, text = asked(address, "/", Cookie=mine)
    assert (status, text) == (500, "fedscape explore: RuntimeError: the terminal has more.\n")


@pytest.fixture
def serving(jobs):
    """Starts a server on a free port in a thread; its address and the cookie."""
    with ExitStack() as stack:

        def start(folder, host="127.0.0.1"):
            workspace = Workspace([folder], jobs=jobs)
            loops, addresses = [], []

            async def serve():
                started, address, _ = server.serve(lambda: workspace, 0, host)
                loops.append(IOLoop.current())
                addresses.append(address)
                await stopped.wait()
                started.stop()

            stopped = Event()
            thread = threading.Thread(target=lambda: asyncio.run(serve()))
            thread.start()
            while not addresses:
                threading.Event().wait(0.01)
            stack.callback(workspace.close)
            stack.callback(thread.join)
            stack.callback(lambda: loops[0].add_callback(stopped.set))
            return addresses[0], asked(addresses[0], f"/?{urlsplit(addresses[0]).query}")[1]["Set-Cookie"].split(";")[0]

        yield start


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_page_asks_by_its_websocket_also_by_the_number_of_six(tmp_path, serving, host):
    run = tiny.trained(tmp_path)
    address, mine = serving(tmp_path, host)
    base = address.split("/?")[0]

    async def talk():
        request = HTTPRequest(f"{base.replace('http', 'ws')}/ws", headers={"Cookie": mine, "Origin": base})
        socket = await websocket_connect(request)
        answers = []
        for number, (kind, args) in enumerate(
            {"scene": {}, "point": {"run": run.name, "round": 1, "spot": [0, 0]}, "nothing": {}}.items()
        ):
            await socket.write_message(json.dumps({"id": number, "ask": kind, "args": args}))
            while (message := json.loads(await socket.read_message())).get("id") != number or "rough" in message:
                pass
            answers.append(message)
        await socket.write_message("no json")
        while await socket.read_message() is not None:
            pass
        socket.close()
        return answers, socket.close_code

    (scene, point, refused), code = asyncio.run(talk())
    assert scene["value"]["runs"][0]["key"] == run.name and point["value"]["samples"] > 0
    assert refused["error"].startswith("no ask named 'nothing'") and code == 1003


def test_runs_that_cannot_be_opened_are_a_line_on_every_page(tmp_path):
    (tmp_path / "file").write_text("x")
    opening = server.WorkspaceOpening(lambda: Workspace([tmp_path / "file"]))
    opening.wait()
    assert opening.workspace is None and opening.problem.startswith(f"{tmp_path / 'file'} is a file; give the folder")


# tornado leaves the socket that it could not bind to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_usual_port_is_taken_where_it_is_free_and_a_port_that_was_asked_for_is_never_another(tmp_path, monkeypatch):
    async def ports():
        with socket.create_server(("127.0.0.1", 0)) as other:
            usual = other.getsockname()[1]
            monkeypatch.setattr(server, "PORT", usual)
            started, address, _ = server.serve(make)
            started.stop()
            assert urlsplit(address).port not in (0, usual)
            with pytest.raises(ValueError, match=f"cannot listen on port {usual} of 127.0.0.1"):
                server.serve(make, usual)
        started, address, _ = server.serve(make)
        started.stop()
        assert urlsplit(address).port == usual

    def make():
        raise LookupError("no runs.")

    asyncio.run(ports())
