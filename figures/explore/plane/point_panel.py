"""What is known of one point of a plane: loss, error, errors per class, loss per client, confusion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import panel as pn

from drift.runs.run import Run
from figures.explore.plane.maps import POINT, SMALL, clients_figure
from figures.explore.plane.points import client_losses, numbers
from figures.explore.plane.queries import Numbers, PointQuery
from figures.explore.shell.plot import Plot
from figures.explore.shell.view import View
from figures.explore.work.job import LongJob
from figures.explore.work.versions import round_version
from figures.interactive.confusions import counts_map, error_bars
from figures.selection.statistics_text import statistics_text


class PointPanel:
    """The numbers of a point beside those of the round's end; what is asked last is what is shown.

    Args:
        view: Its view, in which errors become a line.
        model: Name of the model that a click on a class or cell of the confusion selects for the other views.
        on_numbers: Called with (coefficients, numbers) of a point that is not being dragged any more.
        title: What the point is.
    """

    def __init__(
        self,
        view: View,
        model: str = "point",
        on_numbers: Callable[[list[float], Numbers], None] | None = None,
        title: str = "Selected point",
    ) -> None:
        self.view, self._model, self._on_numbers, self._title = view, model, on_numbers, title
        self._names: Sequence[str] = ()
        self._ids: Sequence[int] = ()
        self.text = pn.pane.HTML("", sizing_mode="stretch_width", margin=(0, 8))
        query = {"height": SMALL, "styles": {"flex": "1 1 300px", "width": "auto"}}
        self.classes = Plot("Error per class of the point", **query)
        self.clients = Plot("Loss of the point on the samples of each client", **query)
        self.cells = Plot("Confusion of the classes at the point", **query)
        self.plots = pn.Row(
            self.classes, self.clients, self.cells, css_classes=["wrap"], sizing_mode="stretch_width", visible=False
        )
        self.panel = pn.Column(self.text, self.plots, sizing_mode="stretch_width")
        self._jobs: list[LongJob] = []
        self._asked: Any = None
        self._of: Any = None
        self._numbers: Numbers | None = None
        self._losses: dict[int, float] | None = None
        self._end: tuple[Any, Numbers] | None = None
        for plot in (self.classes, self.clients, self.cells):
            view.on_point(plot, self._clicked)

    def clear(self) -> None:
        """Show no point."""
        self._cancel()
        self._asked = self._numbers = None
        self.text.object = ""
        self.plots.visible = False

    def invite(self, hint: str) -> None:
        """Say how a point is selected, while none is."""
        if self._asked is None:
            self.text.object = f"<p>{hint}</p>"

    def show(
        self,
        run: Run,
        query: PointQuery,
        row: list[float],
        *,
        settled: bool,
        names: Sequence[str] = (),
        ids: Sequence[int] = (),
    ) -> None:
        """Evaluate a point: coefficients of the place's models.

        Args:
            names: Of the models, where they are not the place's.
            ids: Clients of the round; while their losses are not known, room is left for them.
            settled: With the losses of the clients; without them while it is dragged.
        """
        exact = replace(query, precision="exact")
        asked = (round_version(run, query.round, query.models), exact, tuple(row), settled)
        if asked == self._asked:
            return
        self._cancel()
        if self._numbers is None or self._of[:2] != asked[:2]:
            self._numbers = None
            self.text.object = "<p>evaluating the selected point ...</p>"
            for plot in (self.classes, self.cells):
                plot.show(None)
        self._asked, self._names, self._ids = asked, names or query.models, ids
        self._losses = {client: float("nan") for client in ids} or None
        self._classes = [str(label) for label in run.about.get("classes", [])]

        end = replace(exact, models=("end",))
        asks: list[tuple[Any, ...]] = [(numbers, (exact, row), partial(self._arrived, asked), 0)]
        if self._end is None or self._end[0] != (asked[0], end):
            self._end = None
            came = lambda result: self._arrived(asked, end=((asked[0], end), result))  # noqa: E731
            asks.append((numbers, (end, [1.0]), came, 2))
        if settled:
            asks.append((client_losses, (exact, row), lambda result: self._arrived(asked, losses=result), 3))
        how: dict[str, Any] = {"wanted": lambda: self._asked == asked}
        for function, item, take, priority in asks:
            ended = self._failed if function is numbers else self.view.say_error
            self._jobs.append(self.view.ask(function, run, item, take, ended=ended, priority=priority, **how))

    def _failed(self, job: LongJob) -> None:
        """Say why a point has no numbers, and show none."""
        self.view.say_error(job)
        self.clear()

    def _arrived(
        self,
        asked: Any,
        result: Numbers | None = None,
        *,
        end: tuple[Any, Numbers] | None = None,
        losses: dict[int, float] | None = None,
    ) -> None:
        """Show what came of a point, once its own numbers are there: beside those of the round's end."""
        self._losses, self._end = losses or self._losses, end or self._end
        if result is not None:
            self._numbers, self._of = result, asked
        self.clients.show(clients_figure(self._losses) if self._losses else None)
        if self._numbers is None or self._of != asked or losses is not None:
            return
        number, other, (_, query, row, settled) = self._numbers, None if self._end is None else self._end[1], asked
        terms = " + ".join(f"{value:.3g} {escape(name)}" for value, name in zip(row, self._names, strict=False))
        comparison = "" if other is None else f" (the round's end: {in_words(other)})"
        first, others = (
            "it has its" if number.statistics == "own" else "it has",
            "" if other is None else other.statistics,
        )
        text = statistics_text(first, number.statistics, "the round's end its", others) if number.statistics else ""
        self.text.object = (
            f"<p><b>{self._title}</b> {terms.replace('+ -', '- ')}</p>"
            f"<p class='number'>{in_words(number)}{comparison}; {number.samples} samples of {escape(query.split)}"
            f"{'; ' * bool(text)}{text}</p>"
        )
        self.plots.visible = True
        self._draw(number, other)
        if result is not None and settled and self._on_numbers is not None:
            self._on_numbers(list(row), result)

    def _draw(self, number: Numbers, other: Numbers | None) -> None:
        """Show errors per class and the confusion, where there are classes."""
        if not (count := number.class_error.size):
            self.classes.show(None)
            self.cells.show(None)
            return
        names = [*self._classes, *map(str, range(len(self._classes), count))][:count]
        errors = {"this point": number.class_error}
        errors |= {} if other is None or not other.class_error.size else {"the round's end": other.class_error}
        self.classes.show(error_bars(errors, names, colours=(POINT, "#7f8c99")).update_layout(height=SMALL))
        self.cells.show(counts_map(number.confusion, names, height=SMALL))

    def _clicked(self, hit: dict[str, Any]) -> None:
        """A class or a cell of the confusion is selected, for the views that show samples."""
        if self._numbers is None:
            return
        if hit["trace"] == "clients":
            self.view.selection.change(client=int(hit["x"]))
            return
        cell = (int(hit["y"]), int(hit["x"])) if hit["trace"] == "confusion" else (int(hit["x"]), None)
        self.view.selection.change(truth=cell[0], predicted=cell[1], model=self._model)

    def _cancel(self) -> None:
        for job in self._jobs:
            job.cancel()
        self._jobs = []


def in_words(result: Numbers) -> str:
    """Loss and error of a point in words."""
    error = "" if result.error != result.error else f", error {result.error:.2%}"
    return f"loss {result.loss:.4g}{error}"
