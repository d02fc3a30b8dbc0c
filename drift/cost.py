"""What a run's clients compute, hold and send."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drift.methods.lss import LSS
from drift.run import Run
from drift.soups import Soup
from drift.terrain import chosen
from landscape.cost import step_cost, transfer_bytes, work


def cost(run: Run, *, round: int = -1, repeats: int = 1) -> xr.Dataset:
    """Cost of one client round, from training one client again, and bytes that the whole cohort sends.

    The client is the one of the cohort with most samples; it is trained once to count and `repeats` times to measure,
    from the recorded start and with what the client had kept by then. Multiply-accumulates are counted,
    forward and backward, whatever the method does with its models. macs_training is the LSS paper's way of counting:
    one forward pass times (N + 1) / 2, the mean size of the pool, for LSS with N candidates, which holds where a step
    runs the pool's members; this project's LSS runs their mixture, one pass.

    Source: LSS paper, Table 5; methods.md 3.5.

    Args:
        round: Round that kept its start; negative counts from the last one that did.
        repeats: Measured trainings; their median is given.

    Returns:
        Dataset of scalars: macs of a sample's forward pass, macs_training, macs_round, seconds_epoch and seconds_round
        of the client, seconds_recorded (the run's mean seconds a round, all clients and the server), memory_round
        (bytes at most, the model included), bytes_up and bytes_down a round (parameters and floating buffers of the
        cohort, uncompressed; control variates and the like come on top), samples (of the client).

    Raises:
        LookupError: If the round kept no start, none of its clients has samples, or what they keep was not recorded.
    """
    record = run.round(chosen(run, round, "globals"))
    client = int(record.ids[record.sizes.argmax()])
    ready = run.client(record.index, client)
    if len(ready.samples) == 0:
        raise LookupError(f"no client of round {record.index} of run {run.name} has samples; choose another round.")
    base = step_cost(run.task, ready.start, batch=ready.local.batch, split=ready.samples, repeats=1)
    found = work(lambda: run.method.local(ready), repeats=repeats)
    transfer = len(record.ids) * transfer_bytes(run.task, ready.start)
    recorded = run.metrics()
    held = ready.flat.theta.nbytes + ready.flat.grad.nbytes + ready.flat.buffers.nbytes
    values = {
        "macs": (float(base.macs), "forward pass of a sample", "MAC"),
        "macs_training": (float(base.macs) * _pool_factor(run), "forward pass of a sample, by pool size", "MAC"),
        "macs_round": (found.macs, "local training", "MAC"),
        "seconds_epoch": (found.seconds / _epochs(run, len(ready.samples)), "an epoch", "s"),
        "seconds_round": (found.seconds, "local training", "s"),
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


def _pool_factor(run: Run) -> float:
    return (run.method.candidates + 1) / 2 if isinstance(run.method, LSS) else 1.0


def _epochs(run: Run, samples: int) -> float:
    """Passes over the client's data as Table 5 counts them: SWA's cycles and a soup's models each take their own.

    The models of a pool of LSS share an epoch.
    """
    local, method = run.experiment.local, run.method
    trained = method.candidates if isinstance(method, Soup) else getattr(method, "cycles", 1)
    return float(trained * (local.epochs if local.steps is None else local.steps * local.batch / samples))
