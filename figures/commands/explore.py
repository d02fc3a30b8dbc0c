"""fedscape explore: linked views of runs in the browser, live."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from figures.commands.options import Data, Integer, Runs, Task, flag, run_names
from figures.texts import console

if TYPE_CHECKING:
    from figures.explore.work.workspace import Workspace


def explore(
    paths: Annotated[list[str] | None, Parameter(completer=run_names)] = None,
    /,
    *,
    runs: Runs = Path("runs"),
    data: Data = None,
    task: Task = None,
    port: Integer | None = None,
    host: str = "127.0.0.1",
    no_browser: Annotated[bool, flag("--no-browser")] = False,
) -> None:
    """Explore runs in the browser: landscapes side by side, reasons, weights, samples; also during training.

    The server answers only requests with the token of the printed address. Ctrl-C ends it.

    Example: `fedscape explore out/demo/runs`

    Args:
        paths: Runs: folder, name in --runs or beginning of a name; a folder of runs stands for all of them, and for
            those that appear in it later. By default all of --runs.
        port: Port to listen on; 0 takes a free one. By default 7333, or a free one if that is taken.
        host: Address to listen on. By default only this machine can connect; with another one, such as 0.0.0.0,
            everybody who can reach it and has the token can connect.
        no_browser: Only print the address; open no browser.
    """
    if port is not None and not 0 <= port < 2**16:
        raise ValueError(f"--port {port} is not a port; give 1 to 65535, or 0 for a free one.")
    _require_tornado()
    texts = paths or [str(runs)]
    folders = [_folder(text, runs, asked=bool(paths)) for text in texts]
    from figures.explore.work.jobs import Jobs

    jobs = Jobs()  # the process of the computations loads what it needs while this one does
    from figures.explore.server import serve

    def opened() -> Workspace:
        from figures.explore.work.workspace import Workspace

        return Workspace(folders, data=data, task=task, jobs=jobs)

    try:
        _, address, wide = serve(opened, port, host, folders if task is None else ())
        from tornado.ioloop import IOLoop

        if wide:
            console.say(
                f"fedscape: LISTENS ON {host}, NOT ON THIS MACHINE ALONE: whoever reaches it and has the token of the "
                "address sees these runs and can compute on them. The connection is not encrypted."
            )
        console.say("exploring; Ctrl-C ends it. Open in a browser:")
        console.put(address)
        sys.stdout.flush()
        if not no_browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        IOLoop.current().start()
    except KeyboardInterrupt:
        console.say("the explorer has ended.")
    finally:
        jobs.close()


def _require_tornado() -> None:
    """See that the extra is there.

    Raises:
        LookupError: If it is not.
    """
    if importlib.util.find_spec("tornado") is None:
        raise LookupError("the explorer needs tornado; pip install 'fedscape[explore]'.")


def _folder(text: str, runs: Path, *, asked: bool) -> Path:
    """The folder of a run, or of runs; an empty one will do, as runs appear in it while they are trained.

    Raises:
        LookupError: If there is no such folder and no such run.
    """
    from drift.runs.run_names import find, run_names

    path = Path(text)
    if path.is_dir() and not (path / "run.json").exists() and not (runs / text / "run.json").exists():
        return path
    if not path.exists() and (not run_names(runs) or len(path.parts) > 1):
        wrong = "there is no such folder and no run of that name" if asked else "there is no such folder"
        raise LookupError(
            f"{text}: {wrong}. Give a folder that contains runs, or the folder of a run. A folder for runs to come may "
            f"be empty: mkdir -p {shlex.quote(text)}. To have some runs: fedscape demo, then "
            "fedscape explore out/demo/runs."
        )
    return find(runs, text)


def _has_screen() -> bool:
    """Whether a browser with a window can open here."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
