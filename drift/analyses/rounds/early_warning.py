"""Sequential tests on the first third of the rounds of a run: does its drift, or its loss, warn of a failure?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
import xarray as xr

from drift.analyses.per_round import ABOUT, result
from drift.record.early_warning import Family, Watch, calibration
from drift.record.round_arguments import whole_training
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.runs.watched_rounds import watched_numbers


@analysis("round", "detector", cost="record")
def early_warning(run: Run, *, detectors: Family = "all", planned: int | None = None) -> xr.Dataset:
    """Statistics of the first third of the rounds against limits that healthy runs exceed in 5 % of all runs together.

        drift.early_warning(run).first_alarm.to_series()

    The statistics are those of `drift.record.early_warning.Watch`: a round's need that round and those before it. The
    limits are fitted to healthy runs of many settings, so that the detectors of a family together give an alarm in at
    most 5 % of the runs of a new setting, once in the whole first third. What they find: docs/early-warning.md.

    Source: this project; conformal limits over settings: Dunn, Wasserman and Ramdas 2023.

    Args:
        run: A run of any method or program; the statistic of a number that it does not record is NaN.
        detectors: "drift", those of the Gram matrix; "curve", those of the test loss alone; or "all".
        planned: Rounds of the whole training, of which a third is watched; by default those that the run states.

    Returns:
        Dataset over the watched rounds with statistic and alarm, 1 from the first statistic above the limit on
        (round, detector), limit and first_alarm, a round or NaN (detector,). Attributes level, a fraction, watched,
        in rounds, runs and settings, which the limits were fitted to, and their digest.

    Raises:
        ValueError: If there is no such family of detectors, or planned is not a number of rounds.
    """
    number = whole_training("planned", planned) or run.experiment.rounds
    watch, rounds, rows = Watch(number, detectors), [], []
    for record in run.without_models([index for index in run.rounds() if index < watch.last]):
        rounds.append(record.index)
        rows.append(watch.add(record.index, watched_numbers(run, record)))
    return of_watch(watch, rounds, rows)


def of_watch(watch: Watch, rounds: Sequence[int], rows: Sequence[Mapping[str, float]]) -> xr.Dataset:
    """The result of `early_warning` from what a watch says of each of its rounds."""
    statistic = np.array([list(row.values()) for row in rows], dtype=float).reshape(len(rows), len(watch.limits))
    limit = np.array(list(watch.limits.values()))
    alarm = np.maximum.accumulate(statistic > limit, axis=0) if len(rows) else statistic > limit
    first = [rounds[int(column.argmax())] if column.any() else nan for column in alarm.T]
    values = {
        "statistic": (("round", "detector"), statistic),
        "alarm": (("round", "detector"), alarm.astype(float)),
        "limit": ("detector", limit),
        "first_alarm": ("detector", first),
    }
    about = {name: calibration()[name] for name in ("level", "runs", "settings", "digest")}
    coords = {"round": rounds, "detector": list(watch.limits)}
    about |= {"analysis": "early_warning", "source": "this project", "watched": watch.last}
    return result(values, ABOUT["early_warning"], coords, **about)
