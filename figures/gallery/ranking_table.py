"""AUC, hit rates and NDCG of recommendations, methods in rows, with the paper's own (FedEve paper, Table 2)."""

from collections.abc import Callable, Sequence
from functools import partial

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.accuracy.by_group import ranking_rounds
from drift.runs.run import Run
from figures.gallery import _runs, _table_figure, _tables

NEEDS = "runs of any methods on movielens1m that kept their last global model"

COST = "seconds per run"


def data(runs: Sequence[Run], *, ranks: Sequence[int] = (5, 10), paper: str = "", item: str = "") -> xr.Dataset:
    """measured (and printed, quick) over row, column and seed: AUC, HR@k and NDCG@k, fractions.

    Args:
        ranks: Lengths k of the recommended lists.
        paper, item: Whose printed numbers are added, such as fedeve and "Table 2".
    """
    suited = _runs.select_suited(
        runs,
        lambda run: run.about["experiment"]["task"]["dataset"] == "movielens1m",
        what=f"none of {len(runs)} runs recommends anything",
        command="fedscape train fedeve-movielens",
        why="it recommends nothing",
    )
    numbers: dict[str, Callable[[Run], float]] = {"AUC": partial(_number, variable="auc", ranks=ranks)}
    for name, variable in (("HR", "hit_rate"), ("NDCG", "ndcg")):
        numbers |= {f"{name}@{k}": partial(_number, variable=variable, ranks=ranks, rank=k) for k in ranks}
    ds = _tables.tabulate_several(suited, numbers, paper=paper, item=item)
    return _tables.label_numbers(ds, "ranking", "fraction", digits=4)


def draw(ds: xr.Dataset) -> Figure:
    """A table; columns of the paper are grey."""
    return _table_figure.draw_table(ds, "one chosen film among up to 100, last round")


def _number(run: Run, *, variable: str, ranks: Sequence[int], rank: int | None = None) -> float:
    ranking = run.cached(ranking_rounds, rounds=[-1], k=list(ranks))[variable].isel(round=0)
    return float(ranking if rank is None else ranking.sel(rank=rank))
