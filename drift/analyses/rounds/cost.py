"""What a run's clients compute, hold and send."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from drift.analyses.per_round import resolve_round
from drift.methods._soups import Soup
from drift.methods.lss import LSS
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.measures.cost import REPEATS, measure_cost, measure_seconds, median_and_range, step_cost, transfer_bytes


@analysis(cost="training")
def cost(run: Run, *, round: int = -1, repeats: int = REPEATS, plain: bool = True) -> xr.Dataset:
    """Cost of one client round, from training one client again, and bytes that the whole cohort sends.

    The client is the one of the cohort with most samples; it is trained once to count and `repeats` times to measure,
    from the recorded start and with what the client had kept by then. Multiply-accumulates are counted,
    forward and backward, whatever the method does with its models. macs_training is the LSS paper's way of counting:
    one forward pass times (N + 1) / 2, the mean size of the pool, for LSS with N candidates, which holds where a step
    runs the pool's members; this project's LSS runs their mixture, one pass.

    Seconds depend on what else the machine does, and those of two runs are measured at different times: equal work may
    differ by more than their ranges. So the same client is also trained plainly, without the method's part, in turn
    with the method; plain_ratio compares the two and is what methods are to be compared by.

    Source: LSS paper, Table 5; methods.md 3.5.

    Args:
        round: Round that kept its start; negative counts from the last one that did.
        repeats: Measured trainings; their median is given, and their range.
        plain: Plain training is measured in turn.

    Returns:
        Dataset of scalars: macs of a sample's forward pass; macs_training; macs_round and macs_plain, of local training
        with the method and plainly; seconds_epoch and seconds_round of the client, and plain_ratio, the seconds over
        those of plain training (1 where the method adds nothing to it; NaN where it was not measured), each a median
        with the least and the largest of the repeats as NAME_low and NAME_high (NaN with one repeat);
        seconds_recorded (the run's mean seconds a round, all clients and the server); memory_round (bytes at most, the
        model included); bytes_up and bytes_down a round (parameters and floating buffers of the cohort, uncompressed;
        control variates and the like come on top); samples (of the client).

    Raises:
        LookupError: If the round kept no start, none of its clients has samples, or what they keep was not recorded.
    """
    record = run.round(resolve_round(run, round, "globals"))
    client = int(record.ids[record.sizes.argmax()])
    ready = run.client(record.index, client)
    if len(ready.samples) == 0:
        raise LookupError(f"no client of round {record.index} of run {run.name} has samples; choose another round.")
    base = step_cost(run.task, ready.start, batch=ready.local.batch, split=ready.samples, repeats=1)
    found = measure_cost(lambda: run.method.local(ready), repeats=1)
    measured = measure_seconds(lambda: run.method.local(ready), *([ready.train] if plain else []), repeats=repeats)
    seconds, epochs = median_and_range(measured[:, 0]), _epochs(run, len(ready.samples))
    ratio = median_and_range(measured[:, 0] / measured[:, 1]) if plain else (np.nan,) * 3
    if plain and not run.method.own_training and run.method.correction(run.method.prepare(ready)) is None:
        ratio = (1.0,) * 3  # the same minibatches with the same gradient: nothing to measure
    transfer = len(record.ids) * transfer_bytes(run.task, ready.start)
    recorded = run.metrics()
    held = ready.flat.theta.nbytes + ready.flat.grad.nbytes + ready.flat.buffers.nbytes
    values = {
        "macs": (float(base.macs), "forward pass of a sample", "MAC"),
        "macs_training": (float(base.macs) * _pool_factor(run), "forward pass of a sample, by pool size", "MAC"),
        "macs_round": (found.macs, "local training", "MAC"),
        "macs_plain": (measure_cost(ready.train, repeats=1).macs if plain else np.nan, "plain local training", "MAC"),
        **_ranged("seconds_epoch", [value / epochs for value in seconds], "an epoch", "s"),
        **_ranged("seconds_round", seconds, "local training", "s"),
        **_ranged("plain_ratio", ratio, "time over that of plain training", "1"),
        "seconds_recorded": (recorded.seconds.mean() if "seconds" in recorded else np.nan, "a round", "s"),
        "memory_round": (found.memory + held, "memory of local training", "bytes"),
        "bytes_up": (transfer, "upload of a round", "bytes"),
        "bytes_down": (transfer, "download of a round", "bytes"),
        "samples": (len(ready.samples), "samples of the client", "samples"),
    }
    return xr.Dataset(
        {name: ((), float(value), {"long_name": text, "units": unit}) for name, (value, text, unit) in values.items()},
        attrs={"analysis": "cost", "source": "LSS paper, Table 5", "round": record.index, "client": client},
    )


def _ranged(name: str, values: Sequence[float], text: str, unit: str) -> dict[str, tuple[float, str, str]]:
    """Median, fastest and slowest by name."""
    median, low, high = values
    ends = {f"{name}_low": (low, f"{text}, fastest", unit), f"{name}_high": (high, f"{text}, slowest", unit)}
    return {name: (median, text, unit), **ends}


def _pool_factor(run: Run) -> float:
    return (run.method.candidates + 1) / 2 if isinstance(run.method, LSS) else 1.0


def _epochs(run: Run, samples: int) -> float:
    """Passes over the client's data as Table 5 counts them: SWA's cycles and a soup's models each take their own.

    The models of a pool of LSS share an epoch.
    """
    local, method = run.experiment.local, run.method
    trained = method.candidates if isinstance(method, Soup) else getattr(method, "cycles", 1)
    return float(trained * (local.epochs if local.steps is None else local.steps * local.batch / samples))
