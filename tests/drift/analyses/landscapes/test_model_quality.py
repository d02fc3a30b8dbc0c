import numpy as np
import pytest
import tiny
import torch

import drift
import landscape
from drift.analyses.landscapes import model_quality
from landscape.sweep.evaluate import evaluate


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "keep.clients=all", "task.dataset_options.samples=90")


def test_the_scale_curve_passes_the_model(run):
    ds = model_quality.scale_curve(run, points=8, low=0.5, high=1.2)
    assert ds.attrs["round"] == 2
    assert float(ds.error.isel(t=5)) == pytest.approx(float(ds.mark_error[0]))
    assert float(ds.mark_error[0]) == pytest.approx(run.round(-1).metrics["error"])


def test_histograms_count_every_parameter_of_every_round(run):
    ds = model_quality.weight_histograms(run, rounds=(0, -1), bins=7)
    assert ds["round"].values.tolist() == [0, 2]
    assert (ds["count"].sum("value") == int(ds.parameters)).all()
    inside = model_quality.weight_histograms(run, bins=7, limit=0.2)
    assert int(inside["count"].sum() + inside.outside.sum()) == int(ds.parameters)


def test_noise_on_real_numbers_is_scaled_by_their_range(run):
    mean, std = run.dataset.normalisation
    inputs = torch.cat([run.task.samples[split].inputs for split in ("train", "test")])
    unit = inputs * torch.tensor(std) + torch.tensor(mean)
    assert float(unit.min()) == pytest.approx(0, abs=1e-6)
    assert float(unit.max()) == pytest.approx(1, abs=1e-6)
    ds = model_quality.noise_robustness(run, levels=(0.0, 0.6), draws=2)
    assert float(ds.accuracy) == pytest.approx(1 - run.round(-1).metrics["error"])
    assert float(ds["drop"][0]) == pytest.approx(0, abs=1e-12)
    assert float(ds["drop"][1]) > 0.1


def test_noise_on_inputs_of_a_users_task_is_scaled_by_their_range(tmp_path):
    models = [torch.nn.Linear(4, 3) for _ in range(3)]
    recorder = drift.Recorder(tmp_path / "run", models[0])
    recorder.round(start=models[0], clients={k: (model, 9) for k, model in enumerate(models)}, end=models[1])
    x = torch.cat([torch.randn(60, 4), 6 * torch.randn(30, 4)])
    y = models[1](x).argmax(1)
    data = {"train": (x[:60], y[:60]), "test": (x[60:], y[60:])}
    run = drift.open(tmp_path / "run", task=landscape.make_task(models[0], torch.nn.CrossEntropyLoss(), data))
    ds = model_quality.noise_robustness(run, levels=(0.0, 0.5), draws=2)
    assert float(ds.accuracy) == float(ds.noisy[0, 0]) == 1


def test_noise_on_images_undoes_their_scaling(tmp_path):
    options = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=60", "task.test_samples=40")
    for scale, known in (("unit", ((0.0,), (1.0,))), ("half", ((0.5,), (0.5,))), ("standard", ((0.3058,), (0.3762,)))):
        data = tiny.trained(tmp_path, *options, "rounds=1", f"task.scale={scale}").dataset
        assert data.normalisation == known
        raw = data.samples["train"].inputs * known[1][0] + known[0][0]
        assert float(raw.min()) == pytest.approx(0, abs=1e-6)
        assert float(raw.max()) == pytest.approx(1, abs=1e-6)


def test_larger_balls_rise_higher(run):
    ds = model_quality.ball_sharpness(run, radii=(0.1, 0.3, 0.9), steps=3, directions=4)
    assert ds.value.values.tolist() == [0.1, 0.3, 0.9]
    assert (ds.worst.diff("value") > 0).all()
    assert (ds.worst >= ds.one_step).all()


def test_accuracies_on_labels_equal_slow_ones(run):
    ds = model_quality.three_accuracies(run, round=1)
    record, test = run.round(1), run.task.samples["test"]
    classes = len(run.dataset.classes)
    slow = np.zeros((3, 3))
    for row, theta in enumerate(record.clients):
        right = (run.task.outputs(theta, "test").argmax(1) == test.targets).double().numpy()
        assert float(ds.local[row]) == pytest.approx(right.mean())
        for column, client in enumerate(record.ids.tolist()):
            counts = np.bincount(run.labels[run.parts[client]], minlength=classes)
            for label, count in enumerate(counts / counts.sum()):
                slow[row, column] += count * right[test.targets.numpy() == label].mean()
    np.testing.assert_allclose(ds.ood, slow)
    off = slow[~np.eye(3, dtype=bool)].reshape(3, 2)
    assert float(ds.worst_ood) == pytest.approx(off.min(1).mean())
    assert float(ds.ood_min) == pytest.approx(off.min())
    assert float(ds.global_accuracy) == pytest.approx(1 - record.metrics["error"])
    assert float(ds.averaged_local) == pytest.approx(float(ds.local.mean()))


def test_accuracies_on_training_data_are_those_of_the_clients(run):
    ds = model_quality.three_accuracies(run, criterion="train")
    record = run.round(-1)
    ids = record.ids.tolist()
    for client in ids:
        found = evaluate(run.task, record.clients, torch.eye(3), split=run.client_samples(client))
        np.testing.assert_allclose(ds.ood.sel(holder=client), 1 - found["error"])
    sizes = np.array([len(run.parts[client]) for client in ids], dtype=float)
    joined = [np.average(np.delete(ds.ood[i], i), weights=np.delete(sizes, i)) for i in range(3)]
    assert float(ds.ood_mean) == pytest.approx(np.mean(joined))


def test_one_client_has_no_other(tmp_path):
    run = tiny.trained(tmp_path, "clients.per_round=1", "keep.clients=all", "rounds=1")
    assert np.isnan(float(model_quality.three_accuracies(run).worst_ood))


def test_an_unknown_criterion_is_refused(run):
    with pytest.raises(ValueError, match="label, train"):
        model_quality.three_accuracies(run, criterion="images")
