"""What a record says about a run, one plain statement a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import xarray as xr

from drift.analyses.bootstrap import mean_interval
from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.critical_point import critical_point
from drift.analyses.rounds.participation import balanced_cohort
from drift.analyses.rounds.run_state import RunState
from drift.analyses.rounds.variance import drift_variances
from drift.diagnosis.causes import CLEAR, suspected, suspects
from drift.diagnosis.finding import Finding, finding
from drift.diagnosis.findings_state import labels, listed, training
from drift.diagnosis.outlying_clients import APART, apart
from drift.runs.run import Run

T = TypeVar("T")

ROUNDS = 10
"""Last rounds that the record's series are averaged over."""

FEW = 5
"""Last rounds that are looked at where models are evaluated or clients trained."""


def findings(run: Run, *, quick: bool, workers: int, state: RunState, long: xr.Dataset | None) -> list[Finding]:
    """The answers to the questions that `drift.diagnosis.diagnose` asks of a record.

    Args:
        state: What `run_state` gives.
        long: What `followed` gave, if changes were tested.
    """
    late = run.kept("globals")[-FEW:]
    tried = _or_why(lambda: run.cached(what_if, rounds=late, windows=[3, 5], steps=0) if late else _absent(run))
    asked: dict[str, tuple[str, Callable[[], Finding]]] = {
        "training": ("accuracy-rounds", lambda: training(run, state)),
        "labels": ("labels-partition", lambda: labels(run, run.cached(apart), long, quick=quick)),
        "centre": ("lines-globals", lambda: _centre(_there(tried))),
        "error": ("bias-rounds", lambda: _error(run)),
        "drift": ("variance-rounds", lambda: _drift(run, quick, workers)),
        "coherence": ("coherence-rounds", lambda: _coherence(run)),
        "shrink": ("scale-invariance", lambda: _shrink(_there(tried))),
        "clients": ("labels-partition", lambda: _clients(run.cached(apart))),
    }
    found = []
    for name, (figure, ask) in asked.items():
        answer = _or_why(ask)
        found.append(answer if isinstance(answer, Finding) else Finding(name, f"not known: {answer}", figure=figure))
    return found


def _or_why(ask: Callable[[], T]) -> T | str:
    """An answer, or why the record has none."""
    try:
        return ask()
    except LookupError as missing:
        return str(missing)


def _there(found: xr.Dataset | str) -> xr.Dataset:
    """A dataset that could be made.

    Raises:
        LookupError: With the reason, if it could not.
    """
    if isinstance(found, str):
        raise LookupError(found)
    return found


def _absent(run: Run) -> xr.Dataset:
    raise LookupError(f"run {run.name} kept no global models; train with --set keep.globals=all.")


def _centre(tried: xr.Dataset) -> Finding:
    """Loss that the mean of the last aggregates gains over the model as it is."""
    window = next((name for name in ("ima-5", "ima-3") if bool(tried.gain.sel(variant=name).notnull().any())), None)
    if window is None:
        raise LookupError("fewer than three successive rounds kept their global models.")
    gain = mean_interval(tried.gain.sel(variant=window).values)
    clear = gain.low >= CLEAR * float(tried.loss.sel(variant="end").mean())
    measure = f"the mean of the last {window.removeprefix('ima-')} models gains"
    said = "the model is off the centre of its basin" if clear else "no clear sign that the model is off it"
    advice = "average the last models, as method ima does" if clear else ""
    return finding("centre", said, measure, gain, "nats", "lines-globals", tested=True, suggestion=advice)


def _error(run: Run) -> Finding:
    """What the averaged model loses to the ensemble of the same clients (FMA against WENS), squared error."""
    rounds = run.kept("clients")[-FEW:]
    if not rounds:
        raise LookupError("no round kept its clients; train with --set keep.clients=all.")
    parts = run.cached(decomposition, rounds=rounds, samples_per_client=50)
    share = mean_interval((parts.residual / parts.fma_loss).values)
    if not np.isfinite(share.value):
        raise LookupError("the last rounds' models have no finite outputs.")
    said = "no clear difference between the averaged model and the ensemble of its clients"
    said = "averaging the models costs, beside their ensemble" if share.low >= CLEAR else said
    said = "the averaged model is better than the ensemble of its clients" if share.high <= -CLEAR else said
    measure = "part of its squared error that averaging adds"
    return finding("error", said, measure, share, "fraction", "bias-rounds", tested=True)


