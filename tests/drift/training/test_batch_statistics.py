"""Batch statistics between the models of a run: recomputed unless told otherwise, and stated."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.landscapes.barriers import aligned_barrier, client_barriers, mode_curve
from drift.analyses.landscapes.planes import average_line, global_line, global_plane, round_plane
from drift.analyses.landscapes.projected_plane import trajectory_plane
from landscape.model.batchnorm import recalibrate
from tests import tiny

PLANES = {
    "round_plane": (round_plane, {"points": 2}),
    "adaptive": (round_plane, {"points": 5, "tolerance": 0.5}),
    "global_plane": (global_plane, {"points": 2}),
    "global_line": (global_line, {"points": 4}),
    "average_line": (average_line, {"points": 4, "window": 3}),
    "trajectory_plane": (trajectory_plane, {"points": 2}),
}
PATHS = {
    "client_barriers": (client_barriers, {"points": 3}),
    "mode_curve": (mode_curve, {"points": 5, "kind": "polygon", "steps": 2}),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three rounds of a model with batch and with group normalisation, by the norm's name."""
    folder, data = tmp_path_factory.mktemp("runs"), 'task={dataset="digits",train_samples=80}'
    model = 'task.model="tiny:normalised"'
    return {norm: tiny.trained(folder, data, model, f"task.model_options.norm={norm}") for norm in ("batch", "group")}


@pytest.mark.parametrize(("analysis", "options"), [*PLANES.values(), *PATHS.values()], ids=[*PLANES, *PATHS])
def test_analyses_recompute_between_models_and_say_so(runs, analysis, options):
    ds = runs["batch"].cached(analysis, **options)
    averaged = runs["batch"].cached(analysis, **options, statistics="averaged")
    assert (ds.attrs["statistics"], ds.attrs["calibration"]) == ("recomputed", 80)
    assert (averaged.attrs["statistics"], "calibration" in averaged.attrs) == ("averaged", False)
    values = "midpoint" if "midpoint" in ds else "loss"
    assert float(np.abs(ds[values] - averaged[values]).max()) > 1e-3
    plain = runs["group"].cached(analysis, **options)
    assert not {"statistics", "calibration"} & set(plain.attrs)
    asked = runs["group"].cached(analysis, **options, statistics="averaged")
    assert asked.assign_attrs(arguments="").identical(plain.assign_attrs(arguments=""))


def own_losses(run, record, rows):
    """Test losses of a round's clients, each with its own statistics."""
    samples = run.task.samples["test"]
    return [
        float(
            run.task.loss(
                run.task.outputs(record.clients[row], "test", buffers=record.client_buffers[row]), samples.targets
            ).mean()
        )
        for row in rows
    ]


def test_trained_models_keep_their_own_statistics(runs):
    run = runs["batch"]
    record = run.round(-1)
    expected = own_losses(run, record, range(3))
    for statistics in (None, "averaged"):
        barriers = client_barriers(run, points=3, statistics=statistics)
        np.testing.assert_allclose(barriers.mark_loss, [*expected, record.metrics["loss"]], rtol=1e-5)
        np.testing.assert_allclose(round_plane(run, points=2, statistics=statistics).mark_loss[:3], expected, rtol=1e-5)
        curve = mode_curve(run, points=3, kind="polygon", steps=2, statistics=statistics)
        np.testing.assert_allclose(curve.loss[[0, -1]], expected[:2], rtol=1e-5)
        np.testing.assert_array_equal(curve.straight_loss[[0, -1]], curve.loss[[0, -1]])


def test_mean_of_the_last_models_is_no_trained_model(runs):
    run = runs["batch"]
    mean, samples = run.models().mean(0), run.task.samples
    held = recalibrate(run.task, mean, None, samples["train"])
    loss = float(run.task.loss(run.task.outputs(mean, "test", buffers=held), samples["test"].targets).mean())
    line = average_line(run, points=3, window=3)
    assert float(line.mark_loss[1]) == pytest.approx(loss, rel=1e-4)
    assert float(line.loss.sel(t=0.5, method="nearest")) != pytest.approx(loss, rel=1e-4)
    averaged = torch.stack([run.round(index).end_buffers for index in run.rounds()]).mean(0)
    outputs = run.task.outputs(mean, "test", buffers=averaged)
    line = average_line(run, points=3, window=3, statistics="averaged")
    assert float(line.mark_loss[1]) == pytest.approx(
        float(run.task.loss(outputs, samples["test"].targets).mean()), rel=1e-5
    )


def test_alignment_refuses_models_with_normalisation(runs):
    with pytest.raises(ValueError, match="is a BatchNorm1d; alignment reorders"):
        aligned_barrier(runs["batch"])
