"""fedscape new: a plug-in of your own, with its test, to start from."""

import importlib.util
import keyword
from pathlib import Path
from typing import Literal

import drift
import figures
import landscape
from figures.texts import console

Kind = Literal["method", "partition", "dataset", "model", "figure", "analysis"]

TEMPLATES = Path(__file__).parent / "templates"
"""A plug-in of each kind that works as it stands, and its test; NAME, CLASS and FILE stand for its names."""

COMMANDS = {
    "method": "fedscape compare digits-shards2 --methods fedavg FILE:CLASS --seeds 8 --set rounds=3",
    "partition": "fedscape train digits-shards2 --set clients.partition=FILE:CLASS rounds=3",
    "dataset": (
        "fedscape train digits-shards2 --set task.dataset=FILE:CLASS task.model=linear clients.number=5 rounds=3"
    ),
    "model": "fedscape train digits-shards2 --set task.model=FILE:CLASS rounds=3",
    "figure": "fedscape figures draw FILE:CLASS runs",
    "analysis": "fedscape analyse FILE:NAME RUN",
}
"""A command that uses it."""


def new(kind: Kind, name: str, /, *, folder: Path = Path()) -> None:
    """Write a plug-in of your own and its test: working files for you to change.

    The last line of the output shows how to use the plug-in. Existing files are never replaced.

    Example: `fedscape new method fedhalf`

    Args:
        kind: method, partition, dataset, model, figure or analysis.
        name: Name of the file, without .py.
        folder: Folder of both files.
    """
    plain = name.replace("-", "_").lower()
    if not plain.isidentifier() or keyword.iskeyword(plain) or plain.startswith("_"):
        raise ValueError(f"{name!r} is not a name for a Python file; use letters, digits and underscores: fed_half.")
    title = "".join(word.capitalize() for word in plain.split("_"))
    paths = folder / f"{plain}.py", folder / f"test_{plain}.py"
    if present := [path for path in paths if path.exists()]:
        raise ValueError(f"{present[0]} exists already and is not replaced; choose another name or --folder.")
    if not folder.is_dir():
        raise LookupError(f"there is no folder {folder}; create it first.")
    packages = {Path(str(package.__file__)).parent for package in (landscape, drift, figures)}
    if packages & {folder.resolve(), *folder.resolve().parents}:
        raise ValueError(
            f"{folder} belongs to fedscape; choose a --folder of your own, or follow CONTRIBUTING.md to add a plug-in "
            "to fedscape."
        )

    def filled(text: str) -> str:
        return text.replace("NAME", plain).replace("CLASS", title).replace("FILE", str(paths[0]))

    for path, template in zip(paths, (f"{kind}.txt", f"test_{kind}.txt"), strict=True):
        path.write_text(filled((TEMPLATES / template).read_text(encoding="utf-8")), encoding="utf-8")
        console.put(str(path))
    needed = "" if importlib.util.find_spec("pytest") else "  (pip install pytest)"
    console.say(f"Next: python -m pytest {paths[1]}{needed}\n      {filled(COMMANDS[kind])}")
