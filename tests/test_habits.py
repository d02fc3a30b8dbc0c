"""Habits of work: hooks and `make lint` check the same, and public functions document every argument."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
import yaml

import drift
import figures
import landscape

ROOT = Path(__file__).resolve().parents[1]


def test_hooks_check_what_make_lint_checks():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    linted = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == linted


WORDS = {
    *("found", "held", "kept", "given", "chosen", "made", "drawn", "said", "told"),
    *("apart", "beside", "together", "everyone", "each", "one", "of"),
}
"""Words that are no names: they say nothing about what a variable holds or a function does."""

PUBLIC = {
    ("drift/runs/run_files.py", "kept"),
    ("drift/store/round_record.py", "kept"),
    ("drift/claims/campaign/records.py", "kept"),  # as Run.kept, which it stands in for
    ("drift/diagnosis/outlying_clients.py", "apart"),
    ("drift/partitions/long_tail.py", "kept"),  # an option of the partition
    ("landscape/model/make_task.py", "made"),
    ("landscape/model/layout.py", "of"),
    ("drift/record/flat_arrays.py", "of"),
}
"""Names that users call by; they stay, as a better one would not be worth a change of every script."""

RECORDED = {"told", "held", "beside"}
"""Parameters of public functions and of hooks, by which users call them too."""


def names(path: Path) -> set[str]:
    """Names that a file gives to variables, parameters, functions and classes, and its own."""
    bound = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound |= {node.arg} - RECORDED
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
    return bound


@pytest.mark.parametrize("package", ["landscape", "drift", "figures"])
def test_names_say_what_they_are(package):
    files = sorted((ROOT / package).rglob("*.py"))
    poor = {(str(path.relative_to(ROOT)), name) for path in files for name in names(path) if name.strip("_") in WORDS}
    assert poor <= PUBLIC, sorted(poor - PUBLIC)


@pytest.mark.parametrize("package", [landscape, drift, figures], ids=lambda package: package.__name__)
def test_public_functions_document_every_argument(package):
    undocumented = []
    for name in package.__all__:
        function = getattr(package, name)
        if not inspect.isfunction(function):
            continue
        section = re.search(r"Args:\n(.*?)(\n\n\w|\Z)", inspect.getdoc(function) or "", re.DOTALL)
        text = section[1] if section else ""
        for argument in inspect.signature(function).parameters:
            if argument != "partial" and not re.search(rf"(^|[\s,*]){argument}\b[^:\n]*:", text):
                undocumented.append(f"{package.__name__}.{name}: {argument}")
    assert undocumented == []
