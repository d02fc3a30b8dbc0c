"""Writes the stub of `drift`, in which every registered analysis is a public name: python -m drift.runs.public_stub."""

import ast
from pathlib import Path

import drift
from drift.runs.registry import registered

STUB = Path(str(drift.__file__)).with_suffix(".pyi")


def with_analyses(text: str) -> str:
    """A stub with a line per registered analysis; names of it that are no analyses stay."""
    analyses = registered()
    names = {(entry.module, entry.name) for entry in analyses.values()}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            names |= {(str(node.module), alias.name) for alias in node.names if alias.name not in analyses}
    head, _, last = text.split("\n\n")
    lines = [f"from {module} import {name} as {name}" for module, name in sorted(names)]
    return "\n\n".join((head, "\n".join(lines), last))


if __name__ == "__main__":
    STUB.write_text(with_analyses(STUB.read_text(encoding="utf-8")), encoding="utf-8")
