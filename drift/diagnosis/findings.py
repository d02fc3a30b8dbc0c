"""Findings: answers to eight questions about a run, from its record."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr

from drift.analyses.counterfactual.changes import uneven
from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.analyses.counterfactual.step_terms import cohort_of_equal_drifts
from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.over_seeds import estimate
from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.batch_statistics import statistics_remark
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.critical_point import CriticalPoint, critical_point
from drift.analyses.rounds.run_state import FEWEST, RunState, nonfinite
from drift.analyses.rounds.variance import drift_variances
from drift.diagnosis.causes import CLEAR, beyond, gain_of, suspected, suspects
from drift.diagnosis.finding import Finding, finding
from drift.diagnosis.outlying_clients import OUTLYING, client_deviations
from drift.runs.registry import LOSS_UNITS
from drift.runs.run import Run

ROUNDS = 10
"""Number of last rounds that recorded series are averaged over."""

FEW = 5
"""Number of last rounds in which models are evaluated or clients trained."""


def findings(run: Run, *, quick: bool, workers: int, state: RunState, long: xr.Dataset | None) -> list[Finding]:
    """The answers to the questions of `drift.diagnosis.diagnose`.

    Args:
        state: Result of `run_state`.
        long: Result of `followed`, if changes were tested.
    """

    def rules() -> xr.Dataset:
        return run.cached(what_if, rounds=_late_globals(run)[-FEW:], windows=[3, 5], steps=0)

    questions: dict[str, tuple[str, Callable[[], Finding]]] = {
        "training": ("accuracy-rounds", lambda: training(run, state)),
        "labels": ("labels-partition", lambda: labels(run, run.cached(client_deviations), long, quick=quick)),
        "centre": ("lines-globals", lambda: _centre(rules())),
        "error": ("bias-rounds", lambda: _error(run)),
        "drift": ("variance-rounds", lambda: _drift(run, quick, workers)),
        "coherence": ("coherence-rounds", lambda: _coherence(run)),
        "shrink": ("scale-invariance", lambda: _shrink(rules())),
        "clients": ("labels-partition", lambda: _clients(run.cached(client_deviations))),
    }
    answers = []
    for name, (figure, ask) in questions.items():
        try:
            answers.append(ask())
        except LookupError as missing:
            answers.append(Finding(name, f"not known: {missing}", figure=figure))
    return [replace(answer, unit=run.loss_units) if answer.unit == LOSS_UNITS else answer for answer in answers]


def _late_globals(run: Run) -> list[int]:
    """The last rounds that kept their global model, as many as recorded series are averaged over."""
    if not (rounds := run.kept("globals")[-ROUNDS:]):
        raise LookupError(f"run {run.name} kept no global models; train with --set keep.globals=all.")
    return rounds


def _centre(rules: xr.Dataset) -> Finding:
    """Gain in loss of the mean of the last aggregates over the recorded model."""
    window = next((name for name in ("ima-5", "ima-3") if bool(rules.gain.sel(variant=name).notnull().any())), None)
    if window is None:
        raise LookupError("fewer than three successive rounds kept their global models.")
    gain = estimate(rules.gain.sel(variant=window).values)
    least = CLEAR * float(rules.loss.sel(variant="end").mean())
    clear = gain.low >= least
    measure = f"the mean of the last {window.removeprefix('ima-')} models gains (clear above {least:.2g})"
    statement = "the model is off the centre of its basin" if clear else "no clear sign that the model is off it"
    advice = "average the last models, as method ima does" if clear else ""
    return finding("centre", statement, measure, gain, LOSS_UNITS, "lines-globals", tested=True, suggestion=advice)


def _error(run: Run) -> Finding:
    """Squared error of the averaged model compared with the ensemble of the same clients (FMA, WENS)."""
    rounds = run.kept("clients")[-FEW:]
    if not rounds:
        raise LookupError("no round kept its clients; train with --set keep.clients=all.")
    terms = run.cached(decomposition, rounds=rounds, samples_per_client=50)
    share = estimate((terms.residual / terms.fma_loss).values)
    if not np.isfinite(share.value):
        raise LookupError("the last rounds' models have no finite outputs.")
    statement = "no clear difference between the averaged model and the ensemble of its clients"
    statement = "averaging the models costs, beside their ensemble" if share.low >= CLEAR else statement
    statement = "the averaged model is better than the ensemble of its clients" if share.high <= -CLEAR else statement
    words = "of its squared error that averaging adds"
    if share.value < 0:  # said as a gain
        words = "by which the squared error of the ensemble is higher"
        share = replace(share, value=-share.value, low=-share.high, high=-share.low)
    measure = f"part {words} (clear beyond {100 * CLEAR:g} %)"
    return finding("error", statement, measure, share, "fraction", "bias-rounds", tested=True)


def _drift(run: Run, quick: bool, workers: int) -> Finding:
    """Cost of sampling drift and local steps in the last rounds, and the participation at which they are equal.

    The ratio of sampling and client drift is no property of a run: it follows from the participation
    (`drift.analyses.counterfactual.step_terms`).
    """
    if quick:
        share = estimate(drift_variances(run).change_share.sel(round=slice(run.rounds()[-1] - ROUNDS + 1, None)).values)
        measure = "update change in the sum of both variances of equation 13"
        statement = "what the drifts cost is not known without training"
        return finding("drift", statement, measure, share, "fraction", "variance-rounds")
    exact = run.cached(counterfactual, rounds=evenly_spaced(_late_globals(run), FEW), workers=workers)
    least = CLEAR * float(exact.loss.mean())
    costs = {term: estimate(exact.loss_cost.sel(part=term).values) for term in ("sampling", "local")}
    words = {"sampling": "sampling drift costs loss", "local": "what local steps add costs loss"}
    clear = [words[term] for term, cost in costs.items() if cost.low >= least]
    statement = " and ".join(clear) or "neither sampling drift nor what local steps add costs loss clearly"
    equal = cohort_of_equal_drifts(exact, run.experiment.clients.number)
    if np.isfinite(equal):
        statement += f"; they are equally long with {equal:.0f} of {run.experiment.clients.number} clients per round"
    measure = f"removing sampling drift from a round gains (clear above {least:.2g})"
    return finding("drift", statement, measure, costs["sampling"], LOSS_UNITS, "variance-rounds", tested=True)


def _coherence(run: Run) -> Finding:
    """Mean cosine of the last rounds, and the round of a clear change from positive to negative."""
    series = coherence(run)
    late = series.mean_cosine.sel(round=slice(run.rounds()[-1] - ROUNDS + 1, None))
    cosine, rounds = estimate(late.values), late["round"].values
    if cosine.number == 0:
        raise LookupError("no round has two clients to compare.")
    words = critical_words(critical_point(series["round"].values, series.coherence.values))
    measure = f"mean cosine of updates, rounds {rounds[0]} to {rounds[-1]}"
    return finding("coherence", words, measure, cosine, "1", "coherence-rounds")


def critical_words(point: CriticalPoint) -> str:
    """Whether and since when a run is past its critical point."""
    since = f"past its critical point since round {point.round:.0f} [{point.low:.0f}, {point.high:.0f}]"
    return f"no clear critical point: {point.reason}" if point.reason else since


def _shrink(rules: xr.Dataset) -> Finding:
    """Gain of the best shrinking factor in the last rounds."""
    over = rules.loss.sel(variant="fma") - rules.loss.sel(variant="gamma")
    gain, factor = estimate(over.values), float(rules.gamma.mean())
    least = CLEAR * float(rules.loss.sel(variant="end").mean())
    clear = gain.low >= least
    statement = "shrinking would help" if clear else "no clear sign that shrinking would help"
    statement = "shrinking would hurt" if gain.negative else statement
    measure = f"the best factor on other data, {factor:.2f}, gains (clear above {least:.2g})"
    advice = "method shrink, or fedlaw to learn the factor" if clear else ""
    return finding("shrink", statement, measure, gain, LOSS_UNITS, "scale-invariance", tested=True, suggestion=advice)


def _clients(clients: xr.Dataset) -> Finding:
    doubted = suspects(clients)
    numbers = set(map(int, clients.client.values)) - set(doubted)
    odd = sorted(number for number in numbers if is_odd(clients.sel(client=number)))
    figure = "labels-partition"
    if doubted:
        first = clients.sel(client=doubted[0])
        kind = suspected(first)
        statement = f"client {listed(doubted)} may have wrong {kind}; {_describe(first)}"
        measure, ratio = "loss on its data over that on others' of the same classes", float(first.ratio)
        return Finding("clients", statement, measure, ratio, figure=figure, suggestion=f"check its {kind}")
    if odd:
        first = clients.sel(client=odd[0])
        statement = f"client {listed(odd)} differs, without a sign of wrong data; {_describe(first)}"
        measure = "cosine of its updates with the others' mean"
        return Finding("clients", statement, measure, float(first.cosine), figure=figure)
    return Finding("clients", "no clear sign that a client stands apart", figure=figure)


def _describe(client: xr.Dataset) -> str:
    text = f"cosine {float(client.cosine):+.2f}, length {float(client.length):.2g} x median"
    return f"{text}, weight {float(client.weight):.2g}, label divergence {float(client.divergence):.2f}"


def is_odd(client: xr.Dataset) -> bool:
    """Whether a client of `client_deviations` is an outlier by the direction or the length of its updates."""
    return bool(client.cosine_z < -OUTLYING) or bool(abs(client.length_z) > 2 * OUTLYING)


def training(run: Run, state: RunState) -> Finding:
    """State of the run, and the expected gain of the next round."""
    statements = {
        "diverged": f"diverged; the loss was lowest after round {state.best}" if state.best >= 0 else "diverged",
        "lost what it had": f"lost what it had learned; the loss was lowest after round {state.best}",
        "still learning": "not finished, the loss still falls",
        "not learned": "has not learned: no better than a constant answer, and the loss does not fall",
        "plateau": "on a plateau",
    }
    remark = statistics_remark(run)
    if state.name not in statements:
        raise LookupError("; ".join(filter(None, [remark, f"fewer than {FEWEST} rounds were evaluated."])))
    statement, advice = statements[state.name], ""
    if clients := nonfinite(run):
        statement, advice = f"{statement}; client {listed(clients)} became non-finite", "lower local.lr"
    if remark:
        statement = f"{statement}; {remark}"
    measure = "expected gain of the next round (Theil-Sen)"
    return finding("training", statement, measure, state.fall, LOSS_UNITS, "accuracy-rounds", suggestion=advice)


def labels(run: Run, clients: xr.Dataset, long: xr.Dataset | None, *, quick: bool) -> Finding:
    """Cost of labels that differ between clients: the gain of the run with evenly partitioned data."""
    figure = "labels-partition"
    if not uneven(run):
        return Finding("labels", "labels differ between clients no more than by chance", figure=figure)
    divergence = float(np.nanmean(clients.divergence))
    amount = f"their mean divergence is {divergence:.2f} of at most 0.69 nats"
    if long is not None and "even" in long.change.values:
        gains, share, placebo = gain_of(long, "even")
        clear = beyond(gains, placebo)
        statement = "that labels differ between clients costs loss" if clear else "no clear cost of labels that differ"
        statement += f" ({100 * share:.0f} % of it)" if clear else ""
        measure = f"gain of the same run with even labels (another seed: {placebo:.2g})"
        return finding("labels", f"{statement}; {amount}", measure, estimate(gains), LOSS_UNITS, figure, tested=True)
    tested = not quick and long is not None
    unknown = "what that costs is not known without training" if quick else "what that costs was not followed"
    cost = "within windows it costs less than 2 %" if tested else unknown
    return Finding("labels", f"labels differ between clients, {cost}; {amount}", figure=figure, tested=tested)


def listed(clients: list[int]) -> str:
    """Up to three client numbers, and the number of the others."""
    return ", ".join(map(str, clients[:3])) + (f" and {len(clients) - 3} more" if len(clients) > 3 else "")
