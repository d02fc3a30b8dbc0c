"""How the explorer looks: one style sheet for page and notebook, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from panel.theme.native import Native
from panel.viewable import Viewable

SHEET = Path(__file__).with_name("explore.css").read_text()


class Explore(Native):
    """Panel's plain design with the explorer's own style sheet."""

    modifiers: ClassVar[dict[Any, Any]] = {
        Viewable: {"stylesheets": [*Native.modifiers[Viewable]["stylesheets"], SHEET]}
    }
