"""Round: the clients of a round, their updates, weights, losses and labels; brushing selects clients everywhere."""

from __future__ import annotations

import html
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
import xarray as xr

from drift.analyses.rounds.cohort_table import cohort_table
from drift.analyses.samples.client_losses import client_losses
from drift.runs.run import Run
from figures.explore.shell import html_table
from figures.explore.shell.as_figure import Request
from figures.explore.shell.plot import Plot
from figures.explore.shell.style import HALF, WRAP
from figures.explore.shell.view import View
from figures.explore.work.small_runs import is_small
from figures.interactive.cohort import client_cloud, cosine_map, label_bars, own_losses
from figures.interactive.words import label_shares, label_words

COLUMNS = {
    "update_norm": "length",
    "cosine_mean": "cosine to mean",
    "cosine_step": "cosine to step",
    "relative_weight": "weight",
    "share": "share of data",
    "samples": "samples",
    "loss": "test loss",
    "own_loss": "own loss",
    "start_own_loss": "own loss before",
    "end_own_loss": "own loss after",
}
"""Heads of the table, by variable."""

SHOWN = (*COLUMNS, "distance")
"""What the cloud can show along its axes."""


USUAL = {"across": "cosine_mean", "up": "update_norm"}
"""What it shows across and up unless something else is selected."""


