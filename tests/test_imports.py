"""The floors of the house: landscape <- drift <- figures, as contracts of import-linter in pyproject.toml."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("landscape", "drift", "figures")
LINT = "from importlinter.cli import lint_imports as run; raise SystemExit(run(no_cache=True, no_logo=True))"
BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
FEDERATED = {"client", "clients", "federated", "fedavg", "cohort", "cohorts"}


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


SOURCES = [path for package in NAMES for path in sources(package)]
PACKAGES = [".".join(path.parent.relative_to(ROOT).parts) for path in SOURCES if path.name == "__init__.py"]


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(source: str) -> set[str]:
    """Top-level names of all modules that a source imports, wherever in it."""
    found, inside = set(), [ast.parse(source)]
    while inside:
        node = inside.pop()
        inside += [part for part in ast.iter_child_nodes(node) if isinstance(part, BLOCKS)]
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


def test_imports_run_one_way():
    told = subprocess.run(
        [sys.executable, "-c", LINT], cwd=ROOT, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout


def test_every_package_of_rooms_has_a_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    containers = {one["containers"][0] for one in contracts if one.get("exhaustive")}
    assert containers >= set(NAMES) | {"drift.analyses", "figures.explore"}


def test_landscape_knows_nothing_federated():
    texts = {label(path): path.read_text() for path in sources("landscape")}
    assert {path: words(text) & FEDERATED for path, text in texts.items() if words(text) & FEDERATED} == {}
    assert [path for path, text in texts.items() if "fedavg" in text.lower()] == []


def test_the_three_packages_are_seen():
    assert {"landscape", "landscape.models", "drift", "drift.methods", "figures", "figures.gallery"} <= set(PACKAGES)


def test_public_names_exist():
    for package in PACKAGES:
        module = importlib.import_module(package)
        public = getattr(module, "__all__", [])
        assert len(set(public)) == len(public), package
        assert [name for name in public if not hasattr(module, name)] == [], package


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


def test_rooms_are_few():
    rooms = {
        package: [path for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()] for package in NAMES
    }
    assert len(rooms["drift"]) <= 16
    assert len(rooms["landscape"]) <= 12
    assert len(rooms["figures"]) <= 13


def test_a_room_says_what_lives_there():
    rooms = [package for package in PACKAGES if "." in package]
    told = {room: (importlib.import_module(room).__doc__ or "").strip().splitlines() for room in rooms}
    assert [room for room, lines in told.items() if len(lines) < 2] == []


DISTRIBUTIONS = {
    "backports": "backports.zstd",
    "PIL": "pillow",
    "curvlinops": "curvlinops-for-pytorch",
    "IPython": "ipython",
    "mpl_toolkits": "matplotlib",
}
"""Distributions that are not named as the module that they bring."""

LATER = {"compression"}
"""Modules of the standard library of later versions of Python."""

GUESTS = {"flwr"}
"""Modules of programs that call us, which no extra installs."""


def requirements() -> tuple[list[Requirement], list[Requirement]]:
    """What pyproject.toml asks for: always, and by extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    return [Requirement(text) for text in project["dependencies"]], [Requirement(text) for text in extras]


@pytest.mark.seconds
def test_what_is_imported_is_declared():
    always, extras = ({part.name.lower().replace("_", "-") for part in parts} for parts in requirements())
    foreign = {name for path in SOURCES for name in imported(path.read_text())} - set(sys.stdlib_module_names) - LATER
    names = {DISTRIBUTIONS.get(name, name).replace("_", "-") for name in foreign - set(NAMES)}
    assert names - always - extras == GUESTS
    assert {"pandas", "torch", "xarray"} <= always


def test_constraints_are_versions_that_pyproject_accepts():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    versions = {Requirement(line).name.lower().replace("_", "-"): line.partition("==")[2] for line in lines}
    always, extras = requirements()
    wanted = [requirement for requirement in (*always, *extras) if requirement.name != "fedscape"]
    pinned = [(part, versions.get(part.name.lower().replace("_", "-"))) for part in wanted]
    assert [(str(part), version) for part, version in pinned if version and not part.specifier.contains(version)] == []
    assert {part.name for part, version in pinned if version is None} <= {"mypy", "mlflow"}


def test_every_extra_that_a_page_or_message_installs_exists():
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    folders = ("fedscape", *NAMES, "docs", "experiments", "notebooks", "tests", "benchmarks", ".github", ".binder")
    places = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
    files = [path for path in places if path.suffix in {".py", ".md", ".toml", ".yml"} or path.name.endswith("file")]
    told = [found for file in files for found in re.findall(r"(?:fedscape|[\"' ]\.)\[([a-z,]+)\]", file.read_text())]
    assert len(told) > 20
    assert {extra for names in told for extra in names.split(",")} <= extras


def test_libraries_whose_private_parts_are_used_have_an_upper_bound():
    always, extras = requirements()
    bounded = {part.name for part in (*always, *extras) if any(bound.operator == "<" for bound in part.specifier)}
    assert {"torch"} <= bounded
