"""Update change and client-drift variance, and the Kalman gain of FedEve, of the model and per parameter tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import ABOUT, relative, result, selected_rounds, series
from drift.analyses.rounds.coherence import cohort_coherence, cosines, mean_cosine
from drift.analyses.rounds.norms_and_weights import distances
from drift.config.method import Method
from drift.methods.fedeve import fuse
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import CLIENTS, PREVIOUS, STEP, Round, gram_of_models

Momentum = Literal["recorded", "previous", "zero"]
Center = Literal["weighted", "uniform"]


@analysis("round", cost="record")
def drift_variances(
    run: Run, *, momentum: Momentum = "recorded", center: Center = "weighted", sigma0: float = 0.0
) -> xr.Dataset:
    """Update change and client-drift variance of every round, and the Kalman gain of FedEve.

        sigma_Q^2 = |M - D|^2 / (m d),  sigma_R^2 = sum_k |D_k - D|^2 / (m^2 d)
        G = (s + sigma_Q^2) / (s + sigma_Q^2 + sigma_R^2),  s' = (1 - G) (s + sigma_Q^2)

    They follow from the Gram matrix, for every method. The variances are per parameter and include the 1/m of
    equation 13: sigma_R^2 is the variance of a mean of m updates. Clients without samples do not count in m.
    For a FedEve run with one gain, the result equals the recorded one.

    Source: Shen et al., FedEve, equations 12 and 13; papers.md 1.4 and 3.4.

    Args:
        run: A run of any method.
        momentum: M, which the update D is compared with. "recorded": FedEve's M, for methods without a momentum
            the previous mean update, NaN where the round before was not recorded or has none. "previous": that for
            every method; where a momentum was recorded instead, it needs the clients of two successive rounds, and is
            NaN where these were not kept. "zero": nothing, as in the author's code (EVE-1).
        center: Mean that sigma_R^2 is around, weighted or uniform (EVE-2).
        sigma0: s before the first round, and after rounds that were not recorded.

    Returns:
        Dataset over round with change_variance, client_variance, their shares of the sum, gain, sigma (s', a
        variance) and cohort m; attribute d.
    """
    d, updated = run.layout.size, {-1}
    recorded = momentum == "zero" or _records_momentum(run.method)

    def measure(record: Round) -> dict[str, float]:
        if not bool((record.sizes > 0).any()):
            return {}
        updated.add(record.index)
        weights = run.experiment.cohort_weights(record.sizes)
        client = client_variance(record.gram, weights, d, uniform=center == "uniform")
        values = {"client_variance": client, "cohort": int((weights > 0).sum())}
        matrix = _against_previous(run, record) if momentum == "previous" else record.gram
        if matrix is None or not (recorded or record.index - 1 in updated):
            return values
        change = change_variance(matrix, weights, d, momentum=momentum != "zero")
        if change + client > 0:
            values |= {"change_share": change / (change + client), "client_share": client / (change + client)}
        return {**values, "change_variance": change}

    about = {name: text for name, text in ABOUT["drift_variances"].items() if name not in ("gain", "sigma")}
    dataset = series(run, measure, about, analysis="drift_variances", source="FedEve, equations 12 and 13")
    change, client = dataset["change_variance"].values, dataset["client_variance"].values
    gain, sigma = kalman_gains(dataset["round"].values, change, client, sigma0)
    dataset = dataset.assign(gain=("round", gain), sigma=("round", sigma))
    return result(dataset, ABOUT["drift_variances"], d=d, momentum=momentum, center=center, sigma0=sigma0)


def kalman_gains(
    rounds: Sequence[int] | np.ndarray, change: np.ndarray, client: np.ndarray, sigma0: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Kalman gain and variance after each round, shape (R,), from both drift variances over the rounds, ascending.

    A round without them has NaN and leaves the variance as it is; after rounds that are not there it is sigma0 again.
    """
    columns = np.full((2, len(change)), np.nan)
    carried = first = torch.tensor(sigma0, dtype=torch.float64)
    for row, (q, r) in enumerate(zip(change, client, strict=True)):
        if row and rounds[row] - rounds[row - 1] > 1:
            carried = first
        if not np.isnan(q) and not np.isnan(r):
            gain, carried = fuse(carried, torch.as_tensor(q), torch.as_tensor(r))
            columns[:, row] = float(gain), float(carried)
    return columns[0], columns[1]


def change_variance(gram: Tensor, weights: Tensor, d: int, *, momentum: bool = True) -> float:
    """sigma_Q^2 = |M - D|^2 / (m d) from the Gram matrix of a round; |D|^2 / (m d) without the momentum.

    Args:
        gram: Inner products of a round, shape (m + 3, m + 3).
        weights: Sum 1, shape (m,); clients with weight 0 do not count.
        d: Number of parameters.
    """
    combination = torch.zeros(len(gram), dtype=torch.float64)
    combination[CLIENTS:] = weights
    if momentum:
        combination[PREVIOUS] = -1
    square = combination @ gram.double() @ combination
    return float(square.clamp(min=0)) / (int((weights > 0).sum()) * d)


