"""Habits of work: hooks and `make lint` check the same, and public functions document every argument."""

from __future__ import annotations

import ast
import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import warm
import yaml

import drift
import figures
import landscape

ROOT = Path(__file__).resolve().parents[1]


def test_processes_of_tests_begin_with_modules_that_there_are():
    """The process that they are forked from leaves out, without a word, what it cannot import."""
    assert [name for name in warm.IMPORTED if find_spec(name) is None] == []


def test_hooks_check_what_make_lint_checks():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    linted = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == linted


WORDS = {
    *("place", "part", "own", "whole"),
    *("found", "held", "kept", "given", "chosen", "made", "drawn", "said", "told"),
    *("apart", "beside", "together", "everyone", "each", "one", "of"),
}
"""Words that are no names: they say nothing about what a variable holds or a function does."""

NOUNS = ("place", "part", "own", "whole")
"""Words that end no name either, as in `mark_place` and `LayerPart`; `placeholder` and `own_task` are names."""

IN_PLACE = {"in_place", "IN_PLACE"}
"""The adverb, which is no noun."""

PUBLIC = {
    ("drift/runs/described_run.py", "kept"),
    ("drift/store/round_record.py", "kept"),
    ("drift/claims/campaign/records.py", "kept"),  # as Run.kept, which it stands in for
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


def is_poor(name: str) -> bool:
    """Whether a name is one of WORDS, in any case, or ends in one of NOUNS."""
    last = re.findall("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)[-1:]
    return name not in IN_PLACE and (name.strip("_").lower() in WORDS or "".join(last).lower() in NOUNS)


@pytest.mark.parametrize("package", ["landscape", "drift", "figures", "fedscape"])
def test_names_say_what_they_are(package):
    files = sorted((ROOT / package).rglob("*.py"))
    poor = {(str(path.relative_to(ROOT)), name) for path in files for name in names(path) if is_poor(name)}
    assert poor <= PUBLIC, sorted(poor - PUBLIC)


def test_poor_names_are_seen_and_compounds_are_not():
    assert all(map(is_poor, ("_place", "PLACE", "mark_place", "LayerPart", "has_own", "is_whole", "kept", "One")))
    assert not any(map(is_poor, ("placeholder", "own_task", "whole_products", "in_place", "partition", "_", "")))


SAME = {"Partition": "drift/partitions", "Files": "drift/trackers"}
"""Classes that each plug-in of a folder has under this name, by which it is found."""


def test_a_class_has_its_name_alone():
    """So that a search for a name has one answer."""
    where: dict[str, list[str]] = {}
    for package in ("landscape", "drift", "figures", "fedscape"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and SAME.get(node.name) != str(path.parent.relative_to(ROOT)):
                    where.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


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


DOCUMENTED = {
    *("_replace", "_asdict", "_fields"),  # of named tuples
    "_exit",  # of os
    "_keys_to_ignore_on_load_unexpected",  # of models of transformers
    "_repr_mimebundle_",  # of IPython
    *("_esm", "_handle_msg", "_send_msg"),  # of Panel's components
}
"""Names with an underscore that their libraries document for users."""

OPERATIONS = {f"torch.ops.{part}" for part in ("aten", "mkldnn", "prims", "prim")}
"""Parts of `torch.ops`, none of which is public."""


def private_names(path: Path, own: set[str]) -> set[str]:
    """Private parts of other libraries that a file uses outside of functions that `probed` decorates."""
    used: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(by, ast.Call) and isinstance(by.func, ast.Name) and by.func.id == "probed"
            for by in node.decorator_list
        ):
            return
        if isinstance(node, ast.Attribute):
            foreign = _dotted(node).partition(".")[0] in imported and not node.attr.startswith("__")
            if node.attr.startswith("_") and not node.attr.startswith("__") and (foreign or node.attr not in own):
                used.add(node.attr)
            if _dotted(node.value) in OPERATIONS:
                used.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] not in PACKAGES:
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            used.update(part for part in parts if part.startswith("_") and not part.startswith("__"))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFLECTION:
            name = node.args[1].values[0] if isinstance(node.args[1], ast.JoinedStr) else node.args[1]
            if isinstance(name, ast.Constant) and re.match("_[^_]", str(name.value)) and name.value not in own:
                used.add(str(name.value))
        elif isinstance(node, ast.AnnAssign | ast.arg | ast.FunctionDef):
            skipped = [node.annotation] if not isinstance(node, ast.FunctionDef) else [node.returns]
            for child in ast.iter_child_nodes(node):
                if child not in skipped:
                    visit(child)
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module)
        for alias in node.names
        if not (isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES)
        and alias.name.split(".")[0] not in PACKAGES
    }
    visit(tree)
    return used - DOCUMENTED


PACKAGES = ("landscape", "drift", "figures", "__future__")
REFLECTION = {"getattr", "hasattr", "setattr", "delattr"}


def _dotted(node: ast.expr) -> str:
    """A name with its attributes, as in a.b.c; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return before and f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _bound_names(paths: list[Path]) -> set[str]:
    """Names of functions, classes, variables and attributes that files define."""
    bound = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                bound.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                bound.add(node.attr)
    return bound


@pytest.mark.seconds
def test_private_parts_of_other_libraries_are_used_behind_the_probe_only():
    paths = sorted(path for package in PACKAGES[:3] for path in (ROOT / package).rglob("*.py"))
    own = _bound_names(paths)
    used = {(str(path.relative_to(ROOT)), name) for path in paths for name in private_names(path, own)}
    assert not used, sorted(used)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch._fused_sgd_([])", {"_fused_sgd_"}),
        ("import torch\nx = torch.ops.aten.threshold_backward(a, b, 0)", {"threshold_backward"}),
        ("import torch\nx = torch.ops.mkldnn._linear_pointwise.binary(a)", {"_linear_pointwise"}),
        ("from torch.utils._pytree import tree_leaves", {"_pytree"}),
        ("from torch.nn.modules.batchnorm import _NormBase", {"_NormBase"}),
        ("def f(layer):\n    return layer._forward_hooks", {"_forward_hooks"}),
        ("x = getattr(layer, '_buffers', {})", {"_buffers"}),
        ("x = any(getattr(cpu, f'_is_{name}') for name in names)", {"_is_"}),
        ("import hashlib\ndef f(x: hashlib._Hash) -> hashlib._Hash:\n    y: hashlib._Hash = x\n    return y", set()),
        ("x = self._own + cls._own(1)", set()),
        ("import os\nos._exit(0)", set()),
        ("@probed(public)\ndef f(x):\n    return x._version", set()),
    ],
)
def test_private_parts_are_seen(tmp_path, source, expected):
    (tmp_path / "file.py").write_text(source)
    assert private_names(tmp_path / "file.py", {"_own"}) == expected
