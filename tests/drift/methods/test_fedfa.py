"""FedFA: the anchors by hand, calibration, and where it is FedAvg."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from drift.config import method as methods
from drift.methods.fedfa import ClassMeans, alignment_loss, calibrate, initial_anchors
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model
from tests.drift import hand
from tests.tiny import trained

DIGITS = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=80", "task.test_samples=40")
MLP = (*DIGITS, "task.model=mlp", "method=fedfa", "rounds=2")


def test_first_anchors_are_different_one_hot_rows_or_unit_rows():
    anchors = initial_anchors(4, 7, torch.Generator().manual_seed(1))
    assert torch.equal(anchors @ anchors.T, torch.eye(4))
    crowded = initial_anchors(7, 4, torch.Generator().manual_seed(1))
    torch.testing.assert_close(crowded.norm(dim=1), torch.ones(7))


def test_aligned_counts_every_class_of_a_batch_once():
    held, anchors = hand.random(3, 2, seed=1), hand.random(4, 2, seed=2)
    squares = (held - anchors[[1, 1, 3]]).square().sum(1)
    expected = ((squares[0] + squares[1]) / 2 + squares[2]) / 4
    torch.testing.assert_close(alignment_loss(held, anchors, torch.tensor([1, 1, 3])), expected)


@pytest.mark.parametrize(("over", "divisor"), [("present", 1), ("all", 2)])
def test_anchors_move_towards_the_mean_over_minibatches(over, divisor):
    """Class 0 in both minibatches, class 2 in the second alone, class 1 in none."""
    anchors = hand.random(3, 2, seed=3)
    before, means = anchors.clone(), ClassMeans(anchors, over)
    first, second = hand.random(2, 2, seed=4), hand.random(3, 2, seed=5)
    means.add(first, torch.tensor([0, 0]))
    means.add(second, torch.tensor([2, 0, 2]))
    means.move(0.9)
    zero = (first.mean(0) + second[1]) / 2
    torch.testing.assert_close(anchors[0], 0.9 * before[0] + 0.1 * zero)
    assert torch.equal(anchors[1], before[1])
    torch.testing.assert_close(anchors[2], 0.9 * before[2] + 0.1 * second[[0, 2]].mean(0) / divisor)
    assert means.seen.tolist() == [True, False, True]
    moved = anchors.clone()
    means.move(0.9)
    assert torch.equal(anchors, moved)


def test_calibration_moves_the_head_alone_and_keeps_the_gradient():
    task = Task(build_model("mlp", (4,), 3, seed=0), {})
    flat = task.flat(task.theta)
    flat.grad.fill_(7)
    anchors = torch.randn(3, flat.module.head.in_features)
    head = calibrate(flat, anchors, 1e-2)
    before = float(F.cross_entropy(flat.module.head(anchors), torch.arange(3)).detach())
    for _ in range(5):
        head.step()
    assert float(F.cross_entropy(flat.module.head(anchors), torch.arange(3)).detach()) < before
    at = task.layout.slices()
    moved = {name for name, part in at.items() if not torch.equal(flat.theta[part], task.theta[part])}
    assert moved == {"head.weight", "head.bias"}
    assert bool((flat.grad == 7).all())


def test_the_server_averages_anchors_with_the_clients_weights():
    setting = replace(hand.setting("fedfa"), task=Task(build_model("linear", (3,), 2, seed=0).double(), {}))
    anchors = hand.random(2, 2, 3, seed=6)
    group = replace(
        hand.cohort(hand.random(2, setting.task.layout.size), sizes=(1, 3)),
        reports={"anchors": anchors, "holds": torch.tensor([[True, False], [True, False]])},
    )
    state = {"anchors": hand.random(2, 3, seed=7)}
    found = methods.load("fedfa")().aggregate(setting, state, group).state["anchors"]
    torch.testing.assert_close(found, 0.25 * anchors[0] + 0.75 * anchors[1])
    holders = methods.load("fedfa")(average="holders").aggregate(setting, state, group).state["anchors"]
    torch.testing.assert_close(holders[0], found[0])
    torch.testing.assert_close(holders[1], state["anchors"][1])


def test_without_anchors_and_calibration_it_is_fedavg(tmp_path):
    """Methods.md 8, identity 6."""
    plain = trained(tmp_path, *DIGITS, "task.model=mlp", "rounds=2")
    found = trained(tmp_path, *MLP, "method.weight=0.0", "method.calibration_start=1.0")
    assert torch.equal(found.round(-1).end, plain.round(-1).end)


def test_the_anchor_term_is_off_in_round_0_and_on_later(tmp_path):
    plain = trained(tmp_path, *DIGITS, "task.model=mlp", "rounds=2")
    found = trained(tmp_path, *MLP, "method.calibration_start=1.0")
    assert torch.equal(found.round(0).end, plain.round(0).end)
    assert not torch.equal(found.round(1).end, plain.round(1).end)


def test_heads_are_calibrated_after_the_given_part_of_the_rounds(tmp_path):
    run = trained(tmp_path, *MLP, "rounds=5", "method.calibration_start=0.5")
    assert [bool(run.round(index).sent["calibrating"]) for index in run.rounds()] == [False, False, False, True, True]


def test_one_step_of_the_anchored_gradient_by_hand():
    """One sample of class 1 and a linear model, whose features are the inputs and do not move: plain cross-entropy."""
    samples = Samples(hand.vector(1.0, -2.0)[None], torch.tensor([1]))
    task = Task(build_model("linear", (2,), 2, seed=0).double(), {"train": samples})
    start = task.theta
    local = hand.experiment(local={"lr": 0.1, "momentum": 0.0, "epochs": 1, "batch": 1}).local
    anchors = torch.eye(2, dtype=torch.float64)
    from drift.training.client import Client

    server = {"anchors": anchors, "calibrating": torch.tensor(False)}
    job = Client(0, 1, 7, samples, start, torch.zeros(0), local, task.flat(start), server=server)
    update = methods.load("fedfa")(weight=0.5, beta=0.8).local(job)
    flat = task.flat(start)
    flat.gradient(samples)
    torch.testing.assert_close(update.theta, start - 0.1 * flat.grad)
    torch.testing.assert_close(update.report["anchors"][1], 0.8 * anchors[1] + 0.2 * samples.inputs[0])
    assert update.report["holds"].tolist() == [False, True]


def test_a_head_that_is_not_linear_is_refused():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Flatten(), nn.Sequential(nn.Linear(4, 2))

        def forward(self, inputs):
            return self.head(self.body(inputs))

    setting = replace(hand.setting(), task=Task(Odd(), {}))
    with pytest.raises(ValueError, match="linear head"):
        methods.load("fedfa")().initial(setting, setting.task.theta)
