"""Exact parts of a round's step, with every client trained from the recorded start."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.counterfactual.all_clients import (
    AllClients,
    ClientsToTrain,
    find_clients_to_train,
    frozen_update,
    train_all_clients,
)
from drift.analyses.counterfactual.step_terms import TERMS, StepTerms, expected_sampling, step_terms
from drift.analyses.evaluate_on import losses_and_errors
from drift.analyses.per_round import ABOUT, DIMS, ROUNDS, result, selected_rounds, stack_rows
from drift.analyses.rounds.variance import change_variance, client_variance
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from drift.store.row_matrices import Rows, filled
from landscape.results.progress import Progress

Scale = Literal["fit", "steps"]


@analysis("round", "part", "other", "client", cost="training")
def counterfactual(
    run: Run, *, rounds: Sequence[int] | None = None, split: str = "test", scale: Scale = "fit", workers: int = 1
) -> xr.Dataset:
    """Sampling drift, client drift and the server's part of a step, exactly, with the loss that each part costs.

    All K clients are trained from the start that the record holds. With their updates D_k, weights q_k over all
    clients and p_k over the cohort (data sizes, or uniform where the experiment says so):

        step = full + sampling + server       full = sum_k q_k D_k, the step of full participation
        mean = full + sampling                sampling = sum_k p_k D_k - full; client drift of k: D_k - mean
        mean = gradient + gradient_sampling + local    the same from the gradients at the start

    gradient: all clients with their gradients frozen at the start for as many steps, times one factor a;
    gradient_sampling: the cohort's instead; local: the rest of training (curvature on the way, minibatch noise, terms
    of the method). Client drift is likewise a data part (frozen gradients differ) and a local part. Definitions in
    `step_terms` and `frozen_update`. For FedAvg the server part is zero to rounding, with one client in the cohort its
    client drift. Both sampling parts are exactly zero, and their ratio NaN, where every client with weight takes part.

    A part's cost is the loss of the recorded end minus the loss of the end without the part: positive where the part
    is harmful. The client's cost is that of its drift: the end with the client replaced by the cohort's mean. Models
    with batch normalisation get statistics recomputed on training samples at every point, the end included.

    The estimates of FedEve's equation 13 are from the recorded Gram matrix:

        sampling: |sampling|^2 / (m d)                        estimated by |M - D|^2 / (m d)
        client: sum over all K of |D_k - full|^2 / (K m d)    estimated by sum over the m of |D_k - D|^2 / (m^2 d)

    The cohort's models are those of the record if it has their exact bits, which training again would also give.
    Clients that keep state between rounds are trained with their state at that time, which outside the cohort may be
    several rounds old or missing (attribute client_state = 1); their updates then also differ from the cohort's by the
    age of the state. Clients that diverge are left out, those without samples have no weight. If the partition deals a
    cohort's data out anew, the other clients train on their own data. A round in which every client diverged is NaN.

    Source: FedEve, section 3 (the two drifts) and equation 13; the exact split: this project.

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their start and end; negative count from the last. By default 5, evenly spaced.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        scale: a: "fit", by least squares over all clients, so that the local parts are as short as they can be
            (`scale` compares the length of a round with frozen gradients), or "steps", a = 1.
        workers: Number of processes for the trainings.

    Returns:
        Dataset with norm, loss_without, error_without, loss_cost, error_cost (round, part), cosine (round, part,
        other); over round: loss and error of the end, client_norm, data_norm, client_local_norm (root of the mean
        square over the cohort by p_k), scale, local_share (of the squared updates that frozen gradients miss),
        expected_sampling (norm of the sampling part over random cohorts; to first order where the weights are not
        equal), sampling_variance, client_variance,
        _estimate and _ratio (estimate over exact) of both, sampling_share and its estimate (of the sum of both),
        clients and cohort (numbers of clients that count); over round and client: share, update_norm, distance and
        alignment (to the full step), and in the cohort client_drift, client_data, client_local (norms) and
        client_cost (nats).

    Raises:
        LookupError: If no round, or one of those named, kept its start, or clients' state was not recorded.
    """
    indices = selected_rounds(run, "globals", rounds, ROUNDS)
    plans = [find_clients_to_train(run, index) for index in indices]
    total, done, rows = sum(len(plan.trained) for plan in plans), 0, []
    for plan in plans:
        models = train_all_clients(run, plan, workers=workers, progress=_shift(run.context.progress, done, total))
        rows.append(_measure(run, plan, models, split, scale) if bool(models.weights.any()) else {})
        done += len(plan.trained)
    clients = list(range(run.experiment.clients.number))
    coords: dict[str, list] = {"round": indices, "part": list(TERMS), "other": list(TERMS), "client": clients}
    dims, about = DIMS["counterfactual"], ABOUT["counterfactual"]
    attrs: dict[str, Any] = {"source": "FedEve, section 3 and equation 13", "split": split, "scale": scale}
    attrs |= {"client_state": int(run.method.stateful or run.experiment.local.persist_optimizer)}
    attrs |= {"trainings": total, "d": run.layout.size}
    return result(stack_rows(rows, about, coords, dims), about, coords, analysis="counterfactual", **attrs)


def counterfactual_effort(run: Run, **options: Any) -> Effort:
    """Effort of `counterfactual` with the same options."""
    values, clients = complete_options(counterfactual, run, options), run.experiment.clients
    indices = selected_rounds(run, "globals", values.rounds, ROUNDS)
    trainings = sum(len(find_clients_to_train(run, index).trained) for index in indices)
    points = 1 + len(TERMS) + clients.per_round
    forwards = points * len(run.task.split(values.split)) + 3 * sum(map(len, run.parts))  # a gradient is three passes
    memory = (2 * clients.number + 4 * points) * 4 * run.layout.size
    return effort(run, trainings=trainings, forwards=forwards * len(indices), memory=memory, workers=values.workers)


def _shift(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Progress of one round as a part of `total`, of which `done` are done before."""
    return None if progress is None else lambda now, _: progress(done + now, total)


