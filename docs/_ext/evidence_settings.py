"""The page of the campaign's settings: each item beside its paper, its runs, and the commands that repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence

from _ext.claim_settings import CODE, NOTES, POST_HOC, SHOWN_IN, of_claim
from _ext.evidence_claims import anchor
from _ext.evidence_runs import ByItem
from _ext.evidence_tables import table
from _ext.paper_settings import CORE, Setting, flat, of_item
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
        labels = [label for label in NOTES if item.paper != "cross" and label in _labels(item)]
        rest += [NOTES[label] for label in labels if first.setdefault(label, item.name) == item.name]
        above: dict[str, list[str]] = {}
        for label in labels:
            above.setdefault(first[label], []).append(written(label))
        above.pop(item.name, None)
        rest += [f"{', '.join(names)}: as in [{other}](#{other})." for other, names in above.items()]
        about = [part for part in (of_claims, *rest) if part]
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
    told = f"fixed before {sum(fixed(run, item) for run in runs)}/{len(runs)} runs"
    parts.append(f"Plan `{item.digest}`, {told if runs else 'no run recorded yet'}.")
    parts[-1] = f'<a id="{item.name}-runs"></a>{parts[-1]}'
    parts += [_files("files by seed", runs, named)] if runs else []
    parts += [_files("files of runs that diverged, by seed", lost, named)] if lost else []
    return "\n\n".join(parts)


def _settings(item: PlanItem, asked: Sequence[Claim], tested: Collection[str]) -> list[str]:
    """Claims by the setting in which the paper makes them, and one table of all of these beside ours.

    It has the settings of CORE, those that only a paper's code states, and all others that differ from a paper's or
    between methods.
    """
    groups: dict[tuple[Setting, ...], list[Claim]] = {}
    for claim in asked:
        groups.setdefault(of_claim(claim, item), []).append(claim)
    rows: dict[str, dict[str, str]] = {}
    ours: dict[str, str] = {}
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
            code = f" ([code]({CODE[title][one.name]}))" if one.name in CODE[title] else ""
            if one.differs or one.name in CORE or code:
                rows.setdefault(one.name, {})[head] = f"{_marked(one)}{code}"
                ours[one.name] = one.ours
    own = of_item(item) or [Setting(name, "", value) for name, value in _own(item).items()]
    several = {one.name.partition(": ")[2] for one in own if not one.differs}
    for one in own:
        if one.name not in rows and (one.differs or one.name in CORE or one.name in several or ": " in one.name):
            rows[one.name], ours[one.name] = {}, one.ours
            if one.paper:
                linked.setdefault(every := f"{written(item.paper)}, {item.item}", [])
                rows[one.name] = {every: _marked(one)}
    heads = [head for head in linked if not head.endswith("post hoc")]
    lines = [f"{head}: {', '.join(links)}" for head, links in linked.items() if links]
    grouped = "Claims, by the paper's setting:\n\n" + "\n".join(f"- {line}" for line in lines)
    parts = [grouped if len(lines) > 1 else "".join(f"Claims of {line}." for line in lines)]
    if rows:
        cells = [
            (f"`{name}`", *(rows[name].get(head, "") for head in heads), ours[name])
            for name in sorted(rows, key=lambda name: CORE.index(name) if name in CORE else len(CORE))
        ]
        parts.append(table(("setting", *heads, "ours"), cells))
    return parts


def _marked(setting: Setting) -> str:
    """The paper's value, bold where ours is another."""
    return f"**{setting.paper}**" if setting.differs else setting.paper


def _own(item: PlanItem) -> dict[str, str]:
    """Values of the settings of CORE in an item's rows, in place of a paper's table where no paper has the setting."""
    trained = [flat(item.trained(row)) for row in item.rows]
    values = {name: dict.fromkeys(one[name] for one in trained if name in one) for name in CORE}
    return {name: " or ".join(every) for name, every in values.items() if every}


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
    """A row per method and a column per seed."""
    seeds = sorted({run.experiment.seed for run in runs})
    by_method: dict[str, dict[int, str]] = {}
    for run in sorted(runs, key=lambda run: run.experiment.seed):
        cells = by_method.setdefault(named(run), {})
        link = f"[{run.experiment.seed}](results/data/{run.path.name})"
        cells[run.experiment.seed] = " ".join(filter(None, [cells.get(run.experiment.seed), link]))
    rows = [(name, *(cells.get(seed, "") for seed in seeds)) for name, cells in by_method.items()]
    return table((head, *map(str, seeds)), rows)
