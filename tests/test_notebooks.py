"""Every notebook runs from top to bottom on its tiny settings, and is what its text says."""

import ast
import importlib
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest
from public_calls import wrong_calls

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
TEXTS = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.py"))
NAMES = [path.stem for path in TEXTS]
PATHS = ("drift.methods", "figures.gallery")
"""Packages that notebooks add folders of their own to."""


def cells(path):
    """Kind and source of every cell of a text in the percent format, with the number of its first line."""
    lines, found = path.read_text(encoding="utf-8").splitlines(), []
    for number, line in enumerate(lines, start=1):
        if line.startswith("# %%"):
            found.append(("markdown" if "[markdown]" in line else "code", number + 1, []))
        elif found:
            found[-1][2].append(line)
    return [(kind, number, "\n".join(part)) for kind, number, part in found]


def run(path, names):
    """Execute the code cells; what stands last in a cell, as Jupyter would show it."""
    shown = []
    for kind, number, source in cells(path):
        if kind == "markdown":
            continue
        tree = ast.parse(source, filename=str(path))
        ast.increment_lineno(tree, number - 1)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
            shown.append(value)
            assert getattr(value, "_repr_mimebundle_", dict)() is not None
    return shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all, so that runs which several notebooks train are trained once."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture
def desk(folder, monkeypatch):
    """Work in that folder, with nothing shown in a window, and nothing left of what a notebook imported or added."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(plt, "show", lambda *given, **options: plt.close("all"))
    monkeypatch.setenv("FEDSCAPE_TRUST", os.environ.get("FEDSCAPE_TRUST", ""))
    before, places = set(sys.modules), {name: list(importlib.import_module(name).__path__) for name in PATHS}
    yield folder
    plt.close("all")
    for name, place in places.items():
        sys.modules[name].__path__[:] = place
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            package, _, last = name.rpartition(".")
            vars(sys.modules.get(package, sys)).pop(last, None)
            del sys.modules[name]


LATER = ("01", "02", "03", "04", "06", "07")
"""Notebooks that run in `make test ARGS='-m ""'` alone: their parts are in tests of first runs, planes, analyses,
diagnosis, methods, papers and looks, and test_a_notebook_calls_what_there_is looks at their calls."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) if path.name.startswith(LATER) else path for path in TEXTS],
    ids=NAMES,
)
def test_a_notebook_runs_from_top_to_bottom_and_ends_with_an_explorer(path, desk):
    pytest.importorskip("anywidget", reason="no anywidget here; pip install 'fedscape[notebook]'")
    from figures.explore.notebook_cell import Explorer

    last = run(path, {"__name__": "__main__"})[-1]
    assert isinstance(last, Explorer)
    try:
        assert last.show(view="relief", round=0).selection["view"] == "relief"
    finally:
        last.close()


@pytest.mark.parametrize("path", TEXTS, ids=NAMES)
def test_a_notebook_calls_what_there_is(path):
    """Public names, and words that these take."""
    assert wrong_calls(source for kind, _, source in cells(path) if kind == "code") == []


def test_no_notebook_trains_for_causes():
    """Which takes minutes of a first visit; quick reads the record."""
    calls = [line for path in TEXTS for line in path.read_text().splitlines() if "diagnose(" in line and line[0] != "#"]
    assert calls and all("quick=True" in line for line in calls)


def test_there_are_the_seven_of_the_plan():
    assert [name[:2] for name in NAMES] == ["01", "02", "03", "04", "05", "06", "07"]


def test_notebooks_are_what_their_texts_say():
    pytest.importorskip("jupytext", reason="no jupytext here; pip install 'fedscape[notebook]'")
    spec = importlib.util.spec_from_file_location("build", NOTEBOOKS / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    assert not build.outdated(), "run: python notebooks/build.py"


@pytest.mark.parametrize("path", TEXTS, ids=NAMES)
def test_a_notebook_is_stored_with_its_pictures_and_says_what_to_change_for_real_sizes(path):
    stored = path.with_suffix(".ipynb")
    assert stored.stat().st_size < 1_000_000
    text = stored.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(?:tmp|home|root|work|Users|opt|usr)/", text), "a path of one machine"
    content = json.loads(text)
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    outputs = [one for cell in code for one in cell["outputs"]]
    assert outputs, "run: python notebooks/build.py --execute"
    assert not [one for one in outputs if one["output_type"] == "error" or one.get("name") == "stderr"]
    drawing = [cell for cell in code if re.search(DRAWN, "".join(cell["source"]), re.MULTILINE)]
    assert len(drawing) >= 2
    for cell in drawing:
        assert any("image/png" in one.get("data", {}) for one in cell["outputs"]), cell["source"]
    assert any("## Real sizes" in "".join(cell["source"]) for cell in content["cells"])


DRAWN = r"plt\.show\(\)|^show\(|^figures\.surface3d\(|^figures?$|\.plotly\(\)$"
"""Cells that end with a picture."""


def test_stored_notebooks_are_small_together():
    assert sum(path.with_suffix(".ipynb").stat().st_size for path in TEXTS) < 5_000_000


@pytest.mark.parametrize("path", TEXTS, ids=NAMES)
def test_links_between_notebooks_lead_somewhere(path):
    links = {part.partition(")")[0].replace("\n# ", "") for part in path.read_text().split("](")[1:]}
    assert all((NOTEBOOKS / link).exists() for link in links), links
