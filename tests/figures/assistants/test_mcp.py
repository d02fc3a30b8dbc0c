"""The server of `fedscape mcp`, asked by a client of the protocol in a process of its own."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
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
        ("diagnose_run", {"run": run.name, "seconds": -1}),
        ("evaluate", {**weights, "round": "x"}),
        ("list_runs", {"method": "ima"}),
        ("list_analyses", {"self": 1}),
    ]
    tools, (listed, evaluated, drawn, absent, long, negative, word, *extra) = asked(folder, *calls)
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
    assert all("    Args" not in tool.description for tool in tools)
    assert json.loads(listed.content[0].text) == Questions(folder).list_runs()
    assert json.loads(evaluated.content[0].text)["loss"] == Questions(folder).evaluate(run.name, 2, {"end": 1})["loss"]
    assert drawn.content[0].mime_type == "image/png" and drawn.content[1].text.startswith("caption: ")
    assert absent.is_error and "no run named 'nix'" in absent.content[0].text
    assert long.is_error and "call again with seconds=" in long.content[0].text
    assert negative.content[0].text.startswith(
        "diagnose_run: seconds is -1: Input should be greater than or equal to 0"
    )
    assert word.is_error and word.content[0].text.startswith("evaluate: round is 'x': Input should be a valid integer")
    assert [(one.is_error, one.content[0].text) for one in extra] == [
        (True, "no argument of list_runs named 'method'. Known: containing."),
        (True, "no argument of list_analyses named 'self'; there is no argument of list_analyses."),
    ]
    assert not any("\n" in one.content[0].text or "http" in one.content[0].text for one in (negative, word))


@contextmanager
def served(code, *arguments):
    """A server that these lines start, and what sends it a message (number, method or tool, parameters)."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        guard = threading.Timer(120, process.kill)
        guard.start()

        def send(number, name, /, **parameters):
            method, params = (name, parameters) if "/" in name or number == 0 else ("tools/call", {"name": name})
            params = {**params, "arguments": parameters} if method == "tools/call" else params
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            print(json.dumps(message if number is None else {**message, "id": number}), file=process.stdin, flush=True)

        about = {"capabilities": {}, "protocolVersion": "2025-06-18", "clientInfo": {"name": "test", "version": "1"}}
        send(0, "initialize", **about)
        send(None, "notifications/initialized")
        yield process, send
        process.stdin.close()
        assert process.wait() == 0
        guard.cancel()


def next_answer(process):
    """The number of the next answer of a server."""
    return json.loads(process.stdout.readline())["id"]


def test_lists_are_answered_and_the_server_ends_while_another_tool_computes(runs):
    code = (
        "import sys; from pathlib import Path; from figures.assistants import questions; import threading\n"
        "def describe_run(self, run: str): threading.Event().wait()\n"
        "questions.Questions.describe_run = describe_run\n"
        "from figures.commands.mcp import mcp; mcp(runs=Path(sys.argv[1]))"
    )
    with served(code, runs[0].folder.parent) as (process, send):
        send(1, "describe_run", run="any")
        send(2, "list_runs")
        assert [next_answer(process), next_answer(process)] == [0, 2], "the list, though run 1 is not described yet"


def test_a_cancelled_call_gives_its_turn_to_the_next_and_ends_at_its_next_step(runs, tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from figures.assistants import questions\n"
        "def describe_run(self, run: str):\n"
        "    opened, mark = self.open(run), Path(sys.argv[2])\n"
        "    mark.touch()\n"
        "    try:\n"
        "        while not mark.with_name('go').exists(): time.sleep(0.01)\n"
        "        for _ in opened.context.track(range(10**6)): time.sleep(0.01)\n"
        "    finally: mark.unlink()\n"
        "questions.Questions.describe_run = describe_run\n"
        "from figures.commands.mcp import mcp; mcp(runs=Path(sys.argv[1]))"
    )
    mark = tmp_path / "at work"
    with served(code, runs[0].folder.parent, mark) as (process, send):
        send(1, "describe_run", run=runs[0].name)
        while not mark.exists():
            time.sleep(0.01)
        send(None, "notifications/cancelled", requestId=1)
        send(2, "read_numbers", run=runs[0].name, name="loss")
        answers = [next_answer(process)]
        while answers[-1] != 2:
            answers.append(next_answer(process))
        assert mark.exists(), "the next one is answered before the first comes to a step"
        (tmp_path / "go").touch()
        while mark.exists():
            time.sleep(0.01)


def test_what_is_not_foreseen_is_one_line_too(runs, monkeypatch):
    from figures.assistants.server import server

    def list_runs(self, containing=""):
        raise MemoryError("cannot allocate\n8 GiB")

    monkeypatch.setattr(Questions, "list_runs", list_runs)
    answering = server(Questions(runs[0].folder.parent), store=False)
    with pytest.raises(Exception, match=r"list_runs: MemoryError: cannot allocate 8 GiB$"):
        asyncio.run(answering.call_tool("list_runs", {}))
