"""`Questions` as the tools of a server of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

from anyio import to_thread
from mcp import types
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from figures.assistants.questions import Questions
from figures.texts import console

INSTRUCTIONS = """Loss landscapes and client drift of federated learning: runs that fedscape has recorded.
Begin with list_runs. Losses have the unit that describe_run names, errors and accuracies are fractions. Say the
standard error or interval of a number where the answer has one. A tool that takes long is refused with its cost: tell
the user, and call it again with `seconds` once they agree."""

_TURN = threading.Lock()
"""Tools are called in threads; pictures are drawn and models evaluated by one at a time. Lists wait for none."""

TOOLS = (
    *("list_runs", "describe_run", "read_numbers", "show_round", "evaluate"),
    *("list_analyses", "analyse", "diagnose_run", "list_figures", "draw"),
)
"""Functions of `Questions` that are tools."""


def server(questions: Questions, *, store: bool) -> MCPServer[Any]:
    """The server; `run("stdio")` lets it answer.

    Args:
        questions: What it answers from.
        store: Whether its tools store results, and are no longer read-only.
    """
    answering: MCPServer[Any] = MCPServer(
        "fedscape", version=version("fedscape"), instructions=INSTRUCTIONS, log_level="WARNING"
    )
    for name in TOOLS:
        tool = getattr(questions, name)
        hints = types.ToolAnnotations(
            read_only_hint=not store, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        called, structured = _answered(tool), False if name == "draw" else None
        answering.add_tool(called, description=inspect.getdoc(tool), annotations=hints, structured_output=structured)
    return answering


def _answered(tool: Callable[..., Any]) -> Callable[..., Any]:
    """A tool in a thread, which the end of standard input abandons; what it raises is one line, without a traceback."""

    @functools.wraps(tool)
    async def answered(*arguments: Any, **options: Any) -> Any:
        return await to_thread.run_sync(lambda: answer(*arguments, **options), abandon_on_cancel=True)

    def answer(*arguments: Any, **options: Any) -> Any:
        try:
            with nullcontext() if tool.__name__.startswith("list_") else _TURN:
                result = tool(*arguments, **options)
        except Exception as reason:
            text = str(reason.args[0]) if isinstance(reason, KeyError) and reason.args else str(reason)
            kind = "" if isinstance(reason, ValueError | LookupError | TypeError | OSError) else type(reason).__name__
            line = ": ".join(filter(None, (kind, " ".join(text.split())))) or type(reason).__name__
            raise ToolError(console.printable(line)) from reason
        if tool.__name__ != "draw":
            return result
        picture, texts = result
        return [Image(data=picture, format="png"), *(f"{name}: {text}" for name, text in texts.items())]

    return answered
