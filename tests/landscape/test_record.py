"""A training without rounds, recorded by a call or a callback, read by planes, curvature and connectivity."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import landscape

X = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
Y = X[:, :3].argmax(1)


def net(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


def trained(record: landscape.Record, seed: int = 0, steps: int = 7) -> nn.Module:
    model = net(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(steps):
        loss = nn.functional.cross_entropy(model(X), Y)
        record(model, step, loss=loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    record.save(model, steps)
    return model


@pytest.fixture
def task():
    return landscape.make_task(net, nn.CrossEntropyLoss(), (X, Y))


def test_a_loop_records_models_steps_and_metrics(tmp_path):
    record = landscape.Record(tmp_path / "a", every=3)
    assert len(record) == 0 and repr(record).endswith("no checkpoint)")
    model = trained(record)
    assert record.steps == [0, 3, 6, 7] and repr(record).endswith("4 checkpoints, steps 0 to 7)")
    again = landscape.Record(tmp_path / "a")
    layout = landscape.Layout.of(model)
    from drift import read_tensors

    assert torch.equal(layout.theta(read_tensors(again[-1])), layout.theta(model))
    assert torch.equal(layout.buffer_vector(read_tensors(again[-1])), layout.buffer_vector(model))
    metrics = again.metrics.loss
    assert metrics.values[0] > metrics.values[2] and np.isnan(metrics.values[3])
    assert metrics.values[0] == pytest.approx(nn.functional.cross_entropy(net()(X), Y).item())


def test_a_record_without_a_checkpoint_is_named_where_it_is_drawn(tmp_path, task):
    with pytest.raises(ValueError, match=r"there is no model in Record\('.*none': no checkpoint\)"):
        landscape.surface(task, landscape.Record(tmp_path / "none"))


def test_planes_curvature_and_connectivity_read_it(tmp_path, task):
    one, two = (landscape.Record(tmp_path / name, every=2) for name in "ab")
    models = [trained(one, 0), trained(two, 1)]
    ds = landscape.surface(task, one)
    assert ds.analysis == "principal_plane"
    assert ds.mark.values.tolist() == [f"step-{step:06d}" for step in one.steps]
    curvature = one.over_steps(landscape.hessian, task, k=2)
    assert curvature.eigenvalue.dims == ("step", "rank") and curvature.step.values.tolist() == one.steps
    last = landscape.hessian(task, models[0], k=2).eigenvalue.values
    np.testing.assert_array_equal(curvature.eigenvalue.isel(step=-1), last)
    ax = curvature.plot()
    assert ax.get_xlabel() == "step" and len(ax.lines) == 2
    by_path = landscape.barrier(task, one[-1], two[-1])
    assert by_path.barrier == landscape.barrier(task, *models).barrier


def test_a_second_training_and_wrong_calls_are_refused(tmp_path, task):
    record = landscape.Record(tmp_path / "a", every=2)
    trained(record)
    with pytest.raises(ValueError, match="has step 7 already, and step 0 is not later; record another training into"):
        trained(landscape.Record(tmp_path / "a", every=2))
    landscape.Record(tmp_path / "a").save(net(), 8)  # a training that goes on
    assert record.steps[-1] == 8
    with pytest.raises(ValueError, match="every is 0; give the number of steps"):
        landscape.Record(tmp_path, every=0)
    with pytest.raises(LookupError, match="has no checkpoint; record a training there first"):
        landscape.Record(tmp_path / "b").over_steps(landscape.hessian, task)
    with pytest.raises(IndexError, match=r"checkpoint -1 of 0 in .*; is the folder right"):
        landscape.Record(tmp_path / "b")[-1]


def test_tied_weights_and_wrapped_models_are_recorded(tmp_path, task):
    model = net()
    model.again = model[0]  # two names
    record = landscape.Record(tmp_path)
    record(model, 0)
    record(nn.DataParallel(net(3)), 1)
    expected = landscape.Layout.of(net(3)).theta(net(3))
    sweep = landscape.line(task, net(), record[1])
    assert torch.equal(sweep.basis[1], expected)


def test_callbacks_say_what_is_not_installed(tmp_path, monkeypatch):
    import sys

    for package in ("lightning.pytorch", "transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LookupError, match="needs the package 'lightning'; pip install lightning"):
        landscape.Record(tmp_path).lightning()
    with pytest.raises(LookupError, match="needs the package 'transformers'"):
        landscape.Record(tmp_path).transformers()


@pytest.mark.filterwarnings("ignore")
def test_lightning_records_every_step_from_the_start_to_the_end(tmp_path, task):
    lightning = pytest.importorskip("lightning.pytorch")

    class Lit(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def training_step(self, batch, index):
            loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    record, module = landscape.Record(tmp_path / "a", every=3, submodule="net"), Lit()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accumulate_grad_batches=2,
        callbacks=[record.lightning()],
        default_root_dir=tmp_path,
    )
    trainer.fit(module, DataLoader(TensorDataset(X, Y), batch_size=4))
    assert record.steps == [0, 3, 6, 8]
    assert landscape.surface(task, record).mark_loss.values[-1] < landscape.surface(task, record).mark_loss.values[0]
    sweep = landscape.line(task, net(), module.net)
    assert torch.equal(landscape.line(task, record[0], record[-1]).basis, sweep.basis)
    assert record.metrics.loss.values[1] > 0


@pytest.mark.filterwarnings("ignore")
def test_transformers_records_every_step_from_the_start_to_the_end(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    config = transformers.BertConfig(
        vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=2
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    words = torch.arange(24).reshape(8, 3) % 11
    rows = [{"input_ids": row, "labels": row[0] % 2} for row in words]
    record = landscape.Record(tmp_path / "a", every=2)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        num_train_epochs=3,
        per_device_train_batch_size=4,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        logging_steps=1,
    )
    transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[record.transformers()]).train()
    assert record.steps == [0, 2, 4, 6]
    task = landscape.make_task(model, nn.CrossEntropyLoss(), {"train": {"input_ids": words, "labels": words[:, 0] % 2}})
    model.save_pretrained(tmp_path / "saved")
    ds = landscape.surface(task, record[0], record[-1], tmp_path / "saved", metrics=("loss",))
    assert ds.mark.values.tolist() == ["step-000000", "step-000006", "saved", "mean"]
    assert ds.mark_loss.values[1] == ds.mark_loss.values[2]
