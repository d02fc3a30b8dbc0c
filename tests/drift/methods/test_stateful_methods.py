"""Methods whose clients keep something: by hand, where each of them is FedAvg, and what a record gives back."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from drift.config import method as methods
from drift.methods.moon import contrast
from drift.runs.client_of_round import client_state
from drift.simulation import background_writer
from drift.simulation.simulate import simulate
from drift.training.client import Client
from drift.training.model_layers import head_mask, norm_mask
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model
from tests import tiny
from tests.drift import hand
from tests.replays import replay
from tests.tiny import trained

DIGITS = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=80", "task.test_samples=40")
NORMALISED = (*DIGITS, "task.model=tiny:normalised", "clients.concentration=10.0", "rounds=2")


def quadratic(theta, target, *, steps, lr, state, server=None):
    """A client of one sample whose gradient is theta - target: the model is theta itself on the input 1."""
    samples = Samples(torch.ones(1, 1, dtype=torch.float64), target[None])
    model = torch.nn.Linear(1, len(theta), bias=False, dtype=torch.float64)
    task = Task(model, {"train": samples}, loss=lambda outputs, wanted: (outputs - wanted).square().sum(1) / 2)
    local = hand.experiment(local={"lr": lr, "momentum": 0.0, "epochs": steps, "batch": 1}).local
    return Client(0, 0, 7, samples, theta, torch.zeros(0), local, task.flat(theta), state=state, server=server or {})


def test_scaffold_by_hand_over_two_rounds_with_one_of_two_clients_away():
    """Gradient w - a_k; lr 0.5, 2 steps; both clients in round 0, only the first in round 1; K = 2."""
    targets = [hand.vector(2.0, 0.0), hand.vector(0.0, 4.0)]
    setting = hand.setting("scaffold", number=2, local={"momentum": 0.0})
    method = setting.experiment.method
    w, c, own = hand.vector(1.0, 1.0), hand.vector(0, 0), [hand.vector(0, 0), hand.vector(0, 0)]
    theta, state = w.clone(), {"control": c.clone()}
    kept = [{}, {}]
    for index, present in enumerate(([0, 1], [0])):
        updates = []
        for client in present:
            job = quadratic(theta, targets[client], steps=2, lr=0.5, state=kept[client], server=state)
            updates.append(method.local(job))
            kept[client] = updates[-1].state
        group = hand.cohort(torch.stack([u.theta for u in updates]), start=theta, ids=present, index=index)
        group = replace(group, reports={"control_change": torch.stack([u.report["control_change"] for u in updates])})
        outcome = method.aggregate(setting, state, group)
        theta, state = outcome.end, outcome.state

        ends, changes = [], []
        for client in present:
            v = w.clone()
            for _ in range(2):
                v = v - 0.5 * (v - targets[client] - own[client] + c)
            fresh = own[client] - c + (w - v) / (2 * 0.5)
            changes.append(fresh - own[client])
            own[client] = fresh
            ends.append(v)
        w = w + sum(v - w for v in ends) / len(present)
        c = c + sum(changes) / 2
        torch.testing.assert_close(theta, w)
        torch.testing.assert_close(state["control"], c)
        torch.testing.assert_close(kept[0]["control"], own[0])


def test_scaffold_server_control_is_the_mean_of_the_clients_at_full_participation(tmp_path):
    """Methods.md 8, identity 7."""
    run = trained(tmp_path, "method=scaffold", "local.momentum=0.0", "clients.per_round=4", "rounds=3")
    for index in (1, 2):
        held = run.round(index - 1).carried
        assert held["ids"].tolist() == [0, 1, 2, 3]
        torch.testing.assert_close(run.round(index).sent["control"], held["control"].mean(0))


def test_scaffold_round_0_and_without_controls_is_fedavg(tmp_path):
    """Controls are 0 in round 0."""
    same = ("local.momentum=0.0", "rounds=1")
    plain, found = trained(tmp_path, *same), trained(tmp_path, *same, "method=scaffold", "method.weighting=samples")
    torch.testing.assert_close(found.round(0).end, plain.round(0).end)


def test_scaffold_by_the_cohort_mean_moves_the_control_further():
    setting = hand.setting({"name": "scaffold", "c_update": "cohort_mean"}, number=8, local={"momentum": 0.0})
    group = hand.cohort(torch.ones(2, 3, dtype=torch.float64), sizes=(1, 3))
    group = replace(group, reports={"control_change": torch.tensor([[1.0, 0, 0], [0, 2.0, 0]], dtype=torch.float64)})
    nothing = {"control": torch.zeros(3, dtype=torch.float64)}
    found = setting.experiment.method.aggregate(setting, nothing, group).state["control"]
    torch.testing.assert_close(found, hand.vector(0.5, 1.0, 0))
    divided = methods.load("scaffold")().aggregate(setting, nothing, group).state["control"]
    torch.testing.assert_close(divided, hand.vector(1 / 8, 2 / 8, 0))


def test_feddyn_by_hand():
    """Gradient w - a; regularised gradient w - a - h + alpha (w - b)."""
    start, target, h = hand.vector(1.0, -1.0), hand.vector(3.0, 0.0), hand.vector(0.2, -0.1)
    method = methods.load("feddyn")(alpha=0.5, clip=None)
    update = method.local(quadratic(start, target, steps=2, lr=0.1, state={"dual": h}))
    w = start.clone()
    for _ in range(2):
        w = w - 0.1 * (w - target - h + 0.5 * (w - start))
    torch.testing.assert_close(update.theta, w)
    torch.testing.assert_close(update.state["dual"], h - 0.5 * (w - start))


def test_feddyn_clips_the_whole_gradient_and_takes_the_plain_norm():
    start, target = hand.vector(0.0, 0.0), hand.vector(30.0, 40.0)
    clipped = methods.load("feddyn")(clip=10.0).local(quadratic(start, target, steps=1, lr=0.1, state={}))
    torch.testing.assert_close(clipped.theta, hand.vector(0.6, 0.8))
    method = methods.load("feddyn")(clip=None, norm="plain", alpha=0.5)
    plain = method.local(quadratic(start, target, steps=2, lr=0.1, state={}))
    w = 0.1 * target
    w = w - 0.1 * (w - target + 0.25 * w / w.norm())
    torch.testing.assert_close(plain.theta, w)


def test_feddyn_doubles_the_mean_step_in_round_0_at_full_participation():
    """Methods.md 8, identity 6: w_1 = mean w_k + 1/K sum_k (w_k - w_0)."""
    setting = hand.setting("feddyn", number=2)
    start, clients = hand.vector(1, 1, 1), hand.vector(2, 0, 4, 4, 2, 1).view(2, 3)
    method = setting.experiment.method
    outcome = method.aggregate(setting, method.initial(setting, start), hand.cohort(clients, start=start, sizes=(1, 3)))
    torch.testing.assert_close(outcome.end, start + 2 * (clients.mean(0) - start))


def test_fedbabu_never_moves_the_head_even_under_weight_decay(tmp_path):
    run = trained(tmp_path, *DIGITS, "method=fedbabu", "task.model=mlp", "local.weight_decay=0.01")
    head = head_mask(run.task.model, run.task.layout, "fedbabu")
    first, last = run.round(0).start, run.round(-1).end
    torch.testing.assert_close(last[head], first[head])
    assert not torch.allclose(last[~head], first[~head])


def test_fedrep_goes_on_with_the_client_s_own_head(tmp_path):
    run = trained(tmp_path, *DIGITS, "method=fedrep", "task.model=mlp", "clients.per_round=4", "local.momentum=0.0")
    head = head_mask(run.task.model, run.task.layout, "fedrep")
    job = run.client(1, 2)
    assert torch.equal(job.state["head"], run.round(0).clients[2][head])
    strange = replace(job, start=torch.where(head, 7.0, job.start))  # the received head has no part in it
    assert torch.equal(run.method.local(strange).theta, run.round(1).clients[2])


def test_fedbn_keeps_norm_layers_and_their_statistics_with_the_client(tmp_path):
    run = trained(tmp_path, *NORMALISED, "method=fedbn", "clients.per_round=4")
    norm = norm_mask(run.task.model, run.task.layout, "fedbn")
    job = run.client(1, 2)
    assert torch.equal(job.state["norm"], run.round(0).clients[2][norm])
    assert torch.equal(job.state["buffers"], run.round(0).client_buffers[2])
    strange = replace(job, start=torch.where(norm, 7.0, job.start), buffers=job.buffers + 3)
    update = run.method.local(strange)
    assert torch.equal(update.theta, run.round(1).clients[2])
    assert torch.equal(update.buffers, run.round(1).client_buffers[2])


OWN = (*NORMALISED, "method=fedbn", "clients.valid_ratio=0.3", "rounds=3")


def test_fedbn_measures_every_client_s_own_model_on_what_it_holds_out(tmp_path):
    run = trained(tmp_path, *OWN, "clients.per_round=2", "method.own_metrics=true")
    norm, train = norm_mask(run.task.model, run.task.layout, "fedbn"), run.task.samples["train"]
    for index in run.rounds():
        record, right, loss, count = run.round(index), 0.0, 0.0, 0
        for client, held in enumerate(run.dataset.held_out):
            kept = client_state(run, index + 1, client)
            if not kept:
                continue
            model = torch.where(norm, 0.0, record.end)
            model[norm] = kept["norm"]
            samples = train[torch.from_numpy(held)]
            outputs = run.task.outputs(model, samples, buffers=kept["buffers"])
            right += int((outputs.argmax(1) == samples.targets).sum())
            loss += float(F.cross_entropy(outputs, samples.targets, reduction="sum"))
            count += len(held)
        assert record.metrics["own_accuracy"] == pytest.approx(right / count)
        assert record.metrics["own_loss"] == pytest.approx(loss / count, rel=1e-5)
    found = run.metrics()
    assert (found.own_accuracy.units, found.own_loss.units) == ("fraction", "nats")


def test_fedbn_s_own_metrics_change_no_model_survive_a_stop_and_are_off_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(background_writer, "SHARE", 0.0)  # a round is on disk before the next one trains
    plain, whole = trained(tmp_path, *OWN), trained(tmp_path, *OWN, "method.own_metrics=true")

    def stop(record):
        raise KeyboardInterrupt

    experiment = tiny.experiment(*OWN, "method.own_metrics=true")
    with pytest.raises(KeyboardInterrupt):
        simulate(experiment, runs=tmp_path / "stopped", progress=stop)
    parts = simulate(experiment, runs=tmp_path / "stopped")
    for index in whole.rounds():
        assert torch.equal(whole.round(index).end, plain.round(index).end)
        own = [{k: v for k, v in run.round(index).metrics.items() if k.startswith("own")} for run in (whole, parts)]
        assert own[0] == own[1] != {}
        assert "own_loss" not in plain.round(index).metrics
    assert plain.name != whole.name


def test_fedbn_s_own_metrics_need_held_out_data_and_pass_through_ima(tmp_path):
    with pytest.raises(ValueError, match=r"fedbn with own_metrics validates .* set clients\.valid_ratio=0\.2"):
        tiny.experiment(*OWN, "method.own_metrics=true", "clients.valid_ratio=0.0")
    base = "method.base={name='fedbn', own_metrics=true}"
    others = [change for change in OWN if not change.startswith("method")]
    run = trained(tmp_path, *others, "method=ima", base, "method.window=2", "method.start=1")
    assert 0 <= run.round(-1).metrics["own_accuracy"] <= 1


def test_norm_layers_are_found_by_type():
    model = build_model("resnet8", (3, 8, 8), 4, seed=0, norm="group")
    task = Task(model, {})
    layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.GroupNorm)]
    assert int(norm_mask(model, task.layout, "fedbn").sum()) == sum(2 * layer.num_channels for layer in layers)


@pytest.mark.parametrize(
    ("method", "what"), [("fedbn", "normalisation layers"), ("fedrep", "`head`"), ("moon", "`head`")]
)
def test_a_model_that_lacks_what_a_method_needs_is_refused(method, what):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2))
    setting = replace(hand.setting(), task=Task(model, {}))
    with pytest.raises(ValueError, match=what):
        methods.load(method)().initial(setting, setting.task.theta)


def test_moon_contrast_is_the_mean_of_the_printed_loss():
    own, near, far = hand.random(3, 5, seed=1), hand.random(3, 5, seed=2), hand.random(3, 5, seed=3)
    ratios = [F.cosine_similarity(own, other).div(0.5).exp() for other in (near, far)]
    torch.testing.assert_close(contrast(own, near, far, 0.5), -(ratios[0] / (ratios[0] + ratios[1])).log().mean())


def test_moon_without_its_term_is_fedavg_and_keeps_the_previous_model(tmp_path):
    plain = trained(tmp_path, *DIGITS, "task.model=mlp")
    zero = trained(tmp_path, *DIGITS, "task.model=mlp", "method=moon", "method.mu=0.0")
    assert torch.equal(zero.round(-1).end, plain.round(-1).end)
    run = trained(tmp_path, *DIGITS, "task.model=mlp", "method=moon", "clients.per_round=4")
    assert torch.equal(run.client(1, 3).state["theta"], run.round(0).clients[3])


@pytest.mark.parametrize("method", ["scaffold", "feddyn", "moon", "fedrep"])
def test_a_client_that_was_away_comes_back_with_what_it_kept(method, tmp_path):
    run = trained(tmp_path, *DIGITS, f"method={method}", "local.momentum=0.0", "clients.per_round=2", "rounds=6")
    cohorts = {index: set(run.round(index).ids.tolist()) for index in run.rounds()}
    client, back = next(
        (client, index)
        for index in range(2, 6)
        for client in cohorts[index]
        if client not in cohorts[index - 1] and any(client in cohorts[before] for before in range(index - 1))
    )
    row = run.round(back).ids.tolist().index(client)
    theta, _ = replay(run, [(back, client, 0)])
    assert torch.equal(theta[0], run.round(back).clients[row])


def test_persistent_moments_come_back_from_the_record(tmp_path):
    run = trained(tmp_path, "local.persist_optimizer=true", "clients.per_round=4")
    theta, _ = replay(run, [(2, client, 0) for client in range(4)])
    assert torch.equal(theta, run.round(2).clients)


def test_lost_client_state_is_named(tmp_path):
    run = trained(tmp_path, "method=feddyn", "clients.per_round=4", "keep.clients=last 1")
    with pytest.raises(LookupError, match="did not keep its clients' state"):
        run.client(2, 0)
