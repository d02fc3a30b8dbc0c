"""`import fedscape`: cheap, and not fooled by packages of the same names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def python(code: str, folder: Path, *, home: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """What a script in a folder prints; fedscape comes from `home`."""
    script = folder / "script.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(home)}
    command = [sys.executable, str(script)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_importing_loads_neither_torch_nor_a_drawing_library(tmp_path):
    heavy = "{'torch', 'matplotlib', 'plotly', 'xarray', 'pydantic'}"
    done = python(
        f"import fedscape as fs, sys\nfs.landscape, fs.drift, fs.figures\nprint({heavy} & set(sys.modules))", tmp_path
    )
    assert done.stdout == "set()\n", done.stderr


def test_names_are_those_of_the_packages():
    import drift
    import fedscape as fs
    import landscape

    assert fs.surface is landscape.surface and fs.open is drift.open


def test_an_absent_name_is_told_the_nearest_one_and_the_version_is_there():
    import fedscape as fs

    assert fs.__version__ == version("fedscape") and fs.loss is fs.landscape.loss and fs.Record is fs.landscape.Record
    for package, name, near in (
        (fs, "surfaces", "surface"),
        (fs, "coherence", "drift.coherence"),
        (fs, "contur", "figures.contour"),
        (fs.drift, "coherense", "coherence"),
    ):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'\. Did you mean \w+\.{near}\?"):
            getattr(package, name)
    assert not hasattr(fs, "__wrapped__")


@pytest.mark.parametrize("kind", ["file", "folder", "package"])
def test_a_module_of_the_user_that_hides_a_package_is_named(tmp_path, kind):
    place = tmp_path / "drift.py" if kind == "file" else tmp_path / "drift"
    if kind == "file":
        place.write_text("mine = 1\n")
    else:
        place.mkdir()
        if kind == "package":
            (place / "__init__.py").write_text("")
    done = python("import fedscape as fs\nfs.surface", tmp_path)
    if kind == "folder":  # a folder without __init__.py hides nothing
        assert done.returncode == 0, done.stderr
        return
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: fedscape needs its own package 'drift', and Python finds {place}")
    assert "rename that file or folder" in last


@pytest.mark.parametrize("damage", ["overwritten", "gone"])
def test_a_package_that_another_project_has_overwritten_is_named(tmp_path, damage):
    home = tmp_path / "site"
    for name in ("fedscape", "landscape", "drift", "figures"):
        folder = home / name
        folder.mkdir(parents=True)
        for file in ("__init__.py", "__init__.pyi"):
            shutil.copy(ROOT / name / file, folder)
    shutil.copytree(ROOT / "fedscape", home / "fedscape", dirs_exist_ok=True)
    if damage == "overwritten":
        (home / "figures" / "__init__.py").write_text("def draw(): ...\n")
    else:
        shutil.rmtree(home / "figures")
    about = home / "figures_of_eight-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: figures-of-eight\nVersion: 1.0\n")
    (about / "RECORD").write_text("figures/__init__.py,,\n")
    place = tmp_path / "elsewhere"
    place.mkdir()
    done = python(
        "import sys\nfrom fedscape.command import main\nsys.argv = ['fedscape', 'doctor']\nmain()", place, home=home
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "its own package 'figures'" in done.stderr
    assert "pip install --force-reinstall fedscape" in done.stderr or str(ROOT) in done.stderr
    assert "pip uninstall figures-of-eight" in done.stderr


def test_asking_for_an_underscored_name_imports_nothing():
    code = "import sys, fedscape; print(hasattr(fedscape, '_repr_html_'), 'figures' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout == "False False\n"
