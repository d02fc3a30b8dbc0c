"""What a record says about a run, one plain statement a question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import TypeVar

import numpy as np
import xarray as xr

from drift.apart import APART, apart
from drift.bootstrap import Estimate, mean_interval
from drift.causes import CLEAR, nonfinite, suspects
from drift.coherence import coherence
from drift.counterfactual import counterfactual
from drift.decomposition import decomposition
from drift.participation import balanced_cohort
from drift.run import Run
from drift.terrain import spread
from drift.variance import drift_variances
from drift.whatif import what_if

T = TypeVar("T")

ROUNDS = 10
"""Last rounds that the record's series are averaged over."""

FEW = 5
"""Last rounds that are looked at where models are evaluated, and 3 of them where clients are trained."""


@dataclass(frozen=True)
class Finding:
    """An answer.

    Args:
        name: centre, error, drift, coherence, shrink, clients or training.
        statement: The answer in plain words.
        measure: What its number is; empty where there is none.
        value, low, high: The number, and its interval over rounds; NaN where there is none.
        unit: Of the number.
        tested: Whether the answer was tried out on the record, not only read from it.
        figure: Of the gallery, to look at.
        suggestion: What to do; empty where there is nothing.
    """

    name: str
    statement: str
    measure: str = ""
    value: float = nan
    low: float = nan
    high: float = nan
    unit: str = "1"
    tested: bool = False
    figure: str = ""
    suggestion: str = ""


