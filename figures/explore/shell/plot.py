"""A plotly figure on the page, drawn by the plotly.js that plotly.py has with it."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import panel as pn
import param
import plotly
import plotly.graph_objects as go
from panel.custom import JSComponent
from plotly.offline import get_plotlyjs

EVENTS = ("click", "select", "zoom", "drag")

LIBRARY = f"plotly.js?v={plotly.__version__}"
"""Where the explorer's server has plotly.js."""


class Plot(JSComponent):
    """A figure that is drawn anew only where it changes, and reports what is done on it.

    Its handlers get a table: `click`: points (each x, y, z, trace, curve, index, data) and the exact place x, y;
    `select` (box, lasso): points, and the box's ranges x, y or None; `zoom`: ranges x, y; `drag`: index, x, y, done.

    Args:
        label: What it shows, in words (aria-label).
        drag: Name of a trace whose points can be dragged, by arrow keys too.
        config: Of plotly.js, such as {"scrollZoom": True}.
    """

    figure = param.String("", doc="The figure as JSON; see `show`.")
    label = param.String("")
    drag = param.String("")
    config = param.Dict({})
    library = param.String("", doc="Address of plotly.js; empty: the kernel sends it.")

    _esm = Path(__file__).with_name("plot.js")

    def __init__(self, label: str = "", **options: Any) -> None:
        options = {"height": 380, "sizing_mode": "stretch_width", "library": library_address(), **options}
        super().__init__(label=label, **options)
        self._handlers: dict[str, list[Callable[[dict[str, Any]], Any]]] = {name: [] for name in EVENTS}

    def show(  # type: ignore[override] # Panel's own would serve the figure alone
        self, figure: go.Figure | None, label: str | None = None
    ) -> None:
        """Draw a figure in place of the one before; zoom and camera stay where its `uirevision` stays.

        Args:
            figure: Its height and width are left to the place; None: nothing.
            label: What it shows, in words.
        """
        if label is not None:
            self.label = label
        self.figure = "" if figure is None else str(figure.to_json(validate=False))

    def on(self, event: str, handler: Callable[[dict[str, Any]], Any]) -> None:
        """Call a handler with what happened: click, select, zoom or drag.

        Raises:
            ValueError: If there is no such event.
        """
        if event not in EVENTS:
            raise ValueError(f"no event {event!r}; there are {', '.join(EVENTS)}.")
        self._handlers[event].append(handler)

    def _handle_msg(self, data: dict[str, Any]) -> None:
        event = data.pop("event", "")
        if event == "library":
            self._send_msg({"library": _packed()})
            return
        try:
            for handler in self._handlers.get(event, ()):
                handler(data)
        finally:
            if event == "drag":
                self._send_msg({"ack": True})


def library_address() -> str:
    """Where a page has plotly.js; empty in a notebook."""
    return LIBRARY if pn.state.curdoc is not None and pn.state.curdoc.session_context else ""


@lru_cache(maxsize=1)
def _packed() -> str:
    """plotly.js, compressed, as text."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 6)).decode()
