"""The numbers of docs/results.md and docs/findings.md, and the pictures of findings, from docs/results.

    python docs/_ext/evidence.py               fill the pages and draw the pictures again
    python docs/_ext/evidence.py --no-pictures

A page has its numbers between <!-- NAME --> and <!-- end -->; what stands there is replaced. Verdicts come from
`drift.claims.campaign.judge`, and nothing is trained.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from _ext import evidence_settings  # noqa: E402 - after the path is set
from _ext.evidence_tables import table  # noqa: E402 - after the path is set
from _ext.evidence_words import WORDS  # noqa: E402 - after the path is set
from drift.claims import PAPERS, claims, questions  # noqa: E402 - after the path is set
from drift.claims.campaign import judge, plan  # noqa: E402
from drift.claims.campaign.recorded_run import RecordedRun  # noqa: E402
from drift.claims.claim import Claim, Interval, Verdict, over_seeds  # noqa: E402
from drift.claims.measures import accuracy  # noqa: E402
from drift.config.shipped import plans  # noqa: E402
from drift.partitions.drift import Partition as DriftPartition  # noqa: E402
from figures.looks.palette import label as written  # noqa: E402
from figures.papers import load as paper  # noqa: E402

RESULTS = ROOT / "docs" / "results"
FILES = RESULTS / "data"
PAGES = (
    *(ROOT / "docs" / f"{name}.md" for name in ("results", "results-settings", "findings")),
    ROOT / "paper/findings.md",
)

ByItem = Mapping[str, Sequence[RecordedRun]]
"""Recorded runs by the name of their item."""

PRINTED = {
    "ima-table1-fmnist-shards2": ("ima", "Table I", "FMNIST CNN #C=2"),
    "ima-table1-fmnist-shards2-bases": ("ima", "Table I", "FMNIST CNN #C=2"),
    "ima-table1-fmnist-dir01": ("ima", "Table I", "FMNIST CNN Dir(0.1)"),
    "ima-table1-fmnist-dir01-bases": ("ima", "Table I", "FMNIST CNN Dir(0.1)"),
}
"""Items of the plan that have a paper's whole setting: paper, item and column of its numbers."""


def filled(text: str, blocks: Mapping[str, str]) -> str:
    """A page with its numbers replaced.

    Raises:
        LookupError: If the page has a name that there are no numbers for.
    """

    def block(match: re.Match[str]) -> str:
        name = match[1]
        if name not in blocks:
            raise LookupError(f"there are no numbers called {name}; known: {', '.join(blocks)}")
        return f"<!-- {name} -->\n{blocks[name]}\n<!-- end -->"

    return re.sub(r"<!-- ([a-z0-9-]+) -->\n.*?<!-- end -->", block, text, flags=re.DOTALL)


def numbers(files: Path = FILES) -> dict[str, str]:
    """Every block of the pages, by name."""
    campaign = plan.load(plans()["reproduction"])
    recorded = judge.by_identity(files)
    runs = {item.name: judge.runs_of([item], campaign, recorded) for item in campaign.items}
    lost = {item.name: judge.diverged_of([item], campaign, recorded) for item in campaign.items}
    verdicts = judge.of_claims(claims(), campaign, recorded)
    answers = judge.of_claims(questions(), campaign, recorded)
    return {
        "recorded": _recorded(campaign, runs, lost, list(recorded.values())),
        "accuracies": _accuracies(runs, lost),
        "claims": _verdicts(verdicts),
        "tally": _tally(verdicts),
        "settings": evidence_settings.page(campaign, runs, variant),
        "waiting": _waiting(verdicts),
        "unasked": _unasked(),
        **{f"findings-{name}": _answers(answers, name) for name in {claim.section for claim in questions()}},
    }


def seconds(runs: Iterable[RecordedRun]) -> float:
    """Seconds of all rounds of runs; rounds that one run took from another, with equal times, count once."""
    parts = {
        (repr(run.experiment.clients), run.experiment.task.model, run.experiment.seed, place, value)
        for run in runs
        for place, value in enumerate(run.content["seconds"])
    }
    return sum(value for *_, value in parts)


def _recorded(campaign: plan.Plan, runs: ByItem, lost: ByItem, everything: list[RecordedRun]) -> str:
    rows, done = [], 0.0
    for item in campaign.items:
        planned = sum(row.seeds for row in item.rows)
        whole = sum(row.seeds * row.minutes for row in item.rows) / 60
        own, diverged = runs[item.name], lost[item.name]
        left = whole * (1 - (len(own) + len(diverged)) / planned)
        done += whole - left
        note = f", {len(diverged)} more diverged" if diverged else ""
        hours = seconds([*own, *diverged]) / 3600
        about = (f"{len(own)} of {planned}{note}", f"{hours:.2f}", f"{left:.1f}")
        of_paper = "findings" if item.paper == "cross" else f"{written(item.paper)}, {item.item}"
        rows.append((item.name, of_paper, *about))
    clock = seconds(everything) / 3600
    total = (
        f"{len(everything)} runs, {clock:.2f} hours of training by the clock, about {done:.1f} core-hours by the plan."
    )
    head = ("item of the plan", "paper", "runs", "hours of training", "core-hours left")
    return f"{total}\n\n{table(head, rows)}"


