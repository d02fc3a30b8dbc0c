"""What the drifts of a round cost the averaged model: measured, to second order, and in the sharpest directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.counterfactual.all_clients import find_clients_to_train, train_all_clients
from drift.analyses.counterfactual.step_terms import weighted_sum
from drift.analyses.per_round import result, stack_rows
from drift.config.random_keys import rng
from drift.runs.run import Run
from drift.store.column_blocks import weighted_models
from drift.store.round_record import Round
from drift.store.row_matrices import rows
from landscape.curvature.hessian import top_eigenvalues
from landscape.curvature.hessian_products import linearise
from landscape.model.model import buffers_of, with_buffers
from landscape.model.samples import Samples
from landscape.sweep.evaluate import evaluate

KINDS = ("client", "change", "random")
"""Displacements of the mean; "sampling", which needs all clients trained again, is asked for by its name."""

AT_ONCE = 16
"""Displacements in memory at a time."""


def averaging_cost(
    run: Run, *, rounds: Sequence[int], kinds: Sequence[str] = KINDS, k: int = 10, samples: int = 500
) -> xr.Dataset:
    """Cost of moving a round's mean by each drift, and the drift's share in the sharpest directions.

        client    w_k - mean, for every client of the cohort with samples
        change    D' - D, from the mean update D to that of the round before: what equation 13 of FedEve squares
                  (`drift.update_change`)
        random    Gaussian directions as long as the client drifts
        sampling  mean - full, the exact sampling drift, moving the mean of all clients, trained again (as in
                  `drift.counterfactual`), to that of the cohort

    Each displacement d of a model has a measured cost L(model + d) - L(model), its second-order part g'd + d'Hd / 2
    with gradient g and Hessian H at the model, and the share |P d|^2 / |d|^2 in the span of the k leading eigenvectors
    of H, which is about k over the number of parameters for a random direction. The model is the mean of the cohort,
    for "sampling" that of all clients. Client and random rows are means over the cohort.

    Source: loss of averaging: Zhou et al. 2024, section 5; the two drifts: FedEve, section 3.

    Args:
        run: Its clients train from the start of the round.
        rounds: Rounds that kept their clients; "change" needs the clients of the round before too, or for FedAvg its
            globals. "sampling" needs no clients, but the start.
        kinds: Displacements, of those above.
        k: Number of eigenvectors.
        samples: Number of test samples, the first, on which losses, gradients and Hessians are taken.

    Returns:
        Dataset with cost, quadratic, linear (nats), share (fraction), norm, and the largest relative residual
        |Hv - lambda v| / |lambda| of the k eigenpairs, over round and kind. Share is NaN where one did not converge.

    Raises:
        LookupError: If a round, or the one before, did not keep what is needed.
    """
    sampled = run.task.split("test")[:samples]
    rows = [_measure(run, index, kinds, k, sampled) for index in rounds]
    dims = dict.fromkeys(_ABOUT, ("kind",))
    coords: dict[str, list[Any]] = {"round": list(rounds), "kind": list(kinds)}
    source = "Zhou et al. 2024, section 5; FedEve, section 3"
    return result(stack_rows(rows, _ABOUT, coords, dims), _ABOUT, coords, analysis="averaging_cost", source=source)


def _measure(run: Run, index: int, kinds: Sequence[str], k: int, samples: Samples) -> dict[str, list[float]]:
    record = run.round(index)
    values: dict[str, list[float]] = {name: [] for name in _ABOUT}
    groups: dict[str, _Moves] = {}
    if "sampling" in kinds:
        full, drift = _sampling_drift(run, index)
        groups["sampling"] = (_Surroundings(run, full, record, k, samples), [drift], _ALONE)
    if set(kinds) - {"sampling"}:
        groups |= _cohort_moves(run, record, k, samples, kinds)
    for kind in kinds:
        around, moves, shares = groups[kind]
        blocks = [around.columns(block) for block in _batches(moves)]
        for name in _ABOUT:
            values[name].append(float(shares @ torch.cat([block[name] for block in blocks])))
    return values


def _sampling_drift(run: Run, index: int) -> tuple[Tensor, Tensor]:
    """Mean of all clients (d,), and that of the cohort minus it."""
    trained = train_all_clients(run, find_clients_to_train(run, index))
    mean, full = (weighted_sum(weights, trained.models) for weights in (trained.weights, trained.shares))
    return full.float(), (mean - full).float()


def _mean_update(run: Run, record: Round) -> Tensor:
    """Mean update of the cohort of a round (d,); that of FedAvg is its step."""
    if record.clients is None and run.label != "fedavg":
        raise LookupError(f"run {run.name} kept no clients of round {record.index}; train with --set keep.clients=all")
    if record.clients is None:
        return record.kept("end") - record.kept("start")
    return weighted_models(run.experiment.cohort_weights(record.sizes), record.clients) - record.kept("start")


def _cohort_moves(run: Run, record: Round, k: int, samples: Samples, kinds: Sequence[str]) -> dict[str, _Moves]:
    """Displacements of the cohort's mean, with their weights."""
    weights = run.experiment.cohort_weights(record.sizes)
    start, clients = record.kept("start"), record.kept("clients")
    mean = weighted_models(weights, clients)
    numbers = (weights > 0).nonzero().flatten().tolist()
    around, shares = _Surroundings(run, mean, record, k, samples), weights[weights > 0] / weights.sum()
    moves: dict[str, _Moves] = {
        "client": (around, _drifts(clients, mean, numbers), shares),
        "random": (around, _noise(run, record.index, _drifts(clients, mean, numbers)), shares),
    }
    if "change" in kinds:
        moves["change"] = (around, [_mean_update(run, run.round(record.index - 1)) - (mean - start)], _ALONE)
    return moves


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


