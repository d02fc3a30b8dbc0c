"""Folders of others, by pattern: what is understood, what becomes a run, and what is refused."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import drift
from drift.importers.bare import record_checkpoints
from drift.importers.checkpoint_files import find_checkpoints
from drift.importers.models import preview_import, read_model
from drift.importers.path_patterns import SHIPPED, Patterns, parse_patterns
from drift.runs.export_model import state_dict
from landscape.model.make_task import task_from

CLIENTS = "round{round}/client{client}.pt"


def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))


def make_task():
    x = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    y = x[:, :3].argmax(1)
    return net(), nn.CrossEntropyLoss(reduction="none"), {"train": (x[:20], y[:20]), "test": (x[20:], y[20:])}


def states(seed):
    model = net()
    torch.manual_seed(seed)
    return {k: v + 0.1 * torch.randn_like(v) if v.is_floating_point() else v for k, v in model.state_dict().items()}


def write(path, state):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".safetensors":
        save_file(state, path)
    elif path.suffix == ".npz":
        np.savez(path, **{name: value.numpy() for name, value in state.items()})
    else:
        torch.save(state, path)


@pytest.fixture
def folder(tmp_path):
    """Rounds 1 to 3, clients 0, 2 and 7, each model another one."""
    for index in (1, 2, 3):
        for client in (0, 2, 7):
            write(tmp_path / f"ck/round{index}/client{client}.pt", states(10 * index + client))
        write(tmp_path / f"ck/round{index}/global.pt", states(index))
    return tmp_path / "ck"


def test_a_pattern_makes_a_run_with_the_same_numbers(folder, tmp_path):
    run = record_checkpoints(folder, parse_patterns(CLIENTS), runs=tmp_path / "runs")
    assert run.rounds() == [2, 3]
    record = run.round(3)
    assert record.ids.tolist() == [0, 2, 7]
    assert torch.equal(state_dict(run, 3, 7)["0.weight"], states(37)["0.weight"])
    assert torch.equal(record.start[:20].view(4, 5), states(2)["0.weight"])
    assert record_checkpoints(folder, parse_patterns(CLIENTS), runs=tmp_path / "runs").folder == run.folder


def test_with_a_task_metrics_are_measured_and_analyses_run(folder, tmp_path):
    run = record_checkpoints(folder, parse_patterns(CLIENTS), task=make_task(), runs=tmp_path / "runs")
    model, loss, splits = make_task()
    model.load_state_dict(states(3))
    x, y = splits["test"]
    with torch.no_grad():
        expected = float(loss(model.eval()(x), y).mean())
    assert run.round(3).metrics["loss"] == pytest.approx(expected, rel=1e-5)
    assert run.cached(drift.round_plane, points=3).loss.notnull().all()


def test_without_global_models_means_by_size_stand_for_them(folder, tmp_path):
    for index in (1, 2, 3):
        (folder / f"round{index}/global.pt").unlink()
    (folder / "sizes.json").write_text(json.dumps({"0": 1, "2": 1, "7": 2}))
    run = record_checkpoints(folder, parse_patterns(CLIENTS), runs=tmp_path / "runs")
    record = run.round(2)
    torch.testing.assert_close(record.end, (record.clients * torch.tensor([[1], [1], [2]])).sum(0) / 4)
    assert any("means" in line for line in preview_import(folder, parse_patterns(CLIENTS))["missing"])


@pytest.mark.parametrize("suffix", [".pth", ".safetensors", ".npz"])
def test_named_clients_in_every_format(tmp_path, suffix):
    for index in (0, 1):
        for site in ("berlin", "oslo"):
            write(tmp_path / f"ck/{site}_r{index:02d}{suffix}", states(len(site) + index))
        write(tmp_path / f"ck/global_{index}{suffix}", states(50 + index))
    patterns = Patterns("{client}_r{round}" + suffix, "global_{round}" + suffix)
    run = record_checkpoints(tmp_path / "ck", patterns, runs=tmp_path / "runs")
    assert run.about["names"] == ["berlin", "oslo"]
    assert torch.equal(state_dict(run, 1, "oslo")["2.bias"], states(5)["2.bias"])


def test_a_dry_run_tells_what_is_there_and_writes_nothing(folder, tmp_path):
    (folder / "round3/global.pt").unlink()
    (folder / "extra.pt").write_bytes(b"")
    before = sorted(tmp_path.rglob("*"))
    told = preview_import(folder, parse_patterns(CLIENTS))
    assert (told["files"], told["clients"], told["rounds found"], told["rounds of the run"]) == (11, 3, "1-3", "2")
    assert told["parameters"] == 5 * 4 + 4 + 4 + 4 + 4 * 3 + 3
    assert told["not used"] == ["extra.pt"]
    assert any("round 3" in line for line in told["missing"])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("pfllib", ["client_3_model_2.pt", "server_model_2.pt"]),
        ("fl-bench", ["cifar10_2_lenet5.pt"]),
        ("flower", ["round-2-weights.npz"]),
        ("fedlab", ["round_2/client_3.pt", "round_2/server.pt"]),
        ("fedscape", ["round_0002/client_3.npz", "round_0002/global.npz", "round_0002/start.npz"]),
    ],
)
def test_shipped_patterns_take_the_files_of_their_programs(tmp_path, program, names):
    for name in names:
        write(tmp_path / name, {"w": torch.zeros(2)})
    held = find_checkpoints(tmp_path, SHIPPED[program])
    assert list(held.rounds) == [2] and held.others == []
    assert held.rounds[2].end is not None
    assert list(held.rounds[2].clients) == ([3] if "client" in names[0] else [])


def test_vectors_as_fedlab_saves_them_need_a_task(tmp_path):
    model = nn.Linear(3, 2)
    x = torch.randn(6, 3)
    for index in (0, 1):
        write(tmp_path / f"ck/round_{index}/server.pt", torch.arange(8.0) + index)
        write(tmp_path / f"ck/round_{index}/client_4.pt", torch.ones(8))
    with pytest.raises(ValueError, match="holds numbers without names"):
        record_checkpoints(tmp_path / "ck", SHIPPED["fedlab"], runs=tmp_path / "runs")
    task = (model, nn.CrossEntropyLoss(reduction="none"), (x, x[:, :2].argmax(1)))
    run = record_checkpoints(tmp_path / "ck", SHIPPED["fedlab"], task=task, runs=tmp_path / "runs")
    assert torch.equal(state_dict(run, 1)["bias"], torch.tensor([7.0, 8.0]))


def test_vectors_of_a_whole_state_dict_are_cut_as_fedlab_joins_them(tmp_path):
    held = states(3)
    write(tmp_path / "a.pt", torch.cat([value.view(-1) for value in held.values()]))  # serialize_model
    model, layout = read_model(tmp_path / "a.pt", task_from(make_task())), task_from(make_task()).layout
    assert torch.equal(model["theta"], layout.theta(held))
    assert torch.equal(model["buffers"], layout.buffer_vector(held))
    for length in (layout.size, 7):  # without buffers; another model
        write(tmp_path / "a.pt", torch.ones(length))
        with pytest.raises(ValueError, match=rf"a\.pt holds one vector of {length} numbers"):
            read_model(tmp_path / "a.pt", task_from(make_task()))


def test_arrays_as_flowers_guide_saves_them_become_a_run_with_a_task(tmp_path):
    for index in (1, 2, 3):
        (tmp_path / "ck").mkdir(exist_ok=True)
        np.savez(tmp_path / f"ck/round-{index}-weights.npz", *(v.numpy() for v in states(index).values()))
    with pytest.raises(LookupError, match=r"fit --pattern flower\."):
        record_checkpoints(tmp_path / "ck", runs=tmp_path / "runs")
    assert (
        "names of the tensors: give the model by --task or --model"
        in preview_import(tmp_path / "ck", SHIPPED["flower"])["missing"]
    )
    with pytest.raises(ValueError, match="without names"):
        record_checkpoints(tmp_path / "ck", SHIPPED["flower"], runs=tmp_path / "runs")
    run = record_checkpoints(tmp_path / "ck", SHIPPED["flower"], task=make_task(), runs=tmp_path / "runs")
    assert run.rounds() == [2, 3]
    assert all(torch.equal(value, state_dict(run, 3)[name]) for name, value in states(3).items())
    write(tmp_path / "ck/round-4-weights.npz", {"arr_0": torch.ones(2)})
    with pytest.raises(ValueError, match=r"round-4-weights.npz has 1 arrays without names, the model's .* has 9"):
        record_checkpoints(tmp_path / "ck", SHIPPED["flower"], task=make_task(), runs=tmp_path / "runs")


def test_every_shipped_pattern_says_what_it_assumes():
    assert {program for program, patterns in SHIPPED.items() if not patterns.assumed} == {"fedscape"}


def test_who_holds_what_is_told_by_the_names_of_clients(tmp_path):
    for index in (1, 2):
        for client in ("north", "east"):
            write(tmp_path / f"ck/{index}/{client}.pt", states(10 * index + len(client)))
    parts = {"north": range(12), "east": [15, 14]}
    run = record_checkpoints(
        tmp_path / "ck", parse_patterns("{round}/{client}.pt"), task=(make_task(), parts), runs=tmp_path / "runs"
    )
    again = drift.open(run.folder, task=make_task(), parts=parts)
    for one in (run, again):
        assert one.round(one.rounds()[0]).sizes.tolist() == [2, 12]
        assert one.round(one.rounds()[0]).weights.tolist() == pytest.approx([1 / 7, 6 / 7])
        assert [len(part) for part in one.parts] == [2, 12]  # numbered in ascending order of names
        assert np.isfinite(drift.label_scatter(one).within_divergence).all()
    with pytest.raises(LookupError, match="it is not known which client has which samples"):
        drift.label_scatter(drift.open(run.folder, task=make_task()))
    for wrong, message in [
        ({"north": [1], "west": [2]}, "clients have the names east, north"),
        ([[1], [20]], "from 0 to 19"),
        ([[1]], "parts has 1 clients, run .* has 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            _ = drift.open(run.folder, task=make_task(), parts=wrong).task


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("../{round}/{client}.pt", "leads out"),
        ("/etc/{round}/{client}.pt", "leads out"),
        ("client{client}.pt", r"takes \{round\} and \{client\}"),
        ("{round}/{site}/{client}.pt", "site"),
        ("pfl", "Known: fedscape"),
    ],
)
def test_bad_patterns_are_refused(pattern, message):
    with pytest.raises(ValueError, match=message):
        parse_patterns(pattern)


def test_two_files_of_one_place_are_named(folder):
    write(folder / "round01/client0.pt", states(1))
    with pytest.raises(ValueError, match="are both round 1, client 0"):
        find_checkpoints(folder, parse_patterns(CLIENTS))
