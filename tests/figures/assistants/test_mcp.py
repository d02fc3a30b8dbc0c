"""The server of `fedscape mcp`, asked by a client of the protocol in a process of its own."""

import asyncio
import json
import os
import sys
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
