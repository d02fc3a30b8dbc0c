"""docs/results.md and docs/findings.md have the numbers of the files in docs/results."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from blocks import ROOT

from drift.claims.claim import over_seeds


@pytest.fixture(scope="module")
def evidence():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        from _ext import evidence

        yield evidence


def test_the_pages_have_the_numbers_of_the_files(evidence):
    blocks = evidence.numbers()
    for page in evidence.PAGES:
        text = page.read_text(encoding="utf-8")
        assert evidence.filled(text, blocks) == text, f"python docs/_ext/evidence.py: {page.name}"
        assert "<!-- end -->" in text


def test_a_page_is_filled_between_its_marks_alone(evidence):
    page = "before\n<!-- one -->\nold\n<!-- end -->\nbetween\n<!-- two -->\n<!-- end -->\n"
    once = evidence.filled(page, {"one": "1", "two": "2"})
    assert once == "before\n<!-- one -->\n1\n<!-- end -->\nbetween\n<!-- two -->\n2\n<!-- end -->\n"
    assert evidence.filled(once, {"one": "1", "two": "2"}) == once
    with pytest.raises(LookupError, match="two"):
        evidence.filled(page, {"one": "1"})


def test_rounds_that_runs_share_count_once(evidence):
    class Run:
        def __init__(self, seed, seconds):
            self.experiment = tiny.experiment(f"seed={seed}")
            self.content = {"seconds": seconds}

    shared = [Run(0, [10.0, 11.0, 12.0]), Run(0, [10.0, 11.0, 9.0]), Run(1, [10.0])]
    assert evidence.seconds(shared) == 10 + 11 + 12 + 9 + 10


def test_effects_in_log2_are_written_as_ratios(evidence):
    assert evidence._span(over_seeds([-1.0, -1.0, -1.0]), 3, "log2") == "0.5 [0.5, 0.5]"
    assert evidence._span(over_seeds([2.0]), 2) == "+2.00"
    assert evidence._span(over_seeds([]), 2) == ""
    low, high = (float(part) for part in evidence._span(over_seeds([1.0, 3.0, 2.0]), 2).split("[")[1][:-1].split(", "))
    np.testing.assert_allclose([low, high], [2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5], atol=0.01)
