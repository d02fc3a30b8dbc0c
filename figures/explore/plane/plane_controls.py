"""What a plane goes through, what it shows and what it is evaluated on: the pickers above it."""

from __future__ import annotations

from functools import partial
from typing import Any

import panel as pn

from drift.runs.growing_run import GrowingRun
from figures.explore.plane.model_choices import WRITTEN, default_corners
from figures.explore.plane.queries import Grid, PointQuery
from figures.explore.shell.view import View
from landscape.sweep.precision import Precision

LINE_POINTS = 41
POINTS = {"": "21 x 21", "11": "11 x 11", "41": "41 x 41"}
SAMPLES = {"500": "500 samples", "": "1000 samples", "2000": "2000 samples", "all": "all samples"}
NO_THIRD = "none: a line"


class PlaneControls:
    """Pickers that follow the selection and change it.

    Args:
        view: Its view, in which errors become a line.
    """

    def __init__(self, view: View) -> None:
        self.view, self.selection = view, view.selection
        self.foreign_box: list[float] = []
        width = {"width": 152, "margin": (2, 5)}
        self.corners = [pn.widgets.Select(label=name, **width) for name in ("model A", "model B", "model C")]
        picker = partial(view.picker, margin=(2, 5))
        samples, points = ({text: key for key, text in texts.items()} for texts in (SAMPLES, POINTS))
        self.quantity = picker("quantity", "shows", width=190)
        self.depth = picker("plane.depth", "as", {"a map": "", "a relief": "3d"}, width=90)
        self.split = picker("split", "evaluated on", ["test"], width=90)
        self.samples = picker("plane.samples", "at most", samples, width=140)
        self.points = picker("plane.points", "refined to", points, width=95)
        self.precision = picker("plane.precision", "precision", {"exact": "", "bfloat16": "fast"}, width=105)
        low: dict[str, Any] = {"width": 100, "margin": (20, 5, 2, 5), "visible": False}
        self.whole_plane = view.button("whole plane", lambda _: self.selection.change(box=[]), **low)
        for widget in self.corners:
            widget.param.watch(view.guarded(self._corner), "value")
        what, how = (self.quantity, self.depth), (self.split, self.samples, self.points, self.precision)
        self.panel = pn.Row(*self.corners, *what, *how, self.whole_plane, css_classes=["wrap"])

    def names(self, groups: dict[str, list[str]], number: int) -> tuple[list[str], str]:
        """Models that the plane goes through, and a note where selected ones are not of this round."""
        selection = self.selection
        clients = [*([] if selection.client is None else [selection.client]), *selection.clients]
        selected = list(selection.corners)
        if not selected:
            return default_corners(groups, list(dict.fromkeys(clients))), ""
        here = {name for group in groups.values() for name in group}
        absent = [name for name in selected if name not in here and not _elsewhere(name)]
        if not absent:
            return selected, ""
        spare = [name for name in default_corners(groups) if name not in selected]
        names = [spare.pop(0) if name in absent and spare else name for name in selected]
        return names, f"Round {number} has no {', '.join(absent)}; the plane goes through {', '.join(names)}."

    def grid(self, names: list[str], number: int) -> Grid:
        """What is to be evaluated.

        Raises:
            LookupError: If the samples are to be those of a client, and none is selected.
        """
        selection = self.selection
        split = selection.quantity if selection.quantity.startswith("client ") else selection.split
        if split == "client":
            if selection.client is None:
                raise LookupError("no client is selected to evaluate on its samples; select one in Round.")
            split = f"client {selection.client}"
        count = selection.look("plane.samples")
        samples = None if count == "all" else int(count) if count.isdigit() else 1000
        precision: Precision = "fast" if selection.look("plane.precision") else "exact"
        query = PointQuery(number, tuple(names), split, samples, precision)
        if len(names) == 2:
            return Grid(query, "line", LINE_POINTS)
        box = tuple(selection.box) if len(selection.box) == 4 and selection.box != self.foreign_box else None
        points = selection.look("plane.points")
        return Grid(query, "plane", min(max(int(points), 5), 101) if points.isdigit() else 21, box=box)

    def offer(self, groups: dict[str, list[str]], names: list[str], recorded: GrowingRun, number: int) -> None:
        """Show what may be selected, and what is."""
        selection = self.selection
        listed = {name for group in groups.values() for name in group}
        more = [name for name in names if name not in listed]
        groups = {**groups, **({"selected": more} if more else {})}
        offered = {group: {WRITTEN.get(name, name): name for name in names} for group, names in groups.items()}
        classes = [str(label) for label in recorded.about.get("classes", [])]
        quantities = {"loss": "loss", "error": "error"}
        quantities |= {f"error of class {label}": f"class {index}" for index, label in enumerate(classes)}
        of_clients = [f"client {client}" for client in sorted(recorded.round(number).ids.tolist())]
        if selection.quantity.startswith("client ") and selection.quantity not in of_clients:
            of_clients.append(selection.quantity)
        quantities |= {f"loss of {client}'s samples": client for client in of_clients}
        if selection.quantity not in quantities.values():
            quantities[selection.quantity] = selection.quantity
        splits = ["test", "train", *(["proxy"] if recorded.experiment.proxy else []), "client"]
        with self.view.quietly():
            for index, widget in enumerate(self.corners):
                offers = {**offered, "": {NO_THIRD: NO_THIRD}} if index == 2 else offered
                value = names[index] if index < len(names) else NO_THIRD
                if widget.groups != offers:
                    widget.param.update(groups=offers, value=value)
                elif widget.value != value:
                    widget.value = value
            if self.quantity.options != quantities:
                self.quantity.param.update(options=quantities, value=selection.quantity)
            self.quantity.value = selection.quantity
            self.split.param.update(options=splits, value=selection.split if selection.split in splits else "test")
            self.depth.value = selection.look("plane.depth")
            samples = selection.look("plane.samples")
            self.samples.value = samples if samples in SAMPLES else ""
            self.precision.value = selection.look("plane.precision")
            self.depth.disabled = len(names) == 2
            points = selection.look("plane.points")
            if points not in POINTS:
                self.points.options = {**self.points.options, f"{points} x {points}": points}
            self.points.value = points
            self.points.disabled = len(names) == 2
            self.whole_plane.visible = len(selection.box) == 4 and selection.box != self.foreign_box

    def _corner(self, _: Any) -> None:
        names = [widget.value for widget in self.corners if widget.value and widget.value != NO_THIRD]
        self.view.pick(corners=names, point=[], box=[])


def _elsewhere(name: str) -> bool:
    """Whether a name is of a model of another round or run, which the lists may leave out."""
    return name.startswith("round ") or ": round " in name
