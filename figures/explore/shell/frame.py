"""The frame of a view: its title where it stands beside another one, and the button "as figure"."""

from __future__ import annotations

from typing import Any

import panel as pn

from figures.explore.shell.view import View


class Frame:
    """A view with what every view has.

    Args:
        view: The view.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._figures: Any = None
        self._title = pn.pane.HTML(f"<h2>{view.title}</h2>", css_classes=["title"], visible=False)
        self._button = pn.widgets.Toggle(label="as figure", width=90, css_classes=["as-figure"])
        self._button.param.watch(self._toggled, "value")
        self._drawer = pn.Column(sizing_mode="stretch_width", css_classes=["drawer"], visible=False)
        top = pn.Row(self._title, pn.Spacer(sizing_mode="stretch_width"), self._button, css_classes=["frame-top"])
        self._top = top
        self.panel = pn.Column(top, self._drawer, view.panel, sizing_mode="stretch_width", css_classes=["frame"])

    def arrange(self, *, second: bool) -> None:
        """Show the title if the view stands beside another one; its tab shows it otherwise."""
        self._title.visible = second

    def _toggled(self, event: Any) -> None:
        """Open the drawer with what the view shows now as named figures, or close it."""
        if self._figures is not None:
            self._figures.close()
        self._figures, self._drawer.visible = None, bool(event.new)
        if event.new:
            from figures.explore.shell.as_figure_panel import AsFigure

            self._figures = AsFigure(self.view)
        self._drawer.objects = [] if self._figures is None else [self._figures.panel]
