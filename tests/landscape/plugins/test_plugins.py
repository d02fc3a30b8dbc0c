"""Plug-in folders, and folders of a user's own beside them."""

import pytest

import drift.methods
from landscape import plugins
from landscape.plugins import folders, unknown_names


def test_a_folder_of_ones_own_is_looked_in_too(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text('"""Mine, a method. Source: nobody et al."""\n')
    monkeypatch.setattr(drift.methods, "__path__", [*drift.methods.__path__, str(tmp_path)])
    assert "mine" in plugins.names("drift.methods")
    assert plugins.describe("drift.methods", "mine") == "Mine, a method."
    assert plugins.source("drift.methods", "mine") == "nobody et al."
    assert plugins.describe("drift.methods", "fedprox").startswith("FedProx")


def test_names_follow_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(drift.methods, "__path__", [str(tmp_path)])
    for content, expected in (("one", ["one"]), ("two", ["one", "two"]), ("_own", ["one", "two"])):
        (tmp_path / f"{content}.py").touch()
        assert plugins.names("drift.methods") == expected
    (tmp_path / "one.py").rename(tmp_path / "three.py")
    plugins.names("drift.methods").clear()
    assert plugins.names("drift.methods") == ["three", "two"]
    (tmp_path / "two.py").unlink()
    assert plugins.names("drift.methods") == ["three"]


def test_a_folder_is_listed_in_full_once_while_it_is_unchanged(tmp_path, monkeypatch):
    listed, inner = [], folders.pkgutil.iter_modules
    monkeypatch.setattr(folders.pkgutil, "iter_modules", lambda path: listed.append(path) or inner(path))
    monkeypatch.setattr(drift.methods, "__path__", [str(tmp_path)])
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").touch()
        for _ in range(5):
            assert name in plugins.names("drift.methods")
    assert len(listed) == 2


@pytest.mark.parametrize("kind", sorted(unknown_names.LISTED_BY))
def test_a_name_among_many_gets_the_nearest_five_and_the_command_that_lists_all(kind):
    known = [f"name_{number}" for number in range(60)]
    text = plugins.unknown(kind, "nmae_7", known)
    assert "Did you mean 'name_7'?" in text
    assert f"All 60: {unknown_names.LISTED_BY[kind]}." in text
    assert text.count("name_") <= unknown_names.NEAREST + 1


def test_a_name_among_few_gets_all_of_them():
    assert "Known: ima, lss." in plugins.unknown("method", "imma", ["ima", "lss"])


def test_a_constant_is_that_of_the_attribute_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("landscape.models.__path__", [str(tmp_path)])
    (tmp_path / "mine.py").write_text("class Mine:\n    first: int = 1\n    second: str = 'two'\n    third = 3\n")
    assert plugins.constant("landscape.models", "mine", "second") == "two"
    assert plugins.constant("landscape.models", "mine", "third") is None
