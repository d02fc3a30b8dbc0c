"""Differences to a reference: one rule in figures, looks and explorer, that refuses runs on other data."""

import pytest
import tiny
import xarray as xr

from drift.analyses.rounds.paired import counterpart
from drift.config.load import read, validated
from drift.runs.growing_run import GrowingRun
from drift.simulation.simulate import simulate
from figures import gallery
from figures.explore.lines import differences, lines
from figures.gallery._paired import paired
from figures.selection.groups import groups


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
    shown, _ = lines(growing, "loss")
    compared, remarks = differences(shown, shown[0].group if shown[0].run.label == "fedavg" else shown[1].group)
    assert not compared
    assert remarks == [f"{runs[other].name}: it was trained on other data than the reference."]


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
