"""A few numbers per method, averaged over its seeds."""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from drift.analyses.curvature.eigenvalues import eigen_rounds
from drift.analyses.landscapes.minima import round_minimum
from drift.analyses.per_round import ABOUT
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.analyses.selected_samples import fewer
from drift.runs.registry import LOSS_UNITS
from drift.runs.run import Run
from drift.simulation.compare import mean_of_last
from figures.gallery._tables import metric_unit
from figures.selection.groups import groups


def summary(runs: Sequence[Run], *, samples: int | None = None) -> xr.Dataset:
    """Accuracy, landscape and drift of every method, as means over its seeds.

    Accuracy and loss are means of the last ten evaluated rounds of a run (papers.md 7). The centre offset is the
    distance from the mean of three clients to the minimum of the loss on their plane, fitted below the grid, in the
    last round that kept three clients (3.1.2): a mean over the seeds whose minimum is inside their plane. The
    eigenvalue is the largest one of the Hessian of the training loss at the last global model kept; coherence and both
    drift variances are means over rounds.

    Args:
        runs: Any runs; those that differ in their seed only are one row, named as in `groups`.
        samples: Samples for centre offset and eigenvalue at most, selected at random; by default all.

    Returns:
        Dataset over algorithm with accuracy_mean and accuracy_std (fractions; sample standard deviation over
        seeds, NaN for one), loss, centre_offset, centre_offset_error (its standard error, of the fits and the test
        samples), centre_offset_seeds (seeds whose minimum is inside their plane, NaN where no run kept a plane),
        eigenvalue, coherence, change_variance, client_variance, and seeds, the number of runs. NaN where a run kept
        too little, or was recorded without its data.

    Raises:
        LookupError: If no run was given, or one has no complete round.
    """
    grouped = groups(runs)
    rows = [_row(group, samples) for group in grouped.values()]
    columns = {name: ("algorithm", [row[name] for row in rows]) for name in ABOUT["summary"]}
    ds = xr.Dataset(
        columns, coords={"algorithm": list(grouped)}, attrs={"analysis": "summary", "source": "papers.md 7"}
    )
    for name, (long_name, units) in ABOUT["summary"].items():
        ds[name].attrs.update(long_name=long_name, units=units if units != LOSS_UNITS else metric_unit(runs, "loss"))
    return ds


def _row(runs: list[Run], samples: int | None) -> dict[str, float]:
    measures: dict[str, Callable[[Run], float]] = {
        "loss": lambda run: mean_of_last(run, "loss"),
        "eigenvalue": lambda run: last_eigenvalue(run, samples),
        "coherence": lambda run: float(run.cached(coherence).coherence.mean("round")),
        "change_variance": lambda run: float(run.cached(drift_variances).change_variance.mean("round")),
        "client_variance": lambda run: float(run.cached(drift_variances).client_variance.mean("round")),
    }
    accuracy = np.array([mean_of_last(run) for run in runs])
    deviation = float(accuracy.std(ddof=1)) if len(runs) > 1 else float("nan")
    row = {"seeds": len(runs), "accuracy_mean": float(accuracy.mean()), "accuracy_std": deviation}
    row |= _centre_offset(runs, samples)
    return row | {name: float(np.mean([measure(run) for run in runs])) for name, measure in measures.items()}


def _centre_offset(runs: list[Run], samples: int | None) -> dict[str, float]:
    """Mean offset of the runs whose minimum is inside their plane, its standard error, and the number of these runs."""
    fits = [fit for run in runs if (fit := last_minimum(run, samples)) is not None]
    inside = [fit for fit in fits if str(fit.minimum_state.values) == "inside"]
    offsets, errors = (
        np.array([float(fit[name]) for fit in inside]) for name in ("minimum_offset", "minimum_offset_error")
    )
    return {
        "centre_offset": float(offsets.mean()) if inside else float("nan"),
        "centre_offset_error": float(np.sqrt((errors**2).sum())) / len(inside) if inside else float("nan"),
        "centre_offset_seeds": len(inside) if fits else float("nan"),
    }


def last_minimum(run: Run, samples: int | None) -> xr.Dataset | None:
    """The minimum of the last plane through three clients; None where there is no such plane."""
    rounds = run.kept("clients", least=3)
    if run.without_data or not rounds:
        return None
    return run.cached(round_minimum, round=rounds[-1], samples=fewer(run, "test", samples))


def last_eigenvalue(run: Run, samples: int | None) -> float:
    """The largest Hessian eigenvalue at the last global model that the run kept; NaN where there is none."""
    if run.without_data or not run.kept("globals"):
        return float("nan")
    last, count = run.kept("globals")[-1:], fewer(run, "train", samples)
    ds = run.cached(eigen_rounds, rounds=last, k=1, split="train", samples=count, tolerance=1e-2)
    return float(ds.eigenvalue.squeeze())
