"""fedscape list, fedscape doctor."""

import re
from itertools import takewhile
from pathlib import Path
from typing import Literal

from figures.commands.options import Data, Json
from figures.texts import console

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

_BRACKETS = re.compile(r"(?P<text>.*?),? \((?P<source>[^()]*(?:\([^()]*\)[^()]*)*)\)\.")
"""A description that ends with its source."""

_WHERE = r"(?:section|Tables?|Figs?\.|Appendix) [A-Z\d][\w-]*(?:(?:, | and | to )(?:\d[\w-]*|[IVX]+\b))*"
_PAPER = re.compile(rf"\b(?:IMA|FedLAW|LSS|FedEve)(?: paper)?, {_WHERE}(?:(?:, | and ){_WHERE})*|\b\w+ paper\b(?=[:,])")
"""One of the papers, with sections, tables and figures where they follow."""


def list_(kind: Kind, /, *, json: Json = False) -> None:
    """List the available methods, models, datasets and so on: one line each, with its source.

    Example: `fedscape list methods`

    Args:
        kind: Which names to list.
    """
    listings = {"analyses": _analyses, "experiments": _experiments, "papers": _papers}
    rows = listings[kind]() if kind in listings else _plugins(PACKAGES[kind])
    columns = [key for key in ("name", "description", UNLIKE, "source", "options") if any(key in row for row in rows)]
    console.table(rows, dict(zip(columns, columns, strict=True)), json=json)


def doctor(*, data: Data = None, json: Json = False) -> int:
    """Check this machine: versions, cores, memory, data, and how to solve each problem.

    Exit code 2 if fedscape cannot work here.

    Example: `fedscape doctor`
    """
    from figures.commands.doctor import examine

    findings = examine(data)
    if json:
        console.put_json([vars(finding) for finding in findings])
    else:
        console.pairs({finding.name: finding.value for finding in findings})
        console.put("")
        for finding in findings:
            if finding.advice:
                console.put(f"{finding.name}: {finding.advice}")
        console.put("" if any(finding.advice for finding in findings) else "no trap found.")
    return 2 if any(finding.broken for finding in findings) else 0


def offered(package: str) -> list[dict[str, str]]:
    """Plug-ins that installed packages offer as entry points; nothing is imported."""
    from landscape.plugins.outside import entry_points

    return [{"name": name, "description": f"Entry point: {code}."} for name, code in entry_points(package).items()]


def _plugins(package: str) -> list[dict[str, str]]:
    """Plug-ins with their first docstring line and their source, which that line may end with in brackets."""
    from landscape import plugins

    rows = []
    for name in plugins.names(package):
        description, source = plugins.describe(package, name), plugins.source(package, name)
        if not source and (match := _BRACKETS.fullmatch(description)):
            description, source = f"{match['text']}.", match["source"]
        unlike = plugins.paragraph(package, name, f"{UNLIKE.capitalize()}:")
        row = {"name": name, "description": description, UNLIKE: unlike, "source": source and plugins.sentence(source)}
        rows.append({key: value for key, value in row.items() if value})
    return rows + offered(package)


def _experiments() -> list[dict[str, str]]:
    """Presets with the first sentence of the comment that each file begins with, and the paper that it names."""
    from drift.config.shipped import presets
    from landscape.plugins import sentence

    paths = list(presets().values())
    comments = {path.stem: _comment(path) for path in paths}
    return [
        {
            "name": path.stem,
            "description": sentence(comments[path.stem]),
            "source": _paper(comments[path.stem])
            or _paper(comments.get(path.stem.removesuffix("-quick"), ""))
            or _OURS,
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
    match = _PAPER.search(comment)
    return "" if match is None else f"{match[0].rstrip('.')}."


def _comment(path: Path) -> str:
    """Comment at the top of a file up to the first command in it, as one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = takewhile(lambda line: line.startswith("# ") and not line.startswith("#  "), lines)
    return " ".join(line.lstrip("# ") for line in comment)


def _analyses() -> list[dict[str, str]]:
    from drift.runs.registry import registered

    return [
        {
            "name": analysis.name,
            "description": analysis.description,
            "options": ", ".join(analysis.options),
            "dimensions": ", ".join(analysis.dims),
            "cost": analysis.cost,
            "module": analysis.module,
        }
        for analysis in registered().values()
    ] + offered("drift.analyses")