def _accuracies(runs: ByItem, lost: ByItem) -> str:
    """One table of all items; runs without a finite model are named below it."""
    rows, notes = [], []
    for name, own in runs.items():
        if any("accuracy" in run.metrics() for run in own):
            lines = _accuracy_rows(name, own)
            rows += [(f"`{name}`" if not place else "", *line) for place, line in enumerate(lines)]
            notes += _diverged(name, lost[name])
    head = ("item", "method", "seeds", "accuracy, %", "minus FedAvg", "paper, %")
    return "\n\n".join([table(head, rows), *notes])


def _diverged(name: str, runs: Sequence[RecordedRun]) -> list[str]:
    """A line that names the runs without a last round, which the table leaves out."""
    by_method: dict[str, list[str]] = {}
    for run in sorted(runs, key=lambda run: run.experiment.seed):
        by_method.setdefault(variant(run), []).append(f"seed {run.experiment.seed} after round {run.rounds()[-1]}")
    parts = [f"{method} ({', '.join(seeds)})" for method, seeds in by_method.items()]
    return [f"Without a finite model in `{name}`, and not in the table: {'; '.join(parts)}."] if parts else []


def _accuracy_rows(name: str, runs: Sequence[RecordedRun]) -> list[tuple[str, ...]]:
    by_method: dict[str, dict[int, float]] = {}
    for run in runs:
        by_method.setdefault(variant(run), {})[run.experiment.seed] = accuracy(run)  # type: ignore[arg-type]
    base, rows = by_method.get("FedAvg", {}), []
    for method, values in by_method.items():
        shared = [seed for seed in values if seed in base]
        ahead = over_seeds([values[seed] - base[seed] for seed in shared])
        spread = f" ± {stdev(values.values()):.2f}" if len(values) > 1 else ""
        ours = f"{fmean(values.values()):.2f}{spread}"
        own = "" if method == "FedAvg" else _span(ahead, 2)
        rows.append((method, str(len(values)), ours, own, _printed(name, method)))
    return rows


def variant(run: RecordedRun) -> str:
    """Written name of a run's method, with the options that tell its variants in one item from each other."""
    spec, method, options = run.experiment, run.method, []
    options += [f"late = {value}" for value in [getattr(method, "late", "exp")] if value != "exp"]
    options += [f"window = {value}" for value in [getattr(method, "window", 5)] if value != 5]
    if run.label == "shrink":
        options.append(f"gamma = {getattr(method, 'gamma', 1):g}")
    if isinstance(spec.clients.partition, DriftPartition):
        options.append(spec.clients.partition.setting)
    if run.label == "fedeve" and spec.rounds == 300:  # Fig. 4 compares settings of one method
        options.append(f"Dir({getattr(spec.clients.partition, 'concentration', 0):g}), {spec.local.epochs} epochs")
    return f"{written(run.label)} ({', '.join(options)})" if options else written(run.label)


def _printed(name: str, method: str) -> str:
    if name not in PRINTED:
        return ""
    title, item, column = PRINTED[name]
    cells = {written(cell.row): cell.value for cell in paper(title).item(item).numbers if cell.column == column}
    return f"{cells[method]:.2f}" if method in cells else ""


def _span(interval: Interval, digits: int, unit: str = "") -> str:
    """Mean with its interval; effects in log2 as ratios."""
    if interval.number == 0:
        return ""
    values = [interval.mean, interval.low, interval.high]
    shown = [f"{2**value:.3g}" if unit == "log2" else f"{value:+.{digits}f}" for value in values]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]" if interval.number > 1 else shown[0]


def _p(verdict: Verdict) -> str:
    return "" if verdict.holm != verdict.holm else "< 0.001" if verdict.holm < 0.001 else f"{verdict.holm:.3f}"


def _unit(verdict: Verdict) -> str:
    return "" if verdict.claim.unit in ("1", "log2") else f", {verdict.claim.unit}"


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    """A row per claim and setting; the words of a claim are in its first row alone."""
    rows, last = [], ""
    for verdict in verdicts:
        if verdict.seeds:
            claim = verdict.claim
            about = f"{claim.item}: {claim.statement} ({_effect(claim)}{_unit(verdict)}{_test(claim)})"
            rows.append(
                (
                    "" if claim.name == last else about,
                    ", ".join(_linked(name) for name in verdict.setting.split(", ")),
                    _span(verdict.interval, 3),
                    "" if verdict.printed is None else f"{verdict.printed:+.3g}",
                    f"{verdict.interval.number}",
                    _p(verdict),
                    f"**{verdict.outcome}**",
                )
            )
            last = claim.name
    head = ("claim (effect)", "setting", "mean [95 % interval]", "paper", "seeds", "p, Holm", "verdict")
    return table(head, rows) if rows else "None yet."


