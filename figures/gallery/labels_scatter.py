"""Labels that each client of each round trains on, and how far they differ (FedEve paper, Fig. 3a)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drift.analyses.rounds.labels import label_scatter
from drift.runs.run import Run
from figures.axes import class_labels
from figures.gallery import _runs, _stack
from figures.looks import palette, style
from figures.selection import run_selection
from figures.selection.partition_text import partition_label

NEEDS = "runs of any methods; one row for each partition, at most four"

COST = "seconds"


def data(runs: Sequence[Run], *, rounds: int = 20) -> xr.Dataset:
    """count (samples) over panel, round, place in the cohort and class; both divergences (nats) over panel and round.

    Args:
        rounds: Rounds shown, from the first.
    """
    selected = _select(runs)
    results = [run.cached(label_scatter, rounds=rounds) for run in selected]
    most = max(run.experiment.clients.per_round for run in selected)
    length = max(ds.sizes["round"] for ds in results)
    count = np.full((len(results), length, most, results[0].sizes["class"]), np.nan)
    divergences = np.full((2, len(results), length), np.nan)
    for panel, ds in enumerate(results):
        divergences[:, panel, : ds.sizes["round"]] = ds.within_divergence, ds.between_divergence
        for row, samples in enumerate(ds["count"].values):
            cohort = samples[np.isfinite(samples).any(1)]
            count[panel, row, : len(cohort)] = cohort
    both = {
        name: (("panel", "round"), divergences[row], results[0][name].attrs) for row, name in enumerate(_DIVERGENCES)
    }
    scatter = {"count": (("panel", "round", "place", "class"), count, {"long_name": "samples", "units": "samples"})}
    longest = max(results, key=lambda ds: ds.sizes["round"])
    joined = xr.Dataset(
        scatter | both,
        coords={
            "panel": [partition_label(run) for run in selected],
            "round": longest["round"].values,
            "class": results[0]["class"].values,
        },
    )
    return _stack.name_runs(joined, selected)


def draw(ds: xr.Dataset) -> Figure:
    """A row per partition: bubbles, and both divergences."""
    rows = ds.sizes["panel"]
    figure, axs = style.panels(rows, 2, height=1.6 * rows + 0.9, sharex="col", width_ratios=[2.2, 1], cell=0.26)
    if style.is_narrow():
        axs[0, 0].get_subplotspec().get_gridspec().set_height_ratios([2.2, 1] * rows)
    for row, panel in enumerate(ds.panel.values):
        count = ds["count"].isel(panel=row)
        if not bool((count > 0).any()):
            raise LookupError(f"no client of {panel} has a sample, so there are no bubbles to draw.")
        most = float(count.max())
        _scatter(count, axs[row, 0], largest=40 * (most / float(ds["count"].max())) ** 0.5)
        axs[row, 0].set_title(f"{style.literal(panel)}; largest bubble: {int(most):,} samples", fontsize=style.small())
        for dash, (name, (label, colour)) in zip(palette.DASHES, _DIVERGENCES.items(), strict=False):
            axs[row, 1].plot(ds["round"], ds[name].isel(panel=row), color=colour, linestyle=dash, label=label)
        axs[row, 1].set_title("" if style.is_narrow() else style.literal(panel), fontsize=style.small())
        axs[row, 1].set_ylabel("divergence [nats]")
        axs[row, 1].set_ylim(0, 1.05 * max(float(ds[name].max()) for name in _DIVERGENCES))
        axs[row, 1].xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axs[-1, 0].set_xlabel("round (its clients side by side)")
    axs[-1, 1].set_xlabel("round")
    return style.key(figure, axs[:, 1], columns=2)


def _scatter(count: xr.DataArray, ax: Axes, *, largest: float) -> None:
    """Bubbles up to an area of `largest` points squared: a round has a column as wide as 1, a client a place in it."""
    rows, slots, columns = np.nonzero(count.values > 0)
    samples, size = count.values[rows, slots, columns], count.sizes["place"]
    x = count["round"].values[rows] + (slots + 0.5) / size - 0.5
    class_labels.put_bubbles(ax, x, columns, samples, count["class"].values, largest=largest)
    for edge in count["round"].values[:-1] + 0.5:
        ax.axvline(edge, color="#dddddd", linewidth=0.5, zorder=0)
    ax.set_ylim(-0.7, count.sizes["class"] - 0.3)
    ax.set_xlim(count["round"].values[0] - 0.5, count["round"].values[-1] + 0.5)
    ax.grid(False)
    style.name_axes(ax, integers=10)


_DIVERGENCES = {
    "within_divergence": ("within rounds (client drift)", "#0072B2"),
    "between_divergence": ("between rounds (sampling drift)", "#C08400"),
}


def _select(runs: Sequence[Run]) -> list[Run]:
    """One run for each partition, at most four, the most skewed ones; all of one dataset with one size of cohort."""
    if not runs:
        raise _runs.missing("no run was given", "fedscape train drift-settings")
    groups: dict[str, dict[str, Run]] = {}
    for run in sorted(runs, key=_skew):
        spec = run.experiment
        same = groups.setdefault(f"{spec.task.dataset} {spec.clients.number} {spec.clients.per_round}", {})
        same.setdefault(partition_label(run), run)
    selected = list(max(groups.values(), key=len).values())[:4]
    run_selection.narrow(
        runs, selected, "this figure shows one run per partition, at most four, of one dataset and cohort"
    )
    return selected


def _skew(run: Run) -> tuple[float, int, int]:
    """Order of the rows: by concentration where there is one, drift settings as in the paper, then the seed."""
    partition = run.experiment.clients.partition
    setting = ("iid", "period", "client", "both", None).index(getattr(partition, "setting", None))
    return float(getattr(partition, "concentration", np.inf)), setting, run.experiment.seed
