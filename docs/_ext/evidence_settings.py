"""The page of the campaign's settings: each item beside its paper, its runs, and the commands that repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from _ext.evidence_tables import table
from _ext.paper_settings import of_item
from drift.claims.campaign.plan import Plan, PlanItem
from drift.claims.campaign.recorded_run import RecordedRun
from figures.looks.palette import label as written

Named = Callable[[RecordedRun], str]
"""(run) -> written name of its method, with the options that tell the rows of an item from each other."""


def page(campaign: Plan, runs: Mapping[str, Sequence[RecordedRun]], named: Named) -> str:
    """A section per item, which rows of docs/results.md link to."""
    return "\n\n".join(_section(item, runs[item.name], named) for item in campaign.items)


def _section(item: PlanItem, runs: Sequence[RecordedRun], named: Named) -> str:
    of_paper = "Questions across the papers" if item.paper == "cross" else f"{written(item.paper)}, {item.item}"
    fixed = sum(run.plan in (item.digest, item.digest.partition("-")[0]) for run in runs)
    parts = [f"## {item.name}", f"{of_paper}. {item.reason}".strip()]
    settings = of_item(item)
    if other := [(f"`{one.name}`", one.paper, f"**{one.ours}**") for one in settings if one.differs]:
        parts.append(table(("setting that differs", "paper", "ours"), other))
    if equal := [f"`{one.name}={one.ours}`" for one in settings if not one.differs]:
        parts.append(f"{'Equal in both' if other else 'All as in the paper'}: {', '.join(equal)}.")
    parts.append(_commands(item))
    said = f"{fixed} of {len(runs)} runs were trained after it was fixed" if runs else "no run is recorded yet"
    parts.append(f"Plan `{item.digest}`: {said}.")
    if runs:
        parts.append(_files(runs, named))
    return "\n\n".join(parts)


def _commands(item: PlanItem) -> str:
    """The command of the first row, and the settings of the others, which take its place."""
    first, *others = [" ".join(map(shlex.quote, row.set)) for row in item.rows]
    command = shlex.join(["fedscape", "train", item.experiment, "--set", *item.set])
    lines = [item.prepare] if item.prepare else []
    lines.append(" ".join(filter(None, [command, first, f"seed={item.first_seed}"])))
    told = "```bash\n" + "\n".join(lines) + "\n```"
    named = ", ".join(f"`{other or 'nothing'}`" for other in others)
    place = f"In place of `{first}`" if first else "Other rows"
    return f"{told}\n\n{place}: {named}." if others else told


def _files(runs: Sequence[RecordedRun], named: Named) -> str:
    by_method: dict[str, list[str]] = {}
    for run in sorted(runs, key=lambda run: run.experiment.seed):
        link = f"[{run.experiment.seed}](results/data/{run.path.name})"
        by_method.setdefault(named(run), []).append(link)
    told = "; ".join(f"{name} {' '.join(links)}" for name, links in by_method.items())
    return f"Files: {told}."
