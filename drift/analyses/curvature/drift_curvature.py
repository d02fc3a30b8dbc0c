"""Drift in the coordinates of curvature: how much of it lies in the sharpest directions, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, get_args

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.counterfactual.all_clients import find_clients_to_train, train_all_clients
from drift.analyses.counterfactual.step_terms import weighted_sum
from drift.analyses.curvature.surroundings import (
    Surroundings,
    WeightedClients,
    cohort_of,
    first_test_samples,
    rounding_of,
    unsure_rounds,
)
from drift.analyses.per_round import ABOUT, DIMS, ROUNDS, result, selected_rounds, stack_rows
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.column_blocks import weighted_models
from drift.store.round_record import Round
from landscape.model.model import plain, with_buffers
from landscape.model.samples import Samples

Centre = Literal["mean", "start", "end"]

Kind = Literal["client", "step", "random", "change", "sampling"]

KINDS: tuple[Kind, ...] = ("client", "step", "random")
"""Displacements that need no other round and no training."""

AT_ONCE = 16
"""Displacements in memory at a time."""

SHARES = ("share", "layer_share", "layer_sharp")
"""What a displacement within rounding has no value of."""


@analysis("round", "kind", "layer", cost="curvature")
def drift_curvature(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    kinds: Sequence[Kind] = KINDS,
    at: Centre = "mean",
    k: int = 10,
    samples: int = 500,
    error: float = 0.2,
) -> xr.Dataset:
    """Share of each drift of a round in the k sharpest directions, and its exact cost next to the second-order one.

        client    w_k - mean, for every client of the cohort with samples
        step      end - start, the server's step; from the mean or the end it is the same step once more
        change    D' - D, from the mean update D to that of the round before: what equation 13 of FedEve squares
                  (`drift.update_change`)
        random    Gaussian directions as long as the client drifts
        sampling  mean - full, the exact sampling drift: all clients are trained again, as in `drift.counterfactual`

    Each displacement d of a model has a measured cost L(model + d) - L(model), its second-order part g'd + d'Hd / 2
    with gradient g and Hessian H at the model, and the share |P d|^2 / |d|^2 in the span of the k leading eigenvectors
    of H, which is about k over the number of parameters for a random direction. Client and random rows are means over
    the cohort, weighted as its mean is. A displacement within rounding has no share and counts in no mean of shares.

    Source: loss of averaging: Zhou et al. 2024, section 5; the two drifts: FedEve, section 3; the eigenspace: Gur-Ari,
    Roberts and Dyer 2018 (docs/drift-curvature.md).

    Args:
        run: Its clients train from the start of the round.
        rounds: Rounds that kept their clients; by default at most 5, evenly spaced. "change" needs the clients of the
            round before too, or for FedAvg its globals. "sampling" needs no clients, but the start.
        kinds: Displacements, of those above.
        at: The model that is displaced: the cohort's "mean" (for "sampling" the mean of all clients, which it moves to
            that of the cohort), or the "start" or "end" of the round. Batch statistics are those of the start or end;
            at the mean those of the end.
        k: Number of eigenvectors, those of largest magnitude; the whole space from the number of parameters on.
        samples: Number of test samples, the first, on which losses, gradients and Hessians are taken.
        error: Relative error from which the second-order cost counts as broken.

    Returns:
        Dataset over round and kind with cost, quadratic, linear, broken (fraction of the displacements whose quadratic
        cost is off by more than `error` of the cost and rounding), share, norm, sharp (length within the span),
        residual (largest |Hv - lambda v| / |lambda| of converged pairs), cut (relative gap of eigenvalues k and k + 1;
        NaN where there are no more than k), and by layer layer_share (of |d|^2 in each tensor) and layer_sharp (of
        |P d|^2). Shares are NaN where an eigenpair did not converge. Attribute undetermined: rounds with that, or
        whose eigenspace is not unique, as the cut is 0.01 or less or unknown.

    Raises:
        LookupError: If a round, or the one before, did not keep what is needed.
        ValueError: If a kind or `at` is unknown, or k, samples or error is not positive.
    """
    kinds = list(dict.fromkeys(kinds))
    if not kinds:
        raise ValueError(f"kinds is empty; give some of {', '.join(get_args(Kind))}.")
    if not error > 0:
        raise ValueError(f"error is {error}; give a positive relative error, such as 0.2.")
    tested = first_test_samples(run, k, samples)
    indices = selected_rounds(run, "globals" if set(kinds) == {"sampling"} else "clients", rounds, ROUNDS)
    rows = [_measure(run, run.round(index), kinds, at, k, tested, error) for index in run.context.track(indices)]
    coords: dict[str, list[Any]] = {"round": indices, "kind": kinds, "layer": list(run.layout.slices())}
    source = "Gur-Ari et al. 2018; Zhou et al. 2024, section 5; FedEve, section 3"
    about = {"analysis": "drift_curvature", "source": source, "at": at, "k": k, "error": error}
    values = stack_rows(rows, ABOUT["drift_curvature"], coords, DIMS["drift_curvature"])
    return result(values, ABOUT["drift_curvature"], coords, **about, undetermined=unsure_rounds(indices, rows))


def _measure(
    run: Run, record: Round, kinds: Sequence[str], at: Centre, k: int, samples: Samples, error: float
) -> dict[str, Any]:
    cohort = None if set(kinds) == {"sampling"} else cohort_of(run, record)
    values: dict[str, list[Any]] = {name: [] for name in ABOUT["drift_curvature"]}
    known: dict[bool, Surroundings] = {}
    for kind in kinds:
        if (displaced := _moves(run, record, kind, cohort)) is None:
            return {}
        centre, moves, weights = displaced
        other = kind == "sampling" and at == "mean"
        if other not in known:
            known[other] = Surroundings.around(run, _model(record, at, centre), k, samples)
        for name, value in _means(known[other], moves, weights, error).items():
            values[name].append(value)
    return {**values, "undetermined": any(around.undetermined for around in known.values())}


def _model(record: Round, at: Centre, mean: Tensor) -> Tensor:
    """The model that is displaced, with the batch statistics of the start or the end."""
    if at == "start":
        return with_buffers(plain(record.kept("start")), record.start_buffers)
    return with_buffers(plain(record.kept("end") if at == "end" else mean), record.end_buffers)


def _moves(run: Run, record: Round, kind: str, cohort: WeightedClients | None) -> _Moves | None:
    """What is displaced at the mean (d,), the displacements (d,) and their weights; None without these."""
    if kind == "sampling":
        trained = train_all_clients(run, find_clients_to_train(run, record.index))
        if not bool(trained.weights.any()):
            return None
        mean, full = (weighted_sum(weights, trained.models) for weights in (trained.weights, trained.shares))
        return full.float(), [(mean - full).float()], _ALONE
    if cohort is None or (kind == "change" and record.index == 0):
        return None
    if kind == "client":
        return cohort.mean, cohort.drifts(), cohort.weights
    if kind == "random":
        return cohort.mean, _noise(run, record.index, cohort.drifts()), cohort.weights
    start = plain(record.kept("start"))
    if kind == "step":
        return cohort.mean, [plain(record.kept("end")) - start], _ALONE
    return cohort.mean, [_mean_update(run, run.round(record.index - 1)) - (cohort.mean - start)], _ALONE


def _mean_update(run: Run, record: Round) -> Tensor:
    """Mean update of the cohort of a round (d,); that of FedAvg is its step."""
    if record.clients is None and run.label != "fedavg":
        raise LookupError(f"run {run.name} kept no clients of round {record.index}; train with --set keep.clients=all")
    start = plain(record.kept("start"))
    if record.clients is None:
        return plain(record.kept("end")) - start
    return weighted_models(run.experiment.cohort_weights(record.sizes), record.clients) - start


def _noise(run: Run, index: int, drifts: Iterable[Tensor]) -> Iterator[Tensor]:
    """Gaussian directions as long as the drifts."""
    source = rng(run.experiment.seed, index, "directions")
    for drift in drifts:
        noise = torch.from_numpy(source.normal(size=len(drift))).to(drift)
        yield noise * (drift.double().norm() / noise.norm())


def _batches(moves: Iterable[Tensor]) -> Iterator[Tensor]:
    """Displacements (d,) as matrices of at most AT_ONCE rows."""
    remaining = iter(moves)
    while batch := list(islice(remaining, AT_ONCE)):
        yield torch.stack(batch)


def _means(around: Surroundings, moves: Iterable[Tensor], weights: Tensor, error: float) -> dict[str, Any]:
    """Means of the numbers of displacements, by name: floats, or by layer (l,)."""
    blocks = [_columns(around, block, error) for block in _batches(moves)]
    columns = {name: torch.cat([block[name] for block in blocks]) for name in blocks[0]}
    moving = columns["norm"] > rounding_of(around.model)
    means: dict[str, Any] = {"residual": around.residual, "cut": around.cut}
    for name, values in columns.items():
        column, mass = (values[moving], weights[moving]) if name in SHARES else (values, weights)
        means[name] = (mass @ column / mass.sum()).numpy()  # NaN where none moves
    return means


def _columns(around: Surroundings, moves: Tensor, error: float) -> dict[str, Tensor]:
    """Numbers of displacements (n, d), each (n,) or by layer (n, l)."""
    losses, linear = around.losses(moves), (moves @ around.gradient).double()
    cost, quadratic = losses[1:] - losses[0], linear + around.curved(moves) / 2
    inside = moves @ around.span.T
    squares, sharp = (vectors.double().square().sum(1) for vectors in (moves, inside))
    off = error * cost.abs() + 4 * torch.finfo(moves.dtype).eps * (losses[1:].abs() + losses[0].abs())
    spans = around.run.layout.slices().values()
    squares_by, sharp_by = (
        torch.stack([vectors[:, span].double().square().sum(1) for span in spans], 1)
        for vectors in (moves, inside @ around.span)
    )
    return {
        "cost": cost,
        "quadratic": quadratic,
        "linear": linear,
        "broken": ((quadratic - cost).abs() > off).double(),
        "share": (sharp / squares).clamp(max=1),
        "norm": squares.sqrt(),
        "sharp": sharp.sqrt(),
        "layer_share": squares_by / squares[:, None],
        "layer_sharp": sharp_by / sharp_by.sum(1, keepdim=True),
    }


_Moves = tuple[Tensor, Iterable[Tensor], Tensor]
"""The model (d,) that is displaced at the mean, displacements (d,), and their weights, of sum 1."""

_ALONE = torch.ones(1, dtype=torch.float64)
"""Weight of a single displacement."""
