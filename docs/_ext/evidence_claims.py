"""The rows of docs/results.md, each claim in a setting with its verdict, and the number of verdicts of each kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from _ext.claim_settings import same_setting
from _ext.evidence_tables import span, table
from drift.analyses.over_seeds import VERDICT
from drift.claims.campaign import provenance
from drift.claims.campaign.plan import Plan, PlanItem
from drift.claims.campaign.recorded_run import RecordedRun
from drift.claims.campaign.records import Observed
from drift.claims.claim import Claim, Verdict

WORDINGS = (
    "agrees",
    "agrees, above the paper",
    "agrees, below the paper",
    "agrees, within the margin",
    "agrees, within the margin, above the paper",
    "agrees, within the margin, below the paper",
    "sign agrees; no printed effect",
    "no less; no printed effect",
    "differs, above the paper",
    "differs, below the paper",
    "differs, against the claim",
    "differs, outside the margin",
    "equivalent to none",
    "equivalent to none, above the paper",
    "equivalent to none, below the paper",
    "equivalent",
    "too few, fewer than 3 seeds",
    "too few, interval too wide",
)
"""Verdicts in the order of the count."""


def rows(verdicts: Sequence[Verdict], campaign: Plan, runs: Mapping[str, Sequence[RecordedRun]]) -> str:
    """A row per claim and setting; the words of a claim are in its first row, the other rows have its name."""
    lines, last, added = [], "", provenance.added(runs, campaign)
    for verdict in verdicts:
        if verdict.seeds:
            claim = verdict.claim
            asked = f"Effect: {effect(claim)}{unit(verdict)}{_test(claim)}."
            about = f"{claim.item}: {claim.statement}. {asked} `{claim.name}`"
            lines.append(
                (
                    f'<a id="{anchor(claim, verdict.setting)}"></a>'
                    + " ".join(filter(None, [claim.name if claim.name == last else about, _taken(verdict)])),
                    f"**{verdict.wording}**",
                    ", ".join(map(_links, verdict.setting.split(", "))) + rounds_read(verdict, runs),
                    span(verdict.interval, 3),
                    "" if verdict.printed is None else f"{verdict.printed:+.3g}",
                    provenance.seeds(verdict, added),
                    p_value(verdict),
                    same_setting(claim, items_of(verdict, campaign)),
                )
            )
            last = claim.name
    head = (
        "claim",
        "verdict",
        "setting",
        "mean [95 % interval]",
        "paper",
        "seeds",
        "p, Holm",
        "same setting?",
    )
    return table(head, lines) if lines else "None yet."


def rounds_read(verdict: Verdict, runs: Mapping[str, Sequence[RecordedRun]]) -> str:
    """Rounds whose stored results give a row its number, where a measure takes some of the rounds."""
    own = [run for name in verdict.setting.split(", ") for run in runs.get(name, ())]
    taken = set[int]()
    for seed in verdict.seeds:
        observed = [Observed(run) for run in own if run.experiment.seed == seed]
        whole = _number(verdict.claim, observed)
        asked, results = set[int](), [(run, *result) for run in observed for result in run.results.items()]
        for run, key, result in results:
            options = json.loads(key.partition(" ")[2])
            stated = [options[name] for name in ("round", "rounds") if options.get(name) is not None]
            (asked if "round" in result.dims else taken).update(run.require_round(int(at)) for at in np.ravel(stated))
        taken |= {at for at in asked if _number(verdict.claim, [_Without(run, at) for run in observed]) != whole}
    return f", rounds {','.join(_spans(sorted(taken)))}" if taken else ""


class _Without:
    """A run whose results lack the numbers of one of the rounds that they were asked for."""

    def __init__(self, run: Observed, at: int) -> None:
        self.run, self.at = run, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        result = self.run.cached(analysis, **arguments)
        if "rounds" not in arguments:
            return result
        lost = {name: one.where(one["round"] != self.at) for name, one in result.items() if "round" in one.dims}
        return result.assign(lost)


def _number(claim: Claim, runs: Sequence[Any]) -> Mapping[int, float] | str:
    """What a claim measures on runs, or why it has no number."""
    try:
        return claim.measure(runs)
    except (LookupError, ValueError) as reason:
        return str(reason)


def _spans(indices: Sequence[int]) -> list[str]:
    """Whole numbers, ascending, as text; three or more in a row as first-last."""
    groups: list[list[int]] = []
    for index in map(int, indices):
        if groups and index == groups[-1][-1] + 1:
            groups[-1].append(index)
        else:
            groups.append([index])
    return [f"{one[0]}-{one[-1]}" if len(one) > 2 else ",".join(map(str, one)) for one in groups]


def _links(item: str) -> str:
    """Links of a row to the settings of an item, the command that repeats it and its runs."""
    place = f"results-settings.md#{item}"
    return f"[{item}]({place}) [command]({place}-command) [runs]({place}-runs)"


def of_paper(verdicts: Sequence[Verdict]) -> str:
    """A row per claim of a paper, which links to its rows here; a claim without runs to where the reason is."""
    settings: dict[str, list[str]] = {}
    for verdict in verdicts:
        place = anchor(verdict.claim, verdict.setting) if verdict.seeds else "not-tested"
        links = settings.setdefault(verdict.claim.name, [])
        text = verdict.setting.partition(",")[0] if verdict.seeds else "others" if links else "not tested"
        links.append(f"[{text}](results.md#{place})")
    asked = {verdict.claim.name: verdict.claim for verdict in verdicts}
    rows = [(asked[name].item, asked[name].statement, ", ".join(dict.fromkeys(settings[name]))) for name in settings]
    return table(("item", "claim", "rows"), rows)


def anchor(claim: Claim, setting: str) -> str:
    """Name of a row's anchor."""
    return f"{claim.name}--{setting.partition(',')[0]}"


