"""Which runs a figure shows: those of one setting, of one method, or one run."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from drift.analyses.per_round import evenly_spaced, selected_rounds
from drift.analyses.rounds.norms_and_weights import reweights
from drift.config.corrections import from_outside
from drift.plugins.reserved_names import USER_TASK
from drift.runs.run import Run
from drift.store.number_ranges import spans
from figures.looks import look, style
from figures.selection import setting_text
from figures.selection.groups import grouped, settings
from figures.selection.run_selection import (
    describe_groups,
    names_advised,
    narrow,
    one_option,
    required_runs,
    select_runs,
    settings_key,
    subset,
)

KEEP_CLIENTS = "fedscape train digits-shards2 --set keep.clients=all"
"""Command that trains a run with the models of its clients."""

KEEP_GLOBALS = "fedscape train digits-shards2 --set keep.globals=all"
"""Command that trains a run with the global model of every round."""


def select_comparable(runs: Sequence[Run], over: Collection[str] | None = None, *, lines: bool = True) -> Sequence[Run]:
    """The runs of one setting (task, clients, rounds): that with most methods and runs, the first among equals.

    Settings with methods of the user, from outside the package, come before others. Where runs of one method differ
    in more than their seed, those that have to be drawn are taken; else all if they differ in one option, else the
    most.

    Args:
        over: Settings that the figure compares, by keys as `setting_text.value` takes them: runs may differ in these
            too, and in no other. By default those of the look (`over`), if `lines`.
        lines: Whether each value of an option has a place of its own in the figure, as `_stack.stack_runs` gives it.

    Raises:
        LookupError: If there are no runs, or none has a setting of the look.
        ValueError: If runs of several settings have to be drawn; names the settings.
    """
    if not runs:
        raise missing("no run was given", "fedscape train digits-shards2")
    if over is None:
        over = setting_text.keys(look.current().take("over"), runs) if lines else ()
    groups = grouped(runs, lambda run: _cell(run, over))
    needed = {run.folder for run in required_runs(runs)}
    complete = [group for group in groups.values() if needed <= {run.folder for run in group}]
    if not complete:
        differ = describe_groups(list(groups.values()), ("task", "clients", "rounds"))
        what = f"this figure shows runs of one setting, and these differ in {differ}."
        raise names_advised(what, "Name the runs of one setting")
    largest: list[Run] = max(complete, key=_extent)
    return subset(runs, _without_variants(largest, needed, over, lines and not over))


def _cell(run: Run, over: Collection[str]) -> str:
    """The settings of task, clients and rounds as text, but those that are compared."""
    prefixes, table = tuple(f"{key}." for key in over), settings(run)
    names = [
        name
        for name in table
        if name.partition(".")[0] in ("task", "clients", "rounds")
        and name != "clients.valid_ratio"  # some methods need data held out
        and not f"{name}.".startswith(prefixes)
    ]
    return repr([(name, table[name]) for name in names])


def _extent(group: Sequence[Run]) -> tuple[int, int, int]:
    """Number of the user's methods, of methods and of runs."""
    foreign = {run.label for run in group if from_outside(run.about)}
    return len(foreign), len({run.label for run in group}), len(group)


def _without_variants(group: Sequence[Run], needed: set[Path], over: Collection[str], lines: bool) -> list[Run]:
    """Of each method, the runs that differ in their seed and `over` only: all that have to be drawn, else the most.

    With `lines`, all runs of a method that differ in one option.
    """
    free = [setting for key in over for setting in setting_text.resolved_keys(key)]
    selected: set[Path] = set()
    for same_label in grouped(group, lambda run: run.label).values():
        by_variant = grouped(same_label, lambda run: settings_key(run, free))
        named = [runs for runs in by_variant.values() if needed & {run.folder for run in runs}]
        if not named and lines and one_option(by_variant.values()):
            named = list(by_variant.values())
        selected |= {run.folder for runs in named or [max(by_variant.values(), key=len)] for run in runs}
    return [run for run in group if run.folder in selected]


def prefer_methods(runs: Sequence[Run], methods: Sequence[str] | None, usual: Sequence[str]) -> Sequence[Run]:
    """The runs of these methods; by default, where a figure may choose, those of the usual methods, if two are there.

    Where several are usual, the user's methods and those of other programs are always among them.

    Raises:
        LookupError: If no run is of a method that was asked for; names the methods of the runs.
    """
    if methods is not None:
        return select_runs(runs, methods)
    if len({run.label for run in runs} & set(usual)) < min(2, len(usual)):
        return runs
    needed, several = {run.folder for run in required_runs(runs)}, len(usual) > 1
    others = {run.folder for run in runs if several and (run.about.get("imported") or from_outside(run.about))}
    return subset(runs, [run for run in runs if run.label in usual or run.folder in needed | others])


