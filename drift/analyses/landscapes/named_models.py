"""Models of a run by name: those of a round, global models of other rounds, and of other runs beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.store.column_blocks import selected, weighted_models
from drift.store.round_record import Round
from landscape.model.batchnorm import calibration_samples, normalisers, recalibrate

SAME = 1e-6
"""Distance of two models, as a fraction of their norm, below which they are one: rounding of float32."""


@dataclass(frozen=True, repr=False)
class NamedModels:
    """Models in the order of their names.

    Args:
        names: Their names.
        models: Shape (n, d).
        buffers: Floating buffers, shape (n, b).
    """

    names: tuple[str, ...]
    models: Tensor
    buffers: Tensor


def named_models(run: Run, round: int, names: Sequence[str]) -> NamedModels:
    """Models of a run by their names.

    The names are start, end (the global models before and after the round), mean (of the cohort, by the run's own
    weights: FedAvg's aggregate), client 3 (after its local training), round 12 (the global model after that round) and
    NAME: round 12 (that of another run in the same folder of runs); and sums of them, such as 0.3 * client 3 + 0.7 *
    start. Batch statistics of means and sums are recomputed.

    Args:
        round: Number of a round.

    Raises:
        ValueError: If a name is none of these, or the round's cohort has no such client.
        LookupError: If the model was not kept, or there is no such run.
    """
    record = run.round(round)
    parts = [_model(run, record, name) for name in names]
    sizes = {(len(model), len(buffers)) for model, buffers in parts}
    if len(sizes) > 1:
        raise ValueError(f"{', '.join(names)} have {sorted(size for size, _ in sizes)} parameters; give like models.")
    return NamedModels(
        tuple(names), torch.stack([model for model, _ in parts]), torch.stack([part for _, part in parts])
    )


def sum_name(names: Sequence[str], coefficients: Sequence[float]) -> str:
    """Name of a sum of models, which `named_models` takes; terms of coefficient 0 are left out.

    Args:
        names: Names of the models.
        coefficients: One per model.
    """
    terms = [(float(f"{value:.12g}"), name) for name, value in zip(names, coefficients, strict=True) if value]
    return " + ".join(name if value == 1 and len(terms) == 1 else f"{value!r} * {name}" for value, name in terms)


def require_different(named: NamedModels) -> None:
    """Refuse two names of one model: a line or plane needs different ones.

    Raises:
        ValueError: If two of the models are equal up to rounding.
    """
    for place, model in enumerate(named.models):
        for other in range(place):
            away = float((model - named.models[other]).norm())
            if away <= SAME * float(model.norm()):
                raise ValueError(
                    f"{named.names[other]} and {named.names[place]} are the same model; select another one of them."
                )


def model_names(run: Run, round: int) -> list[str]:
    """Names of the models that a round of a run kept: start, end, mean, then its clients, ids ascending."""
    record = run.round(round)
    names = [name for name in ("start", "end") if getattr(record, name) is not None]
    clients = [] if record.clients is None else [f"client {client}" for client in sorted(record.ids.tolist())]
    return [*names, *(["mean"] if clients else []), *clients]


def cohort_models(run: Run, round: int) -> NamedModels:
    """All clients of a round, ids ascending.

    Raises:
        LookupError: If the round kept no clients.
    """
    record = run.round(round)
    order = record.ids.argsort()
    names = tuple(f"client {client}" for client in record.ids[order].tolist())
    return NamedModels(names, selected(record.kept("clients"), order), record.client_buffers[order])


def _model(run: Run, record: Round, name: str) -> tuple[Tensor, Tensor]:
    if " * " in name:
        return _sum(run, record, name)
    other, colon, own = name.rpartition(": ")
    kind, _, number = own.partition(" ")
    if kind == "round" and number.isdigit():
        home = run if not colon else _other_run(run, other)
        there = home.round(int(number))
        return there.kept("end"), there.end_buffers
    if colon or (number and (kind != "client" or not number.isdigit())):
        raise ValueError(f"no model named {name!r}; {_NAMES}")
    if kind == "client" and number:
        ids = record.ids.tolist()
        if int(number) not in ids:
            raise ValueError(f"round {record.index} of {run.name} has clients {sorted(ids)}, no client {number}.")
        row = ids.index(int(number))
        return record.kept("clients")[row], record.client_buffers[row]
    if kind in ("start", "end"):
        return record.kept(kind), record.start_buffers if kind == "start" else record.end_buffers
    if kind == "mean":
        return _mean(run, record)
    raise ValueError(f"no model named {name!r}; {_NAMES}")


def _mean(run: Run, record: Round) -> tuple[Tensor, Tensor]:
    weights = run.experiment.cohort_weights(record.sizes)
    mean, buffers = weighted_models(weights, record.kept("clients")), record.client_buffers
    if not buffers.shape[1]:
        return mean, buffers.new_zeros(0)
    return mean, _recomputed(run, mean, weights.to(buffers) @ buffers)


def _sum(run: Run, record: Round, name: str) -> tuple[Tensor, Tensor]:
    """A sum such as 0.3 * client 3 + 0.7 * start."""
    parts: list[tuple[Tensor, Tensor]] = []
    for term in name.split(" + "):
        factor, _, own = term.partition(" * ")
        try:
            value = float(factor)
        except ValueError:
            raise ValueError(f"no model named {name!r}; {_NAMES}") from None
        model, buffers = _model(run, record, own)
        parts.append((value * model.double(), value * buffers.double()))
    if len({len(part) for part, _ in parts}) > 1:
        raise ValueError(f"the models of {name} have different numbers of parameters; give like models.")
    total = torch.stack([part for part, _ in parts]).sum(0).to(model)
    return total, _recomputed(run, total, torch.stack([part for _, part in parts]).sum(0).to(model))


def _recomputed(run: Run, theta: Tensor, buffers: Tensor) -> Tensor:
    """Buffers (b,) of a combination of models; batch statistics are recomputed on training samples."""
    if not len(buffers) or not normalisers(run.task.model):
        return buffers
    pool = run.task.samples.get("train", run.task.samples["test"])
    return recalibrate(run.task, theta, buffers, calibration_samples(pool, 512))


def _other_run(run: Run, name: str) -> Run:
    """The run of that name in the same folder of runs, which has to have the same model."""
    folder = run.folder.resolve().parent / name
    if "/" in name or "\\" in name or name in ("", ".", "..") or not (folder / "run.json").is_file():
        raise LookupError(f"no run {name} beside {run.name}.")
    other = open_run(folder)
    if other.about.get("layout") != run.about.get("layout"):
        raise ValueError(f"{name} has another model than {run.name}; a plane goes through models of one kind.")
    return replace(other, context=run.context)


_NAMES = (
    "names are start, end, mean, client 3, round 12, NAME: round 12 for another run beside it, or sums such as "
    "0.3 * client 3 + 0.7 * start."
)
