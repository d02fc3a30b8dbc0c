"""The line above the views: which run, which round, which clients, which view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import panel as pn

from figures.explore.view import PROBLEMS

if TYPE_CHECKING:
    from figures.explore.app import Explorer


class Header:
    """Pickers of run, round and view, which follow the selection."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._quiet = False
        titles = {view.title: name for name, view in explorer.views.items()}
        self.views = pn.widgets.RadioButtonGroup(options=titles, css_classes=["views"])
        self.second = pn.widgets.Select(name="beside it", options={"nothing": "", **titles}, width=130)
        self.run = pn.widgets.Select(name="run", width=260)
        self.round = pn.widgets.IntSlider(name="round", start=0, end=1, width=220)
        self.live = pn.widgets.Checkbox(name="last round", width=90)
        self.clients = pn.widgets.Button(name="", visible=False)
        for widget, field in (
            (self.views, "view"),
            (self.second, "second"),
            (self.run, "run"),
            (self.round, "round"),
            (self.live, "live"),
        ):
            widget.param.watch(lambda event, field=field: self._picked(field, event.new), "value")
        self.clients.on_click(lambda _: explorer.selection.change(clients=[], client=None))
        row = pn.FlexBox(
            self.run, self.round, self.live, self.clients, self.second, css_classes=["pickers"], align_items="end"
        )
        self.panel = pn.Column(row, self.views, sizing_mode="stretch_width", css_classes=["header"])

    def update(self, changed: set[str]) -> None:
        """Show the selection."""
        explorer, selection = self.explorer, self.explorer.selection
        self._quiet = True
        try:
            shown = explorer.shown()
            self.views.value = shown[0]
            self.second.value = shown[1] if len(shown) > 1 else ""
            if changed & {"runs", "growth"}:
                names = explorer.runs.names
                self.run.options = [*names, *([selection.run] if selection.run not in names else [])]
                self.run.value = selection.run
            if changed & {"runs", "round", "growth"}:
                self._show_rounds()
            chosen = selection.clients or ([] if selection.client is None else [selection.client])
            text = ", ".join(map(str, chosen[:6])) + (" ..." if len(chosen) > 6 else "")
            self.clients.param.update(
                name=f"client{'s' if len(chosen) > 1 else ''} {text}: clear", visible=bool(chosen)
            )
        finally:
            self._quiet = False

    def key(self, key: str) -> None:
        """Follow a key: digits show views, arrows step through rounds, End follows the last one."""
        selection = self.explorer.selection
        names = list(self.explorer.views)
        if key.isdigit() and 0 < int(key) <= len(names):
            selection.change(view=names[int(key) - 1])
        elif key == "Escape":
            selection.change(clients=[], client=None)
        elif key == "End":
            selection.change(round=None)
        elif key in ("ArrowLeft", "ArrowRight", "Home") and not self.round.disabled:
            step = {"ArrowLeft": -1, "ArrowRight": 1, "Home": -(10**9)}[key]
            selection.change(round=max(self.round.start, min(self.round.end, self.round.value + step)))

    def _picked(self, field: str, value: Any) -> None:
        if self._quiet:
            return
        selection = self.explorer.selection
        if field == "run":
            selection.change(runs=[value, *(name for name in selection.runs if name != value)])
        elif field == "live":
            selection.change(round=None if value else self.round.value)
        else:
            selection.change(**{field: value})

    def _show_rounds(self) -> None:
        try:
            rounds = self.explorer.run().rounds()
        except PROBLEMS:
            rounds = []
        last = rounds[-1] if rounds else 0
        number = self.explorer.selection.round
        first = rounds[0] if rounds else 0
        self.round.param.update(
            start=first,
            end=max(last, first + 1),
            value=last if number is None else min(max(number, first), last),
            disabled=len(rounds) < 2,
        )
        self.live.value = number is None
