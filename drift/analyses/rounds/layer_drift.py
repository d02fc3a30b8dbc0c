"""Drift variances, gain and coherence per parameter tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import About, relative, result, selected_rounds
from drift.analyses.rounds.coherence import cohort_coherence, cosines, mean_cosine
from drift.analyses.rounds.variance import client_variance, gains, period_variance
from drift.config.cohort_weights import cohort_weights
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.gram import CLIENTS, STEP, gram
from drift.store.round_record import Round
from landscape.model.layout import Layout
from landscape.results.progress import with_progress

Momentum = Literal["previous", "zero"]


@analysis("round", "layer", cost="record")
def layer_drift(run: Run, *, rounds: Sequence[int] | None = None, momentum: Momentum = "previous") -> xr.Dataset:
    """Drift variances, gain, size and coherence of the updates of every parameter tensor of the model.

    The quantities are those of `drift_variances` and `coherence`, from the Gram matrix of the tensor's slice of the
    updates. With d_l parameters in tensor l, squared norms and d_l times the variances sum to those of the whole model.
    Round t is compared with the mean update of round t - 1, which must have kept its clients too; else period_variance
    and gain are NaN. The filter behind the gain starts anew after a gap in the rounds: a single round has
    G = q / (q + r).

    Source: Shen et al., FedEve, equations 12 and 13; Li et al. 2023, definition 5.1; per layer: this project.

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; negative ones count from the last round of the run. By default at most
            20, evenly spaced. The round before each of them is read as well.
        momentum: What the update D is compared with: the "previous" mean update, or "zero".

    Returns:
        Dataset with period_variance, client_variance, gain, update_norm (norm of the weighted mean update), step_norm
        (of the global step), client_norm (root of the weighted mean square of the clients' norms), coherence and
        mean_cosine, all (round, layer), and size (layer,), d_l.

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
    """
    wanted = None if rounds is None else [run.require_round(index) for index in rounds]
    indices = sorted(set(selected_rounds(run, "clients", wanted, 20)))
    places = Layout(tuple((name, tuple(shape)) for name, shape in run.about["layout"])).slices()
    columns = {name: np.full((len(indices), len(places)), np.nan) for name in _ABOUT if name != "size"}
    for row, index in enumerate(with_progress(indices, run.context.progress)):
        record = run.round(index)
        if not bool((record.sizes > 0).any()):  # every client diverged, or none has samples
            continue
        previous = _previous(run, record) if momentum == "previous" else None
        for column, place in enumerate(places.values()):
            for name, value in _measure(run, record, previous, place, momentum).items():
                columns[name][row, column] = value
    for stretch in np.split(np.arange(len(indices)), np.flatnonzero(np.diff(indices) > 1) + 1):
        for column in range(len(places)):
            q, r = (columns[name][stretch, column] for name in ("period_variance", "client_variance"))
            columns["gain"][stretch, column], _ = gains(q, r)
    sizes = [place.stop - place.start for place in places.values()]
    variables = {name: (("round", "layer"), values) for name, values in columns.items()} | {"size": ("layer", sizes)}
    coords = {"round": indices, "layer": list(places)}
    source = "FedEve, equation 13, by layer"
    return result(variables, _ABOUT, coords, analysis="layer_drift", source=source, momentum=momentum)


def _measure(run: Run, record: Round, previous: Tensor | None, place: slice, momentum: Momentum) -> dict[str, float]:
    start = record.kept("start")[place]
    deltas = record.kept("clients")[:, place] - start
    expected = torch.zeros_like(start) if previous is None else previous[place]
    matrix = gram(start, expected, record.kept("end")[place] - start, deltas)
    weights, size = cohort_weights(run.experiment, record.sizes), len(start)
    inner = matrix[CLIENTS:, CLIENTS:]
    values = {
        "client_variance": client_variance(matrix, weights, size),
        "update_norm": float((weights @ inner @ weights).clamp(min=0).sqrt()),
        "step_norm": float(matrix[STEP, STEP].clamp(min=0).sqrt()),
        "client_norm": float((weights @ inner.diagonal()).clamp(min=0).sqrt()),
    }
    if previous is not None or momentum == "zero":
        values["period_variance"] = period_variance(matrix, weights, size, momentum=momentum == "previous")
    if len(deltas) > 1:
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
    return cohort_weights(run.experiment, before.sizes).to(before.deltas) @ before.deltas if len(before.ids) else None


_ABOUT: About = {
    "period_variance": ("period-drift variance", "1"),
    "client_variance": ("client-drift variance", "1"),
    "gain": ("Kalman gain", "1"),
    "update_norm": ("norm of the mean update", "1"),
    "step_norm": ("norm of the global step", "1"),
    "client_norm": ("root mean square norm of the clients' updates", "1"),
    "coherence": ("local gradient coherence", "1"),
    "mean_cosine": ("mean cosine between the clients' updates", "1"),
    "size": ("parameters", "1"),
}
