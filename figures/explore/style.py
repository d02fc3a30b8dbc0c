"""How the explorer looks: one style sheet for page and notebook, light and dark."""

from __future__ import annotations

from functools import wraps
from typing import Any, ClassVar

import panel as pn
from bokeh.models import ImportedStyleSheet
from panel.io.notebook import replace_inline_css
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
    if hasattr(Reactive._process_param_change, "__wrapped__"):
        return
    process = Reactive._process_param_change

    @wraps(process)
    def offline(viewable: Any, params: dict[str, Any]) -> dict[str, Any]:
        properties = process(viewable, params)
        sheets = properties.get("stylesheets")
        if sheets and not (pn.state.curdoc and pn.state.curdoc.session_context):
            properties["stylesheets"] = [
                replace_inline_css(sheet) if isinstance(sheet, ImportedStyleSheet) else sheet for sheet in sheets
            ]
        return properties

    Reactive._process_param_change = offline