def _measure(
    run: Run, plan: ClientsToTrain, models: AllClients, split: str, scale: Scale
) -> dict[str, np.ndarray | float]:
    record, q, p = plan.record, models.shares, models.weights
    start, end = record.kept("start"), record.kept("end")
    nothing = torch.zeros_like(start)
    updates = (frozen_update(run.client(record.index, k)) if q[k] > 0 else nothing for k in range(len(q)))
    frozen = Rows(filled(len(q), start, updates))
    terms = step_terms(start, end, models.models, frozen, q, p, fit=scale == "fit")
    rounding = 4 * torch.finfo(end.dtype).eps * float(end.double().norm())
    row: dict[str, np.ndarray | float] = {name: values.numpy() for name, values in terms.clients.items()}
    row |= {"norm": terms.norms.numpy(), "cosine": terms.cosines(rounding).numpy()}
    row |= {"share": torch.where(q > 0, q, torch.nan).numpy(), "scale": terms.scale, "local_share": terms.local_share}
    for name, term in {"client_norm": "drift", "data_norm": "data", "client_local_norm": "local"}.items():
        row[name] = float(p @ terms.clients[f"client_{term}"].nan_to_num().square()) ** 0.5
    return row | _costs(run, terms, models, end, split) | _variances(run, terms, record, q, p)


def _costs(run: Run, terms: StepTerms, models: AllClients, end: Tensor, split: str) -> dict[str, np.ndarray | float]:
    """Losses and errors of the end, and of the end without each part and without each client's drift."""
    cohort = models.weights.nonzero().flatten()
    mean = terms["mean"] + terms.start
    drifts = (float(models.weights[k]) * (models.models[k].double() - mean) for k in cohort.tolist())
    basis = filled(1 + len(TERMS) + len(cohort), end, chain([end], terms.vectors, drifts))
    points = torch.eye(len(basis), dtype=torch.float64).neg_()
    points[:, 0] = 1  # the first row is the end itself, the others lack one vector each
    values = losses_and_errors(run, basis, split, points)
    row: dict[str, np.ndarray | float] = {}
    for name, losses in values.items():
        without = losses[1 : 1 + len(TERMS)]
        row |= {name: float(losses[0]), f"{name}_without": without.numpy()}
        row[f"{name}_cost"] = (losses[0] - without).numpy()
    cost = torch.full_like(models.weights, torch.nan)
    cost[cohort] = values["loss"][0] - values["loss"][1 + len(TERMS) :]
    return {**row, "client_cost": cost.numpy()}


def _variances(run: Run, terms: StepTerms, record: Round, q: Tensor, p: Tensor) -> dict[str, np.ndarray | float]:
    """Exact variances of both drifts, FedEve's estimates of them, and how they compare."""
    d, m, number = len(record.kept("start")), int((p > 0).sum()), int((q > 0).sum())
    weights, distances, gram = run.experiment.cohort_weights(record.sizes), terms.clients["distance"], record.gram
    exact = {"sampling": float(terms["sampling"].square().sum()) / (m * d)}
    exact["client"] = float(distances[q > 0].square().sum()) / (number * m * d)
    estimate = {"sampling": change_variance(gram, weights, d), "client": client_variance(gram, weights, d)}
    row: dict[str, np.ndarray | float] = {"clients": number, "cohort": m}
    row["expected_sampling"] = expected_sampling(distances.nan_to_num(), q, m)
    for name in exact:
        row |= {f"{name}_variance": exact[name], f"{name}_estimate": estimate[name]}
        row[f"{name}_ratio"] = estimate[name] / exact[name] if exact[name] > 0 else np.nan
    for name, both in {"sampling_share": exact, "sampling_share_estimate": estimate}.items():
        total = both["sampling"] + both["client"]
        row[name] = both["sampling"] / total if total > 0 else np.nan
    return row
