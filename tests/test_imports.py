"""The floors of the house: landscape <- drift <- figures."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FORBIDDEN = {
    "landscape": {"drift", "figures", "matplotlib", "plotly"},
    "drift": {"figures", "matplotlib", "plotly"},
    "figures": {"notebooks"},
}
FEDERATED = {"client", "clients", "federated", "fedavg", "cohort", "cohorts"}
SOURCES = [path for package in FORBIDDEN for path in sorted((ROOT / package).rglob("*.py"))]
PACKAGES = [".".join(path.parent.relative_to(ROOT).parts) for path in SOURCES if path.name == "__init__.py"]


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(source: str) -> set[str]:
    """Top-level names of all modules that a source imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


def words(source: str) -> set[str]:
    """Lower-case words of a source, identifiers taken apart."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", source)}


def test_imports_are_found_wherever_they_stand():
    source = "import a.b as c\nfrom d.e import f\ndef g():\n    import h\nif TYPE_CHECKING:\n    from i import j\n"
    assert imported(source) == {"a", "d", "h", "i"}
    assert words("clientModel per_client FedAvg(x)") == {"client", "model", "per", "fed", "avg", "x"}


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_imports_run_one_way(path):
    assert not imported(path.read_text()) & FORBIDDEN[path.relative_to(ROOT).parts[0]]


@pytest.mark.parametrize("path", sorted((ROOT / "landscape").rglob("*.py")), ids=label)
def test_landscape_knows_nothing_federated(path):
    source = path.read_text()
    assert not words(source) & FEDERATED
    assert "fedavg" not in source.lower()


def test_the_three_packages_are_seen():
    assert {"landscape", "landscape.models", "drift", "drift.methods", "figures", "figures.gallery"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_exist(package):
    module = importlib.import_module(package)
    public = getattr(module, "__all__", [])
    assert len(set(public)) == len(public)
    assert [name for name in public if not hasattr(module, name)] == []


def test_help_does_not_import_torch():
    code = (
        "import sys\n"
        "from figures.cli import main\n"
        "sys.argv = ['fedscape', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as stop:\n"
        "    assert not stop.code, stop.code\n"
        "print('loaded:', sorted({'torch', 'matplotlib', 'plotly'} & set(sys.modules)))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert "demo" in told.stdout
    assert told.stdout.splitlines()[-1] == "loaded: []"
