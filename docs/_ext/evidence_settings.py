"""The page of the campaign's settings: each item beside its paper, its runs, and the commands that repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence

from _ext.claim_settings import CODE, NOTES, POST_HOC, SHOWN_IN, of_claim
from _ext.evidence_claims import anchor
from _ext.evidence_runs import ByItem
from _ext.evidence_tables import table
from _ext.paper_settings import Setting, of_item
from drift.claims import claims
from drift.claims.campaign.plan import Plan, PlanItem
from drift.claims.campaign.provenance import fixed
from drift.claims.campaign.recorded_run import RecordedRun
from drift.claims.claim import Claim
from figures.looks.palette import label as written

Named = Callable[[RecordedRun], str]
"""(run) -> written name of its method, with the options that tell the rows of an item from each other."""


def page(campaign: Plan, runs: ByItem, lost: ByItem, tested: Collection[str], named: Named) -> str:
    """A section per item, which rows of docs/results.md link to."""
    asked = {claim.name: claim for claim in claims()}
    sections, first = [], dict[str, str]()
    for item in campaign.items:
        of_claims, *rest = _settings(item, [asked[name] for name in item.claims if name in asked], tested)
        rest += [NOTES[label] for label in NOTES if item.paper != "cross" and label in _labels(item)]
        text = "\n\n".join(rest)
        same = first.setdefault(text, item.name)
        if text and same != item.name:
            text = f"Settings as in [{same}](#{same})."
        about = [part for part in (of_claims, text) if part]
        runs_of, lost_of = runs[item.name], lost[item.name]
        sections.append(_section(item, about, runs_of, lost_of, named))
    return "\n\n".join(sections)


def _section(
    item: PlanItem,
    about: Sequence[str],
    runs: Sequence[RecordedRun],
    lost: Sequence[RecordedRun],
    named: Named,
) -> str:
    of_paper = "Questions across the papers" if item.paper == "cross" else f"{written(item.paper)}, {item.item}"
    parts = [f"## {item.name}", f"{of_paper}. {item.reason}".strip(), *about, _commands(item)]
    told = f"fixed before {sum(fixed(run, item) for run in runs)} of {len(runs)} runs"
    parts.append(f"Plan `{item.digest}`, {told if runs else 'no run recorded yet'}.")
    parts[-1] = f'<a id="{item.name}-runs"></a>{parts[-1]}'
    if runs:
        parts.append(_files("Files", runs, named))
    if lost:
        parts.append(_files("Files of runs that diverged", lost, named))
    return "\n\n".join(parts)


def _settings(item: PlanItem, asked: Sequence[Claim], tested: Collection[str]) -> list[str]:
    """Claims by the setting in which the paper makes them, and one table of all of these beside ours."""
    groups: dict[tuple[Setting, ...], list[Claim]] = {}
    for claim in asked:
        groups.setdefault(of_claim(claim, item), []).append(claim)
    rows: dict[str, dict[str, str]] = {}
    ours: dict[str, str] = {}
    equal: dict[str, str] = {}
    stated: dict[tuple[str, str], str] = {}
    linked: dict[str, list[str]] = {}
    for settings, members in groups.items():
        title = members[0].name.partition("-")[0]
        shown = dict.fromkeys(SHOWN_IN.get(claim.name, item.item) for claim in members)
        head = f"{written(title)}, {'post hoc' if members[0].name in POST_HOC else ', '.join(shown)}"
        linked.setdefault(head, []).extend(
            f"[{claim.name}](results.md#{row})" if (row := anchor(claim, item.name)) in tested else f"`{claim.name}`"
            for claim in members
        )
        for one in settings:
            code = f" (code, {CODE[title][one.name]})" if one.name in CODE[title] else ""
            if one.differs:
                rows.setdefault(one.name, {})[head] = f"{one.paper}{code}"
                ours[one.name] = one.ours
            else:
                equal[one.name] = f"`{one.name}={one.ours}`{code}"
                stated[one.name, head] = f"{one.ours}{code}" if code else ""
    if rest := [one for one in of_item(item) if one.differs and one.name not in rows]:
        linked.setdefault(every := f"{written(item.paper)}, {item.item}", [])
        for one in rest:
            rows[one.name], ours[one.name] = {every: one.paper}, one.ours
    heads = [head for head in linked if not head.endswith("post hoc")]
    lines = [f"{head}: {', '.join(links)}" for head, links in linked.items() if links]
    several = "Claims, by the paper's setting:\n\n" + "\n".join(f"- {line}" for line in lines)
    parts = [several if len(lines) > 1 else "".join(f"Claims of {line}." for line in lines)]
    if rows:
        cells = [
            (f"`{name}`", *(row.get(head) or stated.get((name, head), "") for head in heads), f"**{ours[name]}**")
            for name, row in rows.items()
        ]
        parts.append(table(("setting that differs", *heads, "ours"), cells))
    parts += ["All settings are those of the paper."] if heads and not rows else []
    if texts := [text for name, text in equal.items() if name not in rows and "(code" in text]:
        parts.append(f"Equal: {', '.join(texts)}.")
    return parts


def _labels(item: PlanItem) -> set[str]:
    """Methods of an item, and the bases that IMA averages."""
    return {part for row in item.rows for part in item.trained(row).method.label.split("+")}


def _commands(item: PlanItem) -> str:
    """The command of the first row, and the settings of the others, which take its place."""
    first, *others = [" ".join(map(shlex.quote, row.set)) for row in item.rows]
    command = shlex.join(["fedscape", "train", item.experiment, "--set", *item.set])
    lines = [item.prepare] if item.prepare else []
    lines.append(" ".join(filter(None, [command, first, f"seed={item.first_seed}"])))
    told = f'<a id="{item.name}-command"></a>Command:\n\n```bash\n' + "\n".join(lines) + "\n```"
    named = ", ".join(f"`{other or 'nothing'}`" for other in others)
    place = f"In place of `{first}`" if first else "Other rows"
    return f"{told}\n\n{place}: {named}." if others else told


def _files(head: str, runs: Sequence[RecordedRun], named: Named) -> str:
    by_method: dict[str, list[str]] = {}
    for run in sorted(runs, key=lambda run: run.experiment.seed):
        link = f"[{run.experiment.seed}](results/data/{run.path.name})"
        by_method.setdefault(named(run), []).append(link)
    told = "\n".join(f"- {name}: {' '.join(links)}" for name, links in by_method.items())
    return f"{head}:\n\n{told}"
