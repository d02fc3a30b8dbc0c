"""Loss between two models before and after their hidden units are aligned (paper of Ainsworth et al. 2023, Fig. 1)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drift.analyses.landscapes.barriers import aligned_barrier
from drift.runs.run import Run
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection import run_selection

NEEDS = "one run of a plain stack of layers that kept the clients of some rounds; with a second seed also two runs"

COST = "seconds per run"


def data(
    runs: Sequence[Run],
    *,
    method: str | None = None,
    rounds: Sequence[int] | None = None,
    points: int = 21,
    split: str = "test",
) -> xr.Dataset:
    """loss and aligned_loss over panel and t, with barriers and distances.

    Args:
        method: Whose runs are shown; by default those of FedAvg, or of the first method.
        rounds: Rounds whose first two clients are joined; by default the first and last one that kept its clients.
            A further panel joins the last global models of two runs with different seeds, where there are two.
        points: Evaluations on a line.
        split: Samples of the loss.
    """
    run, *others = sorted(_runs.runs_of_method(runs, method), key=lambda run: run.experiment.seed)
    indices = _runs.rounds_with_clients(run, least=2, count=2, rounds=rounds)
    options = {"points": points, "split": split}
    results = [(f"two clients, round {at}", run.cached(aligned_barrier, round=at, **options)) for at in indices]
    pair = [run, *others[:1]] if others and run.kept("globals") and others[0].kept("globals") else [run]
    run_selection.narrow(
        _runs.runs_of_method(runs, method), pair, "this figure shows two seeds that kept their global models"
    )
    for other in pair[1:]:
        seeds = f"{run.experiment.seed} and {other.experiment.seed}"
        between = run.cached(aligned_barrier, other=str(other.folder), **options)
        results.append((f"global models, seeds {seeds}", between))
    return _stack.name_runs(_stack.join_panels(results), pair).assign_attrs(split=split)


def draw(ds: xr.Dataset) -> Figure:
    """A panel per pair: the line as it is dashed, the aligned one solid; barriers and distances above.

    Pairs whose lines coincide are named in place of a panel, unless all coincide.
    """
    panels = _stack.panels(ds)
    same = [str(panel.attrs["label"]) for panel in panels if _coincide(panel)]
    note_of_same = f"alignment does not change the line: {'; '.join(same)}" if 0 < len(same) < len(panels) else None
    panels = [panel for panel in panels if not (note_of_same and _coincide(panel))]
    figure, (row,) = style.panels(1, len(panels), width=style.NARROW if len(panels) == 1 else style.WIDE, height=2.6)
    before, after = style.steps(2)
    for panel, ax in zip(panels, row, strict=True):
        ax.plot(panel.t, panel.aligned_loss, color=after, linewidth=2.2, label="aligned")
        ax.plot(panel.t, panel.loss, "--", color=before, label="as trained")
        ax.set_xlabel("t")
        height, aligned = (f"{float(panel[name]):.2g}" for name in ("barrier", "aligned_barrier"))
        barrier = style.in_words(f"barrier {height} → {aligned}", ds.barrier)
        before_distance, near = (f"{float(panel[name]):.3g}" for name in ("distance", "aligned_distance"))
        note = f"{panel.attrs['label']}\n{barrier}\ndistance {before_distance} → {near}"
        ax.set_title(note, fontsize=style.small())
        ax.set_xlim(0, 1)
        ax.xaxis.set_major_locator(MaxNLocator(5))
    for ax in row:
        ax.set_ylabel(style.with_unit(f"{ds.attrs['split']} loss", ds.loss))
    return style.key(figure, row, title=note_of_same)


def _coincide(panel: xr.Dataset) -> bool:
    """Whether both lines are one, to a thousandth of their range."""
    reach = 1e-3 * float(panel.loss.max() - panel.loss.min())
    return bool((abs(panel.loss - panel.aligned_loss) <= reach).all())
