"""fedscape mcp: a server through which an assistant or a script asks about runs."""

import os
from pathlib import Path
from typing import Annotated

from figures.commands.options import Data, Runs, Task, flag


def mcp(
    *, runs: Runs = Path("runs"), data: Data = None, task: Task = None, store: Annotated[bool, flag("--store")] = False
) -> None:
    """Let an assistant ask about runs, over standard input and output (Model Context Protocol).

    Its tools list runs, read numbers, show a round, evaluate any weights of models, compute analyses, diagnose and
    draw. Numbers come with their errors. A computation of more than 30 s is refused with its cost until the assistant
    accepts it. In the settings of the assistant, enter this command with its arguments as a server of type stdio.

    Example: `fedscape mcp --runs out/demo/runs`

    Args:
        store: Store results in the folders of the runs, so that they are not computed again. By default nothing is
            written.
    """
    if not runs.is_dir():
        raise LookupError(f"there is no folder {runs}; name the folder that holds the runs by --runs DIR.")
    try:
        from figures.assistants.server import server
    except ModuleNotFoundError as reason:
        if (reason.name or "").partition(".")[0] not in ("anyio", "mcp", "mcp_types"):
            raise
        raise LookupError("fedscape mcp needs the package mcp; pip install 'fedscape[mcp]'.") from None
    from figures.assistants.questions import Questions

    server(Questions(runs, data=data, task=task, store=store), store=store).run("stdio")
    os._exit(0)  # also while a tool computes, whose answer nobody reads
