"""One round as it went: its models on a plane, the clients' ways there, their own basins, and what the drifts cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import torch
import xarray as xr

from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.analyses.landscapes.models_plane import models_plane, plane_sweep
from drift.analyses.landscapes.sweeps import round_clients
from drift.runs.run import Run
from drift.training.client import Client
from figures.axes.interpolated import interpolated
from figures.axes.relief import Relief, relief, spaced_levels
from figures.looks import palette
from landscape.geometry.planes import combine64, project
from landscape.model.samples import Samples

MOST = 6
"""Clients that are shown: those whose models are the furthest from the line from start to end."""

ALL = 10**9
"""More clients than any cohort has."""

MARGIN = 0.25
"""Room around the models, in sides of their box."""

TOP = 0.97
"""Share of the map that is not above the highest level, where the surface is cut off."""

BASIN = 0.25
"""Share of the map with the lowest losses of a client, its basin."""

SAME = 1e-5
"""Largest difference of a model that was trained again from the recorded one, over its largest entry."""

COSTS = {name: palette.TERMS[name] for name in ("sampling", "local")}
"""Labels and colours of the parts of the step in `drift.counterfactual` whose costs are shown.

`sampling`: what the cohort differs from all clients by; `local`: what local training adds to first gradients.
"""


@dataclass(frozen=True)
class RelivedRound:
    """A round on the plane through its start, its end and one of its clients.

    Args:
        run, index: The round.
        scene: The loss on the plane.
        clients: Numbers of the clients shown.
        paths: Their ways on the plane from the start to their models, each (steps, 2).
        start, end: Places of the model that clients received and of the new one, shape (2,).
        tints: How much of each client's own basin a point of the scene is, 0 to 1, shape (clients, n, m).
        costs: Loss that each of `COSTS` costs, nats; empty where it cannot be computed.
        notes: What a reader has to know.
    """

    run: Run
    index: int
    scene: Relief
    clients: tuple[int, ...]
    paths: tuple[np.ndarray, ...]
    start: np.ndarray
    end: np.ndarray
    tints: np.ndarray
    costs: dict[str, float]
    notes: tuple[str, ...]

    def passed(self, slid: float) -> list[np.ndarray]:
        """The parts of the clients' ways that lie behind them when they are so far, 0 to 1, each (steps, 2)."""
        parts = []
        for path in self.paths:
            steps, along = np.arange(len(path)), slid * (len(path) - 1)
            here = [np.interp(along, steps, path[:, axis]) for axis in (0, 1)]
            parts.append(np.vstack([path[: int(along) + 1], here]))
        return parts

    def places(self, slid: float, back: float) -> np.ndarray:
        """Clients that are so far along their ways, and then back to the mean, 0 to 1, shape (clients, 2)."""
        here = np.array([path[-1] for path in self.passed(slid)])
        return np.asarray(here + back * (self.end - here))


def relived_rounds(runs: Sequence[Run], index: int, points: int, samples: int) -> list[RelivedRound]:
    """A round of one run, or the same round of two with the same cohort, on one scale and in boxes of one size.

    Raises:
        ValueError: If there are more runs than two, or their cohorts differ.
        LookupError: If the round kept no clients or no start.
    """
    if not 1 <= len(runs) <= 2:
        raise ValueError(f"{len(runs)} runs are given; a film of a round shows one run, or two side by side.")
    records = [round_clients(run, index, None)[0] for run in runs]
    cohorts = [sorted(record.ids.tolist()) for record in records]
    if cohorts[0] != cohorts[-1]:
        raise ValueError(
            f"round {index} has clients {cohorts[0]} in {runs[0].name} and {cohorts[1]} in {runs[1].name}; both films "
            "need one cohort: give another round, or runs of one seed and partition."
        )
    settings = [(run.experiment.task, run.experiment.clients, run.experiment.seed) for run in runs]
    if settings[0] != settings[-1]:
        raise ValueError(
            f"clients of {runs[0].name} and {runs[1].name} hold other data; give runs of one seed and task."
        )
    rounds = [_Placed.from_run(run, record.index) for run, record in zip(runs, records, strict=True)]
    size = np.max([round_.size for round_ in rounds], axis=0)
    maps = [round_.evaluated(size, points, samples) for round_ in rounds]
    levels = spaced_levels([ds.loss for ds, _ in maps], log=True, top=TOP)
    return [
        round_.relived(relief(ds, levels=levels), basins) for round_, (ds, basins) in zip(rounds, maps, strict=True)
    ]


