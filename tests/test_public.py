"""Public names are visible: to the interpreter, to a type checker and to an editor's completion."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("fedscape", "landscape", "drift", "figures")

SCRIPT = """import drift
import figures
import landscape

run = drift.open("runs/one")
reveal_type(run)
reveal_type(run.round(-1).end)
reveal_type(drift.coherence(run))
reveal_type(landscape.top_eigenvalues)
reveal_type(figures.contour)
drift.coherense
"""


def stub_names(package: str) -> dict[str, str]:
    """Module of each public name, as the stub states it."""
    tree = ast.parse((ROOT / package / "__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.name: getattr(node, "module", "") or "" for node in imports for alias in node.names}


@pytest.mark.parametrize("package", PACKAGES)
def test_stub_and_package_have_the_same_names(package):
    module, names = importlib.import_module(package), stub_names(package)
    assert sorted(names) == module.__all__
    assert set(names) <= set(dir(module))
    for name, source in names.items():
        imported = getattr(importlib.import_module(source), name) if source else importlib.import_module(name)
        assert getattr(module, name) is imported, name
    assert (ROOT / package / "py.typed").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_type_checker_takes_names_from_the_stub_alone(package):
    """`make lint` checks that its imports are right; a name that it lacks is refused where it states all names."""
    body = ast.parse((ROOT / package / "__init__.pyi").read_text()).body
    assert all(isinstance(node, ast.Import | ast.ImportFrom | ast.AnnAssign) for node in body), "no __getattr__"
    aliases = [alias for node in body if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    assert aliases and all(alias.asname == alias.name for alias in aliases), "a stub exports what is imported as itself"


@pytest.mark.slow  # minutes without a cache; test_a_type_checker_takes_names_from_the_stub_alone and make lint
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_type_checker_sees_public_names_in_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]  # as lint: shares its cache
    told = subprocess.run([*command, str(script)], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    shown = [line.partition('Revealed type is "')[2] for line in told.splitlines() if "Revealed" in line]
    assert shown[0].rstrip('"').endswith(".Run")
    assert "Tensor" in shown[1]
    assert "Dataset" in shown[2]
    assert all(line.startswith("def (") for line in shown[3:])
    assert 'has no attribute "coherense"' in told


@pytest.mark.skipif(importlib.util.find_spec("jedi") is None, reason="jedi is not installed")
@pytest.mark.parametrize("package", PACKAGES)
def test_an_editor_completes_public_names(package):
    import jedi

    script = f"import {package}\n{package}."
    project = jedi.Project(str(ROOT))
    shown = {name.name for name in jedi.Script(script, project=project).complete(2, len(package) + 1)}
    assert set(stub_names(package)) <= shown
