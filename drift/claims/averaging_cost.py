"""What the drifts of a round cost the averaged model: measured, to second order, and in the sharpest directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import result, stack_rows
from drift.config.random_keys import rng
from drift.runs.run import Run
from drift.store.column_blocks import rows, weighted_models
from drift.store.round_record import Round
from landscape.curvature.hessian import top_eigenvalues
from landscape.curvature.hessian_products import linearise
from landscape.model.model import buffers_of, with_buffers
from landscape.model.samples import Samples
from landscape.sweep.evaluate import evaluate

KINDS = ("client", "change", "random")

AT_ONCE = 16
"""Displacements in memory at a time."""


def averaging_cost(run: Run, *, rounds: Sequence[int], k: int = 10, samples: int = 500) -> xr.Dataset:
    """Cost of moving the mean of a round's clients by each drift, and the drift's share in the sharpest directions.

        client   w_k - mean, for every client of the cohort with samples
        change   D' - D, from the mean update D to that of the round before: what equation 13 of FedEve squares
                 (`drift.update_change`)
        random   Gaussian directions as long as the client drifts

    Each displacement d has a measured cost L(mean + d) - L(mean), its second-order part g'd + d'Hd / 2 with gradient g
    and Hessian H at the mean, and the share |P d|^2 / |d|^2 in the span of the k leading eigenvectors of H, which is
    about k over the number of parameters for a random direction. Client and random rows are means over the cohort.

    Source: loss of averaging: Zhou et al. 2024, section 5; the two drifts: FedEve, section 3.

    Args:
        run: Run of FedAvg.
        rounds: Rounds that kept their clients; the round before has to have kept its globals.
        k: Number of eigenvectors.
        samples: Number of test samples, the first, on which losses, gradients and Hessians are taken.

    Returns:
        Dataset with cost, quadratic, linear (nats), share (fraction) and norm over round and kind.

    Raises:
        LookupError: If a round did not keep its clients, or the one before its globals.
    """
    part = run.task.split("test")[:samples]
    rows = [_measure(run, run.round(index), run.round(index - 1), k, part) for index in rounds]
    dims = dict.fromkeys(_ABOUT, ("kind",))
    coords: dict[str, list[Any]] = {"round": list(rounds), "kind": list(KINDS)}
    source = "Zhou et al. 2024, section 5; FedEve, section 3"
    return result(stack_rows(rows, _ABOUT, coords, dims), _ABOUT, coords, analysis="averaging_cost", source=source)


def _measure(run: Run, record: Round, before: Round, k: int, samples: Samples) -> dict[str, list[float]]:
    weights = run.experiment.cohort_weights(record.sizes)
    active = weights > 0
    start, clients = record.kept("start"), record.kept("clients")
    mean = weighted_models(weights, clients)
    numbers = active.nonzero().flatten().tolist()
    change = (before.kept("end") - before.kept("start")) - (mean - start)
    flat, model = run.task.flat(mean), with_buffers(mean, record.end_buffers)
    flat.load(mean, buffers_of(model))
    product, gradient = linearise(flat, mean, samples)
    leading = top_eigenvalues(run.task, model, k, split=samples, tolerance=1e-2, max_products=100, vectors=True)
    span = torch.from_numpy(leading["eigenvector"].values).to(mean)
    shares = weights[active] / weights[active].sum()
    groups: dict[str, tuple[Iterable[Tensor], Tensor]] = {
        "client": (_drifts(clients, mean, numbers), shares),
        "change": ([change], torch.ones(1).double()),
        "random": (_noise(run, record.index, _drifts(clients, mean, numbers)), shares),
    }
    values: dict[str, list[float]] = {name: [] for name in _ABOUT}
    for moves, own in groups.values():
        parts = [_of_moves(run, model, part, product, gradient, span, samples) for part in _batches(moves)]
        for name in _ABOUT:
            values[name].append(float(own @ torch.cat([part[name] for part in parts])))
    return values


def _drifts(clients: Tensor, mean: Tensor, numbers: Sequence[int]) -> Iterator[Tensor]:
    return (client - mean for client in rows(clients, numbers))


def _noise(run: Run, index: int, drifts: Iterable[Tensor]) -> Iterator[Tensor]:
    """Gaussian directions as long as the drifts."""
    source = rng(run.experiment.seed, index, "directions")
    for drift in drifts:
        noise = torch.from_numpy(source.normal(size=len(drift))).to(drift)
        yield noise * (drift.norm() / noise.norm())


def _batches(moves: Iterable[Tensor]) -> Iterator[Tensor]:
    """Displacements (d,) as matrices of at most AT_ONCE rows."""
    remaining = iter(moves)
    while batch := list(islice(remaining, AT_ONCE)):
        yield torch.stack(batch)


def _of_moves(
    run: Run,
    mean: Tensor,
    moves: Tensor,
    product: Callable[[Tensor], Tensor],
    gradient: Tensor,
    span: Tensor,
    samples: Samples,
) -> dict[str, Tensor]:
    """Columns of `averaging_cost` for displacements (n, d), each (n,)."""
    basis = torch.cat([mean[None], mean + moves])
    own, points = buffers_of(mean), torch.eye(len(basis)).double()
    buffers = None if own is None else own.expand(len(basis), -1)
    losses = evaluate(run.task, basis, points, split=samples, metrics=("loss",), buffers=buffers)["loss"]
    linear = (moves @ gradient).double()
    curved = torch.stack([move @ product(move) for move in moves]).double() / 2
    squares = moves.square().sum(1).double()
    return {
        "cost": (losses[1:] - losses[0]).double(),
        "quadratic": linear + curved,
        "linear": linear,
        "share": (moves @ span.T).square().sum(1).double() / squares,
        "norm": squares.sqrt(),
    }


_ABOUT = {
    "cost": ("loss of the displaced mean minus that of the mean", "nats"),
    "quadratic": ("the same to second order", "nats"),
    "linear": ("its first-order part", "nats"),
    "share": ("share in the leading eigenspace", "fraction"),
    "norm": ("length of the displacement", "1"),
}
