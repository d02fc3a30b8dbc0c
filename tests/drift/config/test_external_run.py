"""Runs that another program trained say what was said of them, and nothing that nobody said."""

import numpy as np
import pytest

import drift
from drift.importers.flower import recorded
from drift.record.recorder import Recorder
from drift.simulation.run_index import index
from drift.store import numpy_files
from figures.looks import palette

SAID = {
    "method": "FedProx",
    "data": "CIFAR-10",
    "partition": "Dirichlet(0.3)",
    "seed": 7,
    "name": "mine",
    "settings": {"mu": 0.1, "clients": ["a", "b"]},
}
MODEL = {"a.weight": np.zeros((2, 3), np.float32)}


def run_of(folder, **told):
    recorder = Recorder(folder, MODEL, **told)
    other = {"a.weight": np.ones((2, 3), np.float32)}
    recorder.round(start=MODEL, clients={0: (other, 3), 1: (MODEL, 4)}, end=MODEL)
    return drift.open(folder)


@pytest.mark.parametrize("left_out", [None, *SAID])
def test_what_was_said_is_listed_and_the_rest_is_said_to_be_unknown(tmp_path, left_out):
    told = {key: value for key, value in SAID.items() if key != left_out}
    run = run_of(tmp_path / "run", **told)
    (row,) = index(tmp_path)
    assert row["problem"] is None
    assert row["method"] == run.label == ("not said" if left_out == "method" else "fedprox")
    assert row["dataset"] == ("not said" if left_out == "data" else "CIFAR-10")
    assert row["partition"] == ("not said" if left_out == "partition" else "Dirichlet(0.3)")
    assert row["seed"] == (None if left_out == "seed" else 7)
    assert run.about["told"] == told
    unknown = " ".join(run.about["unknown"])
    for key, words in {"method": "method", "seed": "seed", "partition": "partition", "data": "dataset"}.items():
        assert (words in unknown) == (key == left_out)


def test_nothing_said_claims_nothing_and_it_cannot_be_trained_again(tmp_path):
    run = run_of(tmp_path / "run")
    (row,) = index(tmp_path)
    assert (row["method"], row["dataset"], row["partition"], row["seed"]) == ("not said", "not said", "not said", None)
    with pytest.raises(LookupError, match="trained by another program"):
        run.method.local(None)


def test_a_run_recorded_before_there_was_anything_to_say_claims_nothing_either(tmp_path):
    run = run_of(tmp_path / "run")
    about = numpy_files.read_json(run.folder / "run.json")
    about["unknown"] = ["method and local settings (recorded as fedavg with defaults)", "partition (recorded as iid)"]
    about["experiment"]["method"] = {"name": "fedavg"}
    numpy_files.write_json(run.folder / "run.json", about)
    (row,) = index(tmp_path)
    assert (row["method"], row["partition"], row["seed"]) == ("not said", "not said", None)


def test_going_on_keeps_what_was_said_and_refuses_another_word(tmp_path):
    run_of(tmp_path / "run", method="FedProx", seed=3)
    recorder = Recorder(tmp_path / "run", MODEL, data="digits")
    recorder.round(clients={0: (MODEL, 3)}, end=MODEL)
    assert drift.open(tmp_path / "run").about["told"] == {"method": "FedProx", "seed": 3, "data": "digits"}
    with pytest.raises(ValueError, match="was recorded with method 'FedProx', not 'FedAdam'"):
        Recorder(tmp_path / "run", MODEL, method="FedAdam")


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"seed": -1}, "seed is -1; give a whole number"),
        ({"seed": 1.5}, r"seed is 1\.5"),
        ({"seed": True}, "seed is True"),
        ({"method": ""}, "method is ''; give a text"),
        ({"data": 3}, "data is 3; give a text"),
        ({"settings": {"a": object()}}, "settings cannot be recorded"),
    ],
)
def test_what_cannot_be_said_is_refused(tmp_path, told, match):
    with pytest.raises(ValueError, match=match):
        Recorder(tmp_path / "run", MODEL, **told)


STRATEGIES = "FedAvg FedProx FedAdam FedAdagrad FedYogi FedAvgM FedMedian FedTrimmedAvg Krum MultiKrum Bulyan QFedAvg"


def test_strategies_are_called_by_their_class_and_have_colours_of_their_own(tmp_path):
    hooks = ("start", "configure_train", "aggregate_train", "aggregate_evaluate")
    labels = []
    for name in STRATEGIES.split():
        made = type(name, (), {hook: lambda self, *args, **options: None for hook in hooks})
        recorded(made(), tmp_path / name, model=MODEL)
        labels.append(run_of(tmp_path / f"{name}-run", method=name).label)
    assert len(set(labels)) == len(set(map(palette.colour, labels))) == len(STRATEGIES.split())
    assert [palette.label(label) for label in labels] == STRATEGIES.split()


def test_a_strategy_of_the_former_interface_is_refused_in_one_line(tmp_path):
    class FedAvg:
        def configure_fit(self):
            """As flwr.server.strategy has it."""

    with pytest.raises(ValueError, match="FedAvg has no start: it is not a strategy of Flower's message interface"):
        recorded(FedAvg(), tmp_path / "run")


def test_two_runs_whose_seed_nobody_said_are_refused_with_how_to_say_it(tmp_path):
    from figures.gallery import _stack

    runs = [run_of(tmp_path / name, **told) for name, told in (("a", {}), ("b", {}), ("c", {"seed": 0}))]
    for some, unsaid in ((runs[:2], "a"), (runs[1:], "b"), (runs[::-1], "b")):
        with pytest.raises(ValueError, match=rf"the seed of {unsaid} is unknown; .* seed=N in Recorder") as refused:
            _stack.stack_runs(some, lambda run: None)
        assert "seed 0" not in str(refused.value)
