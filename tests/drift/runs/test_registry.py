"""Analyses are registered, wherever their files are, and what they state of themselves is true."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import drift
from drift import analyses
from drift.runs.public_stub import STUB, with_analyses
from drift.runs.registry import registered

SOURCE = '''
@analysis("round", cost="record")
def lengths(run: "Run", *, window: int = 3) -> "xr.Dataset":
    """Lengths of updates.

    More.
    """
'''


def test_an_analysis_is_found_in_any_folder_with_any_annotations(tmp_path, monkeypatch):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "lengths.py").write_text(SOURCE)
    monkeypatch.setattr(drift, "__file__", str(tmp_path / "__init__.py"))
    (one,) = registered().values()
    assert (one.name, one.module, one.description) == ("lengths", "drift.deep.er.lengths", "Lengths of updates.")
    assert (one.options, one.dims, one.cost) == (("window",), ("round",), "record")
    (tmp_path / "again.py").write_text(SOURCE)
    with pytest.raises(ValueError, match=r"lengths is in drift\.again and in drift\.deep\.er\.lengths"):
        registered()
    (tmp_path / "again.py").write_text(SOURCE.replace("lengths", "other").replace("record", "much"))
    with pytest.raises(ValueError, match="other has cost 'much'; costs are record, evaluations"):
        registered()


def test_every_registered_analysis_is_public():
    text = STUB.read_text()
    assert text == with_analyses(text), "run: python -m drift.runs.public_stub"
    assert set(registered()) <= set(drift.__all__)


def test_the_stub_takes_up_an_analysis_drops_a_moved_line_and_keeps_the_rest():
    text = with_analyses(STUB.read_text())
    line = next(line for line in text.splitlines() if line.endswith("as update_norms"))
    assert line in text and "as pooled_factors" in text
    assert with_analyses(text.replace(f"{line}\n", "")) == text
    assert with_analyses(text.replace(line, line.replace("norms_and_weights", "earlier"))) == text
    assert "from elsewhere import own as own" in with_analyses(text.replace(line, "from elsewhere import own as own"))


def test_public_functions_of_a_run_that_return_a_dataset_are_registered():
    """An analysis that is public in Python is known to the command line."""
    known, unregistered = registered(), []
    for path in sorted(Path(analyses.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            of_a_run = isinstance(node, ast.FunctionDef) and [one.arg for one in node.args.args[:1]] == ["run"]
            if of_a_run and node.name in drift.__all__ and node.name not in known:
                unregistered.append(node.name)
    assert unregistered == []


@pytest.mark.parametrize("one", registered().values(), ids=registered())
def test_a_registered_analysis_takes_a_run_alone(one):
    function = getattr(importlib.import_module(one.module), one.name)
    assert one.description.endswith(".") and function.__name__ == one.name
    first, *others = inspect.signature(function).parameters.values()
    assert first.name == "run" and all(o.default is not o.empty or o.kind is o.VAR_KEYWORD for o in others)
