"""The fastest plan of a sweep on this machine: measured once per machine, model and shapes, then stored.

The first surface that is long enough tries other block sizes, then other ways to multiply, one change after the other,
and takes what is clearly faster. That costs less than a fiftieth of the sweep. Later surfaces of the model, short ones
too, have the stored plan; where there is none, the usual one, which follows from the model alone. A plan may change the
last bits of values, so it is one of the attributes of a result, and a sweep that was stopped goes on with the plan that
it began with.
"""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import replace
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from landscape.sweep.evaluate import CHUNK_POINTS
from landscape.sweep.folded_norms import FoldedConvolution
from landscape.sweep.layer_calls import trace_calls
from landscape.sweep.stored_plans import read_plan, work_identity, write_plan
from landscape.sweep.sweep_plan import DEFAULT, SweepPlan
from landscape.sweep.worker import Points, Work, Worker

SHARE = 0.02
"""Most of a sweep's time that measuring may take."""

LEAST = 100_000
"""Points times samples below which a sweep is too short to measure anything."""

POINTS = 4
"""Points that a plan is measured on, besides one alone."""

PASSES = 2 * (1 + POINTS)
"""Passes through the samples per measurement: one point and POINTS, both once to warm up."""

TURNS = 3
"""Most times that two plans are measured in turns; the speed of a shared machine changes within seconds."""

GAIN = 0.05
"""Part of the time that another block or way to multiply must save."""

WHERE = "FEDSCAPE_PLANS"
"""Environment variable; "off" leaves every sweep at the default plan."""


def sweep_plan(work: Work, rows: Tensor) -> SweepPlan:
    """The plan of a sweep at coefficients (P, n): the stored one, else the fastest if measuring pays, else the usual.

    The default on other devices, in lower precision, with a block of the caller, and with FEDSCAPE_PLANS=off.
    """
    on_cpu = work.basis.device.type == "cpu"
    if not on_cpu or work.precision != "exact" or work.block is not None or os.environ.get(WHERE) == "off":
        return DEFAULT
    identity = work_identity(work)
    stored = read_plan(identity)
    if stored is not None:
        return stored
    measured = measured_plan(work, rows) if len(rows) * len(work.samples) >= LEAST else None
    if measured is None:
        return usual_plan(work)
    write_plan(identity, *measured)
    return measured[0]


def usual_plan(work: Work) -> SweepPlan:
    """The plan of a sweep that nothing was measured for: what the layers allow, whatever the speed of the machine.

    Where batch normalisations can be folded, they are, and the first layer is not shared between points: to normalise
    its outputs in a pass of their own costs more than to compute it (benchmarks/measured.md). Where dense layers
    receive sequences, oneDNN computes them, which nearly halved the time of a transformer.
    """
    flat, probe = work.task.flat(work.basis), work.samples[:2]
    flat.load(work.basis[0])
    calls = [(type(call.layer), *call.inputs[:1]) for call in trace_calls(flat, probe.inputs).calls]
    sequences = any(kind is nn.Linear and received.ndim > 2 for kind, *inputs in calls for received in inputs)
    plan = replace(DEFAULT, every_dense=sequences)
    if {nn.Conv2d, nn.BatchNorm2d} <= {kind for kind, *_ in calls}:
        folded = replace(plan, folded=True, shared=False)
        worker = Worker(replace(_part(work, 2), plan=folded))
        return folded if any(isinstance(forward, FoldedConvolution) for forward in worker.packable) else plan
    return plan


@torch.no_grad()
def measured_plan(work: Work, rows: Tensor) -> tuple[SweepPlan, dict[str, float]] | None:
    """The fastest plan, and seconds per point and sample by plan; None if measuring costs more than its SHARE."""
    default = Worker(_part(work, 2))
    blocks = [
        block for block in (2**power for power in range(3, 12)) if default.block / 3 <= block <= 4 * default.block
    ]
    blocks = [block for block in blocks if block <= len(work.samples) and block != default.block]
    part = _part(work, max([default.block, *blocks]))
    further = _alternatives(default)
    cost = PASSES * 2 * (len(blocks) + len(further) + 1) * len(part.samples)
    turns = int(min(TURNS, SHARE * len(rows) * len(work.samples) / cost))
    if len(rows) <= POINTS or turns < 1:
        return None
    points = rows[: POINTS + 1].tolist()
    times: dict[str, list[float]] = {}

    def faster(plan: SweepPlan, best: SweepPlan) -> SweepPlan:
        for which in [plan, best] * turns:
            times.setdefault(which.text, []).append(_seconds(part, which, points, (len(rows), len(work.samples))))
        return plan if median(times[plan.text]) < (1 - GAIN) * median(times[best.text]) else best

    best = usual = usual_plan(work)
    for plan in (replace(usual, block=block) for block in blocks):
        best = faster(plan, best)
    for change in further:
        changed = replace(best, **change)
        best = faster(changed, best) if changed != best else best
    if best != usual:
        best = faster(best, usual)  # once more: no chance winner
    return best, {text: median(spent) for text, spent in times.items()}


def _alternatives(default: Worker) -> list[dict[str, Any]]:
    """Changes of the default plan that may suit the model."""
    kinds = {type(layer) for layer in default.flat.module.modules()}
    changes: list[dict[str, Any]] = []
    if {nn.Conv2d, nn.BatchNorm2d} <= kinds:
        changes = [{"folded": True, "shared": shared} for shared in (False, None)] + [{"folded": False, "shared": None}]
    other = SweepPlan(shared=default.shared is None)
    if not other.shared or Worker(replace(default.work, plan=other)).shared is not None:  # it can be shared
        changes += [{"shared": other.shared}] if kinds & {nn.Conv2d, nn.Linear} else []
    if nn.Linear in kinds:
        changes += [{"every_dense": every} for every in (True, False)]
    if kinds & {nn.Conv2d, nn.Linear}:
        changes += [{"matrices": "torch", "every_dense": False, "folded": False}]
    return [*changes, {"contiguous": True, "folded": False}] if nn.Conv2d in kinds else changes


def _part(work: Work, count: int) -> Work:
    """The work on the first samples, without groups and without statistics of its own at every point."""
    return replace(work, samples=work.samples[:count], groups=None, calibration=None)


def _seconds(part: Work, plan: SweepPlan, points: Points, size: tuple[int, int]) -> float:
    """Seconds per point and sample of a sweep of `size` (points, samples).

    Work per basis model is done once per chunk, and weights are reordered once per point.
    """
    worker, share = Worker(replace(part, plan=plan)), len(part.samples) / size[1]
    alone, several = _spent(worker, points[:1], share), _spent(worker, points[1:], share)
    per_point = max(several - alone, several / 8) / (len(points) - 2)  # the work per basis model may dominate
    once = max(0.0, alone - per_point)
    return (per_point + once / min(size[0], CHUNK_POINTS)) / len(part.samples)


def _spent(worker: Worker, points: Points, share: float) -> float:
    """Seconds of a pass through the samples; what only the first pass does counts by its `share`."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    worker.take(points)
    times = []
    for _ in range(2):
        begun = clock()
        deque(worker.outputs(worker.stretches), maxlen=0)
        times.append(clock() - begun)
    first, again = times
    return again + share * max(0.0, first - again)
