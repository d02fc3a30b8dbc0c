"""`Questions` as the tools of a server of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

from anyio import Lock, get_cancelled_exc_class, to_thread
from mcp import types
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from figures.assistants.questions import Questions
from figures.explore.work import stopping
from figures.texts import console
from landscape import plugins

INSTRUCTIONS = """Loss landscapes and client drift of federated learning: runs that fedscape has recorded.
Begin with list_runs. Losses have the unit that describe_run names, errors and accuracies are fractions. Say the
standard error or interval of a number where the answer has one. A tool that takes long is refused with its cost: tell
the user, and call it again with `seconds` once they agree."""

_DRAWING, _NUMBERS = threading.Lock(), itertools.count()
"""Matplotlib draws one picture at a time, also while a cancelled one comes to its end."""

TOOLS = (
    *("list_runs", "describe_run", "read_numbers", "show_round", "evaluate"),
    *("list_analyses", "analyse", "diagnose_run", "list_figures", "draw"),
)
"""Functions of `Questions` that are tools."""


class OneLineServer(MCPServer[Any]):
    """A server that says in one line which argument of a call is wrong."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """The answer of a tool.

        Raises:
            ToolError: As the tool, or for an argument that it does not have or of another type.
        """
        known = [*inspect.signature(getattr(Questions, name)).parameters][1:] if name in TOOLS else [*arguments]
        if extra := [key for key in arguments if key not in known]:
            raise ToolError(console.printable(plugins.unknown(f"argument of {name}", extra[0], known)))
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as reason:
            if not isinstance(reason.__cause__, ValidationError):
                raise
            wrong = reason.__cause__.errors()
            words = (f"{'.'.join(map(str, line['loc']))} is {line['input']!r}: {line['msg']}" for line in wrong)
            raise ToolError(console.printable(f"{name}: {'; '.join(words)}.")) from None


def server(questions: Questions, *, store: bool) -> MCPServer[Any]:
    """The server; `run("stdio")` lets it answer.

    Args:
        questions: What it answers from.
        store: Whether its tools store results, and are no longer read-only.
    """
    answering = OneLineServer("fedscape", version=version("fedscape"), instructions=INSTRUCTIONS, log_level="WARNING")
    turn = Lock()
    for name in TOOLS:
        tool = getattr(questions, name)
        hints = types.ToolAnnotations(
            read_only_hint=not store, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        called, structured = _answered(tool, turn), False if name == "draw" else None
        answering.add_tool(called, description=inspect.getdoc(tool), annotations=hints, structured_output=structured)
    return answering


def _answered(tool: Callable[..., Any], turn: Lock) -> Callable[..., Any]:
    """A tool in a thread, in its turn; lists wait for none. What it raises is one line, without a traceback.

    A cancelled call, and that at the end of standard input, gives up its turn at once and ends at its next step.
    """

    @functools.wraps(tool)
    async def answered(*arguments: Any, **options: Any) -> Any:
        number = next(_NUMBERS)
        async with nullcontext() if tool.__name__.startswith("list_") else turn:
            try:
                return await to_thread.run_sync(lambda: answer(number, *arguments, **options), abandon_on_cancel=True)
            except get_cancelled_exc_class():
                stopping.stop(number)
                raise

    def answer(number: int, /, *arguments: Any, **options: Any) -> Any:
        try:
            with stopping.call(number, lambda *step: None), _DRAWING if tool.__name__ == "draw" else nullcontext():
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