def _drift(run: Run, quick: bool, workers: int) -> Finding:
    """What period drift and local steps cost in the last rounds, and the participation at which they are equal.

    Which of period and client drift is larger says nothing about a run: their ratio is given by the participation
    (`drift.analyses.rounds.participation`).
    """
    if quick:
        share = mean_interval(drift_variances(run).period_share.values[-ROUNDS:])
        measure = "period drift in the sum of both, by FedEve's estimate"
        said = "what the drifts cost is not known without training"
        return finding("drift", said, measure, share, "fraction", "variance-rounds")
    rounds = evenly_spaced(run.kept("globals")[-ROUNDS:], FEW)
    if not rounds:
        _absent(run)
    exact = run.cached(counterfactual, rounds=rounds, workers=workers)
    least = CLEAR * float(exact.loss.mean())
    costs = {part: mean_interval(exact.loss_cost.sel(part=part).values) for part in ("period", "local")}
    words = {"period": "period drift costs loss", "local": "what local steps add costs loss"}
    clear = [words[part] for part, cost in costs.items() if cost.low >= least]
    said = " and ".join(clear) or "neither period drift nor what local steps add costs loss clearly"
    balance = balanced_cohort(exact, run.experiment.clients.number)
    if np.isfinite(balance):
        said += f"; they are equally long with {balance:.0f} of {run.experiment.clients.number} clients per round"
    measure = "removing period drift from a round gains"
    return finding("drift", said, measure, costs["period"], "nats", "variance-rounds", tested=True)


def _coherence(run: Run) -> Finding:
    """Mean cosine of the last rounds, and the round of a clear change from positive to negative."""
    found = coherence(run)
    cosine = mean_interval(found.mean_cosine.values[-ROUNDS:])
    if cosine.number == 0:
        raise LookupError("no round has two clients to compare.")
    point = critical_point(found["round"].values, found.coherence.values)
    if point.reason:
        said = f"no clear critical point: {point.reason}"
    else:
        said = f"past its critical point since round {point.round:.0f} [{point.low:.0f}, {point.high:.0f}]"
    return finding("coherence", said, "mean cosine between clients' updates", cosine, "1", "coherence-rounds")


def _shrink(tried: xr.Dataset) -> Finding:
    """What the best shrinking factor gains in the last rounds."""
    over = tried.loss.sel(variant="fma") - tried.loss.sel(variant="gamma")
    gain, factor = mean_interval(over.values), float(tried.gamma.mean())
    clear = gain.low >= CLEAR * float(tried.loss.sel(variant="end").mean())
    said = "shrinking would help" if clear else "no clear sign that shrinking would help"
    said = "shrinking would hurt" if gain.negative else said
    measure = f"the best factor on other data, {factor:.2f}, gains"
    advice = "method shrink, or fedlaw to learn the factor" if clear else ""
    return finding("shrink", said, measure, gain, "nats", "scale-invariance", tested=True, suggestion=advice)


def _clients(found: xr.Dataset) -> Finding:
    doubted = suspects(found)
    odd = [int(one) for one in found.client.values if _odd(found.sel(client=one)) and int(one) not in doubted]
    if doubted:
        one = found.sel(client=doubted[0])
        kind = suspected(one)
        said = f"client {listed(doubted)} may have wrong {kind}; {_described(one)}"
        measure, ratio = "loss on its data over that on others' of the same classes", float(one.ratio)
        advice = f"check its {kind}"
        return Finding("clients", said, measure, ratio, figure="labels-partition", suggestion=advice)
    if odd:
        one = found.sel(client=odd[0])
        said = f"client {listed(odd)} differs, without a sign of wrong data; {_described(one)}"
        measure = "cosine of its updates with the others' mean"
        return Finding("clients", said, measure, float(one.cosine), figure="labels-partition")
    return Finding("clients", "no clear sign that a client stands apart", figure="labels-partition")


def _described(one: xr.Dataset) -> str:
    """Cosine, length, weight and labels of a client."""
    parts = f"cosine {float(one.cosine):+.2f}, length {float(one.length):.2g} x median"
    return f"{parts}, weight {float(one.weight):.2g}, label divergence {float(one.divergence):.2f}"


def _odd(one: xr.Dataset) -> bool:
    return bool(one.cosine_z < -APART) or bool(abs(one.length_z) > 2 * APART)
