"""Differences to a reference: one rule in figures, looks and explorer, that refuses runs on other data."""

import numpy as np
import pytest
import tiny
import xarray as xr

import drift
from drift.analyses.rounds.paired import counterpart
from drift.config.load import read, validated
from drift.record.recorder import Recorder
from drift.runs.growing_run import GrowingRun
from drift.simulation.simulate import simulate
from figures import gallery
from figures.gallery._paired import paired
from figures.selection.groups import groups
from figures.selection.lines import differences, lines


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """FedAvg on digits 0 to 4, FedProx on digits 5 to 9 and on blobs, and FedProx on FedAvg's data; one seed."""
    folder = tmp_path_factory.mktemp("runs")

    def digits(classes, *method):
        task = {**tiny.DIGITS["task"], "classes": classes, "train_samples": 60}
        return simulate(read(validated({**tiny.DIGITS, "rounds": 2, "task": task}), *method), runs=folder)

    return {
        "reference": digits([0, 1, 2, 3, 4]),
        "classes": digits([5, 6, 7, 8, 9], "method=fedprox"),
        "dataset": tiny.trained(folder, "rounds=2", "method=fedprox"),
        "same": digits([0, 1, 2, 3, 4], "method=fedprox"),
    }


@pytest.mark.parametrize(("other", "named"), [("classes", "classes"), ("dataset", "fingerprint")])
def test_runs_on_other_data_have_no_difference_anywhere(runs, other, named):
    pair = [runs["reference"], runs[other]]
    reference = next(name for name, group in groups(pair).items() if group[0].label == "fedavg")
    with pytest.raises(ValueError, match=rf"other data than the reference .*differ in .*{named}"):
        gallery.load("numbers-rounds").data(pair, number="loss", reference=reference)
    last = [[float(run.metrics()["loss"].values[-1])] for run in pair]
    ds = xr.Dataset({"loss": (("algorithm", "seed"), last)}, {"algorithm": ["fedavg", "fedprox"], "seed": [5]})
    with pytest.raises(ValueError, match="other data than the reference"):
        paired(ds, "accuracy-rounds", "fedavg", pair)
    growing = {run.name: GrowingRun(run.folder, run.context) for run in pair}
    for run in growing.values():
        run.update()
    shown = lines(growing.values(), lambda run: run.metrics().loss)
    compared, remarks = differences(shown, shown[0].group if shown[0].run.label == "fedavg" else shown[1].group)
    assert not compared
    assert remarks == [f"{runs[other].name}: it was trained on other data than the reference."]


@pytest.fixture
def recorded(tmp_path):
    """Records a run of another program, whose description is given."""

    def record(name, loss, **told):
        recorder, model = Recorder(tmp_path / name, **told), {"w": np.zeros(3)}
        for _ in range(2):
            clients = {k: ({"w": model["w"] + k + 1}, 10 + k) for k in range(3)}
            recorder.round(start=model, clients=clients, end={"w": model["w"] + 2}, metrics={"loss": loss})
            model = {"w": model["w"] + 2}
        return drift.open(tmp_path / name)

    return record


def test_recorded_runs_on_data_of_other_names_have_no_difference(recorded):
    runs = [recorded(data, 2.0, method=f"mine-{data}", data=data, seed=1) for data in ("CIFAR-10", "MNIST")]
    with pytest.raises(ValueError, match=r"\(CIFAR-10\) .*\(MNIST\): they differ in data"):
        counterpart(runs[0], runs[1:])
    assert counterpart(runs[0], runs[:1]) is runs[0]


def test_recorded_runs_whose_data_nobody_stated_have_no_difference(recorded):
    runs = [recorded(name, 2.0, method=name, seed=1) for name in ("mine", "yours")]
    with pytest.raises(ValueError, match="the data of run mine are not known"):
        counterpart(runs[0], runs[1:])


@pytest.mark.parametrize(
    "told", [[{"data": "CIFAR-10"}, {"data": "MNIST"}], [{"settings": {"lr": 0.1}}, {"settings": {"lr": 1.0}}]]
)
def test_recorded_runs_of_other_data_or_settings_are_no_seeds_of_one_group(recorded, told):
    runs = [recorded(f"run{k}", 1.0 + k, method="mine", seed=k, **about) for k, about in enumerate(told)]
    same = recorded("run2", 4.0, method="mine", seed=2, **told[0])
    found = gallery.load("numbers-rounds").data([*runs, same], number="loss", seeds="interval")
    values = {str(name): float(mean[0]) for name, mean in zip(found.name.values, found.group_mean.values, strict=True)}
    (first, second) = (str(next(iter(_flat(about)))) for about in told)
    assert values == {f"mine, {first}": 2.5, f"mine, {second}": 2.0}


def _flat(about):
    return [f"called {value}" if key == "data" else f"lr {value['lr']}" for key, value in about.items()]


def test_runs_on_the_same_data_have_the_difference_of_their_numbers(runs):
    pair = [runs["reference"], runs["same"]]
    reference = next(name for name, group in groups(pair).items() if group[0].label == "fedavg")
    found = gallery.load("numbers-rounds").data(pair, number="loss", reference=reference)
    expected = runs["same"].metrics()["loss"].values - runs["reference"].metrics()["loss"].values
    assert found.value.values.ravel() == pytest.approx(expected)


def test_the_counterpart_has_the_seed_and_the_data(runs):
    assert counterpart(runs["same"], [runs["dataset"], runs["reference"]]) is runs["reference"]
    with pytest.raises(LookupError, match="no run of its seed, 5"):
        counterpart(runs["same"], [])
