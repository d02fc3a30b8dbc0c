"""The setting in which a paper makes a claim, beside that of the runs which test it here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache

from _ext.paper_settings import ALWAYS, Setting, flat, of_item, of_paper
from drift.claims.campaign.plan import PlanItem
from drift.claims.claim import Claim
from drift.config.experiment import Experiment
from figures.looks.palette import label as written
from figures.papers import load as paper
from figures.papers.needed import combinations

SHOWN_IN = {
    "ima-mean-below": "Fig. 1",
    "ima-heterogeneity-dominates": "Fig. 2",
    "ima-heterogeneity-tracks": "Fig. 2",
    "ima-loss-bound": "Fig. 2",
    "ima-rest-distance": "Fig. 2",
    "ima-more-models": "Fig. 4",
    "ima-between-globals": "Fig. 5b",
    "ima-nearer-minimum": "Fig. 5c",
    "ima-window-gains": "Fig. 5c",
    "fedlaw-gamma-rises": "Fig. 3",
    "fedlaw-coherence-falls": "Fig. 5a",
    "fedlaw-coherence-lost": "Fig. 5a",
    "fedlaw-smaller-norm": "Fig. 10",
}
"""Claim -> item of its paper in whose setting it is made, where the item of the plan stands for another one.

Theorem 1 of IMA has no setting of its own; Fig. 2 shows its terms.
"""

POST_HOC = ("fedlaw-shrinking-helps", "ima-window-heterogeneity")
"""Claims about models that are changed after training; no paper has a run of theirs."""

LENGTH = ("local.steps", "local.epochs")
"""Settings of which a run has one."""

CODE = {
    "ima": {"local.weight_decay": "papers.md#ima-7"},
    "fedlaw": {"local.batch": "papers.md#03-shared-defaults-and-edge-cases"},
    "lss": {},
    "fedeve": {"local.batch": "papers.md#eve-7"},
}
"""Settings that only the authors' code states, by paper, and where docs/papers.md says so."""

NOTES = {
    "fedadam": "FedAdam alone ends more than three points below the accuracy that the paper prints, and with IMA near "
    "it ([accuracies](results.md)); so IMA's gain over it is larger here.",
    "fedprox": "FedProx takes the mu of the authors' code; the paper takes the best of three "
    "([2.1](papers.md#21-client-side-regularisation-and-geometry)).",
    "fedlaw": "The server's optimiser is that of the authors' code ([LAW-3](papers.md#law-3)).",
    "fedeve": "FedEve follows equation 13; the authors' code takes another variance ([EVE-1](papers.md#eve-1)). "
    "A Dirichlet partition is the code's, per class; the text cites one per client "
    "([6.2](papers.md#62-label-skew-partitions)).",
    "scaffold": "SCAFFOLD is the original method; that of the authors' code is another one "
    "([2.1](papers.md#21-client-side-regularisation-and-geometry)).",
    "lss": "LSS follows algorithm 1 but for the values above; the code departs from it in most steps "
    "([LSS-1](papers.md#lss-1) to [LSS-8](papers.md#lss-8)).",
}
"""Label of a method -> where its paper and the paper's code are at odds, and which of them the runs follow."""


def same_setting(claim: Claim, items: Sequence[PlanItem]) -> str:
    """Whether a row has its paper's setting, or how many of its choices differ, of the item with most of them."""
    if claim.name in POST_HOC:
        return "post hoc"
    number = max(departures(of_claim(claim, item)) for item in items)
    return f"{number} differ{'' if number > 1 else 's'}" if number else "yes"


def departures(settings: Iterable[Setting]) -> int:
    """Number of choices that differ: the options of another partition, model or method are one with its name."""
    bare = [one.name.rpartition(": ")[2].replace("method.base.", "method.") for one in settings if one.differs]
    chosen = [name.removesuffix(".name") for name in bare if name.endswith(".name") or name in ("task.model", "method")]
    tables = {f"{name}_options." if name == "task.model" else f"{name}.": name for name in chosen}
    alone = (LENGTH[0] if name in LENGTH else name.removesuffix(".name") for name in bare)
    return len({next((tables[table] for table in tables if name.startswith(table)), name) for name in alone})


@cache
def of_claim(claim: Claim, item: PlanItem) -> tuple[Setting, ...]:
    """Settings of the runs that a claim takes of an item, beside those of the paper's own runs for it."""
    if claim.name in POST_HOC:
        return ()
    rows = [row for row in item.rows if not (wanted := methods(claim)) or item.trained(row).method.label in wanted]
    if claim.name not in SHOWN_IN:
        return tuple(of_item(item.model_copy(update={"rows": tuple(rows)})))
    title = claim.name.partition("-")[0]
    shown = paper(title).item(SHOWN_IN[claim.name])
    theirs = [one for setting in shown.settings for one in combinations(shown, setting, quick=False)]
    return tuple(_compared(title, theirs, [item.trained(row) for row in rows]))


def methods(claim: Claim) -> Sequence[str]:
    """Labels of the runs that a claim takes; none where it takes all."""
    return json.loads(claim.how)["methods"] if claim.how else ()


def _compared(title: str, theirs: Sequence[Experiment], ours: Sequence[Experiment]) -> Iterable[Setting]:
    """One setting after another: those of ALWAYS, then what else has a value that the paper's runs do not have."""
    labels, others = ({one.method.label for one in side} for side in (ours, theirs))
    shared = [one for one in theirs if one.method.label in labels] or theirs
    if missing := labels - others:
        yield Setting("method", _text(map(written, others - labels)), _text(map(written, missing)))
    sides = [of_paper(title, one) for one in shared], [flat(one) for one in ours]
    for name in dict.fromkeys((*ALWAYS, *(name for side in sides for one in side for name in one))):
        if name.startswith("method.") and (missing or len(labels) > 1):
            continue
        values = [{one.get(name, "-") for one in side} for side in sides]
        if values == [{"-"}, {"-"}]:
            continue
        if not values[1] <= values[0] or name in ALWAYS:
            same = values[1] <= values[0]
            yield Setting(name, _text(values[1] if same else values[0]), _text(values[1]))


def _text(values: Iterable[str]) -> str:
    return " or ".join(sorted(values))
