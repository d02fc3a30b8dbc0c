"""Write the table of references into docs/agreement.md, with the largest error of each from a run of their tests.

python tests/reference/write_table.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "agreement.md"
BEGIN, END = "<!-- references: begin -->\n", "<!-- references: end -->\n"


def rows(references: Iterable, errors: Mapping[str, float]) -> str:
    """The table, a row per function and reference, sorted."""
    head = "| function | reference | largest relative error of the function | test |\n| --- | --- | --- | --- |\n"
    lines = {
        (entry.function, entry.test): (
            f"| `{entry.function}` | {entry.by} | {errors.get(entry.function, 0.0):.0e} | `{entry.test}` |\n"
        )
        for entry in references
    }
    return head + "".join(lines[key] for key in sorted(lines))


def replaced(page: str, table: str) -> str:
    """The page with this table."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + table + END + rest.split(END)[1]


def main() -> int:
    """Run the tests of this folder, and write their references and errors; the exit code of pytest."""
    import pytest

    sys.path.insert(0, str(FOLDER.parent))
    from reference.registry import ERRORS, REFERENCES

    areas = [str(path) for path in sorted(FOLDER.glob("test_*.py")) if path.stem != "test_registry"]
    if code := pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:], *areas]):
        return int(code)
    PAGE.write_text(replaced(PAGE.read_text(), rows(REFERENCES, ERRORS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
