"""What a row has beside its verdict: seeds that were added later, and whether its setting is the paper's."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from drift.claims.campaign.plan import Plan, PlanItem
from drift.claims.campaign.recorded_run import RecordedRun
from drift.claims.claim import Claim, Verdict


def fixed(run: RecordedRun, item: PlanItem) -> bool:
    """Whether a run was trained after its item was fixed as it is: its file states the digest."""
    return run.plan in (item.digest, item.digest.partition("-")[0])


def added(runs: Mapping[str, Sequence[RecordedRun]], plan: Plan) -> dict[str, list[int]]:
    """Seeds of each item that were trained after it was fixed, where others had been trained before."""
    late: dict[str, list[int]] = {}
    for item in plan.items:
        seeds: dict[int, list[bool]] = {}
        for run in runs[item.name]:
            seeds.setdefault(run.experiment.seed, []).append(fixed(run, item))
        after = sorted(seed for seed, states in seeds.items() if all(states))
        if after and len(after) < len(seeds):
            late[item.name] = after
    return late


def seeds(verdict: Verdict, late: Mapping[str, Sequence[int]]) -> str:
    """Number of seeds of a row, and how many of them were added."""
    later = sum(seed in late.get(verdict.setting, ()) for seed in verdict.seeds)
    return f"{verdict.interval.number}, {later} added" if later else f"{verdict.interval.number}"


def settings_file(plan: Path) -> Path:
    """The file beside a plan that says of each of its rows whether it has its paper's setting."""
    return plan.with_suffix(".settings.json")


def settings_of(plan: Path) -> dict[str, str]:
    """What this file says, by `row_key`; nothing where there is none."""
    path = settings_file(plan)
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def row_key(claim: Claim, items: Sequence[PlanItem]) -> str:
    """A claim on items as they are fixed, so that a changed item has no setting that was written for another."""
    return " ".join((claim.name, *(item.digest for item in items)))
