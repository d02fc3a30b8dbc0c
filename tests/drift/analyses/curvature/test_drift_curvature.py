"""Drift in the coordinates of curvature against dense float64 Hessians, on hostile inputs and in closed form."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import oracles
import pytest
import tiny
import torch
from torch.func import functional_call, jacrev
from torch.nn.functional import cross_entropy

import drift
from drift.analyses.curvature import drift_curvature as module
from drift.analyses.curvature import surroundings
from drift.analyses.curvature.averaging import measure_gap, measure_span
from drift.analyses.curvature.surroundings import Surroundings, WeightedClients, principal_directions
from drift.runs.context import Context

ROOT = Path(__file__).resolve().parents[4]

FROZEN = {
    "cost": [[0.0209457, -0.0929507, 0.0208368, 0.00232064], [0.0133556, -0.0369444, -0.0120054, 0.0158141]],
    "quadratic": [[0.0209242, -0.0800810, 0.0210132, 0.00232236], [0.0129091, -0.0360319, -0.0120544, 0.0158380]],
    "share": [[0.573968, 0.722731, 0.176982, 0.534591], [0.621086, 0.789235, 0.0820671, 0.589317]],
    "norm": [[0.127262, 0.201850, 0.127262, 0.0303479], [0.0971634, 0.0903555, 0.0971634, 0.0375808]],
}
"""Numbers of `averaging_cost`, which this analysis replaces, with the same arguments."""


def cohort_around(mean, count=3, *, weights=(0.5, 0.3, 0.2), seed=1, scale=0.2):
    """Clients (count, d) whose weighted mean is `mean` (d,)."""
    generator, p = torch.Generator().manual_seed(seed), torch.tensor(weights, dtype=torch.float64)
    moves = scale * torch.randn(count, len(mean), generator=generator, dtype=torch.float64)
    return WeightedClients(mean, mean + moves - p @ moves, list(range(count)), p)


def stand_in(task):
    """What the loss around a model takes of a run."""
    return SimpleNamespace(task=task, layout=task.layout, context=Context())


def around_quadratic(values, k):
    task = oracles.quadratic(len(values), eigenvalues=values)
    return task, Surroundings.around(stand_in(task.task), torch.ones(len(values)).double(), k, task.task.split("test"))


def test_the_numbers_are_those_that_the_findings_stored(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3", "clients.partition=iid")
    kinds = ["client", "change", "random", "sampling"]
    ds = drift.drift_curvature(run, rounds=[1, 2], kinds=kinds, k=3, samples=20)
    for name, values in FROZEN.items():
        np.testing.assert_allclose(ds[name], values, rtol=2e-5, atol=2e-7, err_msg=name)
    assert ds.attrs["undetermined"] == ""


def test_on_a_quadratic_both_bounds_are_the_gap_and_no_cost_is_broken():
    task, around = around_quadratic([7.0, 5.0, 2.0, 1.0, 0.5], 2)
    cohort, start = cohort_around(around.model), torch.zeros(5).double()
    drifts, p = torch.stack(list(cohort.drifts())), cohort.weights
    gap = measure_gap(around, cohort, start)
    exact = float(-p @ torch.einsum("ki,ij,kj->k", drifts, task.matrix, drifts) / 2)
    for name in ("gap", "quadratic", "low", "high"):
        assert gap[name] == pytest.approx(exact, rel=1e-9), name
    assert gap["holds"] == 1
    inside = task.eigenvectors[:, :2]
    removed = p @ (drifts @ inside).square().sum(1) / (p @ ((cohort.clients - start) @ inside).square().sum(1))
    assert gap["removed_sharp"] == pytest.approx(float(removed), rel=1e-3)
    row = module._means(around, cohort.drifts(), p, 1e-9)
    assert row["broken"] == 0
    assert row["quadratic"] == pytest.approx(-exact, rel=1e-9)
    assert around.cut == pytest.approx(1 - 2 / 5, rel=1e-3)


def test_a_cut_between_equal_eigenvalues_is_reported():
    for k, unsure in ((1, False), (2, True), (3, False)):
        _, around = around_quadratic([5.0, 3.0, 3.0, 1.0], k)
        assert around.undetermined is unsure, k
    assert np.isnan(around_quadratic([5.0, 3.0], 2)[1].cut)
    flat = around_quadratic([5.0, 0.0, 0.0], 2)[1]
    assert flat.cut == 0 and flat.undetermined


def test_eigenpairs_that_did_not_converge_have_no_share_and_are_reported(tmp_path, monkeypatch):
    run = tiny.trained(tmp_path, "rounds=2")

    def brief(*arguments, **options):
        return partial(search, *arguments)(**{**options, "max_products": 5, "tolerance": 1e-6})

    search = surroundings.top_eigenvalues
    monkeypatch.setattr(surroundings, "top_eigenvalues", brief)
    ds = drift.drift_curvature(run, rounds=[1], k=4)
    assert ds.share.isnull().all() and ds.layer_sharp.isnull().all() and ds.attrs["undetermined"] == "1"
    assert ds.cost.notnull().all() and ds.quadratic.notnull().all() and ds.layer_share.notnull().all()
    span, gap = drift.client_span(run, rounds=[1], k=4), drift.averaging_gap(run, rounds=[1], k=4)
    assert span.captured.isnull().all() and span.sharpness.isnull().all() and span.attrs["undetermined"] == "1"
    assert span.ritz.isel(rank=0).notnull().all() and span.gradient_share.notnull().all()
    assert gap.removed_sharp.isnull().all() and gap.gap.notnull().all() and gap.attrs["undetermined"] == "1"


def test_a_client_at_the_mean_counts_in_no_mean_of_shares():
    _, around = around_quadratic([7.0, 5.0, 2.0, 1.0, 0.5], 2)
    move = torch.tensor([0.3, -0.1, 0.2, 0.0, 0.1]).double()
    clients = torch.stack([around.model, around.model + move, around.model - move])
    cohort = WeightedClients(around.model, clients, [0, 1, 2], torch.tensor([0.5, 0.25, 0.25]).double())
    row = module._means(around, cohort.drifts(), cohort.weights, 0.2)
    single = module._means(around, [move], torch.ones(1).double(), 0.2)
    assert row["share"] == pytest.approx(float(single["share"]), rel=1e-9)
    assert row["norm"] == pytest.approx(float(single["norm"]) / 2, rel=1e-9)
    gap = measure_gap(around, cohort, torch.zeros(5).double())
    assert gap["gap"] == pytest.approx(gap["low"], rel=1e-9)


def test_a_cohort_of_one_has_no_drift(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2", "clients.per_round=1")
    ds = drift.drift_curvature(run, rounds=[1], k=3).isel(round=0)
    client = ds.sel(kind="client")
    assert np.isnan(client["share"]) and client["norm"] == 0 and client["cost"] == 0 and client["broken"] == 0
    assert float(ds["share"].sel(kind="step")) > 0
    span, gap = drift.client_span(run, rounds=[1], k=3), drift.averaging_gap(run, rounds=[1], k=3)
    assert span.directions.item() == 0 and span.captured.isnull().all() and span.ritz.isnull().all()
    assert gap.gap.item() == 0 and gap.holds.item() == 1 and gap.removed.item() == 0


def test_equal_clients_have_no_share_and_remove_nothing_that_is_shown(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2", "local.lr=1e-30")
    ds = drift.drift_curvature(run, rounds=[1], k=3, samples=40).isel(round=0)
    client = ds.sel(kind="client")
    assert 0 < client["norm"] < 1e-7, "the mean of equal clients differs from them by rounding"
    assert np.isnan(client["share"]) and client.layer_share.isnull().all()
    gap = drift.averaging_gap(run, rounds=[1], k=3, samples=40).isel(round=0)
    assert np.isnan(gap.removed) and np.isnan(gap.removed_sharp) and np.isnan(gap.removed_rest)
    assert drift.client_span(run, rounds=[1], k=3, samples=40).directions == 0


def test_batch_statistics_are_those_of_the_end_at_the_mean_and_of_the_start_at_the_start(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2", "task.model=tiny:normalised")
    record, samples = run.round(1), run.task.split("test")
    step = (record.end - record.start).detach()
    for at, buffers, model in (("start", record.start_buffers, record.start), ("end", record.end_buffers, record.end)):
        losses = []
        for theta in (model.theta, model.theta + step):
            tensors = {**run.task.layout.named(theta), **run.task.layout.named_buffers(buffers)}
            outputs = functional_call(run.task.model.eval(), tensors, (samples.inputs,))
            losses.append(float(cross_entropy(outputs, samples.targets)))
        ds = drift.drift_curvature(run, rounds=[1], kinds=["step"], at=at, k=2)
        assert ds.cost.item() == pytest.approx(losses[1] - losses[0], abs=2e-6), at
        assert ds.attrs["statistics"] == "own"


def test_negative_curvature_counts_by_its_magnitude():
    task = oracles.mlp_task()
    samples, theta = task.split("test"), 3 * oracles.thetas(task, 1, spread=0.5, seed=3)[0]
    named = {name: part.shape for name, part in task.layout.named(theta).items()}

    def loss(vector):
        parts = vector.split([shape.numel() for shape in named.values()])
        tensors = {name: part.view(shape) for (name, shape), part in zip(named.items(), parts, strict=True)}
        return cross_entropy(functional_call(task.model, tensors, (samples.inputs,)), samples.targets)

    matrix = jacrev(jacrev(loss))(theta).detach().numpy()
    values, vectors = np.linalg.eigh(matrix)
    order = np.abs(values).argsort()[::-1]
    k = next(rank for rank in range(1, 40) if values[order[rank - 1]] < 0) + 1  # the last but one is negative
    around = Surroundings.around(stand_in(task), theta, k, samples)
    np.testing.assert_allclose(around.eigenvalues, values[order[:k]], rtol=1e-3)
    assert values[order[:k]].min() < 0
    cohort = cohort_around(theta)
    updates = cohort.clients - theta + 1
    row = measure_span(around, principal_directions(cohort, updates @ updates.T, k))
    basis = np.linalg.svd(np.stack([one.numpy() for one in cohort.drifts()]), full_matrices=False)[2][:2]
    ritz = np.linalg.eigvalsh(basis @ matrix @ basis.T)
    np.testing.assert_allclose(row["ritz"][:2], ritz[np.abs(ritz).argsort()[::-1]], rtol=1e-6, atol=1e-9)
    cosines = np.linalg.svd(basis @ vectors[:, order[:k]])[1]
    np.testing.assert_allclose(row["cosine"][: len(cosines)][:2], cosines[:2], rtol=2e-2)
    assert row["sharpness"] <= 1
    gap = measure_gap(around, cohort, torch.zeros_like(theta))
    exact = float(loss(theta)) - sum(
        float(p * loss(one)) for p, one in zip(cohort.weights, cohort.clients, strict=True)
    )
    assert gap["gap"] == pytest.approx(exact, abs=1e-9)
    assert gap["low"] <= exact <= gap["high"] and gap["holds"] == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kinds": ["clients"]}, "takes a list of client, step, random, change, sampling"),
        ({"kinds": []}, "kinds is empty; give some of client, step, random, change, sampling"),
        ({"at": "middle"}, "takes one of mean, start, end"),
        ({"error": 0}, "positive relative error"),
        ({"k": 0}, "1 or more"),
    ],
)
def test_unknown_options_are_refused(tmp_path, options, text):
    run = tiny.trained(tmp_path, "rounds=1")
    with pytest.raises(ValueError, match=text):
        drift.drift_curvature(run, **options)


def test_the_table_of_the_findings_is_that_of_the_stored_numbers():
    from benchmarks.sharp_drift import STORED, table

    content = json.loads(STORED.read_text())
    assert table(content) in (ROOT / "docs" / "findings.md").read_text()


@pytest.mark.parametrize("move", [0.0, 0.1])
def test_equal_clients_break_no_second_order_cost_and_more_eigenvectors_than_parameters_are_all(tmp_path, move):
    source = tiny.trained(tmp_path, "rounds=1", "keep.clients=all")
    layout, record = source.layout, source.round(0)
    start, client = (layout.named(model) for model in (record.start, record.start + move))
    recorder = drift.Recorder(tmp_path / "run")
    recorder.round(start=start, clients={k: (client, 7 + 4 * k) for k in range(3)}, end=client)
    run = drift.open(recorder.folder, task=source.task)
    found = drift.drift_curvature(run, k=3, kinds=["client", "random"])
    assert float(found.norm.max()) < 1e-6 and found.broken.values.tolist() == [[0.0, 0.0]]
    assert found.share.isnull().all()
    span = drift.client_span(run, k=layout.size + 9)
    assert span.sizes["rank"] == layout.size and span.directions == 0 and span.eigenvalue.notnull().all()
    with np.errstate(all="raise"):
        causes = drift.update_causes(run)
    assert causes["mean"].item() == pytest.approx(move * layout.size**0.5, rel=1e-5)
    assert causes.relative.isnull().all() == (move == 0) and causes.share.isnull().all()


def test_clients_that_were_never_recorded_are_not_taken_for_ones_that_stayed_at_the_start(tmp_path):
    source = tiny.trained(tmp_path, "rounds=1", "clients.per_round=4")
    layout, record = source.layout, source.round(0)
    clients = {k: (layout.named(record.clients[k]), int(record.sizes[k])) for k in range(3)}
    recorder = drift.Recorder(tmp_path / "run")
    recorder.round(start=layout.named(record.start), clients=clients, end=layout.named(record.end))
    with pytest.raises(LookupError, match="trained by another program: its method and local settings are not known"):
        drift.drift_curvature(drift.open(recorder.folder, task=source.task, parts=source.parts), kinds=["sampling"])
    known = drift.open(recorder.folder, task=source.task, parts=source.parts[:3])
    assert drift.drift_curvature(known, kinds=["sampling"], k=2).norm.item() == pytest.approx(0, abs=1e-6)


def test_the_length_of_a_very_long_drift_is_a_number(tmp_path):
    source = tiny.trained(tmp_path, "rounds=1", "clients.per_round=4")
    layout, record = source.layout, source.round(0)
    far = {k: (layout.named(1e25 * (record.clients[k] - record.start)), 5) for k in range(3)}
    recorder = drift.Recorder(tmp_path / "run")
    recorder.round(start=layout.named(record.start), clients=far, end=layout.named(record.end))
    ds = drift.drift_curvature(drift.open(recorder.folder, task=source.task), k=2)
    drifts = torch.stack([torch.cat([value.flatten() for value in model.values()]) for model, _ in far.values()])
    spread = (drifts - drifts.mean(0)).double().norm(dim=1).mean()
    for kind in ("client", "random"):
        assert ds.norm.sel(kind=kind).item() == pytest.approx(float(spread), rel=1e-4)


def test_all_of_a_drift_lies_in_the_span_of_as_many_eigenvectors_as_parameters(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2", "task.model=mlp", "task.model_options.hidden=[9]")
    k = run.layout.size + 1  # more products than the search takes
    ds = drift.drift_curvature(run, rounds=[1], k=k, samples=10)
    assert (ds.share == 1).all() and ds.attrs["undetermined"] == ""
    np.testing.assert_allclose(ds.layer_sharp, ds.layer_share, rtol=1e-6)
    gap = drift.averaging_gap(run, rounds=[1], k=k, samples=10)
    assert gap.removed_sharp == gap.removed and gap.removed_rest.isnull().all()
    assert drift.client_span(run, rounds=[1], k=k, samples=10).captured.item() == pytest.approx(2 / run.layout.size)


def test_a_cut_that_is_not_known_is_reported():
    around = around_quadratic([5.0, 3.0, 2.0, 1.0], 2)[1]
    assert not around.undetermined and replace(around, cut=float("nan")).undetermined


@pytest.mark.parametrize("function", [drift.drift_curvature, drift.client_span, drift.averaging_gap])
@pytest.mark.parametrize("options", [{"k": 2.5}, {"samples": True}])
def test_numbers_that_are_no_whole_ones_are_refused_as_they_were_given(tmp_path, function, options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=rf"^{name} is {value}; {function.__name__} takes a whole number\.$"):
        function(tiny.trained(tmp_path, "rounds=1"), **options)
