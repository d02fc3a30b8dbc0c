"""The size of the house: code lines of each room, lines of a file, words of all pages. What is added is paid for by
what is taken out.

A code line holds a token other than a comment or a docstring.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("landscape", "drift", "figures", "fedscape")
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

ROOMS = {
    "drift": 25,
    "drift/analyses": 5810,
    "drift/claims": 1445,
    "drift/config": 1000,
    "drift/diagnosis": 495,
    "drift/engines": 580,
    "drift/importers": 740,
    "drift/methods": 1825,
    "drift/parallel": 325,
    "drift/partitions": 480,
    "drift/plugins": 240,
    "drift/record": 775,
    "drift/runs": 1270,
    "drift/simulation": 1780,
    "drift/store": 1525,
    "drift/trackers": 100,
    "drift/training": 850,
    "fedscape": 65,
    "figures": 155,
    "figures/assistants": 325,
    "figures/axes": 1650,
    "figures/commands": 2620,
    "figures/explore": 2470,
    "figures/films": 610,
    "figures/gallery": 5170,
    "figures/interactive": 525,
    "figures/looks": 760,
    "figures/page": 1660,
    "figures/papers": 210,
    "figures/pictures": 340,
    "figures/selection": 840,
    "figures/texts": 845,
    "landscape": 65,
    "landscape/batched_training": 190,
    "landscape/curvature": 1010,
    "landscape/datasets": 950,
    "landscape/geometry": 645,
    "landscape/measures": 655,
    "landscape/model": 3875,
    "landscape/models": 515,
    "landscape/plugins": 355,
    "landscape/results": 535,
    "landscape/spectra": 175,
    "landscape/surfaces": 1305,
    "landscape/sweep": 915,
}
"""Most code lines of a room; lower a number when a room has shrunk, and raise one only where another falls as much."""

LINES, CODE_LINES = 250, 48_500
"""Most lines of a file, and most code lines of the library."""

WORDS = 54_100
"""Most words of all pages, code and tables included; lower it when pages have shrunk."""

MANY = 35
"""Functions of more than 8 arguments; `landscape.sweep.evaluation` shows how options become one value."""


def code_lines(source: str) -> int:
    """Lines that hold a token other than a comment or a docstring."""
    text, inside = set[int](), [ast.parse(source)]
    while inside:
        for line in ast.iter_child_nodes(inside.pop()):
            if isinstance(line, ast.stmt | ast.excepthandler | ast.match_case):
                inside.append(line)
            if (
                isinstance(line, ast.Expr)
                and isinstance(line.value, ast.Constant)
                and isinstance(line.value.value, str)
            ):
                text |= set(range(line.lineno, line.end_lineno + 1))
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in SILENT]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - text)


def sources() -> dict[Path, str]:
    """Text of every file of the library, by its path in the repository."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}


def test_a_code_line_is_no_comment_and_no_docstring():
    source = '"""Text\nof two lines."""\n\n# comment\nX = [\n    1,  # one\n]\n"""Of X."""\n\n\n'
    source += 'def f():\n    """Text."""\n    return """a\nb"""\n'
    assert code_lines(source) == 6


def test_no_room_outgrows_its_budget():
    rooms = Counter[str]()
    for path, source in sources().items():
        rooms["/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]] += code_lines(source)
    assert rooms.keys() == ROOMS.keys()
    assert {room: lines for room, lines in rooms.items() if lines > ROOMS[room]} == {}
    assert rooms.total() <= CODE_LINES


def test_files_are_short():
    lines = {path.as_posix(): source.count("\n") for path, source in sources().items()}
    assert {path: number for path, number in lines.items() if number > LINES} == {}


def test_few_functions_have_many_arguments():
    many = []
    for path, source in sources().items():
        for node in filter(lambda node: isinstance(node, ast.FunctionDef), ast.walk(ast.parse(source))):
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > 8:
                many.append(f"{path.as_posix()}: {node.name}")
    assert len(many) <= MANY, many


def pages() -> list[Path]:
    """Every Markdown page of the repository, those of tests left out."""
    folders = ((ROOT, "*.md"), (ROOT / "docs", "**/*.md"), (ROOT / "benchmarks", "*.md"), (ROOT / "paper", "*.md"))
    return [path for folder, pattern in folders for path in sorted(folder.glob(pattern))]


def test_the_pages_have_no_more_words():
    words = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").split()) for path in pages()}
    assert {"README.md", "CONTRIBUTING.md"} <= words.keys()
    assert sum(words.values()) <= WORDS, "say a thing once: cut as many words as you add"
