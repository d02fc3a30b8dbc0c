"""Examples in docstrings, code that is indented below the first line, run on a tiny run."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

import blocks
import pytest
import tiny
import torch
from matplotlib import pyplot

import drift
import figures
import landscape

PACKAGES = (landscape, drift, figures)

NOT_RUN = {
    "figures.film_round": "a minute; tests/figures/films/test_round_film.py",
    "landscape.surface": "needs three files; tests/test_readme.py",
    "landscape.products": "needs adapters; tests/landscape/model/test_products.py",
    "drift.record_products": "needs adapters; tests/reference/test_adapters.py",
    "figures.film": "seconds; tests/figures/films/test_film.py",
}


def example(public: Any) -> str:
    """Code below the first lines of a docstring; empty where there is none."""
    _, _, rest = (inspect.getdoc(public) or "").partition("\n\n")
    code = re.match(r"(?: {4}.*\n|\n(?= {4}))+", rest + "\n")
    return textwrap.dedent(code[0]) if code else ""


def examples() -> dict[str, str]:
    """Examples of public names that need no more than a run, its task and three models."""
    names = {f"{package.__name__}.{name}": getattr(package, name) for package in PACKAGES for name in package.__all__}
    return {name: code for name, public in names.items() if (code := example(public)) and _is_python(code)}


def _is_python(code: str) -> bool:
    try:
        names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    except SyntaxError:
        return False  # a formula
    known = {"run", "runs", "task", "model", "a", "b", "c", "torch", "print", "float", "landscape", "drift", "figures"}
    set_here = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names} <= known | set_here


EXAMPLES = examples()


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """The folder of a run whose clients and global models are stored."""
    folder = tmp_path_factory.mktemp("runs")
    run = tiny.trained(folder, "rounds=6", "keep.clients=all", "keep.globals=all")
    return run.folder.rename(folder / "mine")


def test_the_most_used_names_have_an_example():
    assert set(NOT_RUN) <= set(EXAMPLES) and len(EXAMPLES) >= 35
    shown = {"drift.simulate", "drift.open", "drift.round_plane", "drift.compare", "landscape.hessian"}
    assert {*shown, "landscape.plane", "figures.draw"} <= set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - set(NOT_RUN)))
def test_an_example_of_a_docstring_runs(name, mine, tmp_path, monkeypatch):
    blocks.prepare(tmp_path, monkeypatch)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine").symlink_to(mine)
    run = drift.open(mine)
    last = run.round(-1)
    names: dict[str, Any] = {"run": run, "runs": [run], "task": run.task, "model": last.end, "torch": torch}
    names |= dict(zip("abc", last.clients, strict=True)) | {package.__name__: package for package in PACKAGES}
    exec(EXAMPLES[name], names)
    pyplot.close("all")
