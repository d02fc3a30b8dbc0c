"""The numbers of docs/results.md and docs/findings.md, the pictures of findings, and the papers' claims in
docs/papers.md, from docs/results.

    python docs/_ext/evidence.py               fill the pages and draw the pictures again
    python docs/_ext/evidence.py --no-pictures

A page has its numbers between <!-- NAME --> and <!-- end -->; what stands there is replaced. Verdicts come from
`drift.claims.campaign.judge`, and nothing is trained.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from _ext import evidence_claims, evidence_paper, evidence_runs, evidence_settings  # noqa: E402 - after the path is set
from _ext.claim_settings import same_setting  # noqa: E402 - after the path is set
from _ext.evidence_runs import ByItem  # noqa: E402 - after the path is set
from _ext.evidence_tables import span, table  # noqa: E402 - after the path is set
from _ext.evidence_words import CAPTIONS, WORDS  # noqa: E402 - after the path is set
from benchmarks import adapters, early_warning, model_map, noise, sharp_drift  # noqa: E402 - after the path is set
from drift.analyses.over_seeds import estimate  # noqa: E402
from drift.claims import PAPERS, claims, questions  # noqa: E402 - after the path is set
from drift.claims.campaign import judge, plan, provenance  # noqa: E402
from drift.claims.campaign.recorded_run import RecordedRun  # noqa: E402
from drift.claims.claim import Verdict  # noqa: E402
from drift.claims.measures import accuracy  # noqa: E402
from drift.config.shipped import plans  # noqa: E402
from drift.partitions.drift import Partition as DriftPartition  # noqa: E402
from figures.looks.palette import label as written  # noqa: E402
from figures.papers import load as paper  # noqa: E402

RESULTS = ROOT / "docs" / "results"
FILES = RESULTS / "data"
NAMES = (
    "results",
    "results-settings",
    "findings",
    "trust",
    "papers",
    "howto-adapters",
    "early-warning",
    "update-change",
)
PAGES = (*(ROOT / "docs" / f"{name}.md" for name in NAMES), ROOT / "paper/findings.md")
OTHERS = ("figures-of-papers",)
"""Blocks of these pages that `paper_figures.py` fills."""

PRINTED = {
    "ima-table1-fmnist-shards2": ("ima", "Table I", "FMNIST CNN #C=2"),
    "ima-table1-fmnist-shards2-bases": ("ima", "Table I", "FMNIST CNN #C=2"),
    "ima-table1-fmnist-dir01": ("ima", "Table I", "FMNIST CNN Dir(0.1)"),
    "ima-table1-cifar10-shards2": ("ima", "Table I", "CIFAR-10 CNN #C=2"),
    "ima-table1-cifar10-dir01": ("ima", "Table I", "CIFAR-10 CNN Dir(0.1)"),
    "ima-table1-fmnist-dir01-bases": ("ima", "Table I", "FMNIST CNN Dir(0.1)"),
    "fedeve-table1-mnist-dir001": ("fedeve", "Table 1, FEMNIST", "0.01"),
    "fedeve-table1-mnist-dir01": ("fedeve", "Table 1, FEMNIST", "0.1"),
    "fedeve-table1-mnist-dir1": ("fedeve", "Table 1, FEMNIST", "1"),
    "fedlaw-table3-cifar10-dir01": ("fedlaw", "Table 3", "CIFAR-10 CNN, 0.1"),
    "lss-table1-cifar10": ("lss", "Table 1", "CIFAR-10, R = 3"),
    "lss-table1-cifar10-resnet20": ("lss", "Table 1", "CIFAR-10, R = 3"),
}
"""Items of the plan whose accuracies a paper prints: paper, item and column of its numbers."""


def filled(text: str, blocks: Mapping[str, str], others: Collection[str] = ()) -> str:
    """A page with its numbers replaced, on lines of their own or within one; blocks of others stay as they are.

    Raises:
        LookupError: If the page has a name that there are no numbers for.
    """

    def block(match: re.Match[str]) -> str:
        name = match[1]
        if name in others:
            return match[0]
        if name not in blocks:
            raise LookupError(f"there are no numbers called {name}; known: {', '.join(blocks)}")
        return f"<!-- {name} -->{match[2]}{blocks[name]}{match[2]}<!-- end -->"

    return re.sub(r"<!-- ([a-z0-9-]+) -->(\n?).*?<!-- end -->", block, text, flags=re.DOTALL)


def numbers(files: Path = FILES) -> dict[str, str]:
    """Every block of the pages, by name."""
    campaign = plan.load(plans()["reproduction"])
    recorded = judge.by_identity(files)
    runs = {item.name: judge.runs_of([item], campaign, recorded) for item in campaign.items}
    lost = {item.name: judge.diverged_of([item], campaign, recorded) for item in campaign.items}
    verdicts = judge.of_claims(claims(), campaign, recorded)
    answers = judge.of_claims(questions(), campaign, recorded)
    tested = {evidence_claims.anchor(one.claim, one.setting) for one in verdicts if one.seeds}
    blocks = {
        "recorded": evidence_runs.recorded(campaign, runs, lost, list(recorded.values()), files),
        "accuracies": _accuracies(runs, lost),
        "claims": evidence_claims.rows(verdicts, campaign, runs),
        "tally": evidence_claims.tally(verdicts, campaign),
        "claims-of-papers": evidence_claims.of_paper(verdicts),
        "settings": evidence_settings.page(campaign, runs, lost, tested, variant),
        "waiting": evidence_claims.waiting(verdicts),
        "excluded": evidence_claims.excluded(verdicts),
        "unasked": _unasked(),
        "model-map": model_map.table(json.loads(model_map.STORED.read_text(encoding="utf-8"))),
        "noise-or-drift": noise.table(json.loads(noise.STORED.read_text(encoding="utf-8"))),
        "adapters": adapters.table(json.loads(adapters.STORED.read_text(encoding="utf-8"))),
        "sharp-drift": sharp_drift.table(json.loads(sharp_drift.STORED.read_text(encoding="utf-8"))),
        "early-warning": early_warning.tables(json.loads(early_warning.STORED.read_text(encoding="utf-8"))),
        **evidence_runs.counts(campaign, runs, verdicts, answers),
    }
    return {
        **blocks,
        **{f"figure-{name}": f"![{text}](../docs/images/findings-{name}.png)" for name, text in CAPTIONS.items()},
        "settings-cross": evidence_paper.settings(campaign),
        **evidence_paper.inline(answers, _answer),
        **{f"findings-{name}": _answers(answers, name) for name in {claim.section for claim in questions()}},
    }


def settings_of_rows() -> str:
    """Whether each row of the plan has its paper's setting, as `fedscape claims` reads it."""
    campaign, stated = plan.load(plans()["reproduction"]), {}
    for claim in claims():
        items = [item for item in campaign.items if claim.name in item.claims]
        for group in [items] if claim.across and items else [[item] for item in items]:
            stated[provenance.row_key(claim, group)] = same_setting(claim, group)
    return json.dumps(stated, indent=1) + "\n"


