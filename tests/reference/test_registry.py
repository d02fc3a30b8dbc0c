"""Every public function that states numbers has an independent reference, and the page lists it."""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
from pathlib import Path

from reference.registry import ERRORS, REFERENCES, Reference, agree
from reference.write_table import PAGE, TABLE, replaced, rows, summed, written

import landscape
from drift.runs.registry import registered

FOLDER = Path(__file__).parent

EXEMPT = {
    "landscape.align": "returns a model whose units are permuted; landscape.aligned_barrier states the numbers",
    "landscape.build_model": "returns a module of torch",
    "landscape.make_task": "returns a task; its numbers are those of the functions that take one",
    "landscape.open_dataset": "returns data as they are published",
    "landscape.task_from": "returns a task",
}
"""Public functions without numbers of their own, and why."""


def public() -> set[str]:
    """Public functions of landscape and registered analyses of drift."""
    functions = {name for name in landscape.__all__ if inspect.isroutine(getattr(landscape, name))}
    return {f"landscape.{name}" for name in functions} | {f"drift.{name}" for name in registered()}


def references() -> list[Reference]:
    """All references, those of files that this run did not collect among them."""
    for path in sorted(FOLDER.glob("test_*.py")):
        importlib.import_module(f"reference.{path.stem}")
    return REFERENCES


def test_every_public_function_has_a_reference():
    covered, known = {entry.function for entry in references()}, public()
    bare = known - covered - set(EXEMPT)
    assert not bare, f"give these a test in tests/reference: {sorted(bare)}"
    assert not (absent := set(EXEMPT) - known), f"EXEMPT names what is not public: {sorted(absent)}"
    assert not (twice := set(EXEMPT) & covered), f"EXEMPT names what has a reference: {sorted(twice)}"


def listed() -> list[tuple[str, ...]]:
    """Rows of the table."""
    return [tuple(row) for row in csv.reader(TABLE.read_text(encoding="utf-8").splitlines())][1:]


def test_the_table_lists_every_reference():
    wanted = {(entry.function, entry.by, entry.test) for entry in references()}
    missing = sorted(wanted - {(name, by, test) for name, _, by, test in listed()})
    assert not missing, f"run tests/reference/write_table.py; {TABLE.name} lacks {missing}"
    assert summed(listed()) in PAGE.read_text(encoding="utf-8"), "run tests/reference/write_table.py"


def test_the_table_names_no_test_that_is_gone():
    named = [test.partition("::") for *_, test in listed()]
    trees = {file: ast.parse((FOLDER / file).read_text()) for file in {file for file, _, _ in named}}
    there = {
        file: {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for file, tree in trees.items()
    }
    assert named and [(file, test) for file, _, test in named if test not in there[file]] == []


def test_the_table_has_a_row_per_function_and_test_with_the_largest_error():
    names, test = ("landscape.b", "landscape.a"), "test_a.py::test_b"
    table = rows([Reference(name, "by hand", test) for name in names], {"landscape.b": 2e-7})
    assert table == [("landscape.a", "0e+00", "by hand", test), ("landscape.b", "2e-07", "by hand", test)]
    assert written(table).splitlines()[1] == "landscape.a,0e+00,by hand,test_a.py::test_b"
    text = summed(table)
    assert text == "1 tests compare 2 functions. The largest errors are 2e-07 (`landscape.b`), 0e+00 (`landscape.a`).\n"
    page = replaced("x\n<!-- references: begin -->\nold\n<!-- references: end -->\ny\n", text)
    assert page == f"x\n<!-- references: begin -->\n{text}<!-- references: end -->\ny\n"


def test_a_comparison_sees_a_difference():
    noted = dict(ERRORS)
    try:
        agree("none", [1.0, 2.0], [1.0, 2.0], relative=0)
        for actual, expected in (([1.0, 2.1], [1.0, 2.0]), ([1.0], [float("nan")]), ([], []), ([1.0], [1.0, 1.0])):
            try:
                agree("none", actual, expected, relative=1e-3)
            except AssertionError:
                continue
            raise ValueError(f"{actual} passed for {expected}")
    finally:
        ERRORS.clear()
        ERRORS.update(noted)
