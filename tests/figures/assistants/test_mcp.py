"""The server of `fedscape mcp`, asked by a client of the protocol in a process of its own."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from importlib.metadata import version

import pytest

from figures.assistants.questions import Questions

pytest.importorskip("mcp")


def asked(folder, *calls):
    """Names of the tools with their hints, and the answers to calls (name, arguments)."""
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = ["-m", "fedscape", "mcp", "--runs", str(folder)]

    async def talk():
        settings = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with stdio_client(settings) as streams, ClientSession(*streams) as session:
            told = (await session.initialize()).server_info
            assert (told.name, told.version) == ("fedscape", version("fedscape"))
            tools = (await session.list_tools()).tools
            return tools, [await session.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(talk())


def test_a_client_of_the_protocol_is_answered(runs):
    run, folder = runs[0], runs[0].folder.parent
    weights = {"run": run.name, "round": 2, "weights": {"end": 1}}
    calls = [
        ("list_runs", {}),
        ("evaluate", weights),
        ("draw", {"figure": "accuracy-rounds", "runs": [run.name]}),
        ("describe_run", {"run": "nix"}),
        ("analyse", {"run": run.name, "analysis": "counterfactual", "seconds": 0.0}),
    ]
    tools, (listed, evaluated, drawn, absent, long) = asked(folder, *calls)
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
    assert all("    Args" not in tool.description for tool in tools)
    assert json.loads(listed.content[0].text) == Questions(folder).list_runs()
    assert json.loads(evaluated.content[0].text)["loss"] == Questions(folder).evaluate(run.name, 2, {"end": 1})["loss"]
    assert drawn.content[0].mime_type == "image/png" and drawn.content[1].text.startswith("caption: ")
    assert absent.is_error and "no run named 'nix'" in absent.content[0].text
    assert long.is_error and "call again with seconds=" in long.content[0].text


def test_lists_are_answered_and_the_server_ends_while_another_tool_computes(runs, tmp_path):
    code = (
        "import sys; from pathlib import Path; from figures.assistants import questions; import threading\n"
        "def describe_run(self, run: str): threading.Event().wait()\n"
        "questions.Questions.describe_run = describe_run\n"
        "from figures.commands.mcp import mcp; mcp(runs=Path(sys.argv[1]))"
    )
    meta = {"capabilities": {}, "protocolVersion": "2025-06-18", "clientInfo": {"name": "test", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": meta}
    calls = [("describe_run", {"run": "any"}), ("list_runs", {})]
    asks = [
        {"jsonrpc": "2.0", "id": 1 + row, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for row, (name, arguments) in enumerate(calls)
    ]
    command = [sys.executable, "-c", code, str(runs[0].folder.parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as served:
        guard = threading.Timer(120, served.kill)
        guard.start()
        for line in (first, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *asks):
            print(json.dumps(line), file=served.stdin, flush=True)
        answers = [json.loads(served.stdout.readline())["id"] for _ in range(2)]
        assert answers == [0, 2], "the list, though run 1 is not described yet"
        served.stdin.close()
        assert served.wait() == 0
        guard.cancel()


def test_what_is_not_foreseen_is_one_line_too(runs, monkeypatch):
    from figures.assistants.server import server

    def list_runs(self, containing=""):
        raise MemoryError("cannot allocate\n8 GiB")

    monkeypatch.setattr(Questions, "list_runs", list_runs)
    answering = server(Questions(runs[0].folder.parent), store=False)
    with pytest.raises(Exception, match=r"list_runs: MemoryError: cannot allocate 8 GiB$"):
        asyncio.run(answering.call_tool("list_runs", {}))
