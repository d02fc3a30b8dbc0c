"""Which run is meant by a name: a run that was replaced under its name has other values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from drift.runs.run import Run
from drift.store import chain, files
from drift.store.round_headers import read_small_arrays


def version(run: Run, models: Sequence[str] = ()) -> Hashable:
    """What determines the values of a run: its identity and its rounds, and those of other runs that models are of.

    Args:
        models: Names of models (`drift.analyses.landscapes.named_models`).
    """
    parent = run.folder.resolve().parent
    others = sorted({_run_name(term) for model in models for term in model.split(" + ")} - {""})
    heads = tuple((other.identity, other.head) for other in map(Run, (parent / name for name in others)))
    return run.folder.resolve(), run.identity, run.head, id(run.context.user_task), run.context.metrics, heads


def round_version(run: Run, round: int) -> tuple[Hashable, ...]:
    """What tells a round from that of another run under the same name; it stays while the run grows."""
    path = files.round_path(run.folder, run.require_round(round))
    return run.folder.resolve(), run.identity, read_small_arrays(path).link


def has_link(run: Run, link: str) -> bool:
    """Whether a run still begins with the rounds of a head (`Run.head`): it is the same one, perhaps grown."""
    return link == run.head or link in chain.heads(run.folder)


def _run_name(term: str) -> str:
    """Name of the other run in a term such as "0.5 * NAME: round 12"; empty for a model of the run itself."""
    return term.rpartition(" * ")[2].rpartition(": ")[0]
