"""What leaves a run again: models as files, series as tables, numbers for trackers."""

import importlib.util
import struct

import numpy as np
import pandas as pd
import pytest
import tiny
import torch

import drift
import landscape
from drift.analyses.rounds.export_table import table, table_file
from drift.record.recorder import Recorder
from drift.runs.export_model import SUFFIXES, save_transformers, state_dict, state_file
from drift.trackers import names, track, tracker
from landscape.model.checkpoint import read_tensors
from landscape.models import build_model
from landscape.results.atomic_write import write_bytes

NEEDS = {"tensorboard": "tensorboard", "mlflow": "mlflow", "wandb": "wandb"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_model_back(run, tmp_path, suffix):
    record = run.round(1)
    client = int(record.ids[2])
    state = state_dict(run, 1, client)
    write_bytes(tmp_path / f"m{suffix}", state_file(state, suffix))
    read = read_tensors(tmp_path / f"m{suffix}")
    assert torch.equal(run.task.layout.theta(read), record.clients[2])
    module = run.task.model
    module.load_state_dict(read)
    assert torch.equal(run.task.layout.theta(state_dict(run)), run.round(-1).end)


def test_absent_models_and_formats_are_named(run):
    other = next(iter(set(range(4)) - set(run.round(0).ids.tolist())))
    with pytest.raises(LookupError, match=f"client {other} was not in round 0"):
        state_dict(run, 0, other)
    with pytest.raises(ValueError, match="the suffixes are"):
        state_file({}, ".h5")
    with pytest.raises(ValueError, match="not a model of transformers"):
        save_transformers(run, state_dict(run), None)


def test_a_table_holds_metrics_and_drift_of_every_round(run, tmp_path):
    frame = table(run)
    assert frame.index.tolist() == run.rounds()
    assert frame.loss.tolist() == [run.round(index).metrics["loss"] for index in run.rounds()]
    assert {"coherence", "client_variance"} <= set(frame.columns)
    assert frame.attrs["units"]["loss"] == "nats"
    write_bytes(tmp_path / "t.csv", table_file(frame, ".csv"))
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "t.csv").loss, frame.loss)
    pytest.importorskip("pyarrow", reason="no pyarrow here; pip install pyarrow")
    write_bytes(tmp_path / "t.parquet", table_file(frame, ".parquet"))
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "t.parquet").coherence, frame.coherence)


def read_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (path,) = folder.glob("*/events*")
    events = EventAccumulator(str(path)).Reload()
    return {event.step: event.value for event in events.Scalars("loss")}


def read_mlflow(folder):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    (found,) = client.search_runs([client.get_experiment_by_name("fedscape").experiment_id])
    assert found.data.params["local.lr"] == "0.05"
    return {metric.step: metric.value for metric in client.get_metric_history(found.info.run_id, "loss")}


def read_wandb(folder):
    from wandb.proto import wandb_internal_pb2

    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    found = {}
    for data in logged(path.read_bytes()):
        row = {}
        for item in wandb_internal_pb2.Record.FromString(data).history.item:
            row[item.key or item.nested_key[0]] = item.value_json
        if "loss" in row:
            found[int(row["round"])] = float(row["loss"])
    return found


def logged(content):
    """Records of a file in LevelDB's log format: blocks of 32 KiB, of pieces with checksum, length and kind."""
    place, whole = 7, b""
    while place + 7 <= len(content):
        if place % 32768 > 32768 - 7:
            place += -place % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or the last piece of one
            yield whole
            whole = b""


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", names())
def test_trackers_hold_every_round(run, tmp_path, name):
    if importlib.util.find_spec(NEEDS[name]) is None:
        with pytest.raises(LookupError, match="pip install"):
            tracker(name, tmp_path)
        pytest.skip(f"no {name} here; pip install {NEEDS[name]}")
    track(run, tracker(name, tmp_path))
    read = {"tensorboard": read_tensorboard, "mlflow": read_mlflow, "wandb": read_wandb}[name](tmp_path)
    assert read == pytest.approx({index: run.round(index).metrics["loss"] for index in run.rounds()})


@pytest.mark.parametrize("lora", [0, 2])
def test_a_transformers_model_is_read_back_by_transformers(tmp_path, lora):
    pytest.importorskip("peft", reason="the extra hf is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 20}
    configuration = transformers.ViTConfig(**sizes, image_size=16, patch_size=8, num_labels=7)
    transformers.AutoModelForImageClassification.from_config(configuration).save_pretrained(tmp_path / "vit")
    model = build_model("hf", (3, 16, 16), 2, seed=0, source=str(tmp_path / "vit"), lora=lora)
    x = torch.randn(4, 3, 16, 16)
    task = (model, torch.nn.CrossEntropyLoss(reduction="none"), (x, torch.arange(4) % 2))
    recorder = Recorder(tmp_path / "run", model)
    end = {name: value + 0.1 if value.is_floating_point() else value for name, value in model.state_dict().items()}
    recorder.round(start=model, clients={}, end=end)
    run = drift.open(tmp_path / "run", task=task)
    rest = save_transformers(run, state_dict(run), tmp_path / "out")
    assert sorted(rest) == ["head.bias", "head.weight"]
    body = transformers.AutoModel.from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        class_token = body(pixel_values=x).last_hidden_state[:, 0]
        head = torch.nn.functional.linear(class_token, end["head.weight"], end["head.bias"])
    torch.testing.assert_close(head, run.task.outputs(run.round(-1).end, "test"), rtol=1e-4, atol=1e-4)


class Tied(torch.nn.Module):
    """A model whose last layer has the weight of its first one."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)
        self.last.weight = self.first.weight

    def forward(self, inputs):
        return self.last(torch.tanh(self.first(inputs)))


def test_a_tied_tensor_is_exported_under_all_its_names(tmp_path):
    torch.manual_seed(0)
    net, recorder = Tied(), Recorder(tmp_path / "run", Tied())
    state = {name: value + 1 for name, value in net.state_dict().items()}
    recorder.round(start=net, clients={0: (state, 1)}, end=state)
    samples = landscape.Samples(torch.randn(5, 4), torch.arange(5) % 4)
    run = drift.open(tmp_path / "run", task=landscape.Task(net, {"train": samples, "test": samples}))
    found = state_dict(run)
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], state["first.weight"]) for name in found)