def _accuracies(runs: ByItem, lost: ByItem) -> str:
    """One table of all items; runs without a finite model are named below it."""
    rows, notes = [], []
    for name, every in runs.items():
        ended = {run.name: judge.without_number(run) for run in every}
        own = [run for run in every if not ended[run.name]]
        told = [f"seed {run.experiment.seed}: {ended[run.name]}" for run in every if ended[run.name]]
        notes += [f"Not in the table of `{name}`: {'; '.join(told)}."] if told else []
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
        ahead = estimate([values[seed] - base[seed] for seed in shared])
        spread = f" ± {stdev(values.values()):.2f}" if len(values) > 1 else ""
        ours = f"{fmean(values.values()):.2f}{spread}"
        own = "" if method == "FedAvg" else span(ahead, 2)
        rows.append((method, str(len(values)), ours, own, _printed(name, method)))
    return rows


def variant(run: RecordedRun) -> str:
    """Written name of a run's method, with the options that tell its variants in one item from each other."""
    spec, method, options = run.experiment, run.method, []
    options += [f"late = {value}" for value in [getattr(method, "late", "exp")] if value != "exp"]
    options += [f"window = {value}" for value in [getattr(method, "window", 5)] if value != 5]
    if run.label == "lss" and spec.rounds == 1:  # Fig. 6 compares numbers of candidates
        options.append(f"candidates = {getattr(method, 'candidates', 4)}")
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


def _unasked() -> str:
    """How many items of each paper have a claim without a measure in `drift.claims`."""
    counts = {}
    for name in PAPERS:
        asked = {place for claim in claims(name) for place in evidence_claims.places(claim.item)}
        items = [item for item in paper(name).items if item.claim]
        counts[name] = sum(not any(place in asked for place in evidence_claims.places(item.item)) for item in items)
    named = ", ".join(f"{count} of {written(name)}" for name, count in counts.items())
    return f"{sum(counts.values())} further items have a claim without a measure: {named}."


def _answers(answers: Sequence[Verdict], section: str) -> str:
    """A row per question and a column per setting; the quantity is in the first of its rows alone."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for verdict in answers:
        if verdict.claim.section == section and verdict.seeds:
            claim = verdict.claim
            quantity, of = WORDS.get(claim.name, (claim.statement, claim.effect))
            asked = rows.setdefault((quantity, f"{of}{evidence_claims.unit(verdict)}"), {})
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
    parts = [span(verdict.interval, 3, verdict.claim.unit)]
    parts += [f"p={p}".replace("=< ", "<") for p in [evidence_claims.p_value(verdict)] if p]
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
        page.write_text(filled(page.read_text(encoding="utf-8"), blocks, OTHERS), encoding="utf-8")
    provenance.settings_file(plans()["reproduction"]).write_text(settings_of_rows(), encoding="utf-8")
    if not options.no_pictures:
        from _ext.evidence_pictures import draw

        draw(FILES, ROOT / "docs" / "images")


if __name__ == "__main__":
    main()
