"""How the explorer looks: one style sheet for page and notebook, light and dark."""

from __future__ import annotations

from typing import Any, ClassVar

from panel.theme.base import Inherit
from panel.theme.native import Native
from panel.viewable import Viewable


class Explore(Native):
    """Panel's plain design with the explorer's own style sheet."""

    modifiers: ClassVar[dict[Any, Any]] = {Viewable: {"stylesheets": [Inherit, "explore.css"]}}
