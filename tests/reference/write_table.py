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
    """A line per test, sorted; a function has the largest error of all its tests where it comes first."""
    tests: dict[str, tuple[set[str], set[str]]] = {}
    for entry in references:
        functions, ways = tests.setdefault(entry.test, (set(), set()))
        functions.add(entry.function)
        ways.add(entry.by.removesuffix(", float64"))  # which the page says of all
    lines, listed = [], set[str]()
    for test, (functions, ways) in sorted(tests.items()):
        names = [f"`{one}`" + f" {errors.get(one, 0.0):.0e}" * (one not in listed) for one in sorted(functions)]
        listed |= functions
        lines.append(f"- {', '.join(names)}: {'; '.join(sorted(ways))} (`{test}`)\n")
    return "".join(lines)


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