def findings(run: Run, *, quick: bool, workers: int) -> list[Finding]:
    """The answers to the questions that `drift.diagnosis` asks of a record."""
    late = run.kept("globals")[-FEW:]
    tried = _or_why(lambda: run.cached(what_if, rounds=late, windows=[3, 5], steps=0) if late else _absent(run))
    asked: dict[str, tuple[str, Callable[[], Finding]]] = {
        "centre": ("lines-globals", lambda: _centre(_there(tried))),
        "error": ("bias-rounds", lambda: _error(run, quick, workers)),
        "drift": ("variance-rounds", lambda: _drift(run, quick, workers)),
        "coherence": ("coherence-rounds", lambda: _coherence(run)),
        "shrink": ("scale-invariance", lambda: _shrink(_there(tried))),
        "clients": ("labels-partition", lambda: _clients(run.cached(apart))),
        "training": ("accuracy-rounds", lambda: _training(run)),
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


def _finding(
    name: str,
    statement: str,
    measure: str,
    of: Estimate,
    unit: str,
    figure: str,
    *,
    tested: bool = False,
    suggestion: str = "",
) -> Finding:
    return Finding(name, statement, measure, of.value, of.low, of.high, unit, tested, figure, suggestion)


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
    return _finding("centre", said, measure, gain, "nats", "lines-globals", tested=True, suggestion=advice)


def _error(run: Run, quick: bool, workers: int) -> Finding:
    """The largest of the five factors of the averaged model's squared error."""
    kept = run.kept("clients")[-3:]
    if not kept:
        raise LookupError("no round kept its clients; train with --set keep.clients=all.")
    how = {"estimator": "single"} if quick else {"estimator": "local", "replicates": 3, "workers": workers}
    parts = run.cached(decomposition, rounds=kept, samples_per_client=50, **how)
    names = {"B_H": "heterogeneous bias", "B_T": "training bias", "var": "variance", "cov": "covariance"}
    names["residual"] = "locality"
    sizes = {name: np.abs(parts[name].values) for name in names if bool(np.isfinite(parts[name]).all())}
    if not sizes:
        raise LookupError("the last rounds' models have no finite outputs.")
    total = sum(sizes.values())
    largest = max(sizes, key=lambda name: float(sizes[name].mean()))
    share = mean_interval(sizes[largest] / total)
    rest = "; variance and covariance not known without retraining" if quick else ""
    said = f"{names[largest]}{rest}"
    return _finding("error", said, "its share in the squared error", share, "fraction", "bias-rounds", tested=not quick)


def _drift(run: Run, quick: bool, workers: int) -> Finding:
    """Period drift in the sum of both drifts, and the participation at which it equals what local steps add."""
    clients = run.experiment.clients
    if quick:
        shares = drift_variances(run).period_share.values[-ROUNDS:]
        share = mean_interval(shares)
        said = f"{_larger(share)} by FedEve's estimate; exact only by retraining"
        return _finding("drift", said, "period drift in the sum of both", share, "fraction", "variance-rounds")
    rounds = spread(run.kept("globals")[-ROUNDS:], 3)
    if not rounds:
        _absent(run)
    exact = run.cached(counterfactual, rounds=rounds, workers=workers)
    share, balance = mean_interval(exact.period_share.values), balanced_cohort(exact, clients.number)
    said = _larger(share)
    if np.isfinite(balance):
        said += (
            f"; local steps would add as much as period drift with {balance:.0f} of {clients.number} clients a round"
        )
    return _finding("drift", said, "period drift in the sum of both", share, "fraction", "variance-rounds", tested=True)


def _larger(share: Estimate) -> str:
    if share.low > 0.5:
        return "period drift is larger"
    return "client drift is larger" if share.high < 0.5 else "no clear sign which is larger"


def _coherence(run: Run) -> Finding:
    found = coherence(run)
    cosine = mean_interval(found.mean_cosine.values[-ROUNDS:])
    if cosine.number == 0:
        raise LookupError("no round has two clients to compare.")
    point = float(found.critical_point)
    if np.isfinite(point):
        said = f"past its critical point since round {point:.0f}"
    else:
        said = "not past its critical point" if cosine.positive else "no clear sign of a critical point"
    return _finding("coherence", said, "mean cosine between clients' updates", cosine, "1", "coherence-rounds")


def _shrink(tried: xr.Dataset) -> Finding:
    """What the best shrinking factor gains in the last rounds."""
    over = tried.loss.sel(variant="fma") - tried.loss.sel(variant="gamma")
    gain, factor = mean_interval(over.values), float(tried.gamma.mean())
    clear = gain.low >= CLEAR * float(tried.loss.sel(variant="end").mean())
    said = "shrinking would help" if clear else "no clear sign that shrinking would help"
    said = "shrinking would hurt" if gain.negative else said
    measure = f"the best factor on other data, {factor:.2f}, gains"
    advice = "method shrink, or fedlaw to learn the factor" if clear else ""
    return _finding("shrink", said, measure, gain, "nats", "scale-invariance", tested=True, suggestion=advice)


def _clients(found: xr.Dataset) -> Finding:
    doubted = suspects(found)
    odd = [int(one) for one in found.client.values if _odd(found.sel(client=one)) and int(one) not in doubted]
    if doubted:
        one = found.sel(client=doubted[0])
        said = f"client {_listed(doubted)} may have wrong labels; {_described(one)}"
        measure, ratio = "loss on its data over that on others' of the same classes", float(one.ratio)
        advice = "check its labels, or leave it out"
        return Finding("clients", said, measure, ratio, figure="labels-partition", suggestion=advice)
    if odd:
        one = found.sel(client=odd[0])
        said = f"client {_listed(odd)} differs, without a sign of wrong labels; {_described(one)}"
        measure = "cosine of its updates with the others' mean"
        return Finding("clients", said, measure, float(one.cosine), figure="labels-partition")
    return Finding("clients", "no clear sign that a client stands apart", figure="labels-partition")


def _described(one: xr.Dataset) -> str:
    """Cosine, length, weight and labels of a client."""
    parts = f"cosine {float(one.cosine):+.2f}, length {float(one.length):.2g} x median"
    return f"{parts}, weight {float(one.weight):.2g}, label divergence {float(one.divergence):.2f}"


def _odd(one: xr.Dataset) -> bool:
    return bool(one.cosine_z < -APART) or bool(abs(one.length_z) > 2 * APART)


def _listed(clients: list[int]) -> str:
    return ", ".join(map(str, clients[:3])) + (f" and {len(clients) - 3} more" if len(clients) > 3 else "")


def _training(run: Run) -> Finding:
    """Non-finite clients, or how far the loss fell over the last rounds."""
    if gone := nonfinite(run):
        said, advice = f"client {_listed(gone)} became non-finite", "lower local.lr"
        return Finding("training", said, "number of such clients", len(gone), figure="norms-rounds", suggestion=advice)
    metrics = run.metrics()
    loss = metrics.loss.dropna("round").values[-ROUNDS:] if "loss" in metrics else np.zeros(0)
    if len(loss) < 4:
        raise LookupError("too few rounds were evaluated.")
    half = len(loss) // 2
    fall = mean_interval(loss[:half] - loss[-half:])
    said = "the loss still falls" if fall.low > CLEAR * loss[-1] else "the loss has levelled off"
    said = "the loss rises" if fall.negative else said
    return _finding("training", said, f"it fell over the last {half} rounds by", fall, "nats", "accuracy-rounds")
