"""Clients that average models of their own: iterates, valleys and soups, by hand and against plain training."""

from dataclasses import replace

import pytest
import torch

from drift.config import method as methods
from drift.methods.soups import Candidate, greedy
from drift.methods.swad import valley
from drift.training.validation import validate
from tests.drift import hand
from tests.tiny import trained

HELD = ("clients.valid_ratio=0.3", "local.epochs=2")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), *HELD, "clients.per_round=4", "rounds=1")


@pytest.fixture
def client(run):
    return run.client(0, 1)


def iterates(client, epochs):
    """Models after 1, 2, .. epochs of one plain training (a longer training begins like a shorter one)."""
    ends = []
    for count in range(1, epochs + 1):
        local = client.local.model_copy(update={"epochs": count})
        ends.append(replace(client, local=local).train().theta)
    return ends


def test_swa_is_the_mean_of_the_models_at_the_ends_of_cycles(client):
    update = methods.load("swa")(cycles=3).local(client)
    ends = iterates(client, 6)
    torch.testing.assert_close(update.theta, (ends[1] + ends[3] + ends[5]) / 3)


def test_swa_with_one_cycle_is_fedavg(tmp_path):
    plain, found = trained(tmp_path), trained(tmp_path, "method=swa", "method.cycles=1")
    assert torch.equal(found.round(-1).end, plain.round(-1).end)


def test_swa_cyclic_rate_falls_to_its_end_in_every_cycle(client):
    seen = []
    local = client.local.model_copy(update={"momentum": 0.0})
    job = replace(client, local=local)
    original = type(job).train

    def spy(self, *args, rate=None, **options):
        seen.extend(rate(step) for step in range(8))
        return original(self, *args, rate=rate, **options)

    type(job).train = spy
    try:
        methods.load("swa")(schedule_lr="cyclic", lr_end=0.1, cycles=2).local(job)
    finally:
        type(job).train = original
    from drift.training.client import steps

    assert steps(job) == 4
    assert seen == pytest.approx([0.775, 0.55, 0.325, 0.1] * 2)


def test_valley_by_hand():
    falling = [5.0, 3.0, 2.0, 1.0, 1.2, 1.1, 4.0, 5.0, 6.0, 7.0]
    assert valley(falling, 3, 2, 1.3) == slice(3, 6)
    assert valley(falling, 3, 9, 1.3) == slice(3, 10)
    assert valley([3.0, 2.0, 1.0], 2, 2, 1.3) is None
    assert valley([1.0, 2.0], 3, 6, 1.3) is None
    assert valley([1.0, 1.0, 1.0], 3, 6, 1.3) == slice(0, 3)
    assert valley([1.0] * 3 + [2.0] * 6, 3, 6, 1.3) == slice(0, 3)


def test_swad_averages_every_iterate_of_the_valley(client, monkeypatch):
    script = iter([(9.0, 0.0), (1.0, 0.0), (2.0, 0.0), (2.0, 0.0)])
    monkeypatch.setattr("drift.methods.swad.validate", lambda *given: next(script))
    job = replace(client, local=client.local.model_copy(update={"epochs": 4}))
    update = methods.load("swad")(cycles=1, patience_start=2).local(job)
    assert update.report["valley"].tolist() == [1, 4]
    per_epoch = job.train().steps // 4
    every = [
        replace(job, local=job.local.model_copy(update={"steps": count})).train().theta
        for count in range(per_epoch + 1, 4 * per_epoch + 1)
    ]
    torch.testing.assert_close(update.theta, torch.stack(every).mean(0))


def test_swad_without_a_valley_sends_the_last_iterate(client):
    update = methods.load("swad")(cycles=1, patience_start=5).local(client)
    assert torch.equal(update.theta, client.train().theta)


def test_a_soup_of_one_candidate_with_the_local_settings_is_its_best_epoch(client):
    local = client.local
    one = {"lrs": (local.lr,), "batches": (local.batch,), "dropouts": (0.0,), "weight_decays": (0.0,)}
    update = methods.load("soups")(candidates=1, **one).local(client)
    job = replace(client, local=local)
    order = client.generator("candidate-0")
    ends = []
    for epochs in (1, 2):
        order = client.generator("candidate-0")
        job.train(batches=job.batches(epochs=epochs, order=order))
        ends.append((validate(job, client.held_out)[1], epochs, job.flat.theta.clone()))
    torch.testing.assert_close(update.theta, min(ends, key=lambda end: end[:2])[2])
    assert update.report["ingredients"].item() == 1


def test_uniform_soups_average_all_and_greedy_ones_only_what_helps(client):
    uniform = methods.load("soups")(candidates=3, lrs=(0.05,), batches=(8,)).local(client)
    assert uniform.report["ingredients"].item() == 3
    good = client.train().theta
    bad = client.start + 50 * hand.random(len(good), seed=4).to(good)
    none = torch.zeros(0)
    held = client.held_out
    client.flat.load(good)
    least = validate(client, held)[1]
    client.flat.load(bad)
    most = validate(client, held)[1]
    client.flat.load((good + bad) / 2)
    assert validate(client, held)[1] > least
    found = [Candidate(bad, none, most), Candidate(good, none, least), Candidate(good.clone(), none, least)]
    chosen = greedy(client, found, held)
    assert [one.error for one in chosen] == [least, least]


def test_validation_is_the_mean_over_held_out_samples_in_eval_mode(client):
    client.flat.load(client.start)
    client.flat.training(True)
    held = client.held_out
    loss, wrong = validate(client, held)
    outputs = client.flat.outputs(held.inputs).detach()
    assert loss == pytest.approx(float(torch.nn.functional.cross_entropy(outputs, held.targets)), rel=1e-6)
    assert wrong == pytest.approx(float((outputs.argmax(1) != held.targets).double().mean()))
    assert client.flat.module.training
    client.flat.training(False)


@pytest.mark.parametrize("name", ["swad", "soups", "diwa"])
def test_without_held_out_data_the_remedy_is_named(name):
    with pytest.raises(ValueError, match=r"set clients.valid_ratio=0\.2"):
        hand.experiment(name)


def test_held_out_data_come_back_from_the_record_and_are_not_trained_on(run):
    client = run.client(0, 1)
    both = torch.cat([client.samples.inputs, client.held_out.inputs])
    assert len(client.held_out) > 0
    assert len(torch.unique(both, dim=0)) == len(client.samples) + len(client.held_out)


def test_validation_of_one_output_counts_wrong_signs(client):
    from types import SimpleNamespace

    logits = torch.tensor([[0.5], [-1.0], [2.0]])
    flat = SimpleNamespace(
        module=torch.nn.Module(),
        training=lambda on: None,
        outputs=lambda inputs: logits,
        loss=lambda outputs, targets: outputs.flatten(),
    )
    job = SimpleNamespace(flat=flat, start=client.start)
    samples = type(client.held_out)(torch.zeros(3, 1), torch.tensor([1, 1, 0]))
    assert validate(job, samples) == pytest.approx((0.5, 2 / 3))
