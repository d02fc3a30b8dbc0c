"""Sequential tests on the first third of a training: statistics, limits, and when to stop; numpy only."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import ceil, inf, log, nan, prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from drift.store import round_headers
from drift.store.paths import round_path

Family = Literal["all", "drift", "curve"]
"""Detectors that share one rate of false alarms: those of the drift, those of the loss curve, or all of them."""

WORDS = {
    "coherence": "fall of the mean cosine of updates",
    "rank": "fall of the log rank of updates",
    "client": "log longest / second update",
    "rate": "log global step / model",
    "variances": "negative or huge running variances",
    "rise": "rise of the log loss",
    "stall": "log lowest / first loss",
}
"""What the statistic of each detector is; an alarm is a statistic above its limit."""

CURVE = ("rise", "stall")
DETECTORS = {"all": tuple(WORDS), "drift": tuple(name for name in WORDS if name not in CURVE), "curve": CURVE}
"""Names of the detectors of each family."""

SMOOTH = 3
"""Values in the moving means of coherence, rank and loss: of rounds, of blocks in runs of more than BLOCKS rounds."""

BLOCKS = 300

HUGE = 1e18
"""Running variances above it count as broken: the square of such an activation is near the largest float32."""

LIMITS = Path(__file__).with_suffix(".json")
"""The limits and what they were fitted to, written by `python -m benchmarks.early_warning calibrate`."""

EARLY_WARNING = "early warning"
"""The word for the tests of this module where a training is stopped."""

Stop = Callable[[int, Mapping[str, float]], str | None]
"""Called with the number of a recorded round and its numbers; a text ends the training and says why."""


def stop_test(stop: Stop | str | None, rounds: int | None) -> Stop | None:
    """What is called after each round of a training of this many rounds; None if nothing is.

    The early warning is that of the drift alone, which has the fewest false alarms (docs/early-warning.md).

    Raises:
        ValueError: If `stop` is another text, or the number of rounds is not known, of which a third is watched.
    """
    if stop is None or callable(stop):
        return stop
    if stop != EARLY_WARNING:
        raise ValueError(f"stop is {stop!r}; give {EARLY_WARNING!r} or a function of (a round, its numbers).")
    if rounds is None:
        raise ValueError(f"stop={EARLY_WARNING!r} watches the first third of the rounds; give their number, rounds=N.")
    return Watch(rounds, "drift")


@cache
def calibration() -> dict[str, Any]:
    """Content of the file of limits: level, limits by family and detector, and digest of the runs."""
    return dict(json.loads(LIMITS.read_text(encoding="utf-8")))


def watched_rounds(rounds: int) -> int:
    """Number of rounds at the beginning of a training of so many rounds that the tests look at: a third of them."""
    return max(1, ceil(rounds / 3))


def warning_numbers(
    gram: np.ndarray, weights: np.ndarray, *, excluded: int = 0, negative: float = nan, loss: float = nan
) -> dict[str, float]:
    """Numbers of a round that the detectors read; NaN where the round has none.

    Args:
        gram: Inner products of the round, shape (m + 3, m + 3).
        weights: Of the clients, such as their samples, shape (m,); clients of weight 0 do not count beside others.
        excluded: Clients whose models were not finite.
        negative: Fraction of the global model's running variances that are negative or huge.
        loss: Test loss.

    Returns:
        cosine, rank (logarithm of the number of directions), gap, step (logarithms), negative and loss.
    """
    gram = np.asarray(gram, np.float64)
    lengths = np.sqrt(np.clip(np.diagonal(gram), 0, None))
    start, _, step, *updates = lengths.tolist()
    weights = np.asarray(weights, np.float64) if np.any(weights) else np.ones(len(updates))
    moved = (weights > 0) & (np.array(updates) > 0)
    cosine = rank = gap = nan
    if moved.sum() > 1:
        norms = np.array(updates)[moved]
        cosines = np.clip(gram[3:, 3:][np.ix_(moved, moved)] / np.outer(norms, norms), -1, 1)
        pairs = np.outer(weights[moved], weights[moved])
        np.fill_diagonal(pairs, 0)
        cosine = float((pairs * cosines).sum() / pairs.sum())
        rank = log(len(norms) ** 2 / float((cosines**2).sum()))
        first, second = np.sort(norms)[:-3:-1]
        gap = log(first / second) if len(norms) > 2 else nan
    relative = log(step / start) if step > 0 and start > 0 else nan
    broken = not bool(np.isfinite(gram).all())
    return {
        "cosine": cosine,
        "rank": rank,
        "gap": inf if excluded or broken else gap,
        "step": inf if broken else relative,
        "negative": negative,
        "loss": loss,
    }


def broken_share(buffers: np.ndarray, entries: Iterable[tuple[str, Sequence[int]]]) -> float:
    """Fraction of the running variances in floating buffers (b,) that are negative or above HUGE; NaN without any.

    Args:
        buffers: The buffers of a model.
        entries: Their names and shapes, in order.
    """
    sizes = [(name, prod(shape)) for name, shape in entries]
    names = np.repeat([name.rpartition(".")[2] == "running_var" for name, _ in sizes], [size for _, size in sizes])
    variances = buffers[names.astype(bool)]
    return float(((variances < 0) | (variances > HUGE)).mean()) if names.any() else nan


class Watch:
    """The tests over a training, round after round; what it says of a round needs that round and those before it.

        coherence_t = max_{s <= t} C_s - C_t     C_t: mean of cosine, weighted by samples, over the last 3 b rounds
        rank_t      = max_{s <= t} K_s - K_t     K_t: mean of rank over the last 3 b rounds
        client_t, rate_t                         means of gap and step over the last b rounds
        variances_t = negative
        rise_t      = log(L_t / min_{s <= t} L_s)    L_t: mean of the last 3 losses
        stall       = log(min loss / first loss), in the last watched round, of 3 losses or more

    b is the number of rounds divided by 300, rounded up: 1 up to 300 rounds. Means leave out rounds without a number,
    and are NaN before there are so many rounds. An infinite number is an alarm.

    Args:
        rounds: Rounds of the whole training.
        family: Detectors that are looked at.
    """

    def __init__(self, rounds: int, family: Family = "all") -> None:
        if family not in DETECTORS:
            raise ValueError(f"detectors is {family!r}; give one of {', '.join(DETECTORS)}.")
        self.last, self.block = watched_rounds(rounds), ceil(rounds / BLOCKS)
        self.limits = {name: calibration()["limits"][family].get(name, inf) for name in DETECTORS[family]}
        self._seen: dict[str, list[float]] = {}
        self._best: dict[str, float] = {}

    def __call__(self, index: int, numbers: Mapping[str, float]) -> str | None:
        """What alarms in a round, in one line; None if nothing does, or the round is not watched."""
        for name, value in self.add(index, numbers).items():
            if value > self.limits[name]:
                above = f"is {value:.3g}, above {self.limits[name]:.3g}"
                return f"early warning {name} in round {index}: {WORDS[name]} {above}"
        return None

    def add(self, index: int, numbers: Mapping[str, float]) -> dict[str, float]:
        """Statistics of the next round by detector, from its `warning_numbers`; empty where it is not watched."""
        if index >= self.last:
            return {}
        for name, value in numbers.items():
            if name != "loss" or not np.isnan(value):
                self._seen.setdefault(name, []).append(value)
        smooth = SMOOTH * self.block
        losses = self._seen.get("loss", [])
        statistics = {
            "coherence": self._below("cosine", self._mean("cosine", smooth)),
            "rank": self._below("rank", self._mean("rank", smooth)),
            "client": self._mean("gap", self.block),
            "rate": self._mean("step", self.block),
            "variances": numbers["negative"],
            "rise": self._below("loss", -_log(self._mean("loss", SMOOTH))),
            "stall": _log(min(losses)) - _log(losses[0]) if index == self.last - 1 and len(losses) >= SMOOTH else nan,
        }
        return {name: statistics[name] for name in self.limits}

    def _mean(self, name: str, count: int) -> float:
        """Mean of the last `count` values, those that are there; NaN before there are so many, and without any."""
        values = [value for value in self._seen[name][-count:] if not np.isnan(value)] if name in self._seen else []
        return sum(values) / len(values) if values and len(self._seen[name]) >= count else nan

    def _below(self, name: str, value: float) -> float:
        """How far a value lies below the highest so far; NaN stays, and minus infinity lies infinitely below."""
        if np.isnan(value) or value == -inf:
            return -value
        self._best[name] = max(self._best.get(name, value), value)
        return self._best[name] - value


class StopRule:
    """A function of (number of a round, its numbers), or the early warning; `reason` is theirs of the rounds on disk.

    Args:
        stop: The function, "early warning", or None, which never stops.
        rounds: Of the whole training.
        loss: Name by which the test loss is recorded.
        folder: Of the run.

    Raises:
        ValueError: If `stop` is an unknown text, or the early warning does not know the number of rounds.
    """

    def __init__(self, stop: Stop | str | None, rounds: int | None, loss: str, folder: Path) -> None:
        self._test, self._loss, self.reason = stop_test(stop, rounds), loss, ""
        for index in round_headers.round_numbers(folder) if self._test is not None else ():
            now = self.ask(index, round_headers.read_small_arrays(round_path(folder, index)).arrays)
            self.reason = self.reason or now

    def ask(self, index: int, arrays: Mapping[str, np.ndarray], negative: float = nan) -> str:
        """Why to stop after a round; "" to go on.

        Args:
            index: Number of the round.
            arrays: As they are stored: gram, sizes, extras.excluded where there are any, and metric.NAME.
            negative: Fraction of the global model's running variances that are negative or huge.
        """
        metrics = {name.removeprefix("metric."): float(arrays[name]) for name in arrays if name.startswith("metric.")}
        excluded, loss = len(arrays.get("extras.excluded", ())), metrics.get(self._loss, nan)
        known = warning_numbers(arrays["gram"], arrays["sizes"], excluded=excluded, negative=negative, loss=loss)
        return self.judge(index, {**metrics, **known})

    def judge(self, index: int, numbers: Mapping[str, float]) -> str:
        """The same by the numbers of the round."""
        reason = None if self._test is None else self._test(index, numbers)
        if not isinstance(reason, str | None):
            raise ValueError(f"stop returned {reason!r:.60} after round {index}; let it return a text or None.")
        return reason or ""


def _log(value: float) -> float:
    """Natural logarithm; NaN of what is not positive."""
    return log(value) if value > 0 else nan
