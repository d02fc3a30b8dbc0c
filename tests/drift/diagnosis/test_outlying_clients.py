"""Clients that stand apart."""

import numpy as np
import pytest
import torch
from tiny import trained

from drift.diagnosis.outlying_clients import client_deviations, robust


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(runs):
    return trained(runs)


def test_cosine_is_that_with_the_weighted_mean_of_the_others(run):
    values = []
    for index in run.rounds():
        record = run.round(index)
        if 2 in record.ids:
            place = record.ids.tolist().index(2)
            others = [row for row in range(len(record.ids)) if row != place]
            mean = (record.sizes[others, None] * record.deltas[others]).sum(0)
            values.append(float(torch.cosine_similarity(record.deltas[place], mean, dim=0)))
    assert float(client_deviations(run).cosine.sel(client=2)) == pytest.approx(np.mean(values), abs=1e-5)


def test_excess_compares_classes_with_the_same_classes_elsewhere(run):
    labels, part = run.labels, run.parts[1]
    expected = own = 0.0
    for record in (run.round(index) for index in run.rounds()):
        outputs = run.task.outputs(record.end, "train")
        loss = torch.nn.functional.cross_entropy(outputs, run.task.samples["train"].targets, reduction="none").numpy()
        for one in part:
            rest = np.concatenate([p for k, p in enumerate(run.parts) if k != 1])
            same = rest[labels[rest] == labels[one]]
            expected += loss[same].mean() / len(part) / 3
            own += loss[one] / len(part) / 3
    found = client_deviations(run).sel(client=1)
    assert float(found.excess) == pytest.approx(own - expected, abs=1e-5)
    assert float(found.ratio) == pytest.approx(own / expected, abs=1e-5)


def test_robust_deviation_by_hand_and_of_equal_values():
    assert robust(np.array([1.0, 2.0, 3.0, 10.0]))[3] == pytest.approx(7.5 / 1.4826)
    assert robust(np.array([2.0, 2.0, np.nan])).tolist()[:2] == [0, 0]
    assert np.isnan(robust(np.full(2, np.nan))).all()


def test_one_client_a_round_has_nobody_to_be_compared_with(runs):
    found = client_deviations(trained(runs, "clients.per_round=1", "keep.globals=none", "keep.clients=none"))
    assert found.sizes["client"] == 4
    assert np.isnan(found.cosine.values).all() and np.isnan(found.excess.values).all()
    assert np.isfinite(found.divergence.values).all()
