"""Quality of the models of a run: robustness, sharpness, weight sizes, accuracy on other clients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.evaluate_on import evaluate_models, evaluate_on, evaluation_of
from drift.analyses.per_round import ABOUT, global_model, resolve_round, result, selected_rounds
from drift.partitions import histogram
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from drift.store.row_matrices import stacked
from landscape.geometry.scaling import scaling
from landscape.measures import robustness, sharpness
from landscape.measures.norms import weight_histogram
from landscape.model.losses import IGNORED
from landscape.model.samples import Samples
from landscape.results.netcdf_files import Partial


@analysis("mark", "t", cost="evaluations")
def scale_curve(
    run: Run,
    *,
    round: int = -1,
    low: float = 0.5,
    high: float = 1.2,
    points: int = 36,
    split: str = "test",
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error of a global model times gamma, over t = gamma.

    Source: FedLAW paper, Fig. 4 left.

    Args:
        run: Run to analyse.
        round: Round of the global model; negative counts from the last one that kept it.
        low, high, points: Range of gamma and evaluations in it.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        partial: Unfinished result to resume.
    """
    model = global_model(run, round)
    sweep = scaling(model.theta, low=low, high=high, points=points)
    return evaluate_on(run, sweep, partial, split=split).assign_attrs(analysis="scale_curve", round=model.index)


@analysis("round", "value", cost="record")
def weight_histograms(
    run: Run, *, rounds: Sequence[int] = (-1,), bins: int = 101, limit: float | None = None
) -> xr.Dataset:
    """Histograms of the parameters of global models over rounds, and the number near zero.

    Source: FedLAW paper, Fig. 4 middle.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; negative ones count from the last that kept it.
        bins, limit: As in `landscape.measures.norms.weight_histogram`; the default limit is the largest magnitude
            of all models.

    Returns:
        Dataset with count (round, value), near_zero (round), outside (round) and norm (round), and parameters (), d.
    """
    indices = selected_rounds(run, "globals", rounds, None)
    models = [global_model(run, index) for index in run.context.track(indices)]
    thetas = [model.theta for model in models]
    reach = limit if limit is not None else float(torch.stack(thetas).abs().max()) or 1.0
    dataset = xr.concat([weight_histogram(theta, bins, reach) for theta in thetas], "round", join="exact")
    dataset = dataset.assign_coords(round=indices).assign(parameters=len(thetas[0]))
    return result(
        dataset, {"parameters": ("parameters", "1")}, analysis="weight_histograms", bin_width=2 * reach / bins
    )


@analysis("value", "draw", cost="evaluations")
def noise_robustness(
    run: Run, *, round: int = -1, levels: Sequence[float] = robustness.LEVELS, draws: int = 3, split: str = "test"
) -> xr.Dataset:
    """Accuracy drop of a global model under uniform noise on the inputs before normalisation.

    For real-valued datasets the range from the smallest to the largest value takes the place of [0, 1].

    Source: LSS paper, Table 6; see `landscape.measures.robustness.noise_robustness`.

    Args:
        run: Run to analyse.
        round: Round of the global model; negative counts from the last one that kept it.
        levels: Noise amplitudes for inputs in [0, 1].
        draws: Number of noise samples that the drop is averaged over.
        split: Samples that the accuracy is taken over.
    """
    model = global_model(run, round)
    mean, std = run.dataset.normalisation
    options = {"mean": mean, "std": std, "levels": levels, "draws": draws, "split": split}
    dataset = model.measure(robustness.noise_robustness, **options, progress=run.context.progress)
    return dataset.assign_attrs(round=model.index)


@analysis("value", cost="gradients")
def ball_sharpness(
    run: Run,
    *,
    round: int = -1,
    radii: Sequence[float] = (0.05, 0.1, 0.2),
    steps: int = 10,
    directions: int = 10,
    adaptive: bool = False,
    split: str = "train",
) -> xr.Dataset:
    """Worst, one-step and mean rise of the loss in balls around a global model, over the radius (value).

    Source: papers.md 2.1; see `landscape.measures.sharpness.ball_sharpness`.

    Args:
        run: Run to analyse.
        adaptive: As in `landscape.ball_sharpness`.
        round: Round of the global model; negative counts from the last one that kept it.
        radii: Radii of the balls in parameter space (adaptive: multiples of the parameters).
        steps, directions: Gradient steps of the ascent, random points of the mean.
        split: Samples that the loss is averaged over.
    """
    model = global_model(run, round)
    options = {"steps": steps, "directions": directions, "adaptive": adaptive}
    shared = evaluation_of(run, split=split)
    results = [
        model.measure(sharpness.ball_sharpness, radius=radius, evaluation=shared.stage(index, len(radii)), **options)
        for index, radius in enumerate(radii)
    ]
    joined = xr.concat(results, "value", join="exact", combine_attrs="drop_conflicts")
    joined = joined.assign_coords(value=np.asarray(radii, dtype=float))
    return result(joined, {"value": ("radius of the ball", "1")}, round=model.index)


