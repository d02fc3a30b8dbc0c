"""fedscape list, fedscape doctor."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Literal

from figures import console
from figures.commands.options import Data, Json

Kind = Literal["methods", "models", "datasets", "partitions", "experiments", "analyses"]

PACKAGES = {
    "methods": "drift.methods",
    "models": "landscape.models",
    "datasets": "landscape.datasets",
    "partitions": "drift.partitions",
}


def list_(kind: Kind, /, *, json: Json = False) -> None:
    """List what there is to choose from: one line each, with its source.

    Args:
        kind: What to list.
    """
    rows = _analyses() if kind == "analyses" else _experiments() if kind == "experiments" else _plugins(PACKAGES[kind])
    columns = [key for key in ("name", "description", "source", "options") if any(key in row for row in rows)]
    console.table(rows, dict(zip(columns, columns, strict=True)), json=json)


def doctor(*, data: Data = None, json: Json = False) -> int:
    """Look at this machine: versions, cores, memory, data, and what to do about each trap found."""
    from figures.doctor import examine

    found = examine(data)
    if json:
        console.put_json([vars(one) for one in found])
    else:
        console.pairs({one.name: one.value for one in found})
        console.put("")
        for one in found:
            if one.advice:
                console.put(f"{one.name}: {one.advice}")
        console.put("" if any(one.advice for one in found) else "no trap found.")
    return 2 if any(one.broken for one in found) else 0


def _plugins(package: str) -> list[dict[str, str]]:
    """Plug-ins with their first docstring line and, where they state it apart from that, their source."""
    from landscape import plugins

    rows = []
    for name in plugins.names(package):
        rows.append({"name": name, "description": plugins.describe(package, name)})
        if source := plugins.source(package, name):
            rows[-1]["source"] = plugins.sentence(source)
    return rows


def _experiments() -> list[dict[str, str]]:
    """Presets with the first sentence of the comment that each file begins with."""
    from landscape.plugins import sentence

    here = Path(__file__).resolve().parents[2]
    paths = [path for place in ("drift/presets", "experiments") for path in sorted((here / place).glob("*.toml"))]
    found = {path.stem: path for path in paths}
    return [{"name": name, "description": sentence(_comment(path)), "file": str(path)} for name, path in found.items()]


def _comment(path: Path) -> str:
    """Comment at the top of a file up to the first command in it, as one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    told = takewhile(lambda line: line.startswith("# ") and not line.startswith("#  "), lines)
    return " ".join(line.lstrip("# ") for line in told)


def _analyses() -> list[dict[str, str]]:
    from figures.commands.analyse import analyses

    return [
        {"name": one.name, "description": one.description, "options": ", ".join(one.options), "module": one.module}
        for one in analyses().values()
    ]
