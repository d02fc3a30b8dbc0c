"""The round loop: what is recorded, the same bits again, and what breaks cleanly."""

import numpy as np
import pytest
import tiny
import torch

import drift
from drift.config.load import read, validated
from drift.simulation.simulate import simulate
from drift.store import files
from drift.store.round_record import CLIENTS, PREVIOUS, START, STEP
from landscape.sweep.evaluate import evaluate


def test_a_round_records_what_happened(tmp_path):
    run = simulate(validated(tiny.DIGITS), runs=tmp_path)
    assert run.rounds() == [0, 1, 2, 3]
    before = run.task.theta
    for index in run.rounds():
        record = run.round(index)
        assert record.ids.tolist() == run.cohort(index).tolist()
        assert record.sizes.tolist() == [len(run.parts[client]) for client in record.ids]
        assert torch.equal(record.start, before)
        torch.testing.assert_close(record.end, record.fma)
        torch.testing.assert_close(record.weights, record.shares)
        loss = evaluate(run.task, record.end[None], torch.ones(1, 1))["loss"]
        assert record.metrics["loss"] == pytest.approx(float(loss))
        before = record.end
    assert run.metrics().accuracy[-1] > run.metrics().accuracy[0]


def test_threads_have_the_bound_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with pytest.raises(ValueError, match=r"^threads is 33; give 1 or more, and at most 32 \(16 for each core\)\.$"):
        simulate(validated(tiny.DIGITS), "threads=33", runs=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_gram_matrix_holds_start_previous_step_and_updates(tmp_path):
    run = simulate(validated(tiny.DIGITS), runs=tmp_path)
    first, second = run.round(0), run.round(1)
    previous = first.shares.to(first.deltas) @ first.deltas
    rows = torch.stack([second.start, previous, second.end - second.start, *second.deltas]).double()
    torch.testing.assert_close(second.gram, rows @ rows.T)
    assert first.gram[PREVIOUS, PREVIOUS] == 0
    assert first.gram[START, START] > 0
    assert first.gram[STEP, CLIENTS] != 0


def test_a_run_says_which_version_trained_it(tmp_path):
    assert tiny.trained(tmp_path).about["versions"]["fedscape"] == drift.__version__


def test_training_again_returns_the_run_and_trains_nothing(tmp_path):
    seen: list[int] = []
    first = simulate(validated(tiny.DIGITS), runs=tmp_path, progress=lambda record: seen.append(record.index))
    simulate(validated(tiny.DIGITS), runs=tmp_path, progress=lambda record: seen.append(record.index))
    assert seen == [0, 1, 2, 3]
    assert len(list(tmp_path.glob("fedavg-*"))) == 1
    assert first.experiment == validated(tiny.DIGITS)


def test_one_client_of_one_round_trained_alone_gives_the_recorded_bits(tmp_path):
    run = simulate(validated(tiny.DIGITS), runs=tmp_path)
    record = run.round(2)
    client = int(record.ids[1])
    again = run.method.local(run.client(2, client))
    assert torch.equal(again.theta, record.clients[1])
    other = run.method.local(run.client(2, client, replicate=1))
    assert not torch.equal(other.theta, record.clients[1])


def test_methods_share_initial_model_cohorts_and_partition(tmp_path):
    first = simulate(validated(tiny.DIGITS), runs=tmp_path)
    second = simulate(read(validated(tiny.DIGITS), "method.name=fedeve"), runs=tmp_path)
    assert torch.equal(first.round(0).start, second.round(0).start)
    for one, two in zip(first.parts, second.parts, strict=True):
        assert np.array_equal(one, two)
    for index in first.rounds():
        assert torch.equal(first.round(index).ids, second.round(index).ids)
    assert torch.equal(first.round(0).clients, second.round(0).clients)


def test_one_client_alone_equals_plain_sgd(tmp_path):
    experiment = read(
        validated(tiny.DIGITS), "clients.number=1", "clients.per_round=1", "clients.partition=iid", "rounds=2"
    )
    run = simulate(experiment, runs=tmp_path)
    theta = run.task.theta.clone().requires_grad_()
    flat, samples = run.task.flat(theta.detach()), run.client_samples(0)
    for index in range(2):
        optimizer = torch.optim.SGD([theta], lr=0.1, momentum=0.5)
        for batch in run.client(index, 0).batches():
            optimizer.zero_grad()
            flat.functional_loss(theta, batch).backward()
            optimizer.step()
    assert len(samples) == 200
    torch.testing.assert_close(run.round(-1).end, theta.detach(), rtol=1e-4, atol=1e-6)


def test_data_that_changed_under_a_run_are_noticed(tmp_path):
    run = simulate(read(validated(tiny.DIGITS), "rounds=1"), runs=tmp_path)
    about = files.read_json(run.folder / "run.json")
    files.write_json(run.folder / "run.json", {**about, "fingerprint": "other"})
    (run.folder / "state.safetensors").unlink()
    with pytest.raises(ValueError, match="fingerprint"):
        simulate(read(validated(tiny.DIGITS), "rounds=1"), runs=tmp_path)


def test_a_client_without_samples_returns_its_start_with_weight_zero(tmp_path):
    settings = {
        **tiny.DIGITS,
        "clients": {**tiny.DIGITS["clients"], "number": 30, "per_round": 30, "concentration": 0.05},
    }
    run = simulate(read(validated(settings), "rounds=1"), runs=tmp_path)
    record = run.round(0)
    empty = [row for row, size in enumerate(record.sizes.tolist()) if size == 0]
    assert empty, "no client is empty under this seed; choose another"
    for row in empty:
        assert record.weights[row] == 0
        assert torch.equal(record.clients[row], record.start)


def test_held_out_samples_are_not_trained_on_but_count_as_size(tmp_path):
    run = simulate(read(validated(tiny.DIGITS), "rounds=1", "clients.valid_ratio=0.3"), runs=tmp_path)
    record = run.round(0)
    for client, size in zip(record.ids.tolist(), record.sizes.tolist(), strict=True):
        held = run.dataset.held_out[client]
        assert len(run.parts[client]) + len(held) == size
        assert not set(held) & set(run.parts[client])


def test_the_proxy_set_is_balanced_and_out_of_the_test_set(tmp_path):
    with_proxy = simulate(read(validated(tiny.DIGITS), "rounds=1", "proxy.per_class=3"), runs=tmp_path)
    proxy, test = with_proxy.task.samples["proxy"], with_proxy.task.samples["test"]
    assert torch.bincount(proxy.targets).tolist() == [3] * 10
    assert len(proxy) + len(test) == 360
    with pytest.raises(ValueError, match="lower it"):
        simulate(read(validated(tiny.DIGITS), "rounds=1", "proxy.per_class=300"), runs=tmp_path)
