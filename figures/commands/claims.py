"""fedscape claims: tests of the papers' claims on runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from figures.commands.opening import RunSource
from figures.commands.options import Data, Json, RunNames, Runs, several
from figures.texts import console
from landscape.plugins import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drift.claims.claim import Verdict

    Notes = Callable[[Verdict], tuple[str, list[int], str]]

COLUMNS = {
    name: name
    for name in ["claim", "setting", "verdict", "effect", "interval", "printed", "margin", "holm", "seeds", "same"]
}
COLUMNS |= {"interval": "95 % t interval", "printed": "paper", "holm": "p, Holm", "same": "same setting?"}
OF_FILES = ("setting", "printed", "same")
OF_VERDICT = ("printed", "p", "holm", "family", "seeds", "setting", "reason", "short")


def claims(
    run: RunNames | None = None,
    /,
    *,
    paper: Annotated[list[str] | None, several("--paper", "NAME")] = None,
    claim: Annotated[list[str] | None, several("--claim", "NAME")] = None,
    files: Path | None = None,
    plan: Path | None = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    json: Json = False,
) -> None:
    """Check the papers' claims on runs: effect, interval over seeds, and a verdict.

    The effect is the mean of one paired difference per seed, with its 95 % t interval. The margin is a column of the
    table. For a claim of a difference, the verdict is the first that applies:

    - too few: fewer than three seeds
    - differs: the interval excludes the paper's effect and all values within the margin of it
    - agrees: it contains the paper's effect and lies above zero
    - equivalent to none: it lies within the margin
    - agrees: it lies above zero (for "at least as": above minus the margin)
    - differs: it lies below zero (for "at least as": below minus the margin)
    - too few: the interval is too wide for any of these

    A claim of no difference is "equivalent" within the margin and "differs" outside. "Above" or "below the paper": the
    interval excludes the paper's effect. "Agrees, within the margin": it contains that effect, but no effect above the
    margin. If the paper prints no effect, a claim that holds is "sign agrees" or "no less".

    "p, Holm" is adjusted for all tests that could decide a claim: of all papers with --files, of the named papers for
    runs. Questions across the papers claim no direction, and are adjusted among themselves. An effect belongs to a
    setting, so only the files of a campaign (fedscape reproduce) are compared with the paper's effects: "same setting?"
    counts the choices that differ from the paper's. "Added" seeds were trained after the results of others were seen.
    --claim also prints the claim in words and the command that repeats its runs. --json also has the claim's figure
    and, if it is not tested, the reason.

    Example: `fedscape claims runs --paper ima`

    Args:
        paper: Only claims of these papers (fedscape list papers); cross has the questions of docs/findings.md, for
            --files. By default all papers.
        claim: Only the rows of these claims or questions; p stays adjusted for all. By default all.
        files: Folder of the small files of a campaign, tested in place of runs. By default none.
        plan: TOML file of the campaign's plan. By default that of fedscape.
    """
    from drift.claims import ACROSS, PAPERS, require_papers

    require_papers(*(paper or ()))
    if bool(run) == (files is not None):
        what = "both runs and --files" if run else "neither runs nor --files"
        raise ValueError(f"there are {what}; name runs, or a campaign's folder by --files FOLDER.")
    papers = [*(paper or ())]
    if ACROSS not in papers and any(name.startswith(f"{ACROSS}-") for name in claim or ()):
        papers = [*(papers or PAPERS), ACROSS]
    if run and ACROSS in papers:
        raise ValueError("questions across the papers need the files of a campaign: --files FOLDER.")
    verdicts, notes = _of_files(files, plan, papers) if files else (_of_runs(run or [], papers, runs, data), _alone)
    for name in claim or ():
        if name not in (names := sorted({verdict.claim.name for verdict in verdicts})):
            raise ValueError(unknown("claim", name, names))
    verdicts = [verdict for verdict in verdicts if not claim or verdict.claim.name in claim]
    if json:
        console.put_json([_full(verdict, *notes(verdict)[1:]) for verdict in verdicts])
        return
    tested = [verdict for verdict in verdicts if verdict.seeds]
    columns = {name: title for name, title in COLUMNS.items() if files or name not in OF_FILES}
    console.table([_short(verdict, *notes(verdict)) for verdict in tested], columns, empty="no claim could be tested.")
    for row in tested:
        if claim:
            console.put(f"{row.claim.item}: {row.claim.statement}. Effect: {row.claim.effect}. {_repeat(row)}".rstrip())
        if row.short:
            taken = f"{row.claim.name}, {row.setting}: {row.claim.instead} of {row.short} runs"
            console.put(f"{taken}, whose files lack the rest; fedscape reproduce measures them again.")
        if row.reason:
            console.put(f"{', '.join(filter(None, [row.claim.name, row.setting]))}: {row.reason}.")
    if untested := dict.fromkeys(verdict.claim.name for verdict in verdicts if not verdict.seeds):
        elsewhere = {verdict.claim.name for verdict in tested}
        names = [f"{name} (in further settings)" if name in elsewhere else name for name in untested]
        console.put(f"not tested with these runs: {', '.join(names)}")
        console.say(f"why: fedscape claims {f'--files {files}' if files else 'RUNS'} --json")


def _of_runs(names: Sequence[str], papers: Sequence[str], runs: Path, data: Path | None) -> list[Verdict]:
    recorded = RunSource(runs, data).open_all(names)
    from drift.claims import claims as known
    from drift.claims.claim import adjusted

    selected, verdicts = known(*papers), []
    with console.progress("claims", total=len(selected)) as step:
        for done, claim in enumerate(selected):
            step(done, claim.name)
            verdicts.append(claim.judge(recorded))
    return adjusted(verdicts)


def _of_files(files: Path, plan: Path | None, papers: Sequence[str]) -> tuple[list[Verdict], Notes]:
    """Verdicts, and what stands beside each: (its seeds as text, seeds that were added, whether its setting is one)."""
    from drift.claims.campaign import provenance
    from drift.claims.campaign.judge import by_identity, judge, runs_of
    from drift.claims.campaign.plan import load
    from drift.config.shipped import plans

    if not any(files.glob("*.json")):
        raise LookupError(f"there is no file of a run in {files}; give the folder of fedscape reproduce --files.")
    path = plan or plans()["reproduction"]
    campaign, recorded, stated = load(path), by_identity(files), provenance.settings_of(path)
    late = provenance.added({item.name: runs_of([item], campaign, recorded) for item in campaign.items}, campaign)
    items = {item.name: item for item in campaign.items}

    def notes(verdict: Verdict) -> tuple[str, list[int], str]:
        of_row = [items[name] for name in filter(None, verdict.setting.split(", "))]
        added = [seed for seed in verdict.seeds if seed in late.get(verdict.setting, ())]
        return provenance.seeds(verdict, late), added, stated.get(provenance.row_key(verdict.claim, of_row), "-")

    return judge(campaign, recorded, *papers), notes


def _alone(verdict: Verdict) -> tuple[str, list[int], str]:
    return str(verdict.interval.number), [], "-"


def _short(verdict: Verdict, seeds: str, added: list[int], same: str) -> dict[str, Any]:
    unit, interval = "" if verdict.claim.unit == "1" else f" {verdict.claim.unit}", verdict.interval
    shown = [f"{value:+.3g}" for value in interval.shown]
    if verdict.claim.unit == "log2":
        shown, unit = [f"{2**value:.3g}" for value in interval.shown], " (ratio)"
    return {
        "claim": verdict.claim.name,
        "setting": verdict.setting,
        "verdict": verdict.wording,
        "effect": f"{shown[0]}{unit}",
        "interval": f"{shown[1]} to {shown[2]}" if interval.number > 1 else "-",
        "printed": "-" if verdict.printed is None else f"{verdict.printed:+.3g}",
        "margin": "-" if verdict.claim.margin is None else f"{verdict.claim.margin:g}",
        "holm": f"{verdict.holm:.2g}" if verdict.holm == verdict.holm else "-",
        "seeds": seeds,
        "same": same,
    }


def _full(verdict: Verdict, added: list[int], same: str) -> dict[str, Any]:
    claim, interval = verdict.claim, verdict.interval
    return {
        **{name: getattr(claim, name) for name in ("name", "item", "statement", "unit", "test", "margin")},
        "measure": claim.effect,
        "picture": picture(claim.name.partition("-")[0], claim.item),
        "verdict": verdict.wording if claim.section else verdict.outcome,
        "wording": verdict.wording,
        "instead": claim.instead if verdict.short else "",
        **dict(zip(("effect", "low", "high"), interval.shown, strict=True)),
        "interval": f"Student's t over {'Fisher z' if interval.fisher else 'paired differences'}, one per seed",
        **{name: getattr(verdict, name) for name in OF_VERDICT},
        "added": added,
        "same_setting": same,
        "repeat": _repeat(verdict),
    }


def _repeat(verdict: Verdict) -> str:
    """The command that trains and measures the runs of a row again; "" for runs that no plan has."""
    again = f"fedscape reproduce --item {verdict.setting.replace(', ', ' --item ')} --files again"
    return again if verdict.setting else ""


def picture(paper: str, section: str) -> str:
    """Gallery figure of the first figure or table in a text such as "IMA, Figs. 5c and 7c"; "" if it has none."""
    from figures.papers import load

    kind, name = next(iter(re.findall(r"(Fig\.|Table)s?\.? (\w+)", section.replace("Figs.", "Fig."))), ("", ""))
    items = [item for item in (load(paper).items if name else ()) if item.item.startswith(f"{kind} {name}")]
    return next((item.figure for item in sorted(items, key=lambda item: item.item != f"{kind} {name}")), "")
