"""How the report says that a landscape or a number is computed on a part of the samples, and how surely."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.selected_samples import fewer, number_of
from drift.runs.run import Run
from landscape.surfaces.sampling_error import SUFFIX

FOLDS = 20
"""Parts of the samples from which the standard error of a landscape follows; so many samples are needed."""

SAMPLES = 1000
"""Samples of a landscape at most, by default."""

ROUGH_POINTS, ROUGH_SAMPLES = 41, 200
"""Points of a first picture that are evaluated, the first two lattices of `landscape.interpolated_surface`, and samples
of it."""

Samples = int | None
"""Samples at most; None: all."""


def options(run: Run, samples: Samples) -> dict[str, Any]:
    """Options of a landscape: a part of the test samples with its standard error, or none where all are taken."""
    number = fewer(run, "test", samples)
    return {} if number is None else {"samples": number, "folds": FOLDS}


def subset_words(runs: Sequence[Run], split: str, samples: Samples) -> str:
    """Like "1,000 of the 10,000 test samples"; several where runs differ, empty where all samples are taken."""
    able = [run for run in runs if not run.without_data and fewer(run, split, samples) is not None]
    return " or ".join(dict.fromkeys(_subset(samples, number_of(run, split), split) for run in able))


def landscape_words(landscapes: Sequence[xr.Dataset]) -> str:
    """A sentence on the samples of landscapes of one run, with the standard error; empty where all are taken."""
    subsets = [ds for ds in landscapes if "samples_of" in ds.attrs]
    if not subsets:
        return ""
    about, unit = subsets[0].attrs, subsets[0].loss.attrs["units"]
    errors = np.concatenate([ds[f"loss{SUFFIX}"].values.ravel() for ds in subsets])
    errors = errors[np.isfinite(errors)]
    unit = "" if unit == "1" else f" {unit}"
    stated = f"median {np.median(errors):.2g}{unit}, at most {errors.max():.2g}{unit}" if len(errors) else "not known"
    return (
        f"On {_subset(about['samples'], about['samples_of'], about['split'])}, selected at random; standard error of a "
        f"loss above the lowest one: {stated}."
    )


def _subset(number: Samples, total: int, split: str) -> str:
    return f"{number:,} of the {total:,} {'training' if split == 'train' else split} samples"