class RoundView(View):
    """The cohort of the round that is looked at."""

    name = "round"
    title = "Round"
    follows = frozenset({"runs", "round", "clients", "growth", "round.across", "round.up", "round.order"})

    def body(self) -> pn.Column:
        """Cloud and matrix, labels, table."""
        self._about: tuple[str, int, str] | None = None
        self._ds = xr.Dataset()
        self._labels: tuple[np.ndarray, list[str]] | None = None
        self._cloud = Plot("clients of the round, one circle each", height=340, styles=HALF)
        self._matrix = Plot("cosines between the updates of the clients", height=340, styles=HALF)
        self._bars = Plot("classes that the clients train on", height=300, styles=HALF)
        self._losses = Plot("loss on each client's own data, before and after", height=300, styles=HALF)
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "max_width": 190}
        self._across = self.picker("round.across", "across", **wide)
        self._up = self.picker("round.up", "up", **wide)
        orders = {"by client": "", "by likeness": "alike"}
        self._order = self.picker("round.order", "matrix", orders, **{**wide, "max_width": 130})
        self._table: pn.widgets.Tabulator | None = None
        self._slot = pn.Column(sizing_mode="stretch_width")
        self._summary = pn.pane.HTML("", sizing_mode="stretch_width")
        self._cloud.on("select", self.guarded(self._brushed))
        self.on_point(self._cloud, self._clicked)
        self.on_point(self._matrix, lambda point: self._pick([*{int(point["x"]), int(point["y"])}]))
        self.on_point(self._bars, self._bar)
        self.on_point(self._losses, self._clicked)
        return pn.Column(
            pn.Row(self._across, self._up, self._order, styles=WRAP, sizing_mode="stretch_width"),
            self._summary,
            pn.Row(self._cloud, self._matrix, styles=WRAP, sizing_mode="stretch_width"),
            pn.Row(self._bars, self._losses, styles=WRAP, sizing_mode="stretch_width"),
            self._slot,
            sizing_mode="stretch_width",
        )

    def update(self, changed: set[str]) -> None:
        """Read the cohort where run or round changed; draw it."""
        index = self.explorer.round()
        run = self.explorer.recorded()
        about = (self.selection.run, index, str(run.head))
        if about != self._about:
            self._read(run, index, about)
        self._draw()

    def figures(self) -> list[Request]:
        """The clients of the round."""
        run, index = self.explorer.run(), self.explorer.round()
        clients = [client for client in self.selection.clients if client in run.round(index).ids.tolist()]
        title = f"Clients of round {index} of {run.name}"
        return [Request.from_runs("clients-round", run, title=title, round=index, clients=sorted(clients) or None)]

    def _read(self, run: Run, index: int, about: tuple[str, int, str]) -> None:
        """The table from the record at once, labels and losses when they are computed."""
        self.close()
        self._about = None
        ds = cohort_table(run, round=index)
        if not ds.sizes["client"]:
            raise LookupError(f"every client of round {index} of {run.name} diverged; select another round.")
        self._about, self._labels, self._ds = about, None, ds
        recorded = self.explorer.run()
        shown: dict[str, Any] = {"wanted": lambda: about == self._about, "ended": lambda _: None}
        self.ask(cohort_labels, recorded, index, self._show_labels, **shown)
        if index in recorded.kept("clients"):
            how: dict[str, Any] = {"title": f"losses of the clients of round {index}", "briefly": is_small(recorded)}
            begin = partial(self.explorer.jobs.cached, recorded, client_losses, round=index, **how)
            self._jobs.append(self.compute(begin, self._show_losses, **shown))

    def _show_labels(self, labels: tuple[np.ndarray, list[str]] | None) -> None:
        self._labels = labels
        self._draw()

    def _show_losses(self, losses: xr.Dataset) -> None:
        self._ds = self._ds.merge(losses, compat="override", combine_attrs="override")
        self._draw()

    def _draw(self) -> None:
        ds, selected = self._ds, set(self.selection.clients)
        offered = {str(ds[name].attrs["long_name"]): name for name in SHOWN if name in ds}
        look = self.selection.look
        asked = {axis: look(f"round.{axis}", usual) for axis, usual in USUAL.items()}
        across, up = (name if name in ds else USUAL[axis] for axis, name in asked.items())
        with self.quietly():
            self._across.param.update(options=offered, value=across)
            self._up.param.update(options=offered, value=up)
            self._order.value = look("round.order")
            self._show_table(ds, selected)
        revision = f"{self._about} {across} {up}"
        self._cloud.show(client_cloud(ds, across, up, selected).update_layout(uirevision=revision))
        self._matrix.show(cosine_map(ds, selected, alike=look("round.order") == "alike"))
        if self._labels is not None:
            shares, classes = self._labels
            self._bars.show(label_bars(ds.client.values.tolist(), shares, classes, selected))
        self._bars.visible = self._labels is not None
        if "own_loss" in ds:
            self._losses.show(own_losses(ds, selected))
        self._losses.visible = "own_loss" in ds
        self._summary.object = f"<p>{html.escape(_summary(ds))}</p>"

    def _show_table(self, ds: xr.Dataset, selected: set[int]) -> None:
        ids = ds.client.values.tolist()
        columns = {"client": ids}
        columns |= {head: html_table.rounded(ds[name].values) for name, head in COLUMNS.items() if name in ds}
        if self._labels is not None:
            columns["labels"] = [label_words(row, self._labels[1]).removeprefix("labels ") for row in self._labels[0]]
        picked = [index for index, client in enumerate(ids) if client in selected]
        frame = pd.DataFrame(columns)
        if self._table is None or list(self._table.value.columns) != list(frame.columns):
            self._table = self._new_table(frame, picked)
            self._slot[:] = [self._table]
        elif not frame.equals(self._table.value):
            self._table.selection = []
            self._table.value = frame
        self._table.selection = picked

    def _new_table(self, frame: pd.DataFrame, picked: list[int]) -> pn.widgets.Tabulator:
        """A table of these columns for good: the page cannot change those of a table that it is still making."""
        numbers = [name for name in frame.columns if frame[name].dtype.kind == "f"]
        look: dict[str, Any] = {"formatters": {name: html_table.as_written() for name in numbers}}
        look |= {"text_align": dict.fromkeys(numbers, "right"), "show_index": False, "disabled": True, "height": 280}
        look |= {"selectable": "toggle", "pagination": None, "sizing_mode": "stretch_width", "layout": "fit_data_fill"}
        table = pn.widgets.Tabulator(frame, selection=picked, **look)
        table.param.watch(self.guarded(self._rows_picked), "selection")
        return table

    def _rows_picked(self, event: Any) -> None:
        if not self._quiet:
            ids = self._ds.client.values.tolist()
            self._pick([ids[index] for index in event.new])

    def _brushed(self, event: dict[str, Any]) -> None:
        self._pick([int(point["data"]) for point in event["points"]])

    def _clicked(self, point: dict[str, Any]) -> None:
        """A click adds a client to the selected ones, or takes it out."""
        self._pick([*set(self.selection.clients) ^ {int(point["data"])}])

    def _bar(self, point: dict[str, Any]) -> None:
        """A click on a class of a client selects both, for Samples."""
        client, label = (int(value) for value in point["data"])
        self.selection.change(clients=[client], client=client, truth=label)

    def _pick(self, clients: list[int]) -> None:
        self.selection.change(clients=sorted(clients), client=clients[0] if len(clients) == 1 else None)


def cohort_labels(run: Run, index: int) -> tuple[np.ndarray, list[str]] | None:
    """Class shares (m, C) of what the cohort of a round trains on, and the names of the classes; None if not known."""
    shares = label_shares(run, index)
    if shares is None:
        return None
    return shares[run.round(index).ids.numpy()], [str(name) for name in run.dataset.classes]


def _summary(ds: xr.Dataset) -> str:
    """One line on the cohort."""
    lengths, cosines = ds.update_norm.values, ds.cosine.values
    count = len(lengths)
    text = f"Round {ds.attrs['round']}: {count} client{'s' if count != 1 else ''}; lengths {lengths.min():.3g} to "
    text += f"{lengths.max():.3g}"
    if count > 1:
        pairs = cosines[~np.eye(count, dtype=bool)]
        text += f"; cosines of pairs {pairs.min():.2f} to {pairs.max():.2f}, mean {pairs.mean():.2f}"
    return text + ". Draw a box around clients, or click them, to select them in every view."
