"""What unequal clients change in the mean update of a round: steps, lateness, stops, parts, what is sent, and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.per_round import ABOUT, DIMS, ROUNDS, result, selected_rounds, stack_rows
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.simulation.retrain import share_jobs
from drift.store.round_record import Round
from drift.training.client import Client

CAUSES = ("steps", "late", "stopped", "partial", "sent", "noise")


@analysis("round", "cause", cost="training")
def update_causes(run: Run, *, rounds: Sequence[int] | None = None, workers: int = 1) -> xr.Dataset:
    """What each inequality of the clients changes in the mean update of a round; the parts add up to the whole.

    With u_k the updates and p_k the experiment's weights (1 / clients.per_round under DP-FedAvg, the recorded ones of
    another program), the mean is computed anew with one more cause at a time. A method that weighs anew, such as
    FedBuff, steps elsewhere:

        equal = sum_k p_k u_k, all of the cohort, from the start of the round, all local steps
        steps     each does its own number of steps, minus equal
        late      each starts from the model that it started from, minus the mean before
        stopped   those that stopped are left out and p_k scaled to sum 1, minus the mean before
        partial   tensors that a client did not send count as no change, minus the mean over those that sent them
        sent      the updates as the server received them (compressed, clipped), minus the mean before
        noise     what the server added
        total = their sum = the mean as it was - equal

    Clients whose models were not finite are in no mean and no cause; the attribute `excluded` names them. A round in
    which no client has samples is NaN.
    Trainings that did not happen are done again from the record, with the same minibatches: exact. A cause takes the
    rest as it is at its place in this order; another order would divide the whole otherwise. All parts are 0 where
    clients are equal; sent contains what `keep.dtype` rounds. A run of another program is not trained again: steps,
    late and stopped are NaN in rounds that have them, partial and sent are exact.

    Source: this project; FedNova (steps), FedBuff (late), DP-FedAvg (sent, noise) treat one cause each.

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; negative count from the last. By default 5, evenly spaced.
        workers: Number of processes for the trainings.

    Returns:
        Dataset with norm, relative (to the norm of the mean) and share (inner product with the total over its square:
        they sum to 1) (round, cause); total and mean (norms) over round.

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
    """
    indices = selected_rounds(run, "clients", rounds, ROUNDS)
    rows = [_numbers(run, run.round(index), workers) for index in run.context.track(indices)]
    coords: dict[str, list[Any]] = {"round": indices, "cause": list(CAUSES)}
    dims, about = DIMS["update_causes"], ABOUT["update_causes"]
    return result(stack_rows(rows, about, coords, dims), about, coords, analysis="update_causes", source="this project")


def update_causes_effort(run: Run, **options: Any) -> Effort:
    """Effort of `update_causes` with the same options; a run of another program is not trained again."""
    values, cohort = complete_options(update_causes, run, options), run.experiment.clients.per_round
    trained = 0 if run.about.get("imported") else 1 + ("steps" in run.unequal) + ("late" in run.unequal)
    trainings = trained * cohort * len(selected_rounds(run, "clients", values.rounds, ROUNDS))
    return effort(run, trainings=trainings, forwards=0, memory=32 * cohort * run.layout.size, workers=values.workers)


def _numbers(run: Run, record: Round, workers: int) -> dict[str, Any]:
    """Values of a round, from the parts (causes, d) and the mean (d,) that they lead to; none without samples."""
    if len(record.sizes) and not bool(record.sizes.any()):
        return {}
    parts, mean = (_stated if run.about.get("imported") else _trained)(run, record, workers)
    norms, total, length = parts.norm(dim=1), parts.sum(0), mean.norm()
    values = {"norm": norms, "relative": norms / length, "share": parts @ total / (total @ total)}
    return {name: row.numpy() for name, row in values.items()} | {"total": float(total.norm()), "mean": float(length)}


def _trained(run: Run, record: Round, workers: int) -> tuple[Tensor, Tensor]:
    """Parts and mean of a round whose clients can be trained again."""
    cohort = torch.cat([record.ids, record.extras.get("stopped", record.ids[:0])]).tolist()
    moves = torch.stack(share_jobs(run, _updates, [(record.index, k) for k in cohort], workers=workers, progress=None))
    samples, held_out = run.parts_in(record.index), run.dataset.held_out
    sizes = torch.tensor([len(samples[client]) + len(held_out[client]) for client in cohort])
    weights, arrived = (run.method.unwrapped.mean_weights(run.experiment, some) for some in (sizes, record.sizes))
    stages = [*torch.einsum("n,nsd->sd", weights, moves)]
    exact = arrived @ moves[: len(arrived), -1]
    received = arrived @ (record.kept("clients").double() - record.kept("start").double())
    stages += [exact, exact, received, received + record.extras.get("noise", torch.zeros(()))]
    return torch.stack(stages).diff(dim=0), stages[-1]


def _updates(run: Run, job: tuple[int, int]) -> Tensor:
    """Updates (3, d) of a client: equal, with its own steps, and also from its own start."""
    index, number = job
    client, record = run.client(index, number), run.round(index)
    local = run.method.schedule(run.experiment.local, index, run.experiment.rounds)
    on_time = replace(client, start=record.kept("start"), buffers=record.start_buffers, present=None)
    late = _update(run, client)
    steps = late if client.present is None else _update(run, on_time)
    return torch.stack([steps if client.local == local else _update(run, replace(on_time, local=local)), steps, late])


def _update(run: Run, client: Client) -> Tensor:
    """Update (d,), float64, as it is trained, before the method changes what is sent."""
    ready = client if run.method.own_training else run.method.prepare(client)
    trained = run.method.local(client) if run.method.own_training else ready.train(run.method.correction(ready))
    return trained.theta.double() - client.start.double()


def _stated(run: Run, record: Round, workers: int) -> tuple[Tensor, Tensor]:
    """Parts and mean of a round of another program; NaN where a training that did not happen is needed."""
    extras, shares = record.extras, record.weights.double()
    models, start = record.kept("clients"), record.kept("start").double()
    received, trained = (rows.double() - start for rows in (models, extras.get("trained", models)))
    has, widths = torch.ones_like(trained), torch.tensor([prod(shape) for _, shape in run.layout.parameters])
    masks = extras.get("partial_entries", extras.get("partial_tensors", ()))
    for client, mask in zip(extras.get("partial", ()), masks, strict=True):
        has[record.ids == client] = (mask if len(mask) == len(start) else mask.repeat_interleave(widths)).double()
    covered = shares @ has
    complete = shares.sum() * torch.where(covered > 0, shares @ (has * trained) / covered, 0.0)
    begun = extras.get("start_round", torch.tensor([record.index]))
    late = bool((begun < record.index).any()) or "own start" in run.unequal
    unknown = len(extras.get("steps", begun[:1]).unique()) > 1, late, "stopped" in extras
    parts = [torch.full_like(complete, torch.nan if cause else 0.0) for cause in unknown]
    parts += [shares @ trained - complete, shares @ (received - trained), torch.zeros_like(complete)]
    return torch.stack(parts), shares @ received
