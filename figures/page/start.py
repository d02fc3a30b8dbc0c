"""Where a page begins, and which landscapes it has: both stand in an address of the stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from drift.analyses.per_round import evenly_spaced, resolve_round
from drift.analyses.selected_samples import number_of
from drift.runs.run import Run
from figures.page.sampled import Samples
from figures.page.shown_rounds import shown_rounds

ROUNDS, MOST, WORK = 10, 25, 2e9
"""Rounds of a run whose landscape is on the stage, evenly spaced among those that kept their clients: at least ROUNDS,
and up to MOST while parameters times samples times points are fewer than WORK. The one that it begins with is added.
"""


def round_of_all(runs: Sequence[Run], index: int) -> int:
    """Number of the round `index` of the first run with landscapes, which all runs with landscapes must have.

    Raises:
        LookupError: If one has it not; names its rounds.
    """
    first, *others = [run for run in runs if shown_rounds(run)] or runs[:1]
    number = resolve_round(first, index, "clients")
    return [number, *(resolve_round(run, number, "clients") for run in others)][0]


@dataclass(frozen=True)
class Start:
    """The beginning of a page that is sent.

    Args:
        address: As `figures/page/stage/address.js` writes it, such as #round=12&view=relief; empty: as without one.
        how: points, samples, split and quantity of its landscapes, as `stage_round` takes them.
        round: The round that it begins with; None for the last one.
        seeds: Names of runs whose landscapes are shown in place of those of the lowest seed.
        what_if: What its weights of the clients gave, as the stage writes it (`stage/weights.js`).
        alone: Whether it has the stage alone, without tables, curves and figures.
    """

    address: str
    how: dict[str, Any]
    round: int | None
    seeds: list[str]
    what_if: dict[str, Any] | None = None
    alone: bool = False

    @classmethod
    def read(
        cls, address: str, points: int, samples: Samples, what_if: dict[str, Any] | None = None, alone: bool = False
    ) -> Start:
        """The beginning that an address states; points and samples are those of landscapes where it states none.

        Raises:
            ValueError: If it states a number that is none.
        """
        pairs = (pair.partition("=") for pair in address.removeprefix("#").split("&"))
        words = {name: unquote(text) for name, _, text in pairs}
        number = lambda name, usual: int(words[name]) if name in words else usual  # noqa: E731
        most = None if words.get("samples") == "all" else number("samples", samples)
        metric = words.get("metric", "loss")
        how = {"points": number("points", points), "samples": most, "split": words.get("split", "test")}
        how["quantity"] = "loss" if metric == "error" else metric  # the error is on every landscape
        return cls(address, how, number("round", None), words.get("seeds", "").split(","), what_if, alone)

    def rounds(self, run: Run) -> list[int]:
        """Rounds whose landscape is on the stage; none where it cannot be computed."""
        if not (able := shown_rounds(run)):
            return []
        work = self.work(run) * self.how["points"] ** 2
        number = min(max(int(WORK / work), ROUNDS), MOST)
        return sorted({*evenly_spaced(able, number), self.first(able)})

    def work(self, run: Run) -> int:
        """Parameters times samples of its landscapes."""
        tested = number_of(run, "train" if self.how["split"].startswith("client") else self.how["split"])
        return run.layout.size * min(self.how["samples"] or tested, tested)

    def first(self, rounds: Sequence[int]) -> int:
        """Of some rounds the one that the page begins with: its own, or the nearest."""
        wanted = rounds[-1] if self.round is None else self.round
        return min(rounds, key=lambda index: abs(index - wanted))