def runs_of_method(
    runs: Sequence[Run], method: str | None, seed: int | None = None, usual: str = "fedavg"
) -> Sequence[Run]:
    """The comparable runs of one method: `method`, by default the usual one, else the first in legends.

    Raises:
        LookupError: If no run is of the method or of the seed asked for; names those that there are.
        ValueError: If runs of other methods have to be drawn.
    """
    comparable = select_comparable(select_runs(runs, method, seed), lines=False)
    labels = [usual] if any(run.label == usual for run in comparable) else style.order(run.label for run in comparable)
    selected = [run for run in comparable if run.label == labels[0]]
    return narrow(
        comparable, selected, "this figure shows one method; choose it by the option method, as in --set method=fedavg"
    )


def one_run(runs: Sequence[Run], method: str | None, seed: int | None = None, usual: str = "fedavg") -> Run:
    """The run of `of_method` with the smallest seed.

    Raises:
        LookupError: If no run is of the method or of the seed asked for; names those that there are.
        ValueError: If other runs have to be drawn too.
    """
    comparable = select_comparable(select_runs(runs, method, seed), ())
    if len(needed := required_runs(comparable)) > 1:
        first = min(needed, key=lambda run: run.experiment.seed)
        narrow(
            comparable,
            [first],
            "this figure shows one run; choose it by the options method and seed, as in --set method=fedavg seed=1",
        )
    if needed:
        return needed[0]
    return min(runs_of_method(comparable, method, seed, usual), key=lambda run: run.experiment.seed)


def rounds_with_clients(
    run: Run, *, least: int = 1, count: int | None = None, rounds: Sequence[int] | None = None
) -> list[int]:
    """The rounds of a run that kept their clients; those with fewer are named below the figure.

    Args:
        least: Fewest clients per round.
        count: Most rounds, evenly spaced; by default all.
        rounds: Those that a user names instead.

    Raises:
        LookupError: If there is none.
    """
    stored = kept_clients(run, least=least)
    if not (stored if rounds is None else rounds) or run.experiment.clients.per_round < least:
        few = {1: "clients", 2: "round with two clients", 3: "round with three clients"}[least]
        if run.experiment.task.dataset == USER_TASK:
            raise LookupError(
                f"run {run.name} has no {few}; record rounds with more clients (in Flower by the number of its "
                "SuperNodes, and fraction_train or min_train_nodes of the strategy)."
            )
        raise missing(f"run {run.name} kept no {few}", KEEP_CLIENTS)
    return selected_rounds(run, "clients", rounds, None) if rounds is not None else evenly_spaced(stored, count)


def require_moves(values: xr.DataArray, name: str) -> None:
    """Refuse lengths of updates of which none is above 0, so that there are no shares; `name` says whose.

    Raises:
        LookupError: If none is above 0.
    """
    if not bool((values > 0).any()):
        raise LookupError(f"the clients' models of {name} did not move; raise local.lr, or show other rounds.")


def kept_clients(run: Run, *, least: int = 1) -> list[int]:
    """`run.kept("clients", least=least)`; rounds with fewer and clients that diverged are named below the figure."""
    stored = run.kept("clients", least=least)
    if lost := [index for index in run.kept("clients", least=0) if index not in stored]:
        fewer = f"fewer than {least}" if least > 1 else "no"
        look.current().remark(f"{fewer} clients are kept of round {spans(lost)} of {run.name}")
        list(run.without_models(lost))  # states those that diverged
    return stored


def rounds_among(available: Sequence[int], rounds: int | Sequence[int]) -> list[int]:
    """The rounds that are named, or at most so many of the available ones, evenly spread over an axis of rounds."""
    if not isinstance(rounds, int) or not evenly_spaced(available, rounds):  # which refuses 0
        return [] if isinstance(rounds, int) else list(rounds)
    ends = np.linspace(available[0], available[-1], min(rounds, len(available)))
    return sorted({min(available, key=lambda index: abs(index - end)) for end in ends})


def select_suited(
    runs: Sequence[Run], suits: Callable[[Run], object], *, what: str, command: str, why: str
) -> Sequence[Run]:
    """The runs that a figure can show.

    Args:
        suits: Whether it can show a run.
        what: What is missing where it can show none.
        command: Trains a run that it can show.
        why: Reason why it cannot show a run, in words.

    Raises:
        LookupError: If it can show none.
        ValueError: If it cannot show a run that was named.
    """
    if not (suited := [run for run in runs if suits(run)]):
        raise missing(what, command)
    return narrow(runs, suited, why)


def select_learned(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs whose method says that it learns weights, or whose clients have other weights than by size.

    Raises:
        LookupError: If there is none.
        ValueError: If a run of another method was named.
    """
    return select_suited(
        runs,
        lambda run: run.method.learns_weights or (run.folder.is_dir() and reweights(run)),  # no file has weights
        what=f"none of {len(runs)} runs learned its weights",
        command="fedscape train digits-shards2 --set method.name=fedlaw",
        why="it learned no weights",
    )


def missing(what: str, command: str) -> LookupError:
    """The refusal of runs among which none suits: what is missing, and the command that trains such a run."""
    return LookupError(f"{what}; train one: {command}")
