"""State of a run: diverged, lost what it had learned, not learned, still learning, or on a plateau."""

from dataclasses import dataclass
from math import inf, nan

import numpy as np
import torch
import xarray as xr

from drift.analyses.over_seeds import Estimate
from drift.runs.run import Run
from drift.store import files
from landscape.model.losses import IGNORED

STATES = ("diverged", "lost what it had", "not learned", "still learning", "plateau", "not known")

CHANCE = 0.95
"""Fraction of the constant answer's loss above which a model has learned nothing."""

LOST = 0.2
"""Fraction of its best gain over the constant answer (nats) that a run loses where its state is "lost what it had"."""

SLOPE = 0.02
"""Smallest fraction of the loss by which it falls over the last third of the rounds in a run that still learns."""

BEYOND = 10.0
"""Times of the constant answer's loss from which models have diverged, and count as equally bad."""

FEWEST = 5
"""Smallest number of evaluated rounds from which the state is known."""


@dataclass(frozen=True)
class RunState:
    """State of a run.

    Args:
        name: One of `STATES`.
        fall: Expected decrease of the loss in the next round, nats, with its 95 % interval.
        best: Round after which the loss was lowest; -1 if none is finite.
        turn: Round after which the median of three losses was lowest; -1 if none is finite.
        chance: Loss of the best constant answer, nats.
    """

    name: str
    fall: Estimate
    best: int
    turn: int
    chance: float

    @property
    def broken(self) -> bool:
        """Whether it diverged, or lost what it had learned."""
        return self.name in ("diverged", "lost what it had")

    @property
    def unfinished(self) -> bool:
        """Whether its loss still falls."""
        return self.name == "still learning"


def run_state(run: Run) -> RunState:
    """State of a run, from the recorded test losses; the first of these that applies:

        diverged          a loss, or every client of a round, is not finite, or the median of the last three losses is
                          above ten times the constant answer's, and the slope below is not negative
        lost what it had  the median of the last three losses lies above the lowest median of three by more than a fifth
                          of the gain of that median over the constant answer
        still learning    the slope over the last third of the rounds (8 or more) is negative with its whole interval,
                          and amounts to 2 % of the loss over those rounds; 2 % are not needed if nothing is learned
        not learned       no median of three is below 95 % of the constant answer's loss
        plateau           else

    The slope is the median of the slopes between all pairs of rounds. The best constant answer has the entropy of the
    test labels as its loss; where there are no labels, only numbers that are not finite tell. "not known" stands for
    fewer than five evaluated rounds.

    Source: Theil 1950 and Sen 1968 for the slope and its interval.
    """
    losses, constant = recorded_losses(run), chance(run)
    nothing = Estimate(nan, nan, nan, 0)
    values = losses.values
    diverged, best = _diverged(run, losses, constant), _best(losses)
    turn, lowest = _turn(losses[np.isfinite(losses)])
    if diverged or len(values) < FEWEST:
        return RunState("diverged" if diverged else "not known", nothing, best, turn, constant)
    last, fall = float(np.median(values[-3:])), _fall(losses)
    learned = lowest < CHANCE * constant
    if learned and last - lowest > LOST * (constant - lowest):
        name = "lost what it had"
    elif fall.positive and (not learned or fall.value * fall.number > SLOPE * last):
        name = "still learning"
    else:
        name = "plateau" if learned else "not learned"
    return RunState(name, fall, best, turn, constant)


def chance(run: Run) -> float:
    """Loss of the best constant answer, the entropy of the test labels in nats; infinite without classes."""
    try:
        targets = run.task.labels("test")
    except LookupError:  # a run that was recorded without its data
        return inf
    if targets.is_floating_point() or targets.ndim != 1:
        return inf
    counts = np.bincount(targets[targets != IGNORED].numpy())
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def nonfinite(run: Run) -> list[int]:
    """Clients that became non-finite in any round."""
    return sorted({int(client) for index in run.rounds() for client in run.round(index).extras.get("excluded", ())})


def recorded_losses(run: Run, numbers: xr.Dataset | None = None) -> xr.DataArray:
    """Test loss of the evaluated rounds, over round; NaN only where a run that was trained here has an error beside.

    Args:
        run: The run.
        numbers: Its recorded numbers over round, where they are read already.
    """
    metrics = run.metrics() if numbers is None else numbers
    if "loss" not in metrics:
        return xr.DataArray(np.zeros(0), {"round": []}, ("round",))
    trained = "error" in metrics and not run.about.get("imported")
    return metrics.loss[metrics.loss.notnull() | (metrics.error.notnull() if trained else False)]


def lost_from(run: Run, losses: xr.DataArray, constant: float) -> int | None:
    """Round of the lowest loss of a run that diverged, -1 if none of them is finite; None if it did not diverge.

    Args:
        run: The run.
        losses: As `recorded_losses` returns them.
        constant: Loss of the best constant answer, or a bound from above.
    """
    if not _diverged(run, losses, constant):
        return None
    return _best(losses)


def _diverged(run: Run, losses: xr.DataArray, constant: float) -> bool:
    values = losses.values
    if _nothing_left(run) or not np.isfinite(values).all():
        return True
    huge = bool(len(values)) and float(np.median(values[-3:])) > BEYOND * constant
    return huge and (len(values) < FEWEST or not _fall(losses).positive)


def _nothing_left(run: Run) -> bool:
    """Whether training stopped in the round after the last complete one, as nothing finite was left."""
    if not files.round_path(run.folder, run.committed).exists():
        return False
    record = files.read_round(run.folder, run.committed)
    return not len(record.ids) or (record.end is not None and not bool(torch.isfinite(record.end).all()))


def _best(losses: xr.DataArray) -> int:
    finite = losses[np.isfinite(losses)]
    return int(finite["round"].values[finite.values.argmin()]) if len(finite) else -1


def _turn(losses: xr.DataArray) -> tuple[int, float]:
    values = losses.values
    if not len(values):
        return -1, inf
    medians = [float(np.median(values[max(0, index - 2) : index + 1])) for index in range(len(values))]
    index = int(np.argmin(medians[2:])) + 2 if len(medians) > 2 else int(np.argmin(medians))
    return int(losses["round"].values[index]), medians[index]


def _fall(losses: xr.DataArray) -> Estimate:
    """Decrease of the loss per round over the last third of the rounds, and the number of these rounds."""
    count = max(8, len(losses) // 3)
    late = losses[-count:]
    from scipy import stats  # here: it takes a third of a second to load

    slope = stats.theilslopes(late.values, late["round"].values)
    span = int(late["round"].values[-1] - late["round"].values[0]) + 1
    return Estimate(-float(slope.slope), -float(slope.high_slope), -float(slope.low_slope), span)