@analysis("client", "holder", cost="evaluations")
def three_accuracies(run: Run, *, round: int = -1, criterion: str = "label") -> xr.Dataset:
    """Accuracy of the global model, of the local models, and of local models on the data of other clients.

    a_ij is the accuracy of client i's model, before aggregation, on client j's data: by "label" the test set with the
    shares of classes of its training data; by "train" these data themselves. worst_ood is the mean over i of the
    smallest a_ij with j != i, ood_min the smallest of all; ood_mean has model i on the joined data of the others.

    Source: LSS paper, Fig. 6; papers.md 3.5.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        criterion: "label" or "train".

    Returns:
        Dataset with global_accuracy (), local (client) on the test set, averaged_local (), ood (client, holder) (a_ij),
        worst_ood (), ood_min () and ood_mean (), fractions; NaN where a cohort has one client, a client no data, or a
        model NaN outputs. The means are those of clients with samples.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the criterion is unknown.
    """
    if criterion not in ("label", "train"):
        raise ValueError(f"criterion is {criterion!r}; accepted: label, train.")
    record = run.round(resolve_round(run, round, "clients"))
    models = stacked([record.kept("end")[None], record.kept("clients")])
    buffers = torch.cat([record.end_buffers[None], record.client_buffers]) if len(record.end_buffers) else None
    by_class = _class_accuracies(run, models, buffers)
    count = by_class.shape[1]
    labels = run.task.labels("test").numpy()
    tested = histogram(labels, [np.arange(len(labels))], count)
    on_test = _mix(by_class, tested, tested > 0)[:, 0]
    ids, parts, trained = record.ids.tolist(), run.parts_in(record.index), (record.shares > 0).numpy()
    counts = histogram(run.labels, [parts[client] for client in ids], count)
    if criterion == "label":
        matrix = _mix(by_class[1:], counts, tested > 0)
    else:
        matrix = _training_accuracies(run, record, models[1:], None if buffers is None else buffers[1:])
    variables = {
        "global_accuracy": ((), on_test[0]),
        "local": ("client", on_test[1:]),
        "averaged_local": ((), on_test[1:][trained].mean()),
        "ood": (("client", "holder"), matrix),
        **{name: ((), value) for name, value in _out_of_distribution(matrix, counts.sum(1), trained).items()},
    }
    attrs = {"analysis": "three_accuracies", "source": "LSS paper, Fig. 6", "round": record.index}
    coords = {"client": ids, "holder": ids}
    accuracies = result(variables, ABOUT["three_accuracies"], coords, criterion=criterion, **attrs)
    for name in ("ood", "worst_ood", "ood_min", "ood_mean"):
        accuracies[name].attrs["test_samples"] = 0  # a mixture of few samples each
    return accuracies


def _class_accuracies(run: Run, models: Tensor, buffers: Tensor | None) -> np.ndarray:
    """Accuracy (n, C) of models (n, d) on each class of the test set; NaN for classes without test samples."""
    samples, labels = run.task.samples["test"], run.task.labels("test")
    table = np.full((len(models), len(run.dataset.class_names)), np.nan)
    for label in run.context.track(labels[labels != IGNORED].unique().tolist()):
        table[:, label] = _accuracies(run, models, samples[labels == label], buffers)
    return table


def _training_accuracies(run: Run, record: Round, models: Tensor, buffers: Tensor | None) -> np.ndarray:
    """Accuracy (m, m) of models (m, d) on the training data of clients; NaN where a client has none."""
    table = np.full((len(record.ids), len(record.ids)), np.nan)
    for column, client in enumerate(run.context.track(record.ids.tolist())):
        if len(samples := run.client_samples(client, record.index)):
            table[:, column] = _accuracies(run, models, samples, buffers)
    return table


def _accuracies(run: Run, models: Tensor, samples: Samples, buffers: Tensor | None) -> np.ndarray:
    return 1 - evaluate_models(run, models, samples, metrics=("error",), buffers=buffers)["error"].numpy()


def _mix(by_class: np.ndarray, counts: np.ndarray, tested: np.ndarray) -> np.ndarray:
    """Accuracy (n, m) of n models on m mixtures of classes (m, C); classes without test samples are left out."""
    total = (mixture := np.where(tested, counts, 0).astype(float)).sum(1, keepdims=True)
    shares = np.divide(mixture, total, out=np.full_like(mixture, np.nan), where=total > 0)
    return np.where(shares == 0, 0, by_class[:, None] * shares).sum(2)


def _out_of_distribution(matrix: np.ndarray, sizes: np.ndarray, trained: np.ndarray) -> dict[str, float]:
    """worst_ood, ood_min, ood_mean of accuracies (m, m) of trained clients on others with `sizes` samples, or NaN."""
    usable = np.isfinite(matrix).any(0)  # clients with data; any other NaN is of a model without outputs
    others = ~np.eye(len(matrix), dtype=bool)[:, usable]
    if not (rows := others.any(1) & trained).any():
        return dict.fromkeys(("worst_ood", "ood_min", "ood_mean"), np.nan)
    values, others = matrix[rows][:, usable], others[rows]
    worst, weights = np.where(others, values, np.inf).min(1), np.where(others, sizes[usable], 0)
    joined = (np.where(others, values, 0) * weights).sum(1) / weights.sum(1)
    return {"worst_ood": worst.mean(), "ood_min": worst.min(), "ood_mean": joined.mean()}
