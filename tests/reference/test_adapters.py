"""The gap of averaged factors against loops over the layers and clients in float64."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from reference.registry import agree, reference

import drift

SCALES = {"body.1": 6.0, "body.3": 3.0}
OPTIONS = ("task.model=adapted:build", "task.model_options={rank=3, scale=6.0}", "rounds=3", "local.lr=0.4")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), *OPTIONS, "keep.clients=all", "local.epochs=3")


def factors(run, theta, layer):
    """A and B of a model (d,), float64."""
    named = run.layout.named(theta.double())
    return (named[f"{layer}.lora_{name}.default.weight"].numpy() for name in "AB")


@reference("drift.product_gap", by="products of every client, NumPy float64")
def test_the_gap_of_averaged_factors(run):
    ds = drift.product_gap(run)
    total = {name: np.zeros(3) for name in ("gap", "mean", "step", "missed")}
    for column, (layer, scale) in enumerate(SCALES.items()):
        for index in run.rounds():
            record = run.round(index)
            p = record.weights.double().numpy() / record.weights.double().sum().item()
            pairs = [tuple(factors(run, client, layer)) for client in record.clients]
            mean = sum(share * scale * b @ a for share, (a, b) in zip(p, pairs, strict=True))
            a, b = (sum(share * pair[at] for share, pair in zip(p, pairs, strict=True)) for at in (0, 1))
            gap = np.linalg.norm(mean - scale * b @ a)
            a0, b0 = factors(run, record.start, layer)
            a1, b1 = factors(run, record.end, layer)
            agree("drift.product_gap", ds.layer_gap[index, column].item(), gap, relative=1e-9)
            agree(
                "drift.product_gap", ds.layer_relative[index, column].item(), gap / np.linalg.norm(mean), relative=1e-9
            )
            parts = (gap, np.linalg.norm(mean), np.linalg.norm(mean - scale * b0 @ a0))
            parts += (np.linalg.norm(mean - scale * b1 @ a1),)
            for name, part in zip(total, parts, strict=True):
                total[name][index] += part**2
    gap, mean, step, missed = (np.sqrt(values) for values in total.values())
    agree("drift.product_gap", ds.gap.values, gap, relative=1e-9)
    agree("drift.product_gap", ds.relative.values, gap / mean, relative=1e-9)
    agree("drift.product_gap", ds.of_step.values, gap / step, relative=1e-9)
    agree("drift.product_gap", ds.missed.values, missed, relative=1e-9)
    agree("drift.product_gap", ds.missed_of_step.values, missed / step, relative=1e-9)
    np.testing.assert_allclose(ds.missed, ds.gap, rtol=1e-5)  # FedAvg of factors: its end is their mean
    assert ds.gap.min() > 1e-4
    assert ds.attrs["scaled"] == 1


@reference("landscape.products", by="scale B A, NumPy float64")
def test_products_of_a_model(run):
    import landscape

    view, theta = landscape.products(run.task), run.round(-1).clients[1]
    named = view.layout.named(view.model(theta))
    for layer, scale in SCALES.items():
        a, b = factors(run, theta, layer)
        agree("landscape.products", named[f"{layer}.parametrizations.weight.original"], scale * b @ a, relative=1e-6)


@reference("drift.record_products", by="updates of scale B A, and of the head")
def test_a_run_in_products(run, tmp_path):
    found = drift.record_products(run, tmp_path / "products")
    for index in run.rounds():
        record = run.round(index)
        updates = []
        for client in record.clients:
            parts = [(client - record.start).double().numpy()[-24:]]  # the head, which is no product
            for layer, scale in SCALES.items():
                (a, b), (a0, b0) = factors(run, client, layer), factors(run, record.start, layer)
                parts.append((scale * (b @ a - b0 @ a0)).ravel())
            updates.append(np.concatenate(parts))
        inner = np.array(updates) @ np.array(updates).T
        agree("drift.record_products", found.round(index).gram[3:, 3:], inner, relative=1e-5)
    assert found.round(-1).metrics == run.round(-1).metrics
    plane = drift.round_plane(found, round=1, points=4)
    assert np.isfinite(plane.loss).all()
    again = drift.record_products(run, tmp_path / "products")  # nothing is recorded twice
    assert again.rounds() == run.rounds()
