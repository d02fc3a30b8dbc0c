"""fedscape list, fedscape doctor."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import Literal

from figures import console
from figures.commands.options import Data, Json

Kind = Literal["methods", "models", "datasets", "partitions", "experiments", "analyses", "papers"]

PACKAGES = {
    "methods": "drift.methods",
    "models": "landscape.models",
    "datasets": "landscape.datasets",
    "partitions": "drift.partitions",
}

_OURS = "this project."

UNLIKE = "unlike the paper"
"""Where a default is not what a reader of the paper expects."""

_BRACKETS = re.compile(r"(?P<told>.*?),? \((?P<source>[^()]*(?:\([^()]*\)[^()]*)*)\)\.")
"""A description that ends with its source."""

_PLACE = r"(?:section|Tables?|Figs?\.|Appendix) [A-Z\d][\w-]*(?:(?:, | and | to )(?:\d[\w-]*|[IVX]+\b))*"
_PAPER = re.compile(rf"\b(?:IMA|FedLAW|LSS|FedEve)(?: paper)?, {_PLACE}(?:(?:, | and ){_PLACE})*|\b\w+ paper\b(?=[:,])")
"""One of the papers, with sections, tables and figures where they follow."""


def list_(kind: Kind, /, *, json: Json = False) -> None:
    """List the methods, models, datasets and so on that there are: one line each, with its source.

    Example: `fedscape list methods`

    Args:
        kind: Which names to list.
    """
    own = {"analyses": _analyses, "experiments": _experiments, "papers": _papers}
    rows = own[kind]() if kind in own else _plugins(PACKAGES[kind])
    columns = [key for key in ("name", "description", UNLIKE, "source", "options") if any(key in row for row in rows)]
    console.table(rows, dict(zip(columns, columns, strict=True)), json=json)


def doctor(*, data: Data = None, json: Json = False) -> int:
    """Check this machine: versions, cores, memory, data, and what to do about each problem.

    Exit code 2 if fedscape cannot work here.

    Example: `fedscape doctor`
    """
    from figures.commands.doctor import examine

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


def offered(package: str) -> list[dict[str, str]]:
    """What installed packages offer as entry points; nothing is imported."""
    from landscape.outside import entry_points

    return [{"name": name, "description": f"Entry point: {code}."} for name, code in entry_points(package).items()]


def _plugins(package: str) -> list[dict[str, str]]:
    """Plug-ins with their first docstring line and their source, which that line may end with in brackets."""
    from landscape import plugins

    rows = []
    for name in plugins.names(package):
        told, source = plugins.describe(package, name), plugins.source(package, name)
        if not source and (found := _BRACKETS.fullmatch(told)):
            told, source = f"{found['told']}.", found["source"]
        unlike = plugins.paragraph(package, name, f"{UNLIKE.capitalize()}:")
        row = {"name": name, "description": told, UNLIKE: unlike, "source": source and plugins.sentence(source)}
        rows.append({key: value for key, value in row.items() if value})
    return rows + offered(package)


def _experiments() -> list[dict[str, str]]:
    """Presets with the first sentence of the comment that each file begins with, and the paper that it names."""
    from drift.config.shipped import presets
    from landscape.plugins import sentence

    paths = list(presets().values())
    told = {path.stem: _comment(path) for path in paths}
    return [
        {
            "name": path.stem,
            "description": sentence(told[path.stem]),
            "source": _paper(told[path.stem]) or _paper(told.get(path.stem.removesuffix("-quick"), "")) or _OURS,
            "file": str(path),
        }
        for path in paths
    ]


def _papers() -> list[dict[str, str]]:
    """The papers whose figures, tables and claims are known."""
    from figures.papers.catalogue import load, names

    return [
        {"name": name, "description": load(name).title, "source": f"Its items: fedscape figures list --paper {name}."}
        for name in names()
    ]


def _paper(comment: str) -> str:
    """The first mention of one of the four papers with the place in it, as one sentence; empty where there is none."""
    found = _PAPER.search(comment)
    return "" if found is None else f"{found[0].rstrip('.')}."


def _comment(path: Path) -> str:
    """Comment at the top of a file up to the first command in it, as one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    told = takewhile(lambda line: line.startswith("# ") and not line.startswith("#  "), lines)
    return " ".join(line.lstrip("# ") for line in told)


def _analyses() -> list[dict[str, str]]:
    from figures.commands.analyse import analyses

    return [
        {
            "name": one.name,
            "description": one.description,
            "options": ", ".join(one.options),
            "dimensions": ", ".join(one.dims),
            "cost": one.cost,
            "module": one.module,
        }
        for one in analyses().values()
    ]
