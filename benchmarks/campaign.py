"""What the runs of the campaign cost, for the minutes of its plan.

    python -m benchmarks.campaign [--item NAME ...] [--seconds 8]

Trains the first rounds of each row, the first one left out, until the given processor time has passed: two rows at a
time on one thread each, so that the other core is busy, as `fedscape reproduce --workers 2` has it. Processor time per
round times the rounds that a row does not take from an earlier row of its item is printed in minutes.
What averaging adds to later rounds, and the measurements for claims, are not in it. An item whose checkpoint is
not there is left out, with the command that makes it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well


from drift.claims.campaign.plan import PlanItem, Unit, load
from drift.config.experiment import Experiment
from drift.simulation.simulate import simulate
from drift.store.round_record import Round

PLAN = Path(__file__).resolve().parents[1] / "experiments" / "campaigns" / "reproduction.toml"


def seconds_per_round(experiment: Experiment, least: float) -> float:
    """Processor time of a round, over as many rounds as take `least` seconds; of the first where it is the only one."""
    torch.set_num_threads(1)
    ended = [time.process_time()]

    class Enough(Exception):
        """Raised between two rounds."""

    def watch(record: Round) -> None:
        ended.append(time.process_time())
        if len(ended) > 2 and ended[-1] - ended[1] >= least:
            raise Enough

    with tempfile.TemporaryDirectory() as runs, suppress(Enough):
        simulate(experiment, runs=runs, progress=watch)
    later = ended[1:] if len(ended) > 2 else ended
    return (later[-1] - later[0]) / (len(later) - 1)


def own_rounds(units: list[Unit], index: int) -> int:
    """Rounds of a row that it does not take from an earlier row of its item."""
    experiment = units[index].experiment
    earlier = (unit.experiment.method for unit in units[:index])
    return experiment.rounds - max((experiment.method.rounds_shared(m, experiment.rounds) for m in earlier), default=0)


def rows(item: PlanItem) -> list[tuple[Unit, int]]:
    """The runs of an item's first seed, and the rounds of each that are its own."""
    try:
        units = item.units[0]
        return [(unit, own_rounds(units, index)) for index, unit in enumerate(units)]
    except LookupError as reason:
        print(reason, file=sys.stderr)
        return []


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--item", nargs="+", default=(), metavar="NAME", help="items of the plan; by default all")
    parser.add_argument("--seconds", type=float, default=8, help="least processor time of the rounds of a row")
    options = parser.parse_args()
    jobs = [job for item in load(PLAN).of_items(names=options.item).items for job in rows(item)]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        experiments = [unit.experiment for unit, _ in jobs]
        costs = pool.map(seconds_per_round, experiments, [options.seconds] * len(jobs))
        for (unit, rounds), seconds in zip(jobs, costs, strict=True):
            minutes, name = seconds * rounds / 60, " ".join(unit.row.set)
            print(f"{unit.item.name:36}{name:44}{minutes:8.2f} (plan {unit.row.minutes:g})", flush=True)


if __name__ == "__main__":
    main()
