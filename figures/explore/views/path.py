"""Path: the global models on their principal plane, with the loss and the cohort of each round, played over rounds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import panel as pn
import xarray as xr

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.trajectory_points import trajectory_points
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.explore.shell.as_figure import Request
from figures.explore.shell.plot import Plot
from figures.explore.shell.style import WRAP
from figures.explore.shell.view import View
from figures.explore.work.small_runs import is_small
from figures.interactive.paths import path_until

STEP = 600
"""Milliseconds that a round is shown while the rounds are played."""

COARSE, FINE = 9, 21
"""Grid points per axis of the map that is shown first, and of the one that replaces it."""

NUMBERS = 4_000_000
"""Parameters of all models of a path in memory; of longer runs evenly spaced rounds are shown, at least FEWEST."""

FEWEST = 20


class PathView(View):
    """The way of the global model through the loss landscape."""

    name = "path"
    title = "Path"
    follows = frozenset({"runs", "round", "clients", "growth", "path.map"})

    def body(self) -> pn.Column:
        """Play, map, and a line on what is shown."""
        self._about: tuple[Any, ...] = ()
        self._rounds: list[int] = []
        self._ds: xr.Dataset | None = None
        self._play = pn.widgets.Toggle(label="play", width=90)
        self._play.param.watch(self._playing, "value")
        self._beat: Any = None
        self._map = pn.widgets.Checkbox(label="map of the loss", value=True)
        self._map.param.watch(lambda event: self.pick(**{"path.map": "" if event.new else "off"}), "value")
        self._plot = Plot("path of the global model on its principal plane", height=520, config={"scrollZoom": True})
        self.on_point(self._plot, self._clicked)
        controls = pn.Row(self._play, self._map, styles=WRAP, sizing_mode="stretch_width")
        return pn.Column(controls, self.busy, self._plot, sizing_mode="stretch_width")

    def update(self, changed: set[str]) -> None:
        """Read the path where the run changed; show it up to the round."""
        recorded = self.explorer.recorded()
        about = (self.selection.run, recorded.head, self._wants_map())
        if about != self._about:
            self._begin(self.explorer.run(), about)
        self._draw()

    def figures(self) -> list[Request]:
        """The whole path with its map."""
        run = self.explorer.run()
        rounds = path_rounds(run)
        title = f"Path of {run.name}"
        return [Request.from_runs("trajectory-plane", run, title=title, rounds=rounds, points=FINE)]

    def _wants_map(self) -> bool:
        return self.selection.look("path.map", "on") != "off"

    def _begin(self, run: Run, about: tuple[Any, ...]) -> None:
        """The path at once, then a coarse map, then a fine one."""
        self.close()
        if about[:2] != self._about[:2]:
            self._ds = None
            self._plot.show(None)
        self._about = ()
        rounds = path_rounds(run)
        if len(rounds) < 2:
            if rounds == list(self.explorer.recorded().rounds()):
                raise LookupError(f"{run.name} has one round so far; a path takes two.")
            many = "no global model" if not rounds else "one global model"
            raise LookupError(f"{run.name} kept {many}; a path takes two. Train with --set keep.globals=all.")
        self._rounds, self._about = rounds, about
        clients = bool(set(rounds) & set(run.kept("clients")))
        with self.quietly():
            self._map.value = self._wants_map()
        options = {"rounds": rounds, "clients": clients}
        if self._ds is None:
            self.write("reading the models ...")
            wanted = lambda: about == self._about  # noqa: E731
            self.ask(path_of, run, options, self._arrived, wanted=wanted, ended=self.fail)
        if self._wants_map():
            self._survey(run, about, options, FINE if is_small(run) else COARSE)

    def _survey(self, run: Run, about: tuple[Any, ...], options: dict[str, Any], points: int) -> None:
        """The map with so many points per axis; after the coarse one the fine one."""
        how: dict[str, Any] = {"title": f"map of the path, {points} x {points} points", "briefly": is_small(run)}
        begin = partial(self.explorer.jobs.cached, run, trajectory_plane, **how, **options, points=points)

        def show(ds: xr.Dataset) -> None:
            self._ds = ds
            if points < FINE:
                self._survey(run, about, options, FINE)
            self._draw()

        wanted = lambda: about == self._about  # noqa: E731
        self._jobs.append(self.compute(begin, show, wanted=wanted, ended=self.say_error))

    def _arrived(self, ds: xr.Dataset) -> None:
        if self._ds is None:
            self._ds = ds
            self._draw()

    def _draw(self) -> None:
        if self._ds is None:
            return
        ds = self._ds if self._wants_map() else self._ds.drop_vars(["loss", "error"], errors="ignore")
        number = self.explorer.round()
        shown = max((index for index in self._rounds if index <= number), default=self._rounds[0])
        figure = path_until(ds, number, self.selection.clients)
        self._plot.show(figure.update_layout(uirevision=f"{self._about[:2]}"))
        self.write(_words(ds, shown, number))

    def _playing(self, event: Any) -> None:
        """Begin to play, from the first round if the last one is shown, or pause."""
        self._play.label = "pause" if event.new else "play"
        if self._beat is not None:
            self._beat.stop()
            self._beat = None
        if event.new and self._rounds:
            if self.explorer.round() >= self._rounds[-1]:
                self.selection.change(round=self._rounds[0])
            self._beat = pn.state.add_periodic_callback(self._step, STEP)

    def _step(self) -> None:
        """Show the next round of the path; pause behind the last one, and while another view is shown."""
        number = self.explorer.round()
        following = [index for index in self._rounds if index > number]
        if self.name not in self.explorer.shown() or not following:
            self._play.value = False
        if following and self._play.value:
            self.selection.change(round=following[0])
            self._play.value = len(following) > 1

    def _clicked(self, point: dict[str, Any]) -> None:
        """A click on the path selects the round, one on a client the client."""
        if point["trace"] == "global model":
            self.selection.change(round=int(point["data"][0]))
        elif point["trace"] == "clients":
            self.selection.change(clients=[int(point["data"])], client=int(point["data"]))


def path_rounds(run: Run) -> list[int]:
    """Rounds of the path: all that kept their global model, or evenly spaced ones of many."""
    return evenly_spaced(run.kept("globals"), max(FEWEST, NUMBERS // max(run.layout.size, 1)))


def path_of(run: Run, options: dict[str, Any]) -> xr.Dataset:
    """Places of the models; for a job."""
    return trajectory_points(run, **options)


def _words(ds: xr.Dataset, shown: int, number: int) -> str:
    """What is shown, in a sentence."""
    model = ds.isel(mark=int((ds.mark_round.values == shown).argmax()))
    text = f"Global model after round {shown}"
    text += f" (round {number} is between two of the path)" if shown != number else ""
    loss, name = float(model.mark_loss), model.mark_loss.attrs.get("long_name", "loss")
    text += f": {name} {loss:.4g}" if np.isfinite(loss) else f": the {name} is not finite, or there is none"
    text += f", {float(model.distance):.3g} out of the plane"
    explained = 100 * (float(ds.attrs["explained_alpha"]) + float(ds.attrs["explained_beta"]))
    return f"{text}. The plane has {explained:.0f} % of the variance of {ds.sizes['mark']} global models."
