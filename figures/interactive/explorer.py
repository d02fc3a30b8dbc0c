"""An explorer for notebooks: pick a run, a round and a client, and the plane and the drift are drawn anew."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import plotly.graph_objects as go

from drift.runs.run import Run
from figures.interactive.curves import QUANTITIES, written_name
from figures.interactive.explorer_views import MAPS, Pick, absent, drift, plane
from figures.selection.groups import groups


class Explorer:
    """Pickers for run, round, client, map and curve, and two figures that follow them.

    Every picker is an ipywidgets widget whose `value` may be set in code too; `plane` and `drift` are plotly
    `FigureWidget`s. Shown by standing last in a cell.

    Args:
        runs: Runs that kept what their planes need; what one lacks stands in place of its picture.
        points: Grid points an axis of the plane.

    Raises:
        LookupError: If no run is given, one has no complete round, or the extra `notebook` is not installed.
    """

    def __init__(self, runs: Sequence[Run], *, points: int = 15) -> None:
        widgets = _widgets()
        self._named = _named(runs)
        self._points = points
        self._quiet = False
        wide = {"layout": widgets.Layout(width="270px"), "style": {"description_width": "46px"}}
        self.run = widgets.Dropdown(options=[*self._named], description="run", **wide)
        self.round = widgets.SelectionSlider(options=[0], description="round", continuous_update=False, **wide)
        self.client = widgets.Dropdown(description="client", **wide)
        self.shows = widgets.Dropdown(options=[(text, name) for name, text in MAPS.items()], description="map", **wide)
        names = [(name.replace("_", " "), name) for name in QUANTITIES]
        self.quantity = widgets.Dropdown(options=names, description="curve", **wide)
        self.said = widgets.HTML(layout=widgets.Layout(height="24px"))
        with self._silently():
            self._offer_rounds(last=True)
            self._offer_clients()
        self.plane = go.FigureWidget(self._plane())
        self.drift = go.FigureWidget(self._drift())
        self.drift.data[-2].on_click(self._clicked)
        pickers = [self.run, self.round, self.client, self.shows, self.quantity]
        for picker in pickers:
            picker.observe(self._changed, "value")
        row = widgets.Layout(flex_flow="row wrap")
        children = [widgets.Box(pickers, layout=row), self.said, widgets.Box([self.plane, self.drift], layout=row)]
        self.box = widgets.VBox(children)

    @property
    def pick(self) -> Pick:
        """What is shown now."""
        run = self._named[self.run.value]
        return Pick(run, self.round.value, self.client.value, self.shows.value, self.quantity.value)

    def show(self, *, round: int | None = None, client: int | None = None) -> None:
        """Show a round, or a client of it, as picking it does.

        Raises:
            ValueError: If the run kept no such round, or its cohort does not hold the client.
        """
        for picker, number in ((self.round, round), (self.client, client)):
            options = [value for value in picker.options if value is not None]
            if number is not None and number not in options:
                raise ValueError(f"no {picker.description} {number} here; there are {', '.join(map(str, options))}.")
            if number is not None:
                picker.value = number

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.box._repr_mimebundle_(**options)

    def _changed(self, change: Any) -> None:
        if self._quiet:
            return
        with self._silently():
            if change["owner"] is self.run:
                self._offer_rounds()
            if change["owner"] in (self.run, self.round):
                self._offer_clients()
        self.said.value = "drawing ..."
        if change["owner"] is not self.quantity:
            _follow(self.plane, self._plane())
        if change["owner"] is not self.shows:
            _follow(self.drift, self._drift())
        self.said.value = ""

    def _clicked(self, trace: Any, points: Any, state: Any) -> None:
        """A click on a client's dot picks its round and the client."""
        for place in points.point_inds[:1]:
            round, client = (int(value) for value in trace.customdata[place][:2])
            if round in self.round.options:
                self.show(round=round)
                self.show(client=client)

    @contextmanager
    def _silently(self) -> Iterator[None]:
        """Pickers change without anything being drawn."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _offer_rounds(self, *, last: bool = False) -> None:
        """Rounds of the run that kept clients, else all; the one nearest to that shown before is picked."""
        run, before = self._named[self.run.value], self.round.value
        rounds = run.kept("clients") or run.rounds()
        self.round.options = rounds
        self.round.value = rounds[-1] if last else min(rounds, key=lambda index: abs(index - before))

    def _offer_clients(self) -> None:
        before = self.client.value
        ids = self._named[self.run.value].round(self.round.value).ids.tolist()
        self.client.options = sorted(ids) or [("none", None)]
        self.client.value = before if before in ids else self.client.options[0] if ids else None

    def _plane(self) -> go.Figure:
        try:
            return plane(self.pick, points=self._points)
        except (LookupError, ValueError) as reason:
            return absent(str(reason))

    def _drift(self) -> go.Figure:
        return drift(self._named, self.pick)


def explorer(runs: Sequence[Run] | Run, *, points: int = 15) -> Explorer:
    """Widgets that show the plane and the drift of a run, a round and a client that are picked.

    The plane goes through the picked client's model and those of the next two clients of its cohort. It shows the loss
    or error of test samples, or the loss of the client's own samples. Beside it stand a curve over rounds for all runs,
    and how far each client of the picked run ended from the mean of its cohort; a click on one of these dots picks it.
    Planes are computed when they are first looked at, and kept in the run's folder.

    Args:
        runs: A run, or several.
        points: Grid points an axis of the plane.

    Raises:
        LookupError: If no run is given, one has no complete round, or the extra `notebook` is not installed.
    """
    return Explorer([runs] if isinstance(runs, Run) else runs, points=points)


def _follow(widget: Any, figure: go.Figure) -> None:
    """Make a figure on the page show what another one does, its traces kept where they are of the same kinds."""
    with widget.batch_update():
        if [trace.type for trace in widget.data] == [trace.type for trace in figure.data]:
            for trace, fresh in zip(widget.data, figure.data, strict=True):
                trace.update(fresh.to_plotly_json(), overwrite=True)
        else:
            widget.data = []
            widget.add_traces(list(figure.data))
        content = {"annotations": [], "shapes": [], **figure.layout.to_plotly_json()}
        widget.layout.update({name: value for name, value in content.items() if name != "template"}, overwrite=True)


def _named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by the name that legends give them, and their seed where there are several."""
    by_method = groups(runs)
    return {
        f"{written_name(name)}, seed {run.experiment.seed}" if len(group) > 1 else written_name(name): run
        for name, group in by_method.items()
        for run in group
    }


def _widgets() -> Any:
    """ipywidgets, with what plotly needs beside it.

    Raises:
        LookupError: If one is absent, naming the extra.
    """
    for name in ("anywidget", "ipywidgets"):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as reason:
            raise LookupError(f"the explorer needs {name}; pip install 'fedscape[notebook]'.") from reason
    return module
