"""Notebooks from the texts beside this file: every NN_name.py (jupytext percent format) becomes NN_name.ipynb.

python notebooks/build.py                    # writes those whose text differs; outputs stay if the code is the same
python notebooks/build.py --execute [NN]     # runs all, or those numbers, and stores what their cells show
python notebooks/build.py --check            # writes none; names those whose text differs and exits with 1

Readers of GitHub and of the pages see pictures: interactive figures are stored as PNG by kaleido, which needs Chromium.
An interactive page would bring megabytes of JavaScript that GitHub does not run. The explorer needs a running kernel; a
line of text stands in its place.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import jupytext
import nbformat

HERE = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LIVE = "The explorer opens here in a running kernel (make notebooks).\n"
SHOWN = ("image/png", "text/html", "text/plain")
"""Forms of a result that are stored; the widgets of a kernel that is gone show nothing."""


def sources() -> list[Path]:
    """Texts of all notebooks, in their order."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def notebook(source: Path) -> str:
    """Content of a notebook without outputs; the same text gives the same bytes."""
    made = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    made.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for number, cell in enumerate(made.cells, start=1):
        cell["id"] = f"cell-{number:02d}"
        cell["metadata"] = {}
    made.nbformat, made.nbformat_minor = 4, 5
    return _written(made)


def refreshed(path: Path) -> str:
    """Content of a notebook by its text, with the stored outputs if its code cells are those of the text."""
    made = nbformat.reads(notebook(path.with_suffix(".py")), as_version=4)
    stored = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4).cells if path.exists() else []
    old, new = ([cell for cell in cells if cell["cell_type"] == "code"] for cells in (stored, made.cells))
    if [cell["source"] for cell in old] == [cell["source"] for cell in new]:
        for before, after in zip(old, new, strict=True):
            after["outputs"], after["execution_count"] = before["outputs"], before["execution_count"]
    return _written(made)


def outdated() -> list[Path]:
    """Notebooks that are not what their texts say, outputs aside."""
    written = {source.with_suffix(".ipynb"): notebook(source) for source in sources()}
    return [path for path, text in written.items() if not path.exists() or _bare(path) != text]


def execute(source: Path, folder: Path) -> str:
    """Content of a notebook with the outputs of its cells, run in a folder.

    Raises:
        CellExecutionError: If a cell fails.
    """
    from nbclient import NotebookClient

    made = nbformat.reads(notebook(source), as_version=4)
    paths = [str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PLOTLY_RENDERER": "png", "MPLBACKEND": ""}
    NotebookClient(made, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    made.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for cell in made.cells:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["outputs"] = _stored(cell)
    return _written(made)


def _stored(cell: Any) -> list[Any]:
    """Outputs of a cell as they are stored: no progress, no widgets, no kernel's numbers."""
    if re.search(r"^(\w+ = )?figures\.explorer\(", cell["source"], re.MULTILINE):
        return [nbformat.v4.new_output("stream", name="stdout", text=LIVE)]
    kept = [one for one in cell["outputs"] if one["output_type"] != "stream" or one["name"] == "stdout"]
    for one in kept:
        if "data" in one:
            data, one["metadata"] = one["data"], {}
            best = SHOWN[0] if SHOWN[0] in data else SHOWN[1]
            one["data"] = {form: data[form] for form in (best, SHOWN[2]) if form in data}
    return kept


def _bare(path: Path) -> str:
    """Content of a stored notebook without its outputs."""
    stored = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    for cell in stored.cells:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return _written(stored)


def _written(made: Any) -> str:
    return nbformat.writes(made).rstrip("\n") + "\n"


def main() -> int:
    """Write, execute or check, and say what was written or differed."""
    options = sys.argv[1:]
    if "--execute" in options:
        with tempfile.TemporaryDirectory() as folder:
            for source in (one for one in sources() if not options[1:] or one.name[:2] in options):
                source.with_suffix(".ipynb").write_text(execute(source, Path(folder)), encoding="utf-8")
                print(source.stem)
        return 0
    found = outdated()
    for path in found:
        print(path.name)
        if "--check" not in options:
            path.write_text(refreshed(path), encoding="utf-8")
    return int("--check" in options and bool(found))


if __name__ == "__main__":
    sys.exit(main())
