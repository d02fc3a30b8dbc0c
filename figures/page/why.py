"""Why a round went as it did: three sentences in plain words, each with its number and the meaning of its term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.critical_point import critical_point
from drift.diagnosis.findings import critical_words
from drift.runs.run import Run
from figures.page.diagnosis_text import alike, number
from figures.page.packed import finite
from figures.page.paired_losses import is_clear, with_error

ALIGNED = 0.5
"""Mean cosine from which updates are said to point one way; at half of the lowest possible one, against each other."""

HIGHEST = 3
"""Classes of a client that a sentence names."""

Sentence = dict[str, str]
"""text; number: the number in it, with its unit; term: one of `figures.page.scene.TERMS`."""


def why(run: Run, index: int, losses: xr.Dataset, cohort: Sequence[dict[str, Any]]) -> list[Sentence]:
    """What averaging did in a round, which client moved the aggregate most, and how well the updates agree.

    Args:
        run: The run.
        index: Number of the round.
        losses: Of its models, as `figures.page.stage_round.round_losses` returns them.
        cohort: Its clients, as `figures.page.stage_round.stage_round` returns them.
    """
    unit = "" if run.loss_units == "1" else f" {run.loss_units}"
    return [_averaging(losses, unit), _client(run, cohort, unit), _agreement(run, index)]


def _averaging(losses: xr.Dataset, unit: str) -> Sentence:
    alone, aggregate = float(losses.client.mean()), float(losses.aggregate)
    gain = alone - aggregate
    if not np.isfinite(gain):
        return _sentence("A client model or the aggregate has no finite loss: this round diverged.", "", "Aggregate")
    error = finite(float(losses.gain_error))
    verb = f"Averaging {'helps' if gain > 0 else 'hurts'}" if is_clear(abs(gain), error) else "No clear difference"
    of_aggregate, of_clients = alike([aggregate, alone], 3)
    text = f"{verb}: the aggregate has a test loss of {of_aggregate}, its {losses.sizes['id']} client models have "
    return _sentence(f"{text}{of_clients} on average.", with_error(-gain, error, unit), "Aggregate")


def _client(run: Run, cohort: Sequence[dict[str, Any]], unit: str) -> Sentence:
    known = [client for client in cohort if client["cost"] is not None]
    if not known:
        return _sentence("The effect of single clients is not known: no loss is finite.", "", "Counterfactual")
    best, *_, worst = sorted([known[0], *known], key=lambda client: float(client["cost"]))
    help_, harm = (with_error(client["cost"], client["cost_error"], unit) for client in (best, worst))
    if is_clear(worst["cost"], worst["cost_error"], len(known)):
        text = f"C{_named(run, worst)[1:]} harms the aggregate most: without it the loss would be lower."
        if worst["own_before"] is not None and worst["own_after"] is not None:
            fall = " to ".join(alike([worst["own_before"], worst["own_after"]], 3))
            text += f" Its training takes the loss on its own samples from {fall}."
        return _sentence(text, harm, "Counterfactual")
    most = f" (client {worst['id']} most: {harm})" if worst["cost"] > 0 else ""
    text = f"No client clearly harms the aggregate{most}"
    if not is_clear(-best["cost"], best["cost_error"], len(known)):
        return _sentence(f"{text}, and none clearly helps it.", harm, "Counterfactual")
    return _sentence(f"{text}. C{_named(run, best)[1:]} helps it most.", help_, "Counterfactual")


def _agreement(run: Run, index: int) -> Sentence:
    series = run.cached(coherence)
    cosine = float(series.mean_cosine.sel(round=index))
    if not np.isfinite(cosine):
        return _sentence("How well the updates agree is not known for this round.", "", "Mean cosine")
    opposed = -0.5 / max(len(run.round(index).ids) - 1, 1)  # unit vectors have no mean cosine below twice that
    kind = "mostly agree" if cosine >= ALIGNED else "pull against each other" if cosine <= opposed else "agree little"
    point = critical_point(series["round"].values, series.coherence.values)
    text = f"The clients' updates {kind}. In the whole run: {critical_words(point)}."
    return _sentence(text, f"cosine {number(cosine, 3, sign=True)}", "Mean cosine")


def _named(run: Run, client: dict[str, Any]) -> str:
    """A client by its number and its largest classes."""
    counts = np.array(client["counts"])
    if not counts.any():
        return f"client {client['id']}"
    names = [str(run.dataset.classes[label]) for label in np.argsort(-counts, kind="stable") if counts[label]]
    few = f"only {' and '.join(names)}" if len(names) <= HIGHEST else f"mostly {', '.join(names[:HIGHEST])}"
    return f"client {client['id']} ({few})"


def _sentence(text: str, value: str, term: str) -> Sentence:
    return {"text": text, "number": value, "term": term}
