"""A map of models: distances, similarity and barriers between all of them, their basins, and which to average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.evaluate_on import evaluation_of
from drift.analyses.landscapes import map_means
from drift.analyses.landscapes.named_models import named_models
from drift.analyses.per_round import ABOUT, result, selected_rounds
from drift.analyses.selected_samples import at_most
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.runs.run_names import find
from drift.training.model_layers import features_at
from landscape.geometry.alignment import align
from landscape.measures.similarity import pairwise_cka
from landscape.model.model import buffers_of, plain
from landscape.model.samples import Samples
from landscape.surfaces.bounded_barriers import bounded_barriers
from landscape.surfaces.sampling_error import sample_folds
from landscape.sweep.evaluate import evaluate

ROUNDS = 3
"""Default number of rounds of a run."""

CKA_SAMPLES = 500
"""Most inputs on which features are compared."""


@analysis("mark", "mark_other", "candidate", "basin", "basin_other", cost="evaluations")
def model_map(
    run: Run,
    *,
    models: Sequence[str] | None = None,
    rounds: Sequence[int] | None = None,
    others: Sequence[str] = (),
    margin: float = 0.1,
    aligned: bool = False,
    samples: int = 1000,
    split: str = "test",
) -> xr.Dataset:
    """Distances, similarity and barriers between all models of one or several runs, their basins, and the best mean.

    Basins are branches of the tree of the distances (average linkage): from the leaves up, two branches are one basin
    if each of them is, and the loss barrier on the straight line between their means is within the margin
    (`landscape.bounded_barriers`). Barriers between single models say less: clients with a high loss have none to
    models of another basin. The map has the first two principal coordinates of the distances (classical scaling).
    Four means are candidates: of the basin whose mean has the lowest loss, of what is left of that basin when models
    are dropped from it while the loss falls (`landscape.model_soup`), the greedy soup of all models, and the best
    single model. The one with the lowest loss on the map's samples is chosen, of those with a finite loss on all; its
    loss on the other samples of the split, which no choice has seen, is that to be compared with those of the last
    cohort's mean ("aggregate", FedAvg's) and of the run's own global model.

    Source: barrier: Frankle et al. 2020, section 2; alignment: Ainsworth et al. 2023; CKA: Kornblith et al. 2019;
    soups: Wortsman et al. 2022; the map: this project (docs/model-map.md).

    Args:
        run: Run to analyse.
        models: Names of models (`drift.analyses.landscapes.named_models`), such as round 12, client 3 of round 12 or
            NAME: round 12; by default clients with samples and global models of the rounds, of this run and others.
        rounds: Rounds of these; by default the last three that kept clients, else the last three that kept globals.
        others: Names of runs next to it, with the same model and data.
        margin: Barrier up to which two models are joined, in the unit of the loss.
        aligned: Whether the hidden units of every model are first brought into the order nearest to the first model.
        samples: Number of samples of the map, and of every choice; at most half of the split. The others judge.
        split: Samples: test, train or proxy.

    Returns:
        Dataset over mark and mark_other as of `landscape.bounded_barriers`, with cka (linear, of the features, 500
        inputs at most); over mark: mark_loss, mark_alpha and mark_beta (places on the map, in units of distance),
        mark_near_alpha and mark_near_beta (on a map of its basin alone), mark_basin (1, 2, .. by falling size) and
        mark_chosen (1 in the chosen mean, else 0); over basin and basin_other basin_barrier, between the means of
        basins, and basin_high, its upper bound; over candidate: candidate_loss (samples of the map), judged_loss,
        judged_error and candidate_models. Attributes: chosen, features (what CKA compares), explained_alpha and
        explained_beta, and diverged, the models without a finite loss, which are NaN everywhere.

    Raises:
        LookupError: If a model was not kept, or there is no such run.
        ValueError: If runs differ in model or data, no model or no mean has a finite loss, a model is named twice, or
            as `align`.
    """
    names = _names(run, models, rounds, others)
    choosing, judging = halves(run, split, samples)
    every = named_models(run, -1, names).models
    usable = _finite(run, every, choosing)
    known = [name for name, fine in zip(names, usable.tolist(), strict=True) if fine]
    if not known:
        raise ValueError(f"none of the {len(names)} models has a finite loss; give models of earlier rounds.")
    present = every[usable]
    if aligned:
        present = torch.stack([present[0], *(align(run.task, present[0], other) for other in present[1:])])
    evaluation = evaluation_of(run, split=choosing)
    pairs = bounded_barriers(run.task, present, margin=margin, labels=known, evaluation=evaluation)
    places, shares = map_means.places_of(pairs["distance"].values)
    basins = map_means.basins_of(run, present, pairs["distance"].values, margin, choosing)
    groups, near = map_means.rows_by_basin(basins), np.empty((len(known), 2))
    for rows in groups.values():
        near[rows] = map_means.places_of(pairs["distance"].values[np.ix_(rows, rows)])[0]
    between = map_means.mean_barriers(run, present, list(groups.values()), margin, choosing)
    features, compared = _features(run, present, choosing[:CKA_SAMPLES])
    means = map_means.candidate_means(run, present, groups, pairs["mark_loss"].values, choosing)
    references = _references(run)
    judged = map_means.judged_means(
        run, present, named_models(run, -1, references).models, means.values(), choosing, judging
    )
    finite = np.isfinite(judged["candidate_loss"] + judged["judged_loss"])[: len(means)]
    if not finite.any():
        raise ValueError(f"no mean of models has a finite loss on all samples of {split}; give a larger samples=.")
    best = list(means)[int(np.where(finite, judged["candidate_loss"][: len(means)], np.inf).argmin())]
    over_marks = dict(zip(_PLACES, (*places.T, *near.T), strict=True)) | {"mark_basin": basins.astype(float)}
    over_marks["mark_chosen"] = np.isin(np.arange(len(known)), means[best]).astype(float)
    table = pairs.assign({name: ("mark", values) for name, values in over_marks.items()})
    table = table.assign(cka=(("mark", "mark_other"), pairwise_cka(features).numpy()))
    table = table.reindex(mark=names, mark_other=names)
    table = table.assign({name: ("candidate", values) for name, values in judged.items()})
    heights = {"basin_barrier": between["barrier"], "basin_high": between["barrier_high"]}
    table = table.assign({name: (("basin", "basin_other"), values.values) for name, values in heights.items()})
    table = table.assign_coords(candidate=[*means, *references], basin=list(groups), basin_other=list(groups))
    attrs: dict[str, Any] = {"chosen": best, "aligned": int(aligned), "features": compared, "split": split}
    attrs |= {"diverged": ", ".join(name for name in names if name not in known), "samples": len(choosing)}
    attrs |= {"judged_samples": len(judging), "explained_alpha": float(shares[0]), "explained_beta": float(shares[1])}
    source = "Frankle et al. 2020, section 2; Wortsman et al. 2022, recipe 1"
    return result(table, ABOUT["model_map"], analysis="model_map", source=source, **attrs)


def model_map_effort(run: Run, **options: Any) -> Effort:
    """Effort of `model_map` with the same options: as if no model diverged and every fifth line were undecided."""
    values = complete_options(model_map, run, options)
    number = len(_names(run, values.models, values.rounds, values.others))
    available = len(run.task.split(values.split)) // 2
    passes = 25 * number + 2 * number * (number - 1) // 2 + number**2 // 4
    forwards = min(values.samples, available) * passes + 5 * available
    return effort(run, trainings=0, forwards=forwards, memory=4 * 3 * number * run.layout.size)


def _names(run: Run, models: Sequence[str] | None, rounds: Sequence[int] | None, others: Sequence[str]) -> list[str]:
    """Names of the models of a map.

    Raises:
        LookupError, ValueError: As `model_map`.
    """
    if models is not None and (rounds is not None or others):
        raise ValueError("models were named, and rounds or other runs; give either, as names may have rounds and runs.")
    names = list(models) if models is not None else _kept_models(run, rounds, "")
    for other in others if models is None else ():
        home = open_run(find(run.folder.resolve().parent, other))
        if home.folder.resolve() == run.folder.resolve():
            raise ValueError(f"{home.name} is the run of the map itself; others names further ones.")
        if home.about.get("fingerprint") != run.about.get("fingerprint"):
            raise ValueError(f"{home.name} has other data than {run.name}; a map has models of one task.")
        names += _kept_models(home, rounds, f"{home.folder.name}: ")
    plain_names = [name.removeprefix(f"{run.folder.name}: ") for name in names]
    if twice := [name for name in plain_names if plain_names.count(name) > 1]:
        raise ValueError(f"{twice[0]} is named twice; name a model once.")
    if not names:
        raise ValueError("no model is named: models is empty; name one or more, or leave it out.")
    return names


def _kept_models(run: Run, rounds: Sequence[int] | None, prefix: str) -> list[str]:
    """Names of the clients and global models of rounds; of the last three that kept any, by default."""
    clients, ends = run.kept("clients"), run.kept("globals")
    if not clients and not ends:
        raise LookupError(f"run {run.name} kept no models; train it with --set keep.clients=all.")
    what = "clients" if clients else "globals"
    indices = selected_rounds(run, what, rounds, None)[-ROUNDS if rounds is None else 0 :]
    names = []
    for record in run.without_models(indices):
        cohort = record.ids[record.sizes > 0].sort().values.tolist() if record.index in clients else []
        names += [*(f"client {client} of round {record.index}" for client in cohort)]
        names += [f"round {record.index}"] * (record.index in ends)
    return [prefix + name for name in names]


def _references(run: Run) -> list[str]:
    """What the map's mean is compared with: the last kept cohort's mean, and the global model after it."""
    clients, ends = run.kept("clients"), run.kept("globals")
    index = clients[-1] if clients else ends[-1]
    return [f"aggregate of round {index}"] * bool(clients) + [f"round {index}"] * (index in ends)


def halves(run: Run, split: str, samples: int) -> tuple[Samples, Samples]:
    """Half of a split, at most `samples` of it, and the other half."""
    every = run.task.split(split)
    if len(every) < 2:
        raise ValueError(f"{split} has {len(every)} samples; a map takes two or more: one half chooses, one judges.")
    halves = sample_folds(len(every), 2)
    return at_most(every[halves == 0], samples), every[halves == 1]


def _finite(run: Run, models: Tensor, samples: Samples) -> Tensor:
    """Which of the models have finite parameters and a finite loss, shape (n,)."""
    rows, evaluation = plain(models).isfinite().all(1), evaluation_of(run, split=samples, metrics=("loss",))
    if bool(rows.any()):
        losses = evaluate(run.task, models[rows], np.eye(int(rows.sum())), evaluation=evaluation)["loss"]
        rows[rows.clone()] = losses.isfinite()
    return rows


def _features(run: Run, models: Tensor, samples: Samples) -> tuple[Tensor, str]:
    """What the heads of models receive (n, N, q), in words; their outputs where they have no head."""
    module = run.task.model
    if not all(isinstance(getattr(module, name, None), nn.Module) for name in ("body", "head")):
        return torch.stack([run.task.outputs(model, samples) for model in models]), "outputs"
    flat, thetas, buffers = run.task.flat(plain(models)[0]), plain(models), buffers_of(models)
    pairs = zip(thetas, thetas.new_zeros(len(thetas), 0) if buffers is None else buffers, strict=True)
    return torch.stack(
        [features_at(flat, theta, fixed, samples.inputs) for theta, fixed in pairs]
    ), "inputs of the head"


_PLACES = ("mark_alpha", "mark_beta", "mark_near_alpha", "mark_near_beta")
