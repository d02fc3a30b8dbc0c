"""Check that a run fits the disk, before it starts."""

import shutil
from collections.abc import Callable
from pathlib import Path

import torch

from drift.config.experiment import Experiment
from drift.store.memory_budget import fits
from drift.training.optimizer import moment_vectors
from landscape.model.task import Task


def client_numbers(experiment: Experiment, task: Task) -> int:
    """Numbers that each client of a run keeps between rounds: those of the method and of a persistent optimiser."""
    return experiment.method.client_numbers(task) + moment_vectors(experiment.local) * task.layout.size


def require_space(folder: Path, experiment: Experiment, size: int, done: int = 0, *, carried: int = 0) -> None:
    """Refuse a run that would not fit the disk.

    Args:
        folder: Where the run will lie.
        experiment: Rounds, cohort and what is kept.
        size: Numbers in one model and its buffers.
        done: Rounds that are on disk already.
        carried: Numbers that each client keeps between rounds, as `client_numbers` returns them.

    Raises:
        OSError: With what is needed, what is free and what to change.
    """
    needed = expected_bytes(experiment, size, done, carried=carried)
    existing = next(parent for parent in [folder, *folder.parents] if parent.exists())
    free = shutil.disk_usage(existing).free
    if needed > free:
        raise OSError(
            f"the run needs about {_size(needed)} and {existing} has {_size(free)} free; keep fewer rounds "
            "(--set keep.clients='every 10, last 3'), two thirds of the size "
            "(--set keep.compress=true) or half of it, rounded (--set keep.dtype='bfloat16 deltas'), "
            "or write elsewhere (--runs DIR)."
        )


def expected_bytes(experiment: Experiment, size: int, done: int = 0, *, carried: int = 0) -> int:
    """Bytes that the rounds from `done` on will take, for models of `size` numbers.

    States of clients, of `carried` numbers each, count twice for the clients of a round: new files are written before
    those that they replace are removed. Rounds that keep client models record the states that these clients return.
    """
    keep, rounds, cohort = experiment.keep, experiment.rounds, experiment.clients.per_round
    width = (2.0 if keep.dtype == "bfloat16 deltas" else 4.0) * (_COMPRESSED if keep.compress else 1.0)
    models = 2 + experiment.method.extra_models  # start, end and models in the extras
    training = experiment.clients.number if experiment.clients.train_all else cohort
    before, after = (min(experiment.clients.number, training * index) for index in (done, max(done, rounds)))
    total = _temporary_bytes(experiment, size, training * carried) + 4 * size * 8
    total += 4 * carried * (after - before + training)
    total += (8 * (cohort + 3) ** 2 + 4096) * max(0, rounds - done)
    complete, clients = (_count_rounds(counts, done, rounds) for counts in (keep.keeps_globals, keep.keeps_clients))
    recorded = width * cohort * size + 4.0 * (_COMPRESSED if keep.compress else 1.0) * training * carried
    return total + 4 * models * size * complete + int(recorded) * clients


def _temporary_bytes(experiment: Experiment, size: int, returned: int) -> int:
    """Bytes in temporary files of one round that does not fit memory.

    They are those of `returned` numbers of the clients' states, and of client models that are not stored as they are.
    """
    cohort, keep = experiment.clients.per_round, experiment.keep
    if fits(torch.float32, (cohort, size)):
        return 0
    stays = keep.clients == "all" and keep.dtype == "float32" and not keep.compress
    return 4 * returned + (0 if stays else 4 * cohort * size)


def _count_rounds(keeps: Callable[[int, int], bool], done: int, rounds: int) -> int:
    """Rounds that a policy keeps, from the first `_SAMPLED` of them where there are more."""
    remaining = max(0, rounds - done)
    if remaining <= _SAMPLED:
        return sum(keeps(index, rounds) for index in range(done, rounds))
    begin = sum(keeps(index, rounds) for index in range(done, done + _SAMPLED))
    return begin * remaining // _SAMPLED


_SAMPLED = 100_000
"""Rounds on which a policy is evaluated; longer runs are extrapolated from them."""


_COMPRESSED = 0.85
"""Size of compressed client models relative to uncompressed ones, a safe upper estimate."""


def _size(number: int) -> str:
    return f"{number / 1e9:.2f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB"
