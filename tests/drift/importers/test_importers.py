"""Checkpoints of others become runs: the same numbers, nothing unpickled, and every bad file is named."""

import json

import numpy as np
import pytest
import tiny
import torch
from safetensors.torch import save_file

import drift
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.importers.checkpoints import import_checkpoints
from drift.simulation.verify import verify
from landscape.model.checkpoint import read_tensors

KNOWN = ["task.dataset_options={samples=60}", "seed=5"]


@pytest.fixture
def source(tmp_path):
    return tiny.trained(tmp_path / "source")


def export(run, folder, *, suffix=".pt", start=True):
    """The rounds of a run as another program would write them."""
    layout = run.task.layout
    for index in run.rounds():
        record, place = run.round(index), folder / f"round_{index:03d}"
        place.mkdir(parents=True)
        models = {"global": record.end} | ({"start": record.start} if index == 0 and start else {})
        models |= {f"client_{i}": row for i, row in zip(record.ids.tolist(), record.clients, strict=True)}
        for name, theta in models.items():
            state = {key: value.clone() for key, value in layout.named(theta).items()}
            if suffix == ".safetensors":
                save_file(state, place / f"{name}{suffix}")
            else:
                torch.save(state, place / f"{name}{suffix}")
    sizes = {str(i): len(part) for i, part in enumerate(run.parts)}
    (folder / "sizes.json").write_text(json.dumps(sizes))
    return folder


def imported(folder, tmp_path, *overrides):
    return import_checkpoints(folder, *KNOWN, *overrides, model="linear", dataset="blobs", runs=tmp_path / "runs")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_an_exported_run_comes_back(source, tmp_path, suffix):
    found = imported(export(source, tmp_path / "theirs", suffix=suffix), tmp_path)
    assert found.rounds() == source.rounds()
    for index in source.rounds():
        one, two = source.round(index), found.round(index)
        for name in ("ids", "sizes", "start", "end", "clients"):
            assert torch.equal(getattr(one, name), getattr(two, name)), (index, name)
        torch.testing.assert_close(one.gram, two.gram, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(coherence(found).coherence, coherence(source).coherence, rtol=1e-5)
    assert found.about["imported"] is True
    assert verify(found.folder) == []


def test_progress_counts_rounds_for_the_digests_and_for_the_models(source, tmp_path):
    heard = []
    folder = export(source, tmp_path / "theirs")
    options = {"model": "linear", "dataset": "blobs", "runs": tmp_path / "runs"}
    import_checkpoints(folder, *KNOWN, **options, progress=lambda *steps: heard.append(steps))
    assert heard == 2 * [(done, 3) for done in range(4)]


def test_the_numbers_are_measured_on_the_named_data(source, tmp_path):
    found = imported(export(source, tmp_path / "theirs"), tmp_path, "proxy.per_class=2")
    for name in ("loss", "error", "accuracy"):
        assert found.round(-1).metrics[name] == source.round(-1).metrics[name]


def test_without_sizes_all_clients_count_the_same_and_that_is_said(source, tmp_path):
    folder = export(source, tmp_path / "theirs")
    (folder / "sizes.json").unlink()
    found = imported(folder, tmp_path)
    assert found.round(0).weights.tolist() == pytest.approx([1 / 3] * 3)
    assert any("client sizes" in text for text in found.about["unknown"])


def test_without_sizes_clients_have_those_of_the_given_partition(source, tmp_path):
    folder = export(source, tmp_path / "theirs")
    (folder / "sizes.json").unlink()
    partition = 'clients.partition={name="dirichlet", concentration=1.0}'
    found = imported(folder, tmp_path, partition)
    variances = drift_variances(found), drift_variances(source)
    for index in source.rounds():
        assert torch.equal(found.round(index).sizes, source.round(index).sizes)
    for name in ("client_variance", "change_variance"):
        np.testing.assert_allclose(variances[0][name], variances[1][name], rtol=1e-4)
    assert not any("client sizes" in text for text in found.about["unknown"])
    sizes = [len(part) for part in source.parts]
    (folder / "sizes.json").write_text(json.dumps(dict(enumerate([sizes[0] + 1, *sizes[1:]]))))
    words = f"sizes.json gives client 0 {sizes[0] + 1} samples, its part of the task has {sizes[0]}"
    with pytest.raises(ValueError, match=words):
        imported(folder, tmp_path, partition)


def test_a_first_round_without_a_start_serves_the_second(source, tmp_path):
    found = imported(export(source, tmp_path / "theirs", start=False), tmp_path)
    assert found.rounds() == [1, 2]
    assert torch.equal(found.round(1).start, source.round(0).end)
    assert verify(found.folder) == []


def test_importing_twice_gives_one_run(source, tmp_path):
    folder = export(source, tmp_path / "theirs")
    assert imported(folder, tmp_path).folder == imported(folder, tmp_path).folder
    assert len(list((tmp_path / "runs").glob("imported-theirs-*"))) == 1


def test_prefixes_of_wrappers_are_dropped(source, tmp_path):
    folder = export(source, tmp_path / "theirs")
    path = folder / "round_002" / "global.pt"
    state = torch.load(path, weights_only=True)
    torch.save({"state_dict": {f"module.{name}": value for name, value in state.items()}}, path)
    assert torch.equal(imported(folder, tmp_path).round(-1).end, source.round(-1).end)


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Evil(), "holds an object.* and no tensors by name"),
        ([torch.zeros(2)], "has 1 arrays without names, the model's state dict has 2"),
        ({"other.weight": torch.zeros(2, 2)}, r"no 'head\.weight' \(nearest: 'other\.weight'\)"),
        ({"head.weight": torch.full((4, 8), torch.nan), "head.bias": torch.zeros(4)}, "values that are not finite"),
    ],
)
def test_a_bad_checkpoint_is_named_and_never_run(source, tmp_path, content, message):
    folder = export(source, tmp_path / "theirs")
    path = folder / "round_001" / "global.pt"
    torch.save(content, path)
    with pytest.raises(ValueError, match=message) as told:
        imported(folder, tmp_path)
    assert str(path) in str(told.value)
    assert not list((tmp_path / "runs").glob("imported*"))


