"""The explorer where Panel and bokeh lack the private parts that it covers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pn = pytest.importorskip("panel")

from panel.reactive import Reactive  # noqa: E402 - after the check for Panel

from figures.explore.shell import server, style  # noqa: E402
from figures.explore.shell.root import Root  # noqa: E402


def _without(monkeypatch, kind, name):
    for owner in [owner for owner in kind.__mro__ if name in vars(owner) and owner is not Root]:
        monkeypatch.delattr(owner, name)


def test_style_sheets_stay_links_where_panel_has_no_such_method(monkeypatch):
    _without(monkeypatch, Reactive, "_process_param_change")
    style.work_offline()
    assert not hasattr(Reactive, "_process_param_change")


def test_the_layout_is_panels_own_where_panel_hands_messages_on_otherwise(monkeypatch):
    _without(monkeypatch, Root, "_on_msg")
    root = Root("text", name="layout")
    root.append("more")
    assert len(root) == 2 and not hasattr(pn.Column, "_on_msg")


def test_a_server_that_cannot_be_guarded_is_refused():
    with pytest.raises(LookupError, match="cannot be guarded"):
        server._application(SimpleNamespace(io_loop=None))
