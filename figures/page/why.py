"""Why a round went as it did, in plain sentences, each with its number and the meaning of its term."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.landscapes.named_models import SAME
from drift.analyses.landscapes.round_weights import Lowest
from drift.analyses.over_seeds import estimate
from drift.analyses.per_round import relative
from drift.analyses.rounds.coherence import coherence, cosines, mean_cosine
from drift.analyses.rounds.critical_point import critical_point
from drift.runs.growing_run import recorded
from drift.runs.run import Run
from drift.store.column_blocks import weighted_models
from drift.store.numpy_files import Damaged
from drift.store.round_record import Round
from figures.looks import palette, words
from figures.page.diagnosis_text import alike, number
from figures.page.packed import finite
from figures.page.paired_losses import is_clear, with_error
from landscape import plugins

ALIGNED = 0.5
"""Mean cosine from which updates are said to point one way; at half of the lowest possible one, against each other."""

HARDLY = 1e-3
"""Share of a distance below which another one is rounding."""

HIGHEST = 3
"""Classes of a client that a sentence names."""

Sentence = dict[str, str]
"""text; number: the number in it, with its unit; term: one of `figures.page.scene.TERMS`."""


def why(run: Run, index: int, losses: xr.Dataset, cohort: Sequence[dict[str, Any]]) -> list[Sentence]:
    """Which client moved the aggregate of a round most, when the drift of the whole run changed its kind, what
    averaging did, and how well the updates agree: the most telling first.

    Args:
        run: The run.
        index: Number of the round.
        losses: Of its models, as `figures.page.paired_losses.round_losses` returns them.
        cohort: Its clients, as `figures.page.stage_round.stage_round` returns them.
    """
    unit, record = "" if run.loss_units == "1" else f" {run.loss_units}", run.round(index)
    has_plain_weights = np.allclose(record.weights, run.experiment.cohort_weights(record.sizes), rtol=1e-4)
    mean = "the aggregate" if has_plain_weights else "the mean with FedAvg's weights"
    if len(cohort) == 1:
        text, loss = "One client was in this round: the aggregate is its model, with this test loss.", losses.aggregate
        return [_sentence(text, f"{number(float(loss), 3)}{unit}" * bool(np.isfinite(loss)), "Aggregate"), _change(run)]
    return [_client(run, mean, cohort, unit), _change(run), _averaging(mean, losses, unit), _agreement(record)]


def lowest_words(run: Run, lowest: Lowest) -> str:
    """What the best weights of a round give, beside its own."""
    unit = "" if run.loss_units == "1" else f" {run.loss_units}"
    best, recorded = alike([lowest.loss, lowest.recorded_loss], 4)
    if lowest.loss == lowest.recorded_loss:
        return f"No weights of sum 1 with a lower loss than the round's own, {recorded}{unit}, were found."
    change = with_error(-lowest.gain, lowest.error, unit)
    sought = f"The best weights of sum 1 found have a loss of {best}{unit} on {lowest.samples:,} samples"
    halves = f"Weights found on one half of them change the loss of the other half by {change}."
    return f"{sought}; the round's own {recorded}. {halves}"


def end_words(run: Run, record: Round) -> str:
    """Where the end is, seen from the mean of the clients at the weights that the round took, and what the method is.

    Returns:
        Two sentences; none where the end is that mean up to rounding, or start and end were not kept.
    """
    if record.start is None or record.end is None:
        return ""
    mean = weighted_models(record.weights, record.kept("clients"))
    way, step, away = mean - record.start, record.end - record.start, float((record.end - mean).norm())
    if not away > SAME * float(mean.norm()):
        return ""
    share = float(step @ way / (way @ way))
    is_off_the_way = float((step - share * way).norm()) > HARDLY * away
    where = f"{number(away)} from it" if is_off_the_way else f"{number(share)} of the way from the start to it"
    kind = f"{palette.label(run.label)} made it."
    with suppress(ValueError):  # a method of the user
        kind = plugins.describe("drift.methods", run.method.name())
    return f"The end is not the mean with the round's own weights, but {where}. {kind}"


def _averaging(mean: str, losses: xr.Dataset, unit: str) -> Sentence:
    alone, aggregate = float(losses.client.mean()), float(losses.aggregate)
    gain = alone - aggregate
    if not np.isfinite(gain):
        return _sentence("A client model or the aggregate has no finite loss: this round diverged.", "", "Aggregate")
    error = finite(float(losses.gain_error))
    verb = f"Averaging {'helps' if gain > 0 else 'hurts'}" if is_clear(abs(gain), error) else "No clear difference"
    of_aggregate, of_clients = alike([aggregate, alone], 3)
    text = f"{verb}: {mean} has a test loss of {of_aggregate}, its {losses.sizes['id']} client models have "
    return _sentence(f"{text}{of_clients} on average.", with_error(-gain, error, unit), "Aggregate")


def _client(run: Run, mean: str, cohort: Sequence[dict[str, Any]], unit: str) -> Sentence:
    known = [client for client in cohort if client["cost"] is not None]
    if not known:
        return _sentence("The effect of single clients is not known: no loss is finite.", "", "Counterfactual")
    effect = lambda client: float(client["cost"])  # noqa: E731
    helpful, harmful = min(known, key=effect), max(known, key=effect)
    harms = [client for client in known if is_clear(client["cost"], client["cost_error"], len(known))]
    helps = [client for client in known if is_clear(-client["cost"], client["cost_error"], len(known))]
    stated = lambda client: with_error(client["cost"], client["cost_error"], unit)  # noqa: E731
    most = f"client {harmful['id']} most: {stated(harmful)}"
    if harms:
        worst = max(harms, key=effect)
        text = f"C{_named(run, worst)[1:]} {_verb('harms', worst, harmful, mean)}: without it the loss would be lower."
        if worst["own_before"] is not None and worst["own_after"] is not None:
            fall = " to ".join(alike([worst["own_before"], worst["own_after"]], 3))
            text += f" Its training takes the loss on its own samples from {fall}."
        text += "" if worst is harmful else f" Whether others harm it is not clear ({most})."
        return _sentence(text, stated(worst), "Counterfactual")
    most = f" ({most})" if effect(harmful) > 0 else ""
    if helps:
        best = min(helps, key=effect)
        text = f"C{_named(run, best)[1:]} {_verb('helps', best, helpful, mean)}. No client clearly harms it{most}."
        return _sentence(text, stated(best), "Counterfactual")
    text = f"No client clearly harms {mean}{most}, and none clearly helps it."
    return _sentence(text, stated(harmful) if most else "", "Counterfactual")


def _verb(verb: str, client: dict[str, Any], largest: dict[str, Any], mean: str) -> str:
    """What a client clearly does; "most" only where no other one has a larger effect, clear or not."""
    return f"{verb} {mean} most" if client is largest else f"clearly {verb} {mean}"


def _agreement(record: Round) -> Sentence:
    matrix, shares = cosines(record.gram), relative(record.weights)
    rest = [mean_cosine(matrix, others) for others in shares.repeat(len(shares), 1).fill_diagonal_(0)]
    cosine = mean_cosine(matrix, shares)
    error = finite(float(np.sqrt((len(rest) - 1) * np.var(rest))))  # the jackknife's
    opposed = -0.5 / max(len(rest) - 1, 1)  # unit vectors have no mean cosine below twice that
    if not np.isfinite(cosine):
        return _sentence("How well the updates agree is not known for this round.", "", "Mean cosine")
    if not is_clear(abs(cosine), error):
        kind = "neither clearly agree nor clearly disagree"
    elif opposed < cosine < ALIGNED:
        kind = f"{'agree' if cosine > 0 else 'disagree'} a little"
    else:
        kind = "mostly agree" if cosine > 0 else "pull against each other"
    text = f"The clients' updates {kind} in this round; ± over the clients."
    return _sentence(text, f"cosine {with_error(cosine, error, '')}", "Mean cosine")


def _change(run: Run) -> Sentence:
    """Whether and when the drift of the run changed its kind, from its record."""
    try:
        ds = run.cached(coherence)
    except Damaged:  # a round; the others tell
        ds = coherence(recorded(run, tolerant=True))
    values = ds.coherence.dropna("round")
    rounds, signed = values["round"].values, partial(number, digits=2, sign=True)
    if len(rounds) < 2:
        text = "Whether the drift changed its kind takes two rounds to know, each of two clients that did not diverge."
        return _sentence(text, "", "Critical point")
    point, mean = critical_point(rounds, values.values), estimate(ds.mean_cosine.values)
    if not point.reason:
        text = f"The drift changed its kind in round {point.round:.0f}, between {point.low:.0f} and {point.high:.0f} "
        text += "(95 %): before, the clients' updates agree on average; from then on, they pull against each other."
        means = f"coherence {signed(point.before.value)}, then {signed(point.after.value)}"
        return _sentence(text, means, "Critical point")
    kind = "agree" if mean.positive else "disagree" if mean.negative else "neither clearly agree nor clearly disagree"
    text = f"In rounds {rounds[0]} to {rounds[-1]} client updates {kind} on average (mean cosine {signed(mean.low)} "
    text += f"to {signed(mean.high)}, 95 %). No change of the drift's kind was found: {point.reason}."
    return _sentence(text, f"mean cosine {signed(mean.value)}", "Critical point")


def _named(run: Run, client: dict[str, Any]) -> str:
    """A client by its number and its largest classes."""
    counts = np.array(client["counts"])
    if not counts.any():
        return f"client {client['id']}"
    names = [str(run.dataset.classes[label]) for label in np.argsort(-counts, kind="stable") if counts[label]]
    few = f"only {words.listed(names)}" if len(names) <= HIGHEST else f"mostly {', '.join(names[:HIGHEST])}"
    return f"client {client['id']} ({few})"


def _sentence(text: str, value: str, term: str) -> Sentence:
    return {"text": text, "number": value, "term": term}
