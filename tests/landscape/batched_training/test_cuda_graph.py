"""Replayed gradients: everything but the device, with a recorder that works on a CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from landscape.batched_training.cuda_graph import ReplayedGradient, cuda_graph
from landscape.model.samples import Samples
from landscape.model.task import Task


def _flat(*extra: nn.Module):
    torch.manual_seed(0)
    task = Task(nn.Sequential(nn.Linear(3, 4), *extra, nn.ReLU(), nn.Linear(4, 2)).double(), {})
    return task.flat(task.theta)


def _batch(size: int, seed: int) -> Samples:
    source = torch.Generator().manual_seed(seed)
    return Samples(
        torch.randn(size, 3, generator=source, dtype=torch.float64), torch.randint(2, (size,), generator=source)
    )


class Recorder:
    """Replays by doing the work again, into the output of the first time, as a graph does."""

    def __init__(self, factor: float = 1.0) -> None:
        self.recorded = self.replayed = 0
        self.factor = factor

    def __call__(self, work):
        output = work()
        self.recorded += 1

        def replay() -> None:
            output.copy_(self.factor * work())
            self.replayed += 1

        return replay, output


def test_replayed_gradients_are_the_eager_ones_for_every_shape():
    flat, plain, recorder = _flat(), _flat(), Recorder()
    replayed = ReplayedGradient(flat, recorder)
    losses = []
    for seed, size in enumerate((5, 5, 2, 5, 2)):
        batch = _batch(size, seed)
        losses.append((replayed.gradient(flat, batch), plain.gradient(batch)))
        assert torch.equal(flat.grad, plain.grad)
        for workspace in (flat, plain):  # the model moves on, its memory stays
            workspace.theta.sub_(workspace.grad, alpha=0.1)
    assert all(float(found) == float(wanted) for found, wanted in losses)  # earlier losses are not overwritten
    assert (recorder.recorded, recorder.replayed) == (2, 2 + 5)
    assert replayed.reason == ""


def test_a_replay_that_differs_is_never_used():
    flat, recorder = _flat(), Recorder(1.5)
    replayed = ReplayedGradient(flat, recorder)
    batch = _batch(4, 1)
    assert float(replayed.gradient(flat, batch)) == float(flat.gradient(batch))
    assert "differs" in replayed.reason and recorder.recorded == 1
    replayed.gradient(flat, _batch(4, 2))
    assert recorder.recorded == 1


def test_a_step_that_cannot_be_recorded_stays_eager():
    def refuse(work):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    flat = _flat()
    replayed = ReplayedGradient(flat, refuse)
    assert float(replayed.gradient(flat, _batch(4, 1))) == float(flat.gradient(_batch(4, 1)))
    assert "not permitted" in replayed.reason


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4), nn.Dropout(0.5)])
def test_models_with_state_beside_the_weights_are_not_replayed(layer):
    recorder = Recorder()
    flat = _flat(layer.double())
    replayed = ReplayedGradient(flat, recorder)
    replayed.gradient(flat, _batch(4, 1))
    assert type(layer).__name__ in replayed.reason and recorder.recorded == 0


def test_a_recording_is_not_lent_to_another_workspace():
    with pytest.raises(ValueError, match="another workspace"):
        ReplayedGradient(_flat(), Recorder()).gradient(_flat(), _batch(4, 1))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_cuda_graph_gives_the_eager_gradient():
    flat = _flat()
    there = Task(flat.module, {}).flat(flat.theta.cuda())
    there.load(flat.theta)
    replayed = ReplayedGradient(there, cuda_graph)
    batch = _batch(5, 1)
    for _ in range(2):
        torch.testing.assert_close(replayed.gradient(there, batch).cpu(), flat.gradient(batch))
        torch.testing.assert_close(there.grad.cpu(), flat.grad)
    assert replayed.reason == ""
