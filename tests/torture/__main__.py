"""Every fault, within a time: python -m torture [--short] [--seed 0] [--minutes 19] [--kills 200] [--only damage ..].

By `make torture`, or with the folders . and tests in PYTHONPATH. Exit code 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter

import torch
from torture.clients import clients
from torture.damage import damage
from torture.disk import disk
from torture.exchanges import exchanges
from torture.kills import kills
from torture.outcome import HARMLESS, LOST, SURVIVED, Budget, Outcome
from torture.places import places
from torture.writers import writers

PARTS = {
    "damage": damage,
    "exchanges": exchanges,
    "disk": disk,
    "places": places,
    "clients": clients,
    "writers": writers,
    "kills": kills,
}
"""The kills come last: they take whatever time is left."""


def suite(budget: Budget, chosen: list[str]) -> list[Outcome]:
    """All outcomes; each part but the last may take its share of what time is left."""
    found: list[Outcome] = []
    for number, name in enumerate(chosen):
        left = budget.until - time.monotonic()
        until = budget.until if number == len(chosen) - 1 else time.monotonic() + max(left / 8, left - 600)
        begun = time.monotonic()
        own = list(PARTS[name](Budget(budget.seed, budget.kills, budget.places, until)))
        found += own
        lost = sum(outcome.what == LOST for outcome in own)
        sys.stderr.write(f"{name}: {len(own)} faults, {lost} lost, {time.monotonic() - begun:.0f} s\n")
    return found


def table(found: list[Outcome]) -> str:
    """Faults tried, survived, harmless and lost, by what comes before a colon, as Markdown."""
    rows = ["| fault | tried | survived | harmless | lost |", "|---|---|---|---|---|"]
    counted = Counter((_kind(outcome.fault), outcome.what) for outcome in found)
    for kind in dict.fromkeys(_kind(outcome.fault) for outcome in found):
        numbers = [counted[kind, what] for what in (SURVIVED, HARMLESS, LOST)]
        rows.append(f"| {kind} | {sum(numbers)} | {' | '.join(map(str, numbers))} |")
    total = [sum(outcome.what == what for outcome in found) for what in (SURVIVED, HARMLESS, LOST)]
    rows.append(f"| all | {sum(total)} | {' | '.join(map(str, total))} |")
    return "\n".join(rows)


def _kind(fault: str) -> str:
    head, _, rest = fault.partition(": ")
    return f"client returns: {rest}" if head in ("a client", "all clients") else head


def main() -> int:
    """Run, print the table, name what was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a minute: few faults of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=19.0)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--places", type=int, default=12, help="places flipped in each region of a file")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    until = time.monotonic() + 60 * (1.0 if given.short else given.minutes)
    few = Budget(given.seed, 3, 1, until) if given.short else Budget(given.seed, given.kills, given.places, until)
    found = suite(few, given.only)
    sys.stdout.write(table(found) + "\n")
    for outcome in found:
        if outcome.what == LOST:
            sys.stdout.write(f"LOST {outcome.fault}: {outcome.told}\n")
    return int(any(outcome.what == LOST for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
