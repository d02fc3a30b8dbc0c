"""The device of a run: how it is chosen, what is moved there and back, and that the record says it."""

from __future__ import annotations

import pytest
import torch
from second_device import second_device

import drift
from drift.config import method as methods
from drift.config.method_values import Setting
from drift.engines import batched
from drift.engines import choice as devices
from drift.store import files
from drift.training import server as servers
from drift.training.client import to_cpu
from drift.training.data import build_task, read_data
from drift.training.server import Server
from landscape.model.samples import leaves
from tests.tiny import experiment, trained

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def _cohort(*overrides: str):
    spec = experiment(*overrides)
    data = read_data(spec, None)
    setting = Setting(build_task(spec, data), spec)
    return setting, servers.first_cohort(setting, data, Server.fresh(setting))


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "feddyn", "moon"])
def test_a_client_goes_to_a_device_with_all_it_holds(method):
    setting, clients = _cohort(f"method={method}", "clients.valid_ratio=0.2", "local.momentum=0.0")
    meta = torch.device("meta")
    flat = setting.task.flat(setting.task.theta)
    for client in clients:
        there = devices.to_device(client, meta, flat)
        held = [there.start, there.buffers, *there.state.values(), *there.server.values()]
        held += [there.samples.targets, *leaves(there.samples.inputs), there.held_out.targets]
        assert {tensor.device for tensor in held} == {meta}
        assert there.flat is flat
        assert (there.id, there.seed, there.local) == (client.id, client.seed, client.local)
        assert devices.to_device(client, torch.device("cpu"), flat) is client


def test_auto_takes_a_device_that_agrees_with_the_cpu(monkeypatch):
    setting, clients = _cohort()
    arguments = (setting.task, setting.experiment.method, clients)
    place = devices.choose_device("auto", *arguments, gpu="cpu")  # a device that agrees for certain
    assert (place.name, place.reason) == ("cpu", "auto: it agrees with the CPU")
    monkeypatch.setattr(devices, "TOLERANCE", -1.0)
    place = devices.choose_device("auto", *arguments, gpu="cpu")
    assert place.name == "cpu"
    assert "differ by" in place.reason


@pytest.mark.parametrize("method", sorted({*methods.names()} - {"fedbn", "fedlora"}))  # these need other models
def test_clients_train_on_a_second_device_as_on_the_cpu(method, monkeypatch):
    further = ["method.window=2"] if method == "ima" else []
    setting, clients = _cohort(f"method={method}", "clients.valid_ratio=0.2", "local.momentum=0.0", *further)
    with second_device(monkeypatch):
        place = devices.choose_device("auto", setting.task, setting.experiment.method, clients, gpu="meta")
    assert (place.name, place.reason) == ("meta", "auto: it agrees with the CPU")


def test_the_batched_engine_trains_on_a_second_device_as_on_the_cpu(monkeypatch):
    setting, clients = _cohort()
    expected, _ = batched.train(setting.experiment.method, clients)
    monkeypatch.setitem(batched.BUDGET, "meta", batched.BUDGET["cuda"])
    with second_device(monkeypatch) as device:
        flat = setting.task.flat(setting.task.theta.to(device))
        there = [devices.to_device(client, device, flat) for client in clients]
        updates = [to_cpu(update) for update in batched.train(setting.experiment.method, there)[0]]
    for update, other in zip(updates, expected, strict=True):
        torch.testing.assert_close(update.theta, other.theta)


def test_a_device_that_cannot_train_is_left_or_refused():
    setting, clients = _cohort()
    arguments = (setting.task, setting.experiment.method, clients)
    place = devices.choose_device("auto", *arguments, gpu="meta")  # a device without values
    assert place.name == "cpu"
    assert "fedavg does not train on meta" in place.reason
    with pytest.raises(ValueError, match=r"device is 'cuda', but fedavg does not train on meta.*device=cpu"):
        devices.choose_device("cuda", *arguments, gpu="meta")


def test_what_was_chosen_stands_in_the_record_and_names_runs_where_it_was_asked_for(tmp_path):
    run = trained(tmp_path)
    assert run.about["device"] in ("cpu", "cuda")
    assert run.about["device_reason"]
    assert experiment().hash == experiment("device=auto").hash
    assert len({experiment(f"device={name}").hash for name in ("auto", "cpu", "cuda")}) == 3


def test_a_run_begun_on_a_gpu_does_not_go_on_without_one(tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    def stop(record):
        raise Stop

    with pytest.raises(Stop):
        drift.simulate(experiment("rounds=9"), runs=tmp_path, progress=stop)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    path = tmp_path / experiment("rounds=9").slug / "run.json"
    files.write_json(path, {**files.read_json(path), "device": "cuda"})
    with pytest.raises(ValueError, match=r"begun on a GPU.*--set device=cpu"):
        drift.simulate(experiment("rounds=9"), runs=tmp_path)


def test_other_processes_and_a_gpu_exclude_each_other(tmp_path):
    with pytest.raises(ValueError, match="device is cuda, and --workers"):
        drift.simulate(experiment("device=cuda"), runs=tmp_path, workers=2)


@needs_gpu
@pytest.mark.parametrize("engine", ["serial", "batched"])
def test_a_gpu_trains_like_the_cpu(tmp_path, engine):
    one, two = (trained(tmp_path, f"device={name}", f"engine={engine}") for name in ("cpu", "cuda"))
    assert two.about["device"] == "cuda"
    torch.testing.assert_close(two.round(-1).end, one.round(-1).end, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"workers": 1_000_000}])
def test_what_a_machine_does_not_have_is_refused_before_anything_is_written(tmp_path, options, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    workers = options.pop("workers", 1)
    with pytest.raises(ValueError, match=r"no GPU that torch can use|at most \d+"):
        drift.simulate(experiment(), runs=tmp_path, workers=workers, **options)
    assert not list(tmp_path.iterdir())
