"""Curves of a number over rounds: one line per run, by group, or its difference to the reference's run of that seed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from drift.analyses.rounds.paired import counterpart, paired_difference
from drift.runs.growing_run import recorded
from drift.runs.run import Run
from figures.selection.groups import grouped, groups


@dataclass(frozen=True)
class Line:
    """A number of a run over rounds.

    Args:
        name: Name of the run.
        group: Name of the runs that differ from it in their seed only.
        run: The run.
        values: Over `round`, or another dimension.
    """

    name: str
    group: str
    run: Run
    values: xr.DataArray


def lines(runs: Iterable[Run], values: Callable[[Any], xr.DataArray]) -> list[Line]:
    """A line per run, in the order of groups.

    Args:
        runs: Runs with a complete round.
        values: Those of a run.

    Raises:
        LookupError: If no run was given, or as `values`.
    """
    return [Line(run.name, group, run, values(run)) for group, members in groups(runs).items() for run in members]


def differences(shown: Sequence[Line], reference: str) -> tuple[list[Line], list[str]]:
    """Differences to the run of the reference that has the same seed, where both trained the same cohorts.

    Args:
        shown: Lines of `lines`.
        reference: Name of a group; "" leaves the lines as they are.

    Returns:
        Lines of the other groups, NaN in rounds whose cohorts differ, and a sentence about each run that has none, or
        not in all rounds.

    Raises:
        LookupError: If there is no such group, with the groups that there are.
    """
    if not reference:
        return list(shown), []
    references = {line.run.folder: line for line in shown if line.group == reference}
    if not references:
        known = "; ".join(dict.fromkeys(line.group for line in shown)) or "none"
        raise LookupError(f"the selected runs have no group {reference!r} to compare with; they have: {known}.")
    compared, remarks = [], list[str]()
    for line in shown:
        if line.group == reference:
            continue
        try:
            other = references[counterpart(line.run, [member.run for member in references.values()]).folder]
        except LookupError as reason:
            remarks.append(f"{line.name}: {reason}.")
            continue
        except ValueError:
            remarks.append(f"{line.name}: it was trained on other data than the reference.")
            continue
        cohorts = recorded(line.run).cohorts(), recorded(other.run).cohorts()
        values = paired_difference(line.values, other.values, *cohorts)
        same, different = values.attrs["same"], values.attrs["different"]
        if same:
            compared.append(replace(line, values=values))
        if different:
            left_out = "all" if not same else f"{different} of {same + different}"
            remarks.append(f"{line.name}: its cohorts are not those of the reference in {left_out} rounds.")
        elif not same:
            remarks.append(f"{line.name}: no round that the reference has too.")
    return compared, remarks


def by_group(shown: Iterable[Line]) -> dict[str, list[Line]]:
    """Lines by their group."""
    return grouped(shown, lambda line: line.group)


def mean_line(group: Sequence[Line]) -> xr.DataArray:
    """Mean over the runs that have a value, over the dimension of the lines."""
    table = xr.concat([line.values for line in group], "seed", join="outer", combine_attrs="override")
    mean = table.dropna(group[0].values.dims[0], how="all").mean("seed", keep_attrs=True)
    return mean.assign_attrs(different=sum(line.values.attrs.get("different", 0) for line in group))
