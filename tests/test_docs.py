"""The documentation is whole: every page is listed, every link leads somewhere, every block of code runs."""

import ast
import html
import importlib
import inspect
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from urllib.parse import unquote

import blocks
import pytest

from figures import gallery

DOCS = blocks.ROOT / "docs"
pytestmark = pytest.mark.skipif(not (DOCS / "images").is_dir(), reason="a source distribution has no pictures")
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not page.name.startswith("howto-")]
SOURCES = sorted(page for kind in ("md", "rst") for page in DOCS.rglob(f"*.{kind}") if page.parent.name != "objects")


@pytest.fixture(autouse=True)
def _extensions(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)


def test_the_toctree_names_every_page():
    listed = []
    for page in SOURCES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            listed += [line for line in block.splitlines() if line and not line.startswith(":")]
    names = [str(page.relative_to(DOCS).with_suffix("")) for page in SOURCES if page.stem != "index"]
    names += [f"notebooks/{path.stem}" for path in (blocks.ROOT / "notebooks").glob("*.ipynb")]
    assert sorted(name for name in listed if name != "self") == sorted(names)


@pytest.mark.parametrize("page", blocks.PAGES, ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(
        r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", "", page.read_text(), flags=re.DOTALL
    )  # code, formulas
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS).with_suffix("")))
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    blocks.run(page, tmp_path, monkeypatch)


def test_every_reason_not_to_run_a_block_is_needed():
    for page, shown in blocks.NOT_RUN:
        found = blocks.blocks(blocks.ROOT / page)
        if shown == "python":
            assert any(block.language == "python" for block in found), page
        else:
            lines = [line.split() for block in found if block.language == "bash" for line in block.text.splitlines()]
            assert any(set(shown.split()) <= {word.removeprefix("looks/bin/") for word in line} for line in lines), (
                shown
            )


def test_commands_and_python_are_told_from_other_blocks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n    fedscape runs\n\n- a\n\n  ```bash\n  make demo\n  ```\n\n"
        "```\nw = p' w\n```\n\n```{toctree}\na\n```\n"
    )
    assert [(one.language, one.line) for one in blocks.blocks(page)] == [
        ("python", 1), ("bash", 5), ("bash", 9), ("text", 13),
    ]  # fmt: skip


def test_a_block_that_fails_is_noticed(tmp_path, monkeypatch):
    blocks.prepare(tmp_path, monkeypatch)
    session = blocks.Session("page.md")
    with pytest.raises(NameError):
        session.python(blocks.Block("python", 1, "missing"))
    with pytest.raises(AssertionError, match="fedscape show nothing"):
        session.bash(blocks.Block("bash", 1, "fedscape show nothing"))
    with pytest.raises(AssertionError, match="say in OUTSIDE"):
        session.bash(blocks.Block("bash", 1, "rsync a b"))


@pytest.mark.parametrize("package", ["landscape", "drift", "figures"])
def test_every_public_name_has_its_docstring_in_a_room_of_the_index(package):
    pytest.importorskip("sphinx", reason="pip install 'fedscape[docs]'")
    from _ext import public

    assert f".. public:: {package}" in (DOCS / "api" / f"{package}.rst").read_text()
    module, rooms = importlib.import_module(package), public.rooms(package)
    assert sorted(name for names in rooms.values() for name in names) == module.__all__
    assert [name for name in module.__all__ if not getattr(module, name).__doc__] == []
    assert all(public.heading(room) for room in rooms)


def test_the_title_of_an_object_breaks_between_its_words():
    pytest.importorskip("sphinx", reason="pip install 'fedscape[docs]'")
    from _ext import public

    body = '<h1>drift.update_change<a href="#drift.x_y">¶</a></h1><h1>a_b</h1>'
    for page, title in (("api/objects/drift.update_change", "drift.<wbr>update_<wbr>change<a"), ("index", "drift.u")):
        context = {"body": body}
        public.break_title(None, page, "page.html", context, None)
        assert f"<h1>{title}" in context["body"] and '#drift.x_y">¶</a></h1><h1>a_b</h1>' in context["body"]


def test_a_function_has_the_figures_that_are_drawn_with_it():
    from _ext import drawn_with

    import drift
    import landscape

    def names(function):
        return drawn_with.figures_of()[id(inspect.unwrap(function))]

    assert names(drift.coherence) == ["coherence-groups", "coherence-rounds"]
    assert names(drift.global_minimum) == ["planes-clients", "planes-settings"], "through a helper of figures"
    assert names(landscape.trace) == ["trace-rounds"], "through an analysis"


def test_nothing_is_fetched_while_building(tmp_path):
    """Inventories of other projects are files, which the build itself writes."""
    from _ext import other_docs

    tree = ast.parse((DOCS / "conf.py").read_text())
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not any("://" in value for value in named)
    assert "intersphinx_mapping = other_docs.written(" in (DOCS / "conf.py").read_text()
    for project, (address, path) in other_docs.written(tmp_path).items():
        assert address.startswith("https://") and address.endswith("/") and Path(path).parent == tmp_path
        content = zlib.decompress(Path(path).read_bytes().split(b"zlib.\n", 1)[1]).decode()
        names = dict(line.split(" py:class 1 ") for line in content.splitlines())
        assert names == {name: f"{page} -" for name, page in other_docs.PROJECTS[project][1].items()}


def test_make_docs_begins_anew_after_a_stopped_build_and_goes_on_after_a_whole_one(tmp_path):
    """With a Sphinx that writes a page, or stops halfway if it is told so."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\nmkdir -p build/docs\ntouch build/docs/$PAGE\ntest $PAGE != half\n")
    python.chmod(0o755)
    command = ["make", "-f", blocks.ROOT / "Makefile", "docs", f"VENV={tmp_path}", "-o", f"{tmp_path}/.docs"]

    def make(page):
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PAGE": page}, capture_output=True, check=False)
        pages = {path.name for path in (tmp_path / "build" / "docs").iterdir()} - {"complete"}
        return done.returncode == 0, pages

    assert make("half") == (False, {"half"})
    assert make("one") == (True, {"one"})
    assert make("two") == (True, {"one", "two"})
    assert make("half") == (False, {"one", "two", "half"})
    assert make("three") == (True, {"three"})


@pytest.mark.slow
def test_the_pages_build_without_a_warning(tmp_path):
    pytest.importorskip("myst_nb", reason="pip install 'fedscape[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run([*command, str(DOCS), str(tmp_path / "html")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path: path.read_text() for path in (tmp_path / "html").rglob("*.html")}
    assert all(f'id="figure-{name}"' in pages[tmp_path / "html" / "gallery.html"] for name in gallery.names())
    folded = pages[tmp_path / "html" / "gallery.html"].count("<summary>runs, cost, command</summary>")
    assert folded == len(gallery.names()), "a card is a small picture, its name and a line"
    assert lost(pages) == []
    assert 'href="_images/surface.png"><img' in pages[tmp_path / "html" / "index.html"], "a picture leads to its file"


def lost(pages):
    """Links between built pages that lead to no page or to no anchor."""
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    found = []
    for path, text in pages.items():
        for link in re.findall(r'<a [^>]*href="([^"]+)"', text):
            name, _, anchor = unquote(html.unescape(link)).partition("#")
            target = (path.parent / name).resolve() if name else path
            inner = ":" not in name and target.suffix == ".html"
            if inner and (target not in anchors or (anchor and anchor not in anchors[target])):
                found.append(f"{path.name}: {link}")
    return found
