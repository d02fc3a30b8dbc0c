"""The plane and the line through any models of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.named_models import model_names, named_models, require_different
from drift.analyses.per_round import ABOUT, result
from drift.analyses.selected_samples import selected_samples
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.model.metrics import class_error_of
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.results.netcdf_files import Partial
from landscape.sweep.grid import Sweep, axis
from landscape.sweep.precision import Precision


@analysis("mark", "alpha", "beta", "class", cost="evaluations")
def models_plane(
    run: Run,
    *,
    round: int = -1,
    models: Sequence[str] | None = None,
    points: int = 21,
    margin: float = 0.3,
    box: Sequence[float] | None = None,
    split: str = "test",
    samples: int | None = None,
    precision: Precision = "exact",
    folds: int = 0,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss, error and error per class on the plane through any three models of a run.

    Source: IMA paper, section 3.2, Fig. 1 (the plane).

    Args:
        run: Run to analyse.
        round: Number of a round; negative ones count from the last.
        models: Three of start, end, aggregate (of the cohort, by its weights), client 3, round 12, NAME: round 12
            (another run next to it); by default the first of the clients, or of start and end.
        points: Grid points per axis.
        margin: How far the grid extends beyond the models on each side, as a fraction of the box's width.
        box: Part of the plane in place of that: lowest and highest alpha, lowest and highest beta.
        split: Samples: test, train, proxy, or "client 3" for what that client trains on in the round.
        samples: Largest number of samples, selected at random, the same in every call; by default all.
        precision: "fast" multiplies in bfloat16 and states the error, as `landscape.surface` does.
        folds: Parts of the samples from which the sampling error of loss and error follows, as in `landscape.surface`;
            with folds there is no class_error. By default none.
        partial: Unfinished result to resume.

    Returns:
        Dataset with loss (alpha, beta) and error, with class_error (alpha, beta, class) where samples have classes, and
        the same at the marks: the three models and "mean", the equal mean of these three.

    Raises:
        LookupError: If a model was not kept.
        ValueError: If there are not three different models, or a name or a split is unknown.
    """
    index = run.require_round(round)
    names = default_models(run, index, 3) if models is None else list(models)
    sweep = plane_sweep(run, index, names, points=points, margin=margin, box=box)
    dataset = _evaluated(run, sweep, selected_samples(run, index, split, samples), partial, precision, folds)
    return labelled(run, dataset, index, split, "models_plane")


@analysis("mark", "t", "class", cost="evaluations")
def models_line(
    run: Run,
    *,
    round: int = -1,
    models: Sequence[str] | None = None,
    points: int = 41,
    split: str = "test",
    samples: int | None = None,
    precision: Precision = "exact",
    folds: int = 0,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss, error and error per class on the line from one model of a run (t = 0) to another (t = 1).

    Source: IMA paper, section 3.2.

    Args:
        run: Run to analyse.
        round, models, split, samples, precision, folds, partial: As in `models_plane`, with two models; by default
            start and end.
        points: Evaluations from t = -0.5 to 1.5.

    Raises:
        LookupError, ValueError: As `models_plane`.
    """
    index = run.require_round(round)
    names = default_models(run, index, 2) if models is None else list(models)
    sweep = line_sweep(run, index, names, points=points)
    dataset = _evaluated(run, sweep, selected_samples(run, index, split, samples), partial, precision, folds)
    return labelled(run, dataset, index, split, "models_line")


def default_models(run: Run, round: int, count: int) -> list[str]:
    """The models that a plane (3) or line (2) of a round goes through by default.

    Raises:
        LookupError: If the round kept too few models.
    """
    names = model_names(run, round)
    clients = [name for name in names if name.startswith("client")]
    selected = clients[:3] if count == 3 and len(clients) >= 3 else [n for n in names if n != "aggregate"][:count]
    if len(selected) < count:
        raise LookupError(
            f"round {round} of {run.name} kept {', '.join(names) or 'no models'}; {count} are needed. Train with "
            "--set keep.clients=all."
        )
    return selected


def plane_sweep(
    run: Run, round: int, names: Sequence[str], *, points: int, margin: float, box: Sequence[float] | None = None
) -> Sweep:
    """The plane through three models by name; its grid covers the box, or the models and a margin.

    Raises:
        LookupError, ValueError: As `models_plane`.
    """
    if len(names) != 3:
        raise ValueError(f"a plane goes through three models, {list(names)} were given.")
    named = named_models(run, round, names)
    require_different(named)
    sweep = plane(*named.models, points=points, margin=margin, labels=names)
    if box is None:
        return sweep
    if len(box) != 4:
        raise ValueError(f"box is {list(box)}; give lowest and highest alpha, lowest and highest beta.")
    coords = {"alpha": axis(box[0], box[1], points), "beta": axis(box[2], box[3], points)}
    return replace(sweep, coords=coords)


def line_sweep(run: Run, round: int, names: Sequence[str], *, points: int) -> Sweep:
    """The line through two models by name.

    Raises:
        LookupError, ValueError: As `models_line`.
    """
    if len(names) != 2:
        raise ValueError(f"a line goes through two models, {list(names)} were given.")
    named = named_models(run, round, names)
    require_different(named)
    return line(*named.models, points=points, labels=(names[0], names[1]))


def task_with_classes(run: Run, samples: Samples) -> Task:
    """The task of a run, with the error per class as a metric where its samples have classes."""
    task, classes = run.task, len(run.dataset.classes)
    targets = samples.targets
    if classes < 2 or targets.ndim != 1 or targets.is_floating_point() or "error" not in task.metrics:
        return task
    outputs = task.outputs(task.theta, samples[:2], buffers=task.buffers)  # their shape alone counts
    if outputs.ndim != 2 or outputs.shape[1] < classes:
        return task
    return replace(task, metrics={**task.metrics, "class_error": class_error_of(task.loss)})


def _evaluated(
    run: Run, sweep: Sweep, samples: Samples, partial: Partial | None, precision: Precision, folds: int
) -> xr.Dataset:
    task = run.task if folds else task_with_classes(run, samples)
    return evaluate_on(run, sweep, partial, split=samples, task=task, precision=precision, folds=folds)


def labelled(run: Run, dataset: xr.Dataset, round: int, split: str, name: str) -> xr.Dataset:
    """A surface with the names of the classes, its round and its split."""
    if "class_error" in dataset:
        names = [str(label) for label in run.dataset.classes]
        names += [str(number) for number in range(len(names), dataset.sizes["class"])]  # of outputs without samples
        dataset = dataset.assign_coords({"class": names[: dataset.sizes["class"]]})
    return result(
        dataset, ABOUT["models_plane"], analysis=name, source="IMA paper, section 3.2", round=round, split=split
    )
