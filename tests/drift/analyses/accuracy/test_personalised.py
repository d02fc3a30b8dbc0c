"""The global model at each client, before and after the client tuned it."""

from __future__ import annotations

import pytest
import tiny
import torch

from drift.analyses.accuracy.personalised import personal_accuracy

HELD = "clients.valid_ratio=0.3"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "method=fedbabu", HELD, "task.model=mlp")


def test_values_are_those_of_the_models_on_held_out_samples(run):
    found = personal_accuracy(run, clients=[2])
    held = run.client(-1, 2).held_out
    end = run.round(-1).end
    outputs = run.task.outputs(end, held)
    assert float(found.loss[0]) == pytest.approx(float(run.task.loss(outputs, held.targets).mean()), rel=1e-6)
    assert float(found.accuracy[0]) == pytest.approx(float((outputs.argmax(1) == held.targets).double().mean()))
    assert found.held_out.values.tolist() == [len(held)] and found.attrs["round"] == 2

    flat = run.task.flat(end)  # tuned by hand, in the order of a fresh shuffle
    client = run.client(-1, 2, replicate=1)
    flat.load(end)
    momentum = torch.zeros_like(end)
    for batch in client.batches(epochs=1):
        flat.gradient(batch)
        momentum = client.local.momentum * momentum + flat.grad + client.local.weight_decay * flat.theta
        flat.theta -= client.local.lr * momentum
    outputs = run.task.outputs(flat.theta, held)
    assert float(found.tuned_loss[0]) == pytest.approx(float(run.task.loss(outputs, held.targets).mean()), rel=1e-5)


def test_parts_are_tuned_alone_and_more_epochs_fit_more(run):
    tuned = {part: personal_accuracy(run, layers=part) for part in ("all", "body", "head")}
    values = [found.tuned_loss.values.tolist() for found in tuned.values()]
    assert values[0] != values[1] != values[2] != values[0]
    assert all(found.loss.equals(tuned["all"].loss) for found in tuned.values())
    mean = (tuned["all"].accuracy * tuned["all"].held_out).sum() / tuned["all"].held_out.sum()
    assert tuned["all"].attrs["mean_accuracy"] == pytest.approx(float(mean))
    assert not personal_accuracy(run, epochs=5).tuned_loss.equals(tuned["all"].tuned_loss)


def test_what_cannot_be_tuned_is_said(run, tmp_path):
    with pytest.raises(ValueError, match="epochs is 0; give 1 or more"):
        personal_accuracy(run, epochs=0)
    with pytest.raises(ValueError, match="tail"):
        personal_accuracy(run, layers="tail")
    with pytest.raises(LookupError, match=r"holds samples out; train with --set clients\.valid_ratio=0\.2"):
        personal_accuracy(tiny.trained(tmp_path))
