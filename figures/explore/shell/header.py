"""The lines above the views: which run, which round, which clients, which views; problems and work in progress."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import panel as pn

from figures.explore.shell.activity import Activity
from figures.explore.shell.view import PROBLEMS

if TYPE_CHECKING:
    from figures.explore.shell.app import Explorer

KEYS = "Keys: 1 to 8 views, left and right rounds, Home and End first and last round, Escape clears clients."


class PageHeader:
    """Pickers that show and change the selection.

    Args:
        explorer: Selection, runs and views.
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._quiet = False
        titles = {view.title: name for name, view in explorer.views.items()}
        self.views = pn.widgets.RadioButtonGroup(options=titles, css_classes=["views"])
        self.second = pn.widgets.Select(
            options={"one view": "", **{f"+ {title}": name for title, name in titles.items()}}
        )
        self.second.param.update(width=120, css_classes=["second"], description="A second view beside the first")
        self.run = pn.widgets.Select(label="run", width=290, css_classes=["run"])
        self.round = pn.widgets.IntSlider(label="round", start=0, end=1, width=220, css_classes=["round"])
        self.live = pn.widgets.Checkbox(label="last round", width=95, css_classes=["live"])
        self.clients = pn.widgets.Button(visible=False, css_classes=["clients"])
        self.notice = pn.pane.HTML("", css_classes=["line"], visible=False, sizing_mode="stretch_width")
        self.activity = Activity(explorer.jobs)
        self._watch(self.views, "value", lambda name: {"view": name, **self._swapped(name)})
        self._watch(self.second, "value", lambda name: {"second": name})
        self._watch(self.run, "value", lambda name: {"runs": self._first(name)})
        self._watch(self.round, "value_throttled", lambda number: {"round": self._nearest(number)})
        self._watch(self.live, "value", lambda on: {"round": None if on else self._nearest(int(self.round.value or 0))})
        self.clients.on_click(lambda _: explorer.selection.change(clients=[], client=None))
        pickers = pn.Row(self.run, self.round, self.live, self.clients, css_classes=["pickers"])
        slots = pn.Row(self.views, self.second, css_classes=["places"], sizing_mode="stretch_width")
        line = (pickers, slots, self.activity.panel, self.notice)
        self.panel = pn.Column(*line, sizing_mode="stretch_width", css_classes=["header"])

    def update(self, changed: set[str]) -> None:
        """Show the selection, and what changed in the folders."""
        selection, shown = self.explorer.selection, self.explorer.shown()
        self._quiet = True
        try:
            self.views.value = shown[0]
            self.second.value = shown[1] if len(shown) > 1 else ""
            if changed & {"runs", "growth"}:
                names = self.explorer.runs.names
                unknown = [selection.run] if selection.run not in names else []
                self.run.param.update(options=[*names, *unknown], value=selection.run)
            if changed & {"runs", "round", "growth"}:
                self._show_round()
            self._show_clients([*selection.clients] or [selection.client])
        finally:
            self._quiet = False

    def say(self, *lines: str) -> None:
        """Show lines below the pickers in place of those before."""
        text = "".join(f"<p>{html.escape(' '.join(line.split()))}</p>" for line in lines if line)
        self.notice.param.update(object=text, visible=bool(text))

    def key(self, key: str) -> None:
        """Do what a key means (see `KEYS`)."""
        selection, names, rounds = self.explorer.selection, list(self.explorer.views), self._rounds()
        if key.isdigit() and 0 < int(key) <= len(names):
            name = names[int(key) - 1]
            selection.change(view=name, **self._swapped(name))
        elif key == "?":
            self.say("" if self.notice.visible else KEYS)
        elif key == "Escape":
            self.say()
            selection.change(clients=[], client=None)
        elif key == "End":
            selection.change(round=None)
        elif rounds and key in ("ArrowLeft", "ArrowRight", "Home"):
            number = rounds[-1] if selection.round is None else selection.round
            now = min(range(len(rounds)), key=lambda index: abs(rounds[index] - number))
            step = {"ArrowLeft": -1, "ArrowRight": 1, "Home": -len(rounds)}[key]
            index = min(max(now + step, 0), len(rounds) - 1)
            if index != now:
                selection.change(round=rounds[index])

    def _watch(self, widget: Any, name: str, fields: Any) -> None:
        """Change the selection by what a person does, and not by what `update` shows."""

        def changed(event: Any) -> None:
            if not self._quiet:
                self.explorer.selection.change(**fields(event.new))

        widget.param.watch(changed, name)

    def _swapped(self, name: str) -> dict[str, str]:
        """The second view, if the first is to show what it shows: the two change places."""
        selection = self.explorer.selection
        return {"second": selection.view} if name == selection.second else {}

    def _first(self, name: str) -> list[str]:
        """The selected runs with this one first; it takes the first one's place if it was not selected."""
        runs = self.explorer.selection.runs
        return [name, *(other for other in (runs if name in runs else runs[1:]) if other != name)]

    def _rounds(self) -> list[int]:
        try:
            return list(self.explorer.recorded().rounds())
        except PROBLEMS:
            return []

    def _nearest(self, number: int) -> int | None:
        return min(self._rounds(), key=lambda round: abs(round - number), default=None)

    def _show_round(self) -> None:
        rounds, number = self._rounds() or [0], self.explorer.selection.round
        value = rounds[-1] if number is None else min(max(number, rounds[0]), rounds[-1])
        several = len(rounds) > 1
        self.round.param.update(start=rounds[0], end=max(rounds[-1], rounds[0] + 1), value=value, visible=several)
        self.live.value = number is None

    def _show_clients(self, clients: list[int | None]) -> None:
        ids = [str(client) for client in clients if client is not None]
        text = f"client{'s' if len(ids) > 1 else ''} {', '.join(ids[:6])}{' ...' if len(ids) > 6 else ''}: clear"
        self.clients.param.update(label=text, visible=bool(ids))
