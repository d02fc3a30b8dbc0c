"""Decomposition of the expected loss of a federated average into bias, variance and covariance of client models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import xarray as xr

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.decomposition.client_models import (
    Rows,
    read_models,
    repetitions,
    require_same_cohort,
    retrain_models,
)
from drift.analyses.decomposition.evaluation_samples import Split, Union, expected_number, select_samples
from drift.analyses.decomposition.factors import Budget, Outputs, factors
from drift.analyses.per_round import ABOUT, resolve_round, result, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.model.batchnorm import Statistics
from landscape.plugins import require_known

Estimator = Literal["single", "local", "runs"]

MEMORY = 2**30
"""Default limit of the bytes of models and outputs in memory."""


@analysis("round", cost="training")
def decomposition(
    run: Run,
    *,
    rounds: list[int] | None = None,
    estimator: Estimator = "single",
    replicates: int = 3,
    others: Sequence[str] = (),
    samples_per_client: int = 200,
    split: Split = "train",
    outputs: Outputs = "probabilities",
    union: Union = "cohort",
    statistics: Statistics | None = None,
    memory: int = MEMORY,
    workers: int = 1,
) -> xr.Dataset:
    """Five factors of the loss of the averaged model, round by round.

    E L(FMA) = bias2 + var + cov + O(locality^2) for the squared error of the outputs against one-hot targets,
    summed over classes. Sums over clients run over the round's cohort with its weights (data sizes, or uniform
    where the experiment says so). A training sample is a client's own if the client trained on it; a test
    sample is a client's own if its label occurs among the client's labels.

    The expectations are means over M models of each client. The estimator "single" takes each client's recorded
    model for its mean; var and cov are then NaN. "local" trains every client again from the same start with fresh
    randomness (replicate 0 is the record): given the start the clients are independent, so that its covariance only
    shows the noise. "runs" takes the same client of the same round from complete runs that repeat the experiment with
    other seeds on the same partition: the covariance then contains their shared history. It needs the same
    clients in every run's round, that is, all of them.

    FMA has the mean of the clients' parameters by data sizes, whatever weights the method uses; WENS that of their
    outputs. Models come from the record one by one, retrained ones that do not fit from a temporary file, and samples
    are evaluated in blocks, so that any number of clients and samples fits into `memory`.

    Source: Zhou et al. 2024 (IMA), theorem 1, lemma 1 and corollary 1; estimators as in papers.md 3.2.1 and 3.2.2.

    Args:
        run: Run to analyse.
        split: Samples that the numbers are averaged over.
        rounds: Rounds, negative ones from the last that kept its clients; by default all that did (in every run).
        replicates: Models of each client for the estimator local, at least 2.
        others: For the estimator runs: at least one run with another seed, better two or more, each a path or the
            (beginning of the) name of a folder next to this run's.
        samples_per_client: Random training samples per client, the same in every round; each represents its share of
            the client's data. On test: test samples per client of a cohort.
        outputs: Softmax probabilities, or the model's outputs as they are.
        union: Train samples are those of the cohort, or of all clients.
        statistics: Of FMA's batch normalisation: "recomputed" on training samples (the default), or "averaged".
        memory: Bytes of models and outputs in memory, in addition to the dataset and one forward pass of 512 samples.
        workers: Processes that share the trainings of the estimator local.

    Returns:
        Dataset with the `quantities` of `five_factors.py`, locality, errors (fraction), gap and gap / locality^2, each
        (round,). Rounds in which every client diverged are left out.

    Raises:
        LookupError: If no round, or one of those named, kept its clients, or another run does not exist.
        ValueError: If there are too few replicates or samples, memory is too small for one model and sample, or the
            runs do not repeat one experiment.
    """
    number = _number(estimator, replicates, others, samples_per_client)
    require_known("statistics of FMA", statistics or "recomputed", ("recomputed", "averaged"))
    runs = [run, *(repetitions(run, others) if estimator == "runs" else [])]
    alike = [set(member.kept("clients")) for member in runs if rounds is None]
    indices = [index for index in selected_rounds(run, "clients", rounds, None) if all(index in some for some in alike)]
    rows: dict[int, dict[str, float]] = {}
    for counter, index in enumerate(indices if estimator == "local" else run.context.track(indices)):
        record, recorded = _read(runs, index)
        samples = select_samples(run, record, samples_per_client, split, union)
        if not len(record.ids) or not len(samples):  # every client diverged, or none has data
            continue
        budget = Budget.divide(run, record, number, memory, retrained=estimator == "local")
        with _models(run, record, recorded, number, budget, workers, (counter, len(indices))) as models:
            rows[index] = factors(run, record, models, samples, outputs, statistics, budget)
    if not rows:
        raise LookupError(f"run {run.name} has no round with client models; train with --set keep.clients=all.")
    return result(
        {name: ("round", [row[name] for row in rows.values()]) for name in ABOUT["decomposition"]},
        ABOUT["decomposition"],
        {"round": list(rows)},
        analysis="decomposition",
        source="Zhou et al. 2024, theorem 1",
        estimator=estimator,
        replicates=number,
        outputs=outputs,
        split=split,
        union=union,
        samples_per_client=samples_per_client,
        membership="trained on the sample" if split == "train" else "label among the client's labels",
        runs=", ".join(member.name for member in runs),
    )


def decomposition_effort(run: Run, **options: Any) -> Effort:
    """Effort of `decomposition` with the same options."""
    values = complete_options(decomposition, run, options)
    retrained = values.estimator == "local"
    number = _number(values.estimator, values.replicates, values.others, values.samples_per_client)
    count = len(run.kept("clients") if values.rounds is None else values.rounds)
    clients = run.experiment.clients.per_round
    samples = expected_number(run, values.samples_per_client, values.split, values.union)
    return effort(
        run,
        trainings=count * (number - 1) * clients if retrained else 0,
        forwards=count * number * (clients + 1) * samples,
        memory=Budget.bytes_used(run, number, samples, values.memory, retrained=retrained),
        workers=values.workers,
    )


def _number(estimator: str, replicates: int, others: Sequence[str], samples: int) -> int:
    """M, the number of models of each client."""
    numbers = {"single": 1, "local": replicates, "runs": 1 + len(others)}
    require_known("estimator", estimator, numbers)
    if estimator == "local" and replicates < 2:
        raise ValueError(f"replicates is {replicates}; the estimator local needs at least 2, better 3 or more.")
    if (estimator == "runs") != bool(others):
        raise ValueError(
            f"the estimator is {estimator} and others names {len(others)} runs; the estimator runs alone takes "
            "others=['NAME', ..]: one run of the same experiment with another seed, better two or more."
        )
    if samples < 1:
        raise ValueError(f"samples_per_client is {samples}; give at least 1.")
    return numbers[estimator]


def _read(runs: Sequence[Run], index: int) -> tuple[Round, list[Rows]]:
    """The first run's record, and each run's models of its clients."""
    pairs = [read_models(run, resolve_round(run, index, "clients")) for run in runs]
    require_same_cohort(runs, [record for record, _ in pairs])
    return pairs[0][0], [rows for _, rows in pairs]


@contextmanager
def _models(
    run: Run, record: Round, models: list[Rows], number: int, budget: Budget, workers: int, progress: tuple[int, int]
) -> Iterator[list[Rows]]:
    """M models of each client: those recorded, and those trained again where they are fewer."""
    if len(models) == number:
        yield models
        return
    trainings = (number - 1) * run.experiment.clients.per_round  # of a round in which no client diverged
    before, total = progress[0] * trainings, progress[1] * trainings

    def report(done: int, all_: int) -> None:
        if run.context.progress is not None:
            run.context.progress(before + (trainings if done == all_ else done), total)

    retrained = retrain_models(run, record, number - 1, memory=budget.models, workers=workers, progress=report)
    with retrained as further:
        yield [*models, *further]
