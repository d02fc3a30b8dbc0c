"""A run is read without its models, with the numbers that the whole run has, and read on while it grows."""

import os
import shutil

import numpy as np
import pytest
import tiny
import torch
from torch import nn

import drift
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import locality
from drift.analyses.rounds.variance import drift_variances
from drift.record.recorder import Recorder
from drift.runs.growing_run import GrowingRun
from drift.simulation.simulate import simulate
from drift.store import files
from drift.store.file_layout import FIRST_PIECE
from drift.store.files import Damaged, round_path
from drift.store.round_headers import read_small_arrays


def recorded_by_another_loop(folder, rounds):
    """Rounds of a loop of another program, recorded into a folder that may have some already."""
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    recorder = Recorder(folder, model, name="stranger", data="secret", method="FedProx", seed=3)
    for index in range(recorder.next, rounds):
        start = dict(model.state_dict()) if index == 0 else recorder.model()
        clients = {c: ({k: torch.as_tensor(v) + 0.1 * (c + 1) for k, v in start.items()}, 3 + c) for c in (0, 4)}
        end = {k: torch.as_tensor(v) + 0.2 for k, v in start.items()}
        recorder.round(start=start, clients=clients, end=end, metrics={"accuracy": index / 10, "loss": 2.0 - index})


def whole(run):
    """The run, read up to its last round."""
    growing = GrowingRun(run.folder)
    growing.update()
    return growing


def test_analyses_of_the_record_have_the_numbers_of_the_whole_run(tmp_path):
    run = tiny.trained(tmp_path, "method=fedlaw", "method.server_epochs=3", "method.server_lr=0.1", "rounds=5")
    growing = GrowingRun(run.folder)
    assert growing.rounds() == [] and growing.update() == 5 and growing.update() == 0
    for analysis in (coherence, locality, drift_variances):
        assert analysis(growing).equals(analysis(run))
    numbers, metrics = growing.numbers(), run.metrics()
    for name in metrics.data_vars:
        assert (
            np.array_equal(numbers[name], metrics[name], equal_nan=True) and numbers[name].attrs == metrics[name].attrs
        )
    assert numbers.gamma.values.tolist() == [float(run.round(i).extras["gamma"]) for i in run.rounds()]
    assert growing.round(-1).end is None and torch.equal(growing.round(2).gram, run.round(2).gram)


def test_small_arrays_are_those_of_the_file_in_either_format_however_long_its_header_is(tmp_path):
    run = tiny.trained(tmp_path, "keep.compress=true", "rounds=1", "method=fedprox")
    small, record = read_small_arrays(round_path(run.folder, 0)), run.round(0)
    assert small.link == files.link(record) and small.numbers().items() >= record.metrics.items()
    many = {**{name: getattr(record, name) for name in ("ids", "sizes", "weights", "gram")}, "start": record.start}
    many |= {f"metric.{'x' * 40}{place}": torch.tensor(float(place), dtype=torch.float64) for place in range(400)}
    files.write_tensors(tmp_path / "rounds" / "000000.safetensors", many, {"round": 0})
    path = tmp_path / "rounds" / "000000.safetensors"
    assert path.stat().st_size > 2 * FIRST_PIECE
    assert read_small_arrays(path).numbers() == {f"{'x' * 40}{place}": float(place) for place in range(400)}


def test_a_run_that_is_trained_on_is_read_on(tmp_path):
    run = tiny.trained(tmp_path / "other", "rounds=4")
    part = tmp_path / run.name
    simulate(tiny.experiment("rounds=4"), runs=tmp_path, until=2)
    growing = GrowingRun(part)
    assert growing.update() == 2 and growing.numbers().loss.sizes == {"round": 2}
    simulate(tiny.experiment("rounds=4"), runs=tmp_path)
    assert growing.rounds() == [0, 1], "it grows only when it is told to"
    assert growing.update(most=1) == 1 and growing.update(most=1) == 1 and growing.update() == 0
    assert growing.numbers().loss.equals(whole(run).numbers().loss)
    assert growing.latest() == {**growing.round(3).metrics, "rounds": 4}


def test_a_run_of_the_recorder_is_read_on_with_its_description(tmp_path):
    recorded_by_another_loop(tmp_path / "run", 2)
    growing = GrowingRun(tmp_path / "run")
    assert growing.update() == 2 and growing.experiment.rounds == 2 and growing.label == "fedprox"
    recorded_by_another_loop(tmp_path / "run", 5)
    assert growing.update() == 3 and growing.experiment.rounds == 5
    assert growing.numbers().accuracy.values.tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert np.array_equal(coherence(growing).mean_cosine, coherence(drift.open(tmp_path / "run")).mean_cosine)


def test_what_is_cut_or_foreign_is_said_and_what_was_read_stays(tmp_path):
    run = tiny.trained(tmp_path, "rounds=4")
    other = tiny.trained(tmp_path / "other", "rounds=4", "seed=6")
    growing = whole(run)
    shutil.copy(round_path(other.folder, 2), round_path(run.folder, 2))
    fresh = GrowingRun(run.folder)
    with pytest.raises(Damaged, match=r"000002.*is of run"):
        fresh.update()
    assert fresh.rounds() == [0, 1]
    os.remove(round_path(run.folder, 2))
    with pytest.raises(Damaged, match=r"000002.*is missing"):
        growing.update()
    shutil.rmtree(run.folder)
    with pytest.raises(Damaged, match=r"run\.json is missing"):
        growing.update()
    assert growing.rounds() == [0, 1] and growing.numbers().sizes == {"round": 2}


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 40, (10).to_bytes(8, "little") + b'{"gram":{}}', b"\x02" + b"\0" * 7 + b"{}"]
)
def test_a_file_that_is_no_round_is_refused(tmp_path, content):
    path = tmp_path / "000000.safetensors"
    path.write_bytes(content)
    with pytest.raises(Damaged, match=r"cannot be read|not written by fedscape|names no format"):
        read_small_arrays(path)


def test_a_cut_round_and_a_link_out_of_the_run_are_refused(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2")
    path = round_path(run.folder, 1)
    content = path.read_bytes()
    path.write_bytes(content[:900])
    with pytest.raises(Damaged, match="cut"):
        read_small_arrays(path)
    (tmp_path / "away.safetensors").write_bytes(content)
    path.unlink()
    path.symlink_to(tmp_path / "away.safetensors")
    with pytest.raises(Damaged, match="leads out of"):
        read_small_arrays(path)


def test_a_run_that_was_trained_anew_is_read_from_its_first_round(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3")
    growing = whole(run)
    other = tiny.trained(tmp_path / "other", "rounds=2", "seed=8")
    shutil.rmtree(run.folder)
    shutil.copytree(other.folder, run.folder)
    assert growing.update() == 2 and growing.seed == 8
    assert growing.numbers().loss.equals(whole(other).numbers().loss)


def test_cohorts_are_equal_where_the_same_clients_have_as_many_samples(tmp_path):
    first, second = (whole(tiny.trained(tmp_path, f"method={name}", "rounds=4")) for name in ("fedavg", "fedprox"))
    assert first.cohorts() == second.cohorts() and len(set(first.cohorts().values())) > 1
    reseeded = whole(tiny.trained(tmp_path, "seed=9", "rounds=4"))
    assert not set(first.cohorts().values()) & set(reseeded.cohorts().values())
