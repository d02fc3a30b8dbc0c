"""docs/methods.md is what its command writes, and the built page is complete."""

import json

import pytest

from benchmarks._methods_page import page
from benchmarks.methods import NUMBERS, PAGE
from drift.config import method as methods
from figures.commands.about import list_
from landscape import plugins


def test_every_option_of_every_method_says_what_it_means():
    for name in methods.names():
        for option, field in methods.load(name).model_fields.items():
            assert field.description, f"{name}.{option}"


@pytest.mark.parametrize(
    ("package", "name", "word"),
    [
        ("drift.methods", "fedadagrad", "beta1"),
        ("drift.methods", "fedavgm", "form"),
        ("drift.methods", "lss", "the method alone"),
        ("drift.methods", "fedavg", "without the momentum"),
        ("drift.partitions", "dirichlet", "capped"),
    ],
)
def test_defaults_that_a_reader_of_the_paper_does_not_expect_are_said(package, name, word, capsys):
    told = plugins.paragraph(package, name, "Unlike the paper:")
    assert word in told
    assert told[:40] in " ".join(PAGE.read_text().split())
    list_(package.removeprefix("drift."), json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows[name]["unlike the paper"] == told


def test_the_page_has_every_bundle_and_its_source_unless_it_is_that_of_the_method():
    sections = page(json.loads(NUMBERS.read_text())).split("\n## ")
    for name in methods.names():
        (section,) = [one for one in sections if one.startswith(f"{name}\n")]
        method = " ".join(section.partition("Source:")[2].partition("```")[0].split())
        for like, bundle in methods.load(name).bundles.items():
            source = "" if bundle.source in method else f" ({bundle.source})"
            assert f"- `like={like}`{source}: " in section, (name, like)


def test_the_page_is_what_the_command_writes():
    """A method that is newer than the stored page is on the built one (docs/_ext/methods_page.py)."""
    text, numbers = PAGE.read_text(), json.loads(NUMBERS.read_text())
    stored = [name for name in methods.names() if f"\n## {name}\n" in text]
    assert set(numbers["methods"]) <= set(stored)
    assert all(len(one["accuracy"]) == len(numbers["seeds"]) >= 2 for one in numbers["methods"].values())
    assert page(numbers, stored) == text, "run python -m benchmarks.methods"


def test_the_built_page_has_every_method():
    text = page(json.loads(NUMBERS.read_text()))
    assert [name for name in methods.names() if f"\n## {name}\n" not in text] == []