def test_an_import_stopped_before_its_end_is_done_anew(source, tmp_path):
    folder = export(source, tmp_path / "theirs")
    run = imported(folder, tmp_path)
    (run.folder / "run.json").unlink()
    assert imported(folder, tmp_path).about["imported"]


def test_another_architecture_is_named_with_its_file(source, tmp_path):
    folder = export(source, tmp_path / "theirs")
    path = folder / "round_001" / "global.pt"
    state = torch.load(path, weights_only=True)
    name = next(iter(state))
    torch.save({**state, name: torch.zeros(3, 5)}, path)
    with pytest.raises(ValueError, match=r"has shape \(3, 5\).*another model") as told:
        imported(folder, tmp_path)
    assert str(path) in str(told.value)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_truncated_checkpoint_is_named(source, tmp_path, suffix):
    folder = export(source, tmp_path / "theirs", suffix=suffix)
    path = folder / "round_001" / f"global{suffix}"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"truncated|damaged") as told:
        imported(folder, tmp_path)
    assert str(path) in str(told.value)


def test_a_folder_without_checkpoints_says_what_is_expected(tmp_path):
    with pytest.raises(LookupError, match=r"round_000/global\.pt"):
        imported(tmp_path, tmp_path)


@pytest.mark.parametrize("content", ["{", '{"0": 5}', '{"0": 0, "1": 1, "2": 1, "3": 1}', "[1, 2]"])
def test_bad_sizes_are_refused(source, tmp_path, content):
    folder = export(source, tmp_path / "theirs")
    (folder / "sizes.json").write_text(content)
    with pytest.raises(ValueError, match=r"sizes\.json"):
        imported(folder, tmp_path)


KEYS = ("model_state", "net", "ema", "model", "weights", "params", "network", "state", "teacher")


@pytest.mark.parametrize("deep", [0, 1])
@pytest.mark.parametrize("key", KEYS)
def test_the_only_state_dict_is_read_under_any_key(tmp_path, key, deep):
    path = tmp_path / "global.pt"
    optimizer = {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 0.1}]}
    content = {"epoch": 3, "optimizer": optimizer, key: {"weight": torch.ones(2, 3)}}
    torch.save({"checkpoint": content} if deep else content, path)
    assert torch.equal(read_tensors(path)["weight"], torch.ones(2, 3))


def test_of_several_state_dicts_all_are_named_and_of_none_it_is_said(tmp_path):
    path = tmp_path / "global.pt"
    torch.save({"net": {"a": torch.zeros(2)}, "ema": {"a": torch.ones(2)}, "step": 3}, path)
    with pytest.raises(
        ValueError, match=r"has 2 state dicts: \[net\] \(1 tensors\), \[ema\] .*choose one, as in '.*\[ema\]'"
    ):
        read_tensors(path)
    assert read_tensors(f"{path}[ema]")["a"].tolist() == [1, 1]
    torch.save({"step": 3, "lr": 0.1}, path)
    with pytest.raises(ValueError, match=r"a table of step, lr and no tensors by name; save model\.state_dict\(\)"):
        read_tensors(path)
    torch.save({f"name{place}": place for place in range(20)}, path)
    with pytest.raises(ValueError, match="and 12 more"):
        read_tensors(path)


TRAINING = ("counterfactual", "update_change", "noise_or_drift", "training_cost")


@pytest.mark.parametrize("name", TRAINING)
def test_clients_are_trained_again_only_by_local_settings_that_are_stated(source, tmp_path, name):
    folder = export(source, tmp_path / "theirs")
    parts = ["clients.number=4", "clients.partition=dirichlet", "clients.partition.concentration=1.0", "method=fedavg"]
    options = {"replays": 2, "clients": "all"} if name == "noise_or_drift" else {}
    with pytest.raises(LookupError, match=r"its method and local settings are not known here .*local\.lr=0\.1"):
        getattr(drift, name)(imported(folder, tmp_path, *parts), **options)
    stated = imported(folder, tmp_path, *parts, "local.lr=0.05", "local.batch=8", "local.epochs=1")
    assert getattr(drift, name)(stated, **options).data_vars