def items_of(verdict: Verdict, campaign: Plan) -> list[PlanItem]:
    """Items of the plan whose runs a row has."""
    items = {item.name: item for item in campaign.items}
    return [items[name] for name in verdict.setting.split(", ")]


def tally(verdicts: Sequence[Verdict], campaign: Plan) -> str:
    """How many rows have each verdict, in the paper's setting and in all, and how many of them survive adjustment."""
    tested = [verdict for verdict in verdicts if verdict.seeds]
    lines = []
    for wording in WORDINGS:
        every = [verdict for verdict in tested if verdict.wording == wording]
        few, sure = wording.startswith("too few"), sum(verdict.holm < 0.05 for verdict in every)
        own = sum(same_setting(verdict.claim, items_of(verdict, campaign)) == "yes" for verdict in every)
        if every:
            lines.append((wording, f"{len(every)}", "" if few else f"{sure}", f"{own}"))
    sure = sum(verdict.holm < 0.05 for verdict in tested if verdict.outcome != "too few")
    own = sum(same_setting(verdict.claim, items_of(verdict, campaign)) == "yes" for verdict in tested)
    lines.append(("all", f"{len(tested)}", f"{sure}", f"{own}"))
    return table(("verdict", "rows", "with p, Holm < 0.05", "in the paper's setting"), lines)


def effect(claim: Claim) -> str:
    """The effect, without the rounds of an accuracy, which the page states once."""
    short = claim.effect.replace(" of the last 10 evaluated rounds", "")
    return short.replace(", last 10 evaluated rounds", "")


def _taken(verdict: Verdict) -> str:
    """What a row is measured on where files lack results of several rounds, triples or pairs, and seeds left out."""
    runs = f"{verdict.short} run{'s' if verdict.short > 1 else ''}"
    taken = f"as taken: {verdict.claim.instead} ({runs} to measure again)" if verdict.short else ""
    return " ".join(f"**{text[0].upper()}{text[1:]}.**" for text in (taken, verdict.reason) if text)


def unit(verdict: Verdict) -> str:
    return "" if verdict.claim.unit in ("1", "log2") else f", {verdict.claim.unit}"


def excluded(verdicts: Sequence[Verdict]) -> str:
    """Rows that do not differ, although their interval excludes the effect that the paper prints."""
    names = [
        f"[{verdict.claim.name}](#{anchor(verdict.claim, verdict.setting)}) (`{verdict.setting}`)"
        for verdict in verdicts
        if verdict.interval.number >= VERDICT and verdict.outcome != "differs"
        if verdict.printed is not None and verdict.interval.excludes(verdict.printed)
    ]
    return ", ".join(names) or "no row"


def p_value(verdict: Verdict) -> str:
    return "" if verdict.holm != verdict.holm else "< 0.001" if verdict.holm < 0.001 else f"{verdict.holm:.3f}"


def _test(claim: Claim) -> str:
    """The test of a claim where it is not that of a difference, and its margin where it is not one point."""
    point = claim.unit == "points" and claim.margin == 1
    margin = "" if claim.margin is None or point else f", margin {claim.margin:g}"
    none = ", no margin" if claim.unit == "points" and claim.margin is None else ""
    return {"more": "", "no less": "; at least as", "same": "; no difference"}[claim.test] + margin + none


def waiting(verdicts: Sequence[Verdict]) -> str:
    """Names of claims without a number, by the reason."""
    reasons: dict[str, list[str]] = {}
    for verdict in verdicts:
        if not verdict.seeds:
            reasons.setdefault(verdict.reason, []).append(f"`{verdict.claim.name}`")
    return "\n".join(f"- {reason[0].upper()}{reason[1:]}. {', '.join(names)}" for reason, names in reasons.items())


def places(text: str) -> set[str]:
    """Figures and tables in a text, such as "Figs. 5c and 7c", without the letters of panels."""
    return {
        f"{kind[0]}{name}"
        for kind, names in re.findall(r"(Fig|Table)s?\.? ((?:\w+)(?:(?:, | and )\d\w*)*)", text)
        for name in re.findall(r"[IVX]+|\d+", names)
    }
