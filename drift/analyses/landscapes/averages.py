"""Error of averages of a cohort's models by their number, and similarity of the models (IMA paper, Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.evaluate_on import evaluation_of
from drift.analyses.per_round import result, selected_rounds
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.number_ranges import spans
from drift.store.round_record import Round
from drift.store.row_matrices import rows, selected
from landscape.measures.ensemble import subset_errors
from landscape.measures.similarity import mean_cka
from landscape.model.batchnorm import Statistics
from landscape.model.model import with_buffers
from landscape.model.samples import Samples

RBF_SAMPLES = 1000
"""Default number of inputs for the RBF kernel."""


@analysis("round", "models", "draw", cost="evaluations")
def error_averaged(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    subsets: int = 20,
    split: str = "test",
    statistics: Statistics | None = None,
) -> xr.Dataset:
    """Test error and loss of the mean of s of the cohort's client models, for s = 1..m, over rounds.

    Rounds without clients, as where every one diverged, are left out; NaN for more models than a round has clients.
    Batch statistics of a mean as in `round_plane`; with statistics = "averaged" the mean of the whole cohort is the
    global model that FedAvg recorded.

    Source: IMA paper, Fig. 4; papers.md 3.2.6.

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; by default three, evenly spaced.
        subsets: Largest number of random subsets per size.
        split: Samples that error and loss are averaged over.
        statistics: Of batch normalisation in the means.

    Raises:
        LookupError: If no round, or one of `rounds`, kept its clients, or every client diverged in all of them.
    """
    indices = selected_rounds(run, "clients", rounds, 3)
    errors = {}
    for index in run.context.track(indices):
        record = run.round(index)
        if not len(record.ids):
            continue
        weights = run.experiment.cohort_weights(record.sizes)
        usable = weights > 0  # a client without samples has no part in any mean
        errors[index] = subset_errors(
            run.task,
            with_buffers(selected(record.kept("clients"), usable), record.client_buffers[usable]),
            weights[usable],
            subsets=subsets,
            seed=index,
            evaluation=evaluation_of(run, split=split, statistics=statistics, progress=None),
        )
    if not errors:
        raise LookupError(f"every client diverged in rounds {spans(indices)} of run {run.name}; name others.")
    draws = max(errors_of.sizes["draw"] for errors_of in errors.values())
    padded = [table.pad(draw=(0, draws - table.sizes["draw"]), keep_attrs=True) for table in errors.values()]
    stacked = xr.concat(padded, "round", join="outer").assign_coords(round=list(errors))
    return stacked.assign_attrs(analysis="error_averaged", source="IMA paper, Fig. 4")


@analysis("round", cost="evaluations")
def similarity_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    kernel: str = "linear",
    split: str = "test",
    samples: int | None = None,
) -> xr.Dataset:
    """Mean CKA of the outputs of the cohort's client models over rounds; NaN for fewer than two clients with samples.

    Rounds in which a model has an infinite output, or NaN, are NaN; the attribute `not_finite` names the clients.

    Source: IMA paper, Fig. 4; papers.md 3.2.5.

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their clients; by default ten, evenly spaced.
        kernel: "linear" or "rbf".
        split: Split of the inputs.
        samples: Number of inputs, the same ones in every round; by default all, or 1000 for rbf, whose memory per
            client grows with their square.

    Raises:
        LookupError: If no round, or one of `rounds`, kept its clients.
    """
    indices = selected_rounds(run, "clients", rounds, 10)
    inputs = run.task.split(split)
    count = samples if samples is not None else RBF_SAMPLES if kernel == "rbf" else len(inputs)
    if count < len(inputs):
        numbers = rng(run.experiment.seed, "similarity").permutation(len(inputs))[:count]
        inputs = inputs[torch.from_numpy(np.sort(numbers))]
    values, broken = [], []
    for index in run.context.track(indices):
        record = run.round(index)
        outputs, ids = _outputs(run, record, inputs), record.ids[record.shares > 0].tolist()
        lost = [client for client, buffers in zip(ids, outputs, strict=True) if not buffers.isfinite().all()]
        broken += [f"clients {spans(lost)} of round {index}"] if lost else []
        values.append(mean_cka(outputs, kernel=kernel) if len(outputs) > 1 and not lost else float("nan"))
    about = {"cka": (f"mean {kernel} CKA of client pairs", "1")}
    attrs = {"analysis": "similarity_rounds", "source": "IMA paper, Fig. 4", "split": split, "samples": len(inputs)}
    attrs |= {"not_finite": ", ".join(broken)} if broken else {}
    return result({"cka": ("round", values)}, about, {"round": indices}, **attrs)


def _outputs(run: Run, record: Round, samples: Samples) -> Tensor:
    """Outputs (m, n, C) of the models of the clients with samples."""
    trained = record.shares.nonzero().flatten()
    pairs = zip(rows(record.kept("clients"), trained.tolist()), record.client_buffers[trained], strict=True)
    outputs = [run.task.outputs(with_buffers(theta, buffers), samples) for theta, buffers in pairs]
    return torch.stack(outputs) if outputs else torch.zeros(0, len(samples), 1)
