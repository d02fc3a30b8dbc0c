"""Write docs/results/references.csv, the references with the largest error of each from a run of their tests, and their
sum into docs/agreement.md.

python tests/reference/write_table.py
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
DOCS = FOLDER.parents[1] / "docs"
PAGE, TABLE = DOCS / "agreement.md", DOCS / "results" / "references.csv"
BEGIN, END = "<!-- references: begin -->\n", "<!-- references: end -->\n"


def rows(references: Iterable, errors: Mapping[str, float]) -> list[tuple[str, ...]]:
    """A row per function and test, sorted: function, its largest error in all tests, computed by, test."""
    known = {(entry.function, entry.test): entry.by for entry in references}
    return [(name, f"{errors.get(name, 0.0):.0e}", by, test) for (name, test), by in sorted(known.items())]


def written(table: Iterable[tuple[str, ...]]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("function", "largest error", "computed by", "test"), *table])
    return text.getvalue()


def summed(table: Iterable[tuple[str, ...]]) -> str:
    """How many functions and tests there are, and the functions with the three largest errors."""
    table = list(table)
    errors = {name: error for name, error, _, _ in table}
    largest = sorted(errors, key=lambda name: (-float(errors[name]), name))[:3]
    tests = len({test for *_, test in table})
    shown = ", ".join(f"{errors[name]} (`{name}`)" for name in largest)
    return f"{tests} tests compare {len(errors)} functions. The largest errors are {shown}.\n"


def replaced(page: str, text: str) -> str:
    """The page with this text."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + text + END + rest.split(END)[1]


def main() -> int:
    """Run the tests of this folder, and write their references and errors; the exit code of pytest."""
    import pytest

    sys.path.insert(0, str(FOLDER.parent))
    from reference.registry import ERRORS, REFERENCES

    areas = [str(path) for path in sorted(FOLDER.glob("test_*.py")) if path.stem != "test_registry"]
    if code := pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:], *areas]):
        return int(code)
    table = rows(REFERENCES, ERRORS)
    TABLE.write_text(written(table), encoding="utf-8")
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), summed(table)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