class _Surroundings:
    """Loss around a model (d,) to second order, with the statistics of the round's end.

    Args:
        k: Number of leading eigenvectors.
        samples: Those that the loss is averaged over.
    """

    def __init__(self, run: Run, vector: Tensor, record: Round, k: int, samples: Samples) -> None:
        self.task, self.samples, self.model = run.task, samples, with_buffers(vector, record.end_buffers)
        flat = run.task.flat(vector)
        flat.load(vector, buffers_of(self.model))
        self.product, self.gradient = linearise(flat, vector, samples)
        leading = top_eigenvalues(
            run.task, self.model, k, split=samples, tolerance=1e-2, max_products=100, vectors=True
        )
        self.residual = float((leading["residual"] / abs(leading["eigenvalue"])).max())
        self.span = torch.from_numpy(leading["eigenvector"].values).to(vector)

    def columns(self, moves: Tensor) -> dict[str, Tensor]:
        """Columns of `averaging_cost` for displacements (n, d), each (n,)."""
        basis = torch.cat([self.model[None], self.model + moves])
        fixed, points = buffers_of(self.model), torch.eye(len(basis)).double()
        buffers = None if fixed is None else fixed.expand(len(basis), -1)
        losses = evaluate(self.task, basis, points, split=self.samples, metrics=("loss",), buffers=buffers)["loss"]
        linear = (moves @ self.gradient).double()
        curved = torch.stack([move @ self.product(move) for move in moves]).double() / 2
        squares = moves.square().sum(1).double()
        return {
            "cost": (losses[1:] - losses[0]).double(),
            "quadratic": linear + curved,
            "linear": linear,
            "share": (moves @ self.span.T).square().sum(1).double() / squares,
            "norm": squares.sqrt(),
            "residual": torch.full_like(squares, self.residual),
        }


_Moves = tuple[_Surroundings, Iterable[Tensor], Tensor]
"""What is around a model, displacements (d,) of it, and their weights, of sum 1."""

_ALONE = torch.ones(1, dtype=torch.float64)
"""Weight of a single displacement."""

_ABOUT = {
    "cost": ("loss of the displaced mean minus that of the mean", "nats"),
    "quadratic": ("the same to second order", "nats"),
    "linear": ("its first-order part", "nats"),
    "share": ("share in the leading eigenspace", "fraction"),
    "norm": ("length of the displacement", "1"),
    "residual": ("largest relative residual of the eigenpairs", "1"),
}
