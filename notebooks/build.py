"""Notebooks from the texts beside this file: every NN_name.py (jupytext percent format) becomes NN_name.ipynb.

python notebooks/build.py             # writes those that differ
python notebooks/build.py --check     # writes none; names those that differ and exits with 1
"""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbformat

HERE = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


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
    return nbformat.writes(made).rstrip("\n") + "\n"


def outdated() -> list[Path]:
    """Notebooks that are not what their texts say."""
    written = {source.with_suffix(".ipynb"): notebook(source) for source in sources()}
    return [path for path, text in written.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> int:
    """Write, or check, and say what differed."""
    found = outdated()
    for path in found:
        print(path.name)
        if "--check" not in sys.argv:
            path.write_text(notebook(path.with_suffix(".py")), encoding="utf-8")
    return int("--check" in sys.argv and bool(found))


if __name__ == "__main__":
    sys.exit(main())
