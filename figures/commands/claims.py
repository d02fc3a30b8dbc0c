"""fedscape claims: what runs say of the papers' claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from figures import console
from figures.commands.opening import opened_all
from figures.commands.options import Data, Json, RunNames, Runs, several

if TYPE_CHECKING:
    from drift.claims.claim import Verdict

Papers = Annotated[
    list[str] | None,
    several("--paper", "NAME", "Only claims of these papers (fedscape list papers). By default all."),
]

COLUMNS = {"claim": "claim", "verdict": "verdict", "effect": "effect", "interval": "95 % interval", "seeds": "seeds"}


def claims(
    run: RunNames, /, *, paper: Papers = None, runs: Runs = Path("runs"), data: Data = None, json: Json = False
) -> None:
    """Check the papers' claims on runs: effect, interval over seeds, and a verdict.

    An effect above zero agrees with the claim; the 95 % interval is a paired bootstrap over seeds, and a verdict needs
    three seeds. What a claim is about, and why one cannot be tested, is in the JSON (--json).

    Example: `fedscape claims runs --paper ima`
    """
    from drift.claims import claims as known
    from drift.claims import require_papers

    require_papers(*(paper or ()))
    recorded = opened_all(run, runs, data)
    selected = known(*(paper or ()))
    verdicts = []
    with console.progress("claims", total=len(selected)) as step:
        for done, claim in enumerate(selected):
            step(done, claim.name)
            verdicts.append(claim.judge(recorded))
    if json:
        console.put_json([_full(verdict) for verdict in verdicts])
        return
    console.table(
        [_short(verdict) for verdict in verdicts if verdict.seeds], COLUMNS, empty="no claim could be tested."
    )
    if untested := [verdict for verdict in verdicts if not verdict.seeds]:
        console.put(f"not testable with these runs: {', '.join(verdict.claim.name for verdict in untested)}")
        console.say("why: fedscape claims RUNS --json")


def _short(verdict: Verdict) -> dict[str, Any]:
    unit = "" if verdict.claim.unit == "1" else f" {verdict.claim.unit}"
    return {
        "claim": verdict.claim.name,
        "verdict": verdict.outcome,
        "effect": f"{verdict.effect:+.3g}{unit}",
        "interval": f"{verdict.low:+.3g} to {verdict.high:+.3g}" if len(verdict.seeds) > 1 else "-",
        "seeds": len(verdict.seeds),
    }


def _full(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    about = {name: getattr(claim, name) for name in ("name", "item", "statement", "unit")}
    measured = {name: getattr(verdict, name) for name in ("effect", "low", "high", "seeds", "reason")}
    return {**about, "measure": claim.effect, "verdict": verdict.outcome, **measured}
