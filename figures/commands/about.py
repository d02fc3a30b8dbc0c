"""fedscape list, fedscape doctor."""

from __future__ import annotations

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
    """List what there is to choose from.

    Args:
        kind: What to list.
    """
    rows = _analyses() if kind == "analyses" else _experiments() if kind == "experiments" else _plugins(PACKAGES[kind])
    columns = {"name": "name", "description": "description", "options": "options"}
    console.table(rows, {key: columns[key] for key in columns if any(key in row for row in rows)}, json=json)


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
    from landscape import plugins

    return [{"name": name, "description": plugins.describe(package, name)} for name in plugins.names(package)]


def _experiments() -> list[dict[str, str]]:
    """Presets with the first comment line of each file."""
    here = Path(__file__).resolve().parents[2]
    paths = [path for place in ("drift/presets", "experiments") for path in sorted((here / place).glob("*.toml"))]
    found = {path.stem: path for path in paths}
    return [
        {"name": name, "description": path.read_text().partition("\n")[0].lstrip("# "), "file": str(path)}
        for name, path in found.items()
    ]


def _analyses() -> list[dict[str, str]]:
    from figures.commands.analyse import analyses

    return [
        {"name": one.name, "description": one.description, "options": ", ".join(one.options), "module": one.module}
        for one in analyses().values()
    ]
