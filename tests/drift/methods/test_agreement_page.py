"""docs/agreement.md: every row is a test, every method and bundle has a row, tolerances are those of the tests."""

import ast
import re
from pathlib import Path

import pytest

from drift.config import method as methods
from tests.drift import by_hand

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "agreement.md").read_text().split("<!-- references: begin -->")[0]
ROWS = re.findall(r"^\|\[(\w+)\]\(methods\.md#\1\)\|(.*)\|(.*)\|`(\w+\.py)::(\w+)`\|$", PAGE, re.MULTILINE)

BUNDLES = [(name, like) for name in methods.names() for like in methods.load(name).bundles]
NUMBERS_ALONE = {
    *{(name, "paper") for name in ("moon", "fedgma", "scaffold", "fedfomo", "server_ft", "feddf", "fedbe")},
    ("moon", "code"),
}
"""Bundles whose formula is that of the method's first row, with other numbers; FedBE's draws ten models, not one."""


@pytest.mark.parametrize(("file", "test"), sorted(set(re.findall(r"`(test_\w+\.py)::(\w+)`", PAGE))))
def test_every_test_on_the_page_exists(file, test):
    (path,) = HERE.parent.rglob(file)
    tree = ast.parse(path.read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", methods.names())
def test_every_method_has_a_row(name):
    assert name in {row[0] for row in ROWS} or (HERE / f"test_{name}.py").exists()


@pytest.mark.parametrize(("name", "like"), [pair for pair in BUNDLES if pair not in NUMBERS_ALONE])
def test_every_bundle_with_a_formula_of_its_own_has_a_row(name, like):
    told = [setting for method, _, setting, _, _ in ROWS if "`like`" in setting and (method == name or name in setting)]
    assert any(like in setting for setting in told)


def test_the_page_states_the_tolerances_of_the_tests():
    assert f"a relative {by_hand.RTOL:.0e} and an absolute {by_hand.ATOL:.0e}".replace("e-0", "e-") in PAGE
