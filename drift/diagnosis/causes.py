"""Causes of a run's loss: tested changes of settings, ordered by their gain."""

from dataclasses import dataclass
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.counterfactual.changes import changes
from drift.analyses.counterfactual.followed_changes import LONGER, longest
from drift.analyses.over_seeds import Estimate, estimate
from drift.analyses.rounds.run_state import RunState
from drift.diagnosis.outlying_clients import OUTLYING
from drift.runs.run import Run
from landscape.results.parsed_text import from_toml

CLEAR = 0.02
"""Smallest gain of a clear cause, as a fraction of the loss."""

WRONG = 2.0
"""Ratio from which a client is suspected: loss on its data over that on others' data of the same classes."""

LONG = 5.0
"""Length of a client's updates over the median from which its inputs are suspected, not its labels."""

LEAVE_OUT = 2
"""Largest number of clients that are left out as a test."""

FOLLOWED = 4
"""Largest number of changes that are followed, those with the largest gain in windows; suspected clients are extra."""


@dataclass(frozen=True)
class Cause:
    """A cause that was tested.

    Args:
        name: Such as participation, rate, rate-small, epochs, shrinking, rounds, method.mu-large or client-K.
        title: Description of the cause.
        test: Change that was tested.
        gain: Gain in loss by that, nats, with its 95 % t interval: over seeds if it was followed, else over windows.
        share: The gain as a part of the loss without the change.
        clear: Whether it is a cause by the rule of `ranked`.
        note: Further evidence.
        figure: Figure of the gallery that shows it.
        followed: Rounds for which it was followed, such as "rounds 0 to 24"; empty if it was tested in windows only.
        placebo: Largest effect of a change of the seed alone in these rounds, nats.
        command: Command to run next.
        change: Name of the tested change, of `drift.analyses.counterfactual.changes`.
    """

    name: str
    title: str
    test: str
    gain: Estimate
    share: float
    clear: bool
    note: str
    figure: str
    followed: str = ""
    placebo: float = nan
    command: str = ""
    change: str = ""


_WORDS = from_toml((Path(__file__).parent / "causes.toml").read_bytes())
"""Name and title of the cause that a change removes, and a figure."""


def suspects(clients: xr.Dataset) -> list[int]:
    """Clients whose labels or inputs may be wrong, the most striking first: the loss of the global model on their data
    is an outlier (z > 3.5) and at least twice that on others' data of the same classes."""
    odd = (clients.excess_z > OUTLYING) & (clients.ratio >= WRONG)
    numbers = clients.client.values[odd.values]
    order = sorted(numbers, key=lambda number: -float(clients.excess_z.sel(client=number)))
    return [int(number) for number in order][:LEAVE_OUT]


def suspected(client: xr.Dataset) -> str:
    """What may be wrong with a suspected client, "inputs" or "labels".

    Inputs of a wrong scale, or noise, make gradients and so updates many times as long as those of others (5 medians
    or more, and an outlier); wrong labels hardly change the length of a step.
    """
    return "inputs" if float(client.length) >= LONG and float(client.length_z) > OUTLYING else "labels"


def promising(tests: xr.Dataset, state: RunState) -> list[str]:
    """Changes to follow: the four with the largest mean gain over windows, if above zero; suspected clients; even
    labels, if they gain 2 %; and longer training if the loss still falls."""
    shares = {str(name): _share(tests, str(name)) for name in tests.change.values}
    clients = [name for name in shares if name.startswith("without-")]
    ranking = sorted((name for name in shares if name not in [*clients, "even"]), key=lambda name: -shares[name])
    names = [name for name in ranking if shares[name] > 0][:FOLLOWED]
    names += clients + (["even"] if shares.get("even", 0.0) >= CLEAR else [])
    return [*names, LONGER] if state.unfinished else names


def ranked(run: Run, tests: xr.Dataset, long: xr.Dataset | None, clients: xr.Dataset) -> list[Cause]:
    """Causes, clear ones first, then by the share of the loss that was gained; followed ones before others.

    A cause is clear where its removal, followed to the end of the run (`followed`),

        gains with every seed,
        gains more than the placebo: more than any two seeds differ by without a change,
        gains 2 % of the loss (a single client of many need not), and
        where the first rounds were followed as well, loses there no more than the placebo.

    Even labels are no cause: the cost of heterogeneity is a finding (`drift.diagnosis.findings`).

    Args:
        tests: Result of `interventions`.
        long: Result of `followed`; None if nothing was followed.
        clients: Result of `client_deviations`.
    """
    names = [] if long is None else [str(name) for name in long.change.values if name != "even"]
    options = {change.name: change.options for change in changes(run) + changes(run, broken=True)}
    options[LONGER] = f"--set rounds={longest(run)}"
    rest = [str(name) for name in tests.change.values if name not in (*names, "even")]
    causes = []
    if long is not None:
        causes += [_followed(run, long, name, clients, options.get(name, "")) for name in names]
    causes += [_screened(run, tests, name, clients, options.get(name, "")) for name in rest]
    return sorted(causes, key=_order)