def _effect(claim: Claim) -> str:
    """The effect, without the rounds of an accuracy, which the page states once."""
    short = claim.effect.replace(" of the last 10 evaluated rounds", "")
    return short.replace(", last 10 evaluated rounds", "")


def _test(claim: Claim) -> str:
    """The test of a claim where it is not that of a difference, and its margin where it is not one point."""
    point = claim.unit == "points" and claim.margin == 1
    margin = "" if claim.margin is None or point else f", margin {claim.margin:g}"
    return {"more": "", "no less": "; at least as", "same": "; no difference"}[claim.test] + margin


def _tally(verdicts: Sequence[Verdict]) -> str:
    """How many rows have each verdict, and how many of them remain after the adjustment."""
    tested = [verdict for verdict in verdicts if verdict.seeds]
    names = ("agrees", "differs", "equivalent", "too few")
    counts = {name: sum(verdict.outcome == name for verdict in tested) for name in names}
    sure = sum(verdict.outcome in ("agrees", "equivalent") and verdict.holm < 0.05 for verdict in tested)
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{len(tested)} rows: {told}. Of those that agree or are equivalent, {sure} have an adjusted p below 0.05."


def _linked(item: str) -> str:
    return f"[{item}](results-settings.md#{item})"


def _waiting(verdicts: Sequence[Verdict]) -> str:
    """Claims without runs, by the reason."""
    reasons: dict[str, list[str]] = {}
    for verdict in verdicts:
        if not verdict.seeds:
            reasons.setdefault(verdict.reason, []).append(f"{verdict.claim.item}: {verdict.claim.statement}")
    lines = [
        line for reason, names in reasons.items() for line in (f"\n*{reason}*\n", *(f"- {name}" for name in names))
    ]
    return "\n".join(lines).strip()


def _unasked() -> str:
    """How many items of each paper have a claim without a measure in `drift.claims`."""
    counts = {}
    for name in PAPERS:
        asked = {place for claim in claims(name) for place in _places(claim.item)}
        items = [item for item in paper(name).items if item.claim]
        counts[name] = sum(not any(place in asked for place in _places(item.item)) for item in items)
    named = ", ".join(f"{count} of {written(name)}" for name, count in counts.items())
    return f"{sum(counts.values())} further items have a claim without a measure: {named}."


def _places(text: str) -> set[str]:
    """Figures and tables in a text, such as "Figs. 5c and 7c", without the letters of panels."""
    return {
        f"{kind[0]}{name}"
        for kind, names in re.findall(r"(Fig|Table)s?\.? ((?:\w+)(?:(?:, | and )\d\w*)*)", text)
        for name in re.findall(r"[IVX]+|\d+", names)
    }


def _answers(answers: Sequence[Verdict], section: str) -> str:
    """A row per question and a column per setting; the quantity is in the first of its rows alone."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for verdict in answers:
        if verdict.claim.section == section and verdict.seeds:
            claim = verdict.claim
            quantity, of = WORDS.get(claim.name, (claim.statement, claim.effect))
            asked = rows.setdefault((quantity, f"{of}{_unit(verdict)}"), {})
            asked[verdict.setting] = _answer(verdict)
    settings = list(dict.fromkeys(setting for cells in rows.values() for setting in cells))
    lines, last = [], ""
    for (quantity, of), cells in rows.items():
        shown = [cells.get(setting, "") for setting in settings]
        lines.append(("" if quantity == last else quantity, of, *shown))
        last = quantity
    return table(("quantity", "of", *settings), lines) if rows else "Not measured yet; the runs are planned."


def _answer(verdict: Verdict) -> str:
    """Mean, interval and adjusted p; the seeds where they are not five."""
    parts = [_span(verdict.interval, 3, verdict.claim.unit)]
    parts += [f"p {p}" for p in [_p(verdict)] if p]
    number = verdict.interval.number
    parts += [f"{number} seed{'s' if number > 1 else ''}" for number in [number] if number != 5]
    return ", ".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill the pages, and draw the pictures unless told not to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-pictures", action="store_true", help="fill the pages alone")
    options = parser.parse_args(arguments)
    blocks = numbers()
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    if not options.no_pictures:
        from _ext.evidence_pictures import draw

        draw(FILES, ROOT / "docs" / "images")


if __name__ == "__main__":
    main()
