"""The end on the stage is the next global model, and a line says how it differs from the mean of the clients."""

import re

import numpy as np
import pytest
import tiny
import torch

from figures.page.stage_round import stage_round
from landscape.sweep.evaluate import model_metrics

OPTIONS = {
    "fedavg": (),
    "fedbuff": ("method.server_lr=0.8", "method.exponent=0.7", "clients.late=2"),
    "fedadam": (),
    "fedeve": (),
    "fedlaw": ("method.server_epochs=3", "proxy.per_class=2"),
    "ima": ("method.window=2", "method.start=0.5"),
    "scaffold": ("local.momentum=0.0",),
    "shrink": (),
}
AS_MEAN = {"fedavg", "fedlaw", "scaffold", "shrink"}
"""Methods whose end is the sum of the clients at the recorded weights."""


@pytest.fixture(scope="module", params=OPTIONS)
def shown(request, tmp_path_factory):
    """A run of a method, and its last round but one on the stage."""
    settings = (f"method={request.param}", *OPTIONS[request.param], "rounds=4", "keep.clients=all", "keep.globals=all")
    run = tiny.trained(tmp_path_factory.mktemp("run"), *settings)
    return run, run.round(2), stage_round(run, 2, 3, None)


def test_the_end_is_the_next_global_model(shown):
    run, record, frame = shown
    kept = run.round(3)
    method = run.method
    if method.name() != "fedeve":  # whose clients receive a predicted model
        assert torch.equal(record.end, kept.start)
    (mark,) = [mark for mark in frame["marks"] if mark["kind"] == "end"]
    assert mark["loss"] == pytest.approx(model_metrics(run.task, record.end, record.end_buffers)["loss"], rel=1e-6)
    first, second, third = (record.clients[record.ids.tolist().index(one)].double().numpy() for one in frame["through"])
    middle = (first + second + third) / 3
    u = (second - first) / np.linalg.norm(second - first)
    across = (third - first) - ((third - first) @ u) * u
    v, end = across / np.linalg.norm(across), record.end.double().numpy() - middle
    np.testing.assert_allclose([mark["u"], mark["v"]], [end @ u, end @ v], atol=1e-5)
    assert mark["away"] == pytest.approx(np.linalg.norm(end - (end @ u) * u - (end @ v) * v), abs=1e-5)


def test_a_line_says_how_the_end_differs_from_the_mean_of_the_clients(shown):
    run, record, frame = shown
    start, end, clients = (model.double().numpy() for model in (record.start, record.end, record.clients))
    mean = record.weights.double().numpy() @ clients
    if run.method.name() in AS_MEAN:
        np.testing.assert_allclose(end, mean, atol=1e-6)
        assert frame["end"] == ""
        return
    assert np.linalg.norm(end - mean) > 1e-3 * np.linalg.norm(end - start)
    said, kind = re.search(r"but ([\d.]+) (of the way|from it)", frame["end"]).groups()
    share = np.linalg.norm(end - start) / np.linalg.norm(mean - start)
    away = np.linalg.norm(end - mean)
    assert float(said) == pytest.approx(share if kind == "of the way" else away, rel=0.05)
    if run.method.name() == "fedbuff":
        late = record.index - record.extras["start_round"].numpy()
        shares = run.experiment.cohort_weights(record.sizes).numpy()
        factors = 0.8 * shares * (1.0 + late) ** -0.7
        assert late.any()
        np.testing.assert_allclose(end, start + factors @ (clients - start), atol=1e-6)
        assert "late updates count less" in frame["end"]
        assert float(said) == pytest.approx(factors.sum(), rel=0.05)