def _order(cause: Cause) -> tuple[bool, bool, bool, float]:
    """Clear causes first, then what was followed; within these longer training comes last, as it costs more."""
    share = cause.share if isfinite(cause.share) else -inf
    return not cause.clear, not cause.followed, cause.change == LONGER, -share


def gain_of(long: xr.Dataset, name: str) -> tuple[np.ndarray, float, float]:
    """Gains of a followed change by seed at the last start, their share in the loss, and the placebo there, nats."""
    gains, loss = long.gain.sel(change=name)[-1].values, float(long.loss[-1].mean())
    return gains, estimate(gains).value / loss if loss > 0 else nan, float(long.placebo[-1])


def beyond(gains: np.ndarray, placebo: float) -> bool:
    """Whether a change gains with every seed that has a value, two or more, and in the mean more than the placebo."""
    known = gains[~np.isnan(gains)]
    return len(known) > 1 and bool((known > 0).all() and np.isfinite(known).all()) and float(known.mean()) > placebo


def _followed(run: Run, long: xr.Dataset, name: str, clients: xr.Dataset, options: str) -> Cause:
    gains, share, placebo = gain_of(long, name)
    early = [(float(long.gain.sel(change=name)[index].mean()), index) for index in range(long.sizes["round"] - 1)]
    # NaN, as for "longer", is harmless
    harmless = all(not value < -float(long.placebo[index]) for value, index in early)
    least = -inf if name.startswith("without-") else CLEAR
    tested: dict[str, Any] = {
        "test": str(long.text.sel(change=name).values),
        "clear": beyond(gains, placebo) and share >= least and harmless,
        "note": "" if harmless else "loses in the first rounds",
        "followed": f"rounds {int(long['first'][-1])} to {int(long['round'][-1])}",
    }
    return Cause(gain=estimate(gains), share=share, placebo=placebo, **tested | _about(run, name, clients, options))


def _screened(run: Run, tests: xr.Dataset, name: str, clients: xr.Dataset, options: str) -> Cause:
    gain, share = estimate(tests.gain.sel(change=name).values), _share(tests, name)
    tested: dict[str, Any] = {"test": str(tests.text.sel(change=name).values), "clear": False, "note": ""}
    placebo = float(np.abs(tests.placebo).max())
    return Cause(gain=gain, share=share, placebo=placebo, **tested | _about(run, name, clients, options))


def _about(run: Run, change: str, clients: xr.Dataset, options: str) -> dict[str, Any]:
    """Name, title, figure, command and change of a cause, and the note of a client."""
    name, title, figure = _describe(change, clients)
    about = {"name": name, "title": title, "figure": figure, "change": change}
    if not change.startswith("without-"):
        return about | {"command": f"fedscape train {run.folder} {options}"}
    client = clients.sel(client=int(change.removeprefix("without-")))
    far = f"z = {float(client.excess_z):.1f}, update {float(client.length):.2g} x the median length"
    note = f"loss on its data {float(client.ratio):.1f} x that on others' of the same classes, {far}"
    return about | {"command": f"fedscape analyse client_deviations {run.folder}", "note": note}


def _describe(change: str, clients: xr.Dataset) -> tuple[str, str, str]:
    if change in _WORDS:
        return _WORDS[change]
    if change.startswith("without-"):
        number = int(change.removeprefix("without-"))
        what = suspected(clients.sel(client=number))
        return f"client-{number}", f"client {number}: {what} may be wrong", "labels-partition"
    key, _, direction = change.rpartition("-")
    wrong = "large" if direction == "smaller" else "small"
    return f"{key}-{wrong}", f"{key} too {wrong}", "accuracy-rounds"


def _share(tests: xr.Dataset, name: str) -> float:
    """Gain of a change as a part of the loss, in the mean over the windows that have it; 0 without any."""
    values = (tests.gain.sel(change=name) / tests.loss).values
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else 0.0