@dataclass(frozen=True)
class _Placed:
    """A round with the places of its models on the plane, before any loss is computed."""

    run: Run
    index: int
    clients: tuple[int, ...]
    names: list[str]
    feet: np.ndarray
    directions: torch.Tensor
    origin: torch.Tensor

    @classmethod
    def from_run(cls, run: Run, index: int) -> Self:
        record, ids, rows = round_clients(run, index, None, first=ALL)
        start, end, models = record.kept("start").double(), record.kept("end").double(), record.kept("clients")[rows]
        step = (end - start) / (end - start).norm().clamp_min(1e-300)
        aside = [float((away - (away @ step) * step).norm()) for away in (model.double() - start for model in models)]
        most = sorted(np.argsort(aside)[::-1][:MOST].tolist())
        clients = tuple(ids[row] for row in most)
        names = ["start", "end", f"client {ids[int(np.argmax(aside))]}"]
        sweep = plane_sweep(run, index, names, points=2, margin=0)
        feet = project([record.kept("start"), record.kept("end"), *models[most]], sweep)
        directions = torch.stack([combine64(sweep.basis, row) for row in sweep.axes])
        places = np.stack([feet.mark_alpha.values, feet.mark_beta.values], axis=1)
        return cls(run, index, clients, names, places, directions, combine64(sweep.basis, sweep.origin))

    @property
    def size(self) -> np.ndarray:
        """Sides of the box, a square."""
        return np.full(2, (1 + 2 * MARGIN) * np.ptp(self.feet, axis=0).max())

    def evaluated(self, size: np.ndarray, points: int, samples: int) -> tuple[xr.Dataset, list[xr.Dataset]]:
        """The loss on the plane, and that of each client on its own samples."""
        middle = (self.feet.min(0) + self.feet.max(0)) / 2
        box = np.stack([middle - size / 2, middle + size / 2], axis=1).ravel().tolist()
        where: dict[str, Any] = {"round": self.index, "models": self.names, "points": points, "box": box}
        shared = self.run.cached(models_plane, samples=samples, **where)
        basins = [self.run.cached(models_plane, split=f"client {k}", samples=samples, **where) for k in self.clients]
        return shared, basins

    def relived(self, scene: Relief, basins: Sequence[xr.Dataset]) -> RelivedRound:
        """The round with everything that the film shows."""
        tints = [
            _basin(interpolated(ds.alpha.values, ds.beta.values, ds.loss.values, scene.x, scene.y)) for ds in basins
        ]
        trained = [self._way(client, foot) for client, foot in zip(self.clients, self.feet[2:], strict=True)]
        notes = [f"Dots: feet of the models on the plane through start, end and {self.names[2]}"]
        notes.append("tint of a client's colour: its loss on its own samples is in the lowest quarter of the map")
        if len(self.clients) < (number := len(self.run.round(self.index).ids)):
            notes.append(f"{len(self.clients)} of {number} clients")
        again = sum(len(way) > 2 for way in trained)
        lines = "steps of local training, trained again" if again else "straight from start to client"
        notes.append(f"lines: {lines}" + ("" if again in (0, len(trained)) else f" ({len(trained) - again} straight)"))
        costs, reason = self._costs()
        return RelivedRound(self.run, self.index, scene, self.clients, tuple(trained), self.feet[0], self.feet[1],
                            np.array(tints), costs, (*notes, *reason))  # fmt: skip

    def _way(self, client: int, foot: np.ndarray) -> np.ndarray:
        """Places of a client's model after each step of its training; without the steps where it cannot be repeated."""
        straight, record = np.stack([self.feet[0], foot]), self.run.round(self.index)
        model, seen = record.kept("clients")[record.ids.tolist().index(client)], list[list[np.ndarray]]()
        try:
            watched = _watched(self.run.client(self.index, client), seen, self._coordinates)
            trained = self.run.method.local(watched).theta
        except (LookupError, ValueError):  # no data, no code or no state: the caption says that the way is straight
            return straight
        same = float((trained - model).abs().max()) <= SAME * float(model.abs().max())
        return np.array([*seen[0], foot]) if same and len(seen) == 1 and seen[0] else straight

    def _coordinates(self, theta: torch.Tensor) -> np.ndarray:
        return (self.directions @ (theta.double() - self.origin)).numpy()

    def _costs(self) -> tuple[dict[str, float], list[str]]:
        """Costs by name, or why there are none."""
        try:
            ds = self.run.cached(counterfactual, rounds=[self.index])
        except (LookupError, ValueError) as reason:
            return {}, [f"no costs: {reason}"]
        return {name: float(ds.loss_cost.sel(round=self.index, part=name)) for name in COSTS}, []


def _basin(loss: np.ndarray) -> np.ndarray:
    """1 at the lowest loss, 0 where it is not among the lowest."""
    low, edge = np.nanmin(loss), np.nanquantile(loss, BASIN)
    share = np.clip((edge - loss) / max(edge - low, 1e-12), 0, 1)
    return np.asarray(np.nan_to_num(share))


@dataclass(frozen=True, repr=False)
class _Watched(Client):
    """A client that notes the place of its model before each minibatch, in a new list for each of its trainings."""

    seen: list[list[np.ndarray]] = field(default_factory=list)
    locate: Callable[[torch.Tensor], np.ndarray] = torch.Tensor.numpy

    def batches(self, **options: Any) -> Iterator[Samples]:
        self.seen.append([])
        for batch in super().batches(**options):
            self.seen[-1].append(self.locate(self.flat.theta))
            yield batch


def _watched(client: Client, seen: list[list[np.ndarray]], locate: Callable[[torch.Tensor], np.ndarray]) -> _Watched:
    return _Watched(**{entry.name: getattr(client, entry.name) for entry in fields(client)}, seen=seen, locate=locate)
