"""Which run is meant by a name: a run that was replaced under its name has other values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

from drift.runs import cache
from drift.runs.run import Run
from drift.runs.run_names import named_in
from drift.store import chain, files
from drift.store.round_headers import read_small_arrays


def version(run: Run, models: Sequence[str] = ()) -> Hashable:
    """What determines the values of a run: its identity and its rounds, and those of other runs that models are of.

    Args:
        models: Names of models (`drift.analyses.landscapes.named_models`).
    """
    others = cache.others_text(run, {"models": models})
    return run.folder.resolve(), run.identity, run.head, id(run.context.user_task), run.context.metrics, others


def round_version(run: Run, round: int, models: Sequence[str] = ()) -> tuple[Hashable, ...]:
    """What tells a round from that of another run under the same name; it stays while the runs grow.

    Args:
        models: Names of models, also of other rounds and runs, that are looked at with it.
    """
    named = named_in(run.folder.resolve().parent, {"models": models})
    terms = [term.rpartition(" * ")[2].rpartition(": ") for name in models for term in name.split(" + ")]
    steps = [(run, round)]
    for name, _, model in terms:
        kind, _, number = model.partition(" ")
        if kind == "round" and number.isdigit() and (not name or name in named):
            steps.append((Run(named[name]) if name else run, int(number)))
    return tuple((shown.folder.resolve(), shown.identity, _link(shown, index)) for shown, index in steps)


def _link(run: Run, round: int) -> str:
    return read_small_arrays(files.round_path(run.folder, run.require_round(round))).link


def heads(run: Run, models: Sequence[str]) -> dict[Path, str]:
    """What names the rounds of a run and of the other runs that models are of (`Run.head`), by folder."""
    others = named_in(run.folder.resolve().parent, {"models": models}).values()
    return {run.folder: run.head, **{folder: Run(folder).head for folder in others}}


def replaced(links: Mapping[Path, str]) -> list[str]:
    """Names of the runs in folders that are no longer those of `heads`; grown ones are."""
    return [folder.name for folder, link in links.items() if not has_link(Run(folder), link)]


def has_link(run: Run, link: str) -> bool:
    """Whether a run still begins with the rounds of a head (`Run.head`): it is the same one, perhaps grown."""
    return link == run.head or link in chain.read(run.folder).heads
