"""Models of a run by name: those of a round, global models of other rounds, and of other runs beside it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.store.column_blocks import weighted_models
from drift.store.round_record import Round
from drift.store.row_matrices import selected
from landscape.model.batchnorm import calibration_samples, normalisers, recalibrate
from landscape.model.model import Model, buffers_of, with_buffers
from landscape.model.samples import Samples

SAME = 1e-6
"""Distance of two models, as a fraction of their norm, below which they are one: rounding of float32."""

_Read = Callable[[str, int], tuple[Run, Round]]
"""Name of another run, or "", and number of a round -> the run and the round."""


@dataclass(frozen=True, repr=False)
class NamedModels:
    """Models in the order of their names.

    Args:
        names: Their names.
        models: Shape (n, d); they carry their floating buffers (n, b) where they have any.
    """

    names: tuple[str, ...]
    models: Tensor


def named_models(run: Run, round: int, names: Sequence[str]) -> NamedModels:
    """Models of a run by their names.

    The names are start, end (the global models before and after the round), aggregate (the mean of the cohort by the
    run's own weights, as FedAvg takes it), client 3 (after its local training), round 12 (the global model after that
    round), client 3 of round 12 (any of these of another round) and NAME: round 12 (that of another run in the same
    folder of runs); and sums of them, such as 0.3 * client 3 + 0.7 * start. Batch statistics of aggregates and sums are
    recomputed.

    Args:
        round: Number of a round.

    Raises:
        ValueError: If a name is none of these, or the round's cohort has no such client.
        LookupError: If the model was not kept, or there is no such run.
    """
    read = cache(partial(_record, run))
    vectors = [_model(run, round, name, read) for name in names]
    if len(sizes := {len(model) for model in vectors}) > 1:
        raise ValueError(f"{', '.join(names)} have {sorted(sizes)} parameters; give like models.")
    return NamedModels(tuple(names), torch.stack(vectors))


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
    for index, model in enumerate(named.models):
        for other in range(index):
            away = float((model - named.models[other]).norm())
            if away <= SAME * float(model.norm()):
                raise ValueError(
                    f"{named.names[other]} and {named.names[index]} are the same model; select another one of them."
                )


def model_names(run: Run, round: int) -> list[str]:
    """Names of the models that a round of a run kept: start, end, aggregate, then its clients, ids ascending."""
    record = run.round(round)
    names = [name for name in ("start", "end") if getattr(record, name) is not None]
    clients = [] if record.clients is None else [f"client {client}" for client in sorted(record.ids.tolist())]
    return [*names, *(["aggregate"] if clients else []), *clients]


def cohort_models(run: Run, round: int) -> NamedModels:
    """All clients of a round, ids ascending.

    Raises:
        LookupError: If the round kept no clients.
    """
    record = run.round(round)
    order = record.ids.argsort()
    names = tuple(f"client {client}" for client in record.ids[order].tolist())
    return NamedModels(names, with_buffers(selected(record.kept("clients"), order), record.client_buffers[order]))


def _record(run: Run, other: str, index: int) -> tuple[Run, Round]:
    """A round of a run, or of another one beside it, and that run."""
    home = _other_run(run, other) if other else run
    return home, home.round(index)


def _model(run: Run, round: int, name: str, read: _Read) -> Tensor:
    if " * " in name:
        return _sum(run, round, name, read)
    other, colon, words = name.rpartition(": ")
    inner, separator, where = words.rpartition(" of round ")
    kind, _, number = (inner if separator else words).partition(" ")
    if not separator and kind == "round" and number.isdigit():
        return read(other, int(number))[1].kept("end")
    if (separator and not where.isdigit()) or (colon and not separator):
        raise ValueError(f"no model named {name!r}; {_NAMES}")
    home, record = read(other, int(where) if separator else round)
    if number and (kind != "client" or not number.isdigit()):
        raise ValueError(f"no model named {name!r}; {_NAMES}")
    if kind == "client" and number:
        ids = record.ids.tolist()
        if int(number) not in ids:
            raise ValueError(f"round {record.index} of {home.name} has clients {sorted(ids)}, no client {number}.")
        return record.kept("clients")[ids.index(int(number))]
    if kind in ("start", "end"):
        return record.kept(kind)
    if kind == "aggregate":
        return _aggregate(home, record)
    raise ValueError(f"no model named {name!r}; {_NAMES}")


def stated_statistics(run: Run, names: Sequence[str]) -> dict[str, Any]:
    """Attributes of a result that says which batch statistics named models have; none for a model without them.

    An aggregate and a sum have none of their own: theirs are recomputed on `calibration` samples.
    """
    if not normalisers(run.task.model):
        return {}
    means = [" * " in name or name.rpartition(": ")[2].startswith("aggregate") for name in names]
    words = {"recomputed": any(means), "own": not all(means)}
    attrs: dict[str, Any] = {"statistics": ", ".join(sorted(word for word, there in words.items() if there))}
    return attrs | ({"calibration": len(_calibration(run))} if any(means) else {})


def _calibration(run: Run) -> Samples:
    return calibration_samples(run.task.samples.get("train", run.task.samples["test"]), 512)


def _aggregate(run: Run, record: Round) -> Tensor:
    weights, clients = run.experiment.cohort_weights(record.sizes), record.kept("clients")
    mean, buffers = weighted_models(weights, clients), buffers_of(clients)
    return mean if buffers is None else recomputed(run, mean, weights.to(buffers) @ buffers)


def _sum(run: Run, round: int, name: str, read: _Read) -> Tensor:
    """A sum such as 0.3 * client 3 + 0.7 * start."""
    vectors: list[Tensor] = []
    buffers: list[Tensor] = []
    for term in name.split(" + "):
        factor, _, vector_name = term.partition(" * ")
        try:
            value = float(factor)
        except ValueError:
            raise ValueError(f"no model named {name!r}; {_NAMES}") from None
        model = _model(run, round, vector_name, read)
        vectors.append(value * model.double())
        buffers += [value * model.buffers.double()] if isinstance(model, Model) else []
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError(f"the models of {name} have different numbers of parameters; give like models.")
    total = torch.stack(vectors).sum(0).to(model)
    return recomputed(run, total, torch.stack(buffers).sum(0).to(model)) if buffers else total


def recomputed(run: Run, theta: Tensor, buffers: Tensor) -> Tensor:
    """A combination of models with its buffers (b,); batch statistics are recomputed on training samples."""
    if normalisers(run.task.model):
        buffers = recalibrate(run.task, theta, buffers, _calibration(run))
    return Model(theta, buffers)


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
    "names are start, end, aggregate, client 3, round 12, client 3 of round 12, NAME: round 12 for another run beside "
    "it, or sums such as 0.3 * client 3 + 0.7 * start."
)
