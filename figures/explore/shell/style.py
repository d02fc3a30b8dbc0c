"""How the explorer looks: one style sheet for page and notebook, light and dark."""

from __future__ import annotations

from functools import wraps
from typing import Any, ClassVar

import panel as pn
from bokeh.models import ImportedStyleSheet, InlineStyleSheet
from panel.io.resources import CDN_DIST, DIST_DIR, LOCAL_DIST
from panel.reactive import Reactive
from panel.theme.base import Inherit
from panel.theme.native import Native
from panel.viewable import Viewable


class Explore(Native):
    """Panel's plain design with the explorer's own style sheet."""

    modifiers: ClassVar[dict[Any, Any]] = {Viewable: {"stylesheets": [Inherit, "explore.css"]}}


def work_offline() -> None:
    """Give Panel's style sheets to every part of a notebook as text, as Panel itself does for those shown at first.

    Parts that are shown later would have links to another machine in place of them.
    """
    process = getattr(Reactive, "_process_param_change", None)
    if process is None or hasattr(process, "__wrapped__"):
        return

    @wraps(process)
    def offline(viewable: Any, params: dict[str, Any]) -> dict[str, Any]:
        properties = process(viewable, params)
        sheets = properties.get("stylesheets")
        if sheets and not (pn.state.curdoc and pn.state.curdoc.session_context):
            properties["stylesheets"] = [_as_text(sheet) for sheet in sheets]
        return properties

    setattr(Reactive, "_process_param_change", offline)  # noqa: B010 - a method of another package


def _as_text(sheet: Any) -> Any:
    """A style sheet that is a link to one of Panel's files as its text; any other one as it is."""
    if not isinstance(sheet, ImportedStyleSheet):
        return sheet
    url = sheet.url.partition("?")[0]
    name = url.removeprefix(CDN_DIST).removeprefix(LOCAL_DIST)
    path = DIST_DIR / name
    return InlineStyleSheet(css=path.read_text(encoding="utf-8")) if name != url and path.is_file() else sheet


WRAP = {"flex-wrap": "wrap", "min-width": "0"}
"""Style of a row whose parts stand below each other on a narrow page."""

HALF = {"flex": "1 1 330px", "min-width": "0", "max-width": "100%"}
"""Style of a part that takes half of such a row."""
