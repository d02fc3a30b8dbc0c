"""The page around the views: the selection in the address, the back button, keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent


class Page(JSComponent):
    """Writes the selection's query into the address of the page, and reports the back button and keys.

    Args:
        on_address: Called with the query that the back button leads to.
        on_key: Called with the name of a key.
        on_drawn: Called with the number of a placing of views when the browser has drawn them.
    """

    state = param.Dict({"query": "", "step": "", "views": [], "placed": 0, "number": 0})
    address = param.Boolean(True, doc="Whether the page is the explorer's own: not in a notebook.")

    _esm = Path(__file__).with_name("page.js")

    def __init__(
        self,
        on_address: Callable[[str], Any],
        on_key: Callable[[str], Any],
        on_drawn: Callable[[int], Any],
        **options: Any,
    ) -> None:
        super().__init__(width=0, height=0, margin=0, **options)
        self._on_address, self._on_key, self._on_drawn = on_address, on_key, on_drawn
        self._answered = 0

    def write(self, query: str, step: str, views: list[str], placed: int) -> None:
        """Write a query into the address, and report when the views are drawn.

        Args:
            query: Without the question mark.
            step: What changed; the same thing again soon after is the same step for the back button.
            views: Names of the views on the page.
            placed: Number of times that views were placed.
        """
        self.state = {"query": query, "step": step, "views": views, "placed": placed, "number": self._answered}

    def _handle_msg(self, data: dict[str, Any]) -> None:
        if data.get("event") == "address":
            self._answered = int(data.get("number", 0))
            self._on_address(str(data.get("query", "")))
        elif data.get("event") == "key":
            self._on_key(str(data.get("key", "")))
        elif data.get("event") == "drawn":
            self._on_drawn(int(data.get("number", 0)))
