"""Plug-in folders, and folders of a user's own beside them."""

import drift.methods
from landscape import plugins


def test_a_folder_of_ones_own_is_looked_in_too(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text('"""Mine, a method. Source: nobody et al."""\n')
    monkeypatch.setattr(drift.methods, "__path__", [*drift.methods.__path__, str(tmp_path)])
    assert "mine" in plugins.names("drift.methods")
    assert plugins.describe("drift.methods", "mine") == "Mine, a method."
    assert plugins.source("drift.methods", "mine") == "nobody et al."
    assert plugins.describe("drift.methods", "fedprox").startswith("FedProx")
