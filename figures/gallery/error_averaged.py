"""Test error against the number of averaged client models, and CKA of the clients, by round (IMA paper, Fig. 4)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.landscapes import averages
from drift.runs.run import Run
from figures.axes import curves, drifts
from figures.gallery import _cases, _runs, _selected
from figures.looks import style

NEEDS = "a run that kept the clients of case_runs rounds; runs of the same method with other seeds are averaged"

COST = "seconds per run"


@_selected.each_run(select=_selected.of_method, by=True)
def data(run: Run, *, rounds: int = 4, subsets: int = 10, cka_rounds: int = 10) -> xr.Dataset:
    """error (fraction) over algorithm, seed, round, models and draw; cka over algorithm, seed and cka_round (and case).

    Args:
        method: Whose runs are shown; by default those of FedAvg, or of the first method.
        rounds, cka_rounds: How many rounds are evaluated.
        subsets: Random subsets averaged for each number of models.
        by: A setting whose values are shown below each other, such as local.lr_decay.
    """
    stored = _runs.rounds_with_clients(run)
    errors = run.cached(averages.error_averaged, rounds=per_round.evenly_spaced(stored, rounds), subsets=subsets)
    similarity = run.cached(averages.similarity_rounds, rounds=per_round.evenly_spaced(stored, cka_rounds))
    if "error" not in errors:
        raise LookupError(f"the task of run {run.name} has no errors by class, which this figure shows.")
    return errors[["error"]].merge(similarity[["cka"]].rename(round="cka_round"))


def draw(ds: xr.Dataset) -> Figure:
    """Error with a band over the draws; CKA over rounds."""
    cases = _cases.split_cases(ds)
    figure, axs = style.panels(len(cases), 2, height=1.9 * len(cases) + 0.6, turned=True)
    method = style.label(str(ds.algorithm.values[0]))
    pooled = " and ".join(f"{name}s" for name in ("draw", "seed") if ds.error.sizes.get(name, 1) > 1)
    averaged = f"{method}; band: std over {pooled}" if pooled else method
    for row, (title, case) in zip(axs, cases, strict=True):
        drifts.averaged(case.isel(algorithm=0).dropna("round", how="all", subset=["error"]), ax=row[0])
        row[0].set_ylabel("test error of the mean")
        curves.curve(case, ax=row[1], variable="cka", over="cka_round", marker="o", markersize=2.5)
        style.name_axes(row[1], "round", "mean CKA of client pairs")
        _cases.set_title(row[0], title or averaged)
    _cases.share_ranges(axs)
    seeds = curves.band(ds)
    notes = [averaged if len(cases) > 1 else "", f"CKA: {seeds}" if seeds else ""]
    return style.key(figure, axs[:, 0], title="; ".join(filter(None, notes)) or None)
