"""The floors of the house: landscape <- drift <- figures."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
FORBIDDEN = {
    "landscape": {"drift", "figures", "matplotlib", "plotly"},
    "drift": {"figures", "matplotlib", "plotly"},
    "figures": {"notebooks"},
}
FEDERATED = {"client", "clients", "federated", "fedavg", "cohort", "cohorts"}


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


SOURCES = [path for package in FORBIDDEN for path in sources(package)]
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


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_run_one_way(package):
    upward = {label(path): imported(path.read_text()) & FORBIDDEN[package] for path in sources(package)}
    assert {path: names for path, names in upward.items() if names} == {}


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


FLOORS = {
    "landscape": (
        "out_of_memory probe plugins results model models datasets batched_training sweep geometry surfaces "
        "curvature measures spectra"
    ),
    "drift": (
        "plugins partitions store config parallel training methods engines record runs simulation analyses importers "
        "diagnosis claims trackers"
    ),
    "drift.analyses": (
        "over_seeds bootstrap per_round selected_samples evaluate_on cost_estimate rounds landscapes curvature "
        "decomposition counterfactual accuracy samples"
    ),
    "figures": ("looks selection axes papers texts films interactive gallery pictures page explore commands cli"),
    "figures.explore": "work shell plane record views",
}
"""Rooms of a package from the lowest floor to the highest; a room imports rooms below it."""

DOORS = {"drift.method", "drift.recorder", "landscape.task"}
"""Short paths that users import; each is one file that imports its names from a room."""


def arrows(package: str) -> set[tuple[str, str, str]]:
    """(room, imported room, file) of all imports within a package, those for type checkers alone left out."""
    found = set()
    folder = ROOT / package.replace(".", "/")
    for path in sorted(folder.rglob("*.py")):
        inner = path.relative_to(folder).with_suffix("").parts
        if inner == ("__init__",) or f"{package}.{inner[0]}" in DOORS:
            continue
        for module in runtime_imports(path.read_text()):
            if module.startswith(f"{package}."):
                found.add((inner[0], module.removeprefix(f"{package}.").split(".")[0], label(path)))
    return {(room, other, file) for room, other, file in found if room != other}


def runtime_imports(source: str) -> set[str]:
    """Dotted names of all modules, and of what is imported from them, but those under `if TYPE_CHECKING`."""
    tree, found = ast.parse(source), set()
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("package", FLOORS)
def test_rooms_import_rooms_below_them(package):
    floors = FLOORS[package].split()
    folder = ROOT / package.replace(".", "/")
    rooms = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    doors = {door.rpartition(".")[2] for door in DOORS if door.rpartition(".")[0] == package}
    assert rooms - {"__init__", "__pycache__"} - doors == set(floors)
    upward = [
        f"{file} imports {package}.{other}"
        for room, other, file in arrows(package)
        if other in floors and floors.index(other) > floors.index(room)
    ]
    assert not upward, upward


def test_rooms_are_few():
    rooms = {
        package: [path for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()]
        for package in FORBIDDEN
    }
    assert len(rooms["drift"]) <= 16
    assert len(rooms["landscape"]) <= 12
    assert len(rooms["figures"]) <= 13


def test_a_room_says_what_lives_there():
    rooms = [package for package in PACKAGES if "." in package]
    told = {room: (importlib.import_module(room).__doc__ or "").strip().splitlines() for room in rooms}
    assert [room for room, lines in told.items() if len(lines) < 2] == []


DISTRIBUTIONS = {"PIL": "pillow", "curvlinops": "curvlinops-for-pytorch", "mpl_toolkits": "matplotlib"}
"""Distributions that are not named as the module that they bring."""

GUESTS = {"flwr"}
"""Modules of programs that call us, which no extra installs."""


def requirements() -> tuple[list[Requirement], list[Requirement]]:
    """What pyproject.toml asks for: always, and by extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [text for texts in project["optional-dependencies"].values() for text in texts]
    return [Requirement(text) for text in project["dependencies"]], [Requirement(text) for text in extras]


def test_what_is_imported_is_declared():
    always, extras = ({part.name.lower().replace("_", "-") for part in parts} for parts in requirements())
    foreign = {name for path in SOURCES for name in imported(path.read_text())} - set(sys.stdlib_module_names)
    names = {DISTRIBUTIONS.get(name, name).replace("_", "-") for name in foreign - set(FORBIDDEN)}
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
    folders = ("fedscape", *FORBIDDEN, "docs", "experiments", "notebooks", "tests", "benchmarks", ".github", ".binder")
    places = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
    files = [path for path in places if path.suffix in {".py", ".md", ".toml", ".yml"} or path.name.endswith("file")]
    told = [found for file in files for found in re.findall(r"(?:fedscape|[\"' ]\.)\[([a-z,]+)\]", file.read_text())]
    assert len(told) > 20
    assert {extra for names in told for extra in names.split(",")} <= extras


def test_libraries_whose_private_parts_are_used_have_an_upper_bound():
    always, extras = requirements()
    bounded = {part.name for part in (*always, *extras) if any(bound.operator == "<" for bound in part.specifier)}
    assert {"torch", "panel", "bokeh"} <= bounded