def client_variance(gram: Tensor, weights: Tensor, d: int, *, uniform: bool = False) -> float:
    """sigma_R^2 = sum_k |D_k - D|^2 / (m^2 d) from the Gram matrix of a round, around the weighted or uniform mean."""
    active = weights > 0
    m = int(active.sum())
    centre = active.double() / m if uniform else weights
    return float(distances(gram, centre)[active].square().sum()) / (m**2 * d)


def _against_previous(run: Run, record: Round) -> Tensor | None:
    """The Gram matrix with the previous mean update in its row, or None where it is not recorded."""
    if not _records_momentum(run.method):
        return record.gram
    if record.index == 0:
        matrix = record.gram.clone()
        matrix[PREVIOUS], matrix[:, PREVIOUS] = 0, 0
        return matrix
    record = run.round(record.index)
    if record.clients is None or (previous := _previous(run, record)) is None:
        return None
    start = record.kept("start")
    return gram_of_models(start, previous, torch.zeros_like(start), record.clients)


def _records_momentum(method: Method) -> bool:
    """Whether the recorded row PREVIOUS is the momentum of the method."""
    return type(method.unwrapped).momentum is not Method.momentum


LayerMomentum = Literal["previous", "zero"]


@analysis("round", "layer", cost="record")
def layer_drift(run: Run, *, rounds: Sequence[int] | None = None, momentum: LayerMomentum = "previous") -> xr.Dataset:
    """Drift variances, gain, size and coherence of the updates of every parameter tensor of the model.

    The quantities are those of `drift_variances` and `coherence`, from the Gram matrix of the tensor's slice of the
    updates. With d_l parameters in tensor l, squared norms and d_l times the variances sum to those of the whole model.
    Round t is compared with the mean update of round t - 1, which must have kept its clients too; else change_variance
    and gain are NaN. The filter behind the gain starts anew after a gap in the rounds: a single round has
    G = q / (q + r).

    Source: Shen et al., FedEve, equations 12 and 13; Li et al. 2023, definition 5.1; per layer: this project.

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; negative ones count from the last round of the run. By default at most
            20, evenly spaced. The round before each of them is also read.
        momentum: What the update D is compared with: the "previous" mean update, or "zero".

    Returns:
        Dataset with change_variance, client_variance, gain, update_norm (norm of the weighted mean update), step_norm
        (of the global step), client_norm (root of the weighted mean square of the clients' norms), coherence and
        mean_cosine, all (round, layer), and size (layer,), d_l.

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
    """
    wanted = None if rounds is None else [run.require_round(index) for index in rounds]
    indices = sorted(selected_rounds(run, "clients", wanted, 20))
    spans = run.layout.slices()
    columns = {name: np.full((len(indices), len(spans)), np.nan) for name in ABOUT["layer_drift"] if name != "size"}
    for row, index in enumerate(run.context.track(indices)):
        record = run.round(index)
        if not bool((record.sizes > 0).any()):  # every client diverged, or none has samples
            continue
        previous = _previous(run, record) if momentum == "previous" else None
        for column, span in enumerate(spans.values()):
            for name, value in _measure(run, record, previous, span, momentum).items():
                columns[name][row, column] = value
    for column in range(len(spans)):
        q, r = (columns[name][:, column] for name in ("change_variance", "client_variance"))
        columns["gain"][:, column], _ = kalman_gains(indices, q, r)
    sizes = [span.stop - span.start for span in spans.values()]
    variables = {name: (("round", "layer"), values) for name, values in columns.items()} | {"size": ("layer", sizes)}
    coords = {"round": indices, "layer": list(spans)}
    source = "FedEve, equation 13, by layer"
    return result(variables, ABOUT["layer_drift"], coords, analysis="layer_drift", source=source, momentum=momentum)


def _measure(
    run: Run, record: Round, previous: Tensor | None, span: slice, momentum: LayerMomentum
) -> dict[str, float]:
    start = record.kept("start")[span]
    clients = record.kept("clients")[:, span]
    expected = torch.zeros_like(start) if previous is None else previous[span]
    matrix = gram_of_models(start, expected, record.kept("end")[span] - start, clients)
    weights, size = run.experiment.cohort_weights(record.sizes), len(start)
    inner = matrix[CLIENTS:, CLIENTS:]
    values = {
        "client_variance": client_variance(matrix, weights, size),
        "update_norm": float((weights @ inner @ weights).clamp(min=0).sqrt()),
        "step_norm": float(matrix[STEP, STEP].clamp(min=0).sqrt()),
        "client_norm": float((weights @ inner.diagonal()).clamp(min=0).sqrt()),
    }
    if previous is not None or momentum == "zero":
        values["change_variance"] = change_variance(matrix, weights, size, momentum=momentum == "previous")
    if len(clients) > 1:
        cosine, used = cosines(matrix), relative(record.weights)
        values |= {"coherence": cohort_coherence(cosine, used), "mean_cosine": mean_cosine(cosine, used)}
    return values


def _previous(run: Run, record: Round) -> Tensor | None:
    """Mean update (d,) of the round before; zero before round 0, None where it is not known."""
    if record.index == 0:
        return torch.zeros_like(record.kept("start"))
    if record.index - 1 not in run.kept("clients"):
        return None
    before = run.round(record.index - 1)
    return before.mean_update(run.experiment.cohort_weights(before.sizes)) if len(before.ids) else None
