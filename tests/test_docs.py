"""The documentation is whole: every page is listed, every link leads somewhere, every block of code runs."""

import ast
import importlib
import re
import subprocess
import sys

import blocks
import pytest
from PIL import Image

from figures import gallery

DOCS = blocks.ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not page.name.startswith("howto-")]
SOURCES = sorted(page for kind in ("md", "rst") for page in DOCS.rglob(f"*.{kind}"))


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
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
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
def test_every_public_name_has_its_docstring(package):
    assert f".. public:: {package}" in (DOCS / "api" / f"{package}.rst").read_text()
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if not getattr(module, name).__doc__] == []


def test_the_gallery_page_shows_every_figure_once():
    from _ext import facts

    shown = re.findall(r"```\{pictures\} (\w+)", (DOCS / "gallery.md").read_text())
    assert shown == list(facts.PAPERS)
    assert {one["name"] for one in facts.described()} == set(gallery.names())
    assert facts.split("Loss on Dir(0.1) (IMA paper, Fig. 2 (left)).") == (
        "Loss on Dir(0.1)",
        "IMA paper, Fig. 2 (left)",
    )
    assert facts.split("Loss over rounds.") == ("Loss over rounds", "")
    assert facts.paper_of("Accuracy (LSS paper, Fig. 3; FedEve, Fig. 3b).") == "LSS"
    assert facts.items_of(["ima Fig. 6a", "lss Table 4", "lss Table 4, iid"]) == "IMA Fig. 6a; LSS Table 4"


def test_thumbnails_are_small_and_those_of_the_gallery():
    from _ext import facts

    made = {path.stem: path for path in facts.IMAGES.glob("*.png")}
    assert set(made) <= set(gallery.names()), "remove the thumbnails of figures that are gone"
    missing = set(gallery.names()) - set(made) - set(facts.NOT_DRAWN)
    assert not missing, f"draw {sorted(missing)}, then: python docs/_ext/thumbnails.py FOLDER; or say why in NOT_DRAWN"
    assert not set(facts.NOT_DRAWN) & set(made)
    sizes = [path.stat().st_size for path in made.values()]
    assert max(sizes) <= 30_000
    assert sum(sizes) < 1_500_000


def test_thumbnails_are_made_of_figures_alone(tmp_path):
    from _ext import thumbnails

    Image.effect_noise((700, 420), 80).convert("RGBA").save(tmp_path / "planes-clients.png")
    for name in ("holiday", "my-planes-random", "ima-fig2-bias-rounds"):
        Image.new("RGB", (10, 10)).save(tmp_path / f"{name}.png")
    bias, made = thumbnails.make(tmp_path, tmp_path / "out")
    assert bias.name == "bias-rounds.png"
    first = made.read_bytes()
    with Image.open(made) as small:
        assert small.size[0] <= thumbnails.WIDTH
        assert small.size[1] <= thumbnails.HEIGHT
    assert thumbnails.make(tmp_path, tmp_path / "out")[1].read_bytes() == first
    with pytest.raises(LookupError, match="no figure of the gallery"):
        thumbnails.make(tmp_path / "out" / "none", tmp_path)


def test_nothing_is_fetched_while_building():
    tree = ast.parse((DOCS / "conf.py").read_text())
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not any("intersphinx" in value or "://" in value for value in named)


@pytest.mark.slow
def test_the_pages_build_without_a_warning(tmp_path):
    pytest.importorskip("myst_nb", reason="pip install 'fedscape[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run([*command, str(DOCS), str(tmp_path / "html")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "gallery.html").read_text()
    assert all(f'id="figure-{name}"' in page for name in gallery.names())
