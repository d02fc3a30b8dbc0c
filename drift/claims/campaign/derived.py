"""Results of analyses that follow from the numbers in the file of a run, as far as these reach."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import ABOUT, result
from drift.analyses.rounds.early_warning import of_watch
from drift.config.method import Method
from drift.record.early_warning import Watch, warning_numbers
from drift.runs.described_run import DescribedRun

Numbers = Mapping[str, np.ndarray]
"""Series of every round by name."""


def regularisation_ratio(run: DescribedRun, numbers: Numbers, _: Mapping[int, float]) -> xr.Dataset | None:
    """Terms of `drift.regularisation_ratio`, where clients receive the global model and gamma is stored.

        |(1 - gamma) w|,  |step + (1 - gamma) w|^2 = |step|^2 + (1 - gamma)^2 |w|^2 + 2 (1 - gamma) <step, w>

    with 2 <step, w> = |end|^2 - |w|^2 - |step|^2. The model w of a round is the end of the round before, so that round
    0 is NaN. Norms have six digits in a file.
    """
    received = type(run.method.unwrapped).broadcast is Method.broadcast and run.method.unwrapped is run.method
    if not received or not {"gamma", "end_norm", "step_norm"} <= numbers.keys():
        return None
    gamma, end, step = (numbers[name] for name in ("gamma", "end_norm", "step_norm"))
    start, shrink = np.append(np.nan, end[:-1]), 1 - gamma
    square = step**2 + (shrink * start) ** 2 + shrink * (end**2 - start**2 - step**2)
    optimisation, regularisation = np.sqrt(np.maximum(square, 0)), abs(shrink) * start
    ratio = optimisation / np.where(regularisation > 0, regularisation, np.nan)
    terms = {"ratio": ratio, "optimisation": optimisation, "regularisation": regularisation, "gamma": gamma}
    values = {name: ("round", series) for name, series in terms.items()}
    caption = "from stored norms, round 0 left out: its norm of the model is not stored"
    return result(values, ABOUT["regularisation_ratio"], {"round": range(len(gamma))}, caption=caption)


def early_warning(run: DescribedRun, _: Numbers, losses: Mapping[int, float], detectors: Any = "all") -> xr.Dataset:
    """`drift.early_warning` of the test losses; the statistics of other detectors are NaN."""
    watch = Watch(run.experiment.rounds, detectors)
    rounds = [index for index in run.rounds() if index < watch.last]
    nothing = dict.fromkeys(warning_numbers(np.zeros((3, 3)), np.zeros(0)), np.nan)
    rows = [watch.add(index, {**nothing, "loss": losses.get(index, np.nan)}) for index in rounds]
    caption = "of the test loss alone, as files of runs have no other number that is watched; give their folders"
    return of_watch(watch, rounds, rows).assign_attrs(caption=caption)


DERIVED = {analysis.__name__: analysis for analysis in (regularisation_ratio, early_warning)}
"""By the name of the analysis: function of the run, its series and its test losses by round."""
