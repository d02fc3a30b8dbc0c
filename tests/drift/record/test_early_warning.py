"""The early warning is sequential, its limits come from stored numbers and hold their level, and it stops trainings."""

import json
from functools import partial
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

import drift
from benchmarks import _warning_limits
from benchmarks.early_warning import STORED
from drift.record import early_warning
from drift.record.early_warning import DETECTORS, Watch, broken_share, warning_numbers
from drift.record.recorder import Recorder
from drift.simulation.verify import verify


def noise(*shape, seed):
    return np.random.default_rng(seed).normal(size=shape)


def record_rounds(folder, rounds, *, planned=24, fault=None, stop=None, indices=None):
    """A recorder after rounds of five clients that move at random; `fault(index, updates)` changes their updates."""
    recorder = Recorder(folder, rounds=planned, stop=stop, clients="none", globals="none")
    start = recorder.model() if recorder.next else {"w": 10 + noise(8, seed=0)}
    for index in range(rounds) if indices is None else indices:
        updates = 0.1 * noise(5, 8, seed=1 + index)
        updates = updates if fault is None else fault(index, updates)
        end = {"w": start["w"] + np.nan_to_num(updates).mean(0)}
        clients = {client: ({"w": start["w"] + update}, 3 + client) for client, update in enumerate(updates)}
        recorder.round(start=start, clients=clients, end=end, metrics={"loss": 1 / (1 + index)}, index=index)
        start = end
        if recorder.stopped:
            break
    return recorder


def scaled(index, updates):
    return np.where(np.arange(5)[:, None] == 2, 100 * updates, updates) if index >= 3 else updates


def test_the_rounds_that_follow_change_nothing(tmp_path):
    whole = drift.early_warning(drift.open(record_rounds(tmp_path / "whole", 8, fault=scaled).folder))
    assert whole.statistic.notnull().any() and whole.first_alarm.sel(detector="client") == 3
    for rounds in range(1, 8):
        record_rounds(tmp_path / str(rounds), rounds, fault=scaled)
        part = drift.early_warning(drift.open(tmp_path / str(rounds)))
        first = whole.isel(round=slice(rounds))
        for name in ("statistic", "alarm"):
            np.testing.assert_array_equal(part[name].values, first[name].values)


def test_only_a_third_of_the_rounds_is_watched(tmp_path):
    run = drift.open(record_rounds(tmp_path / "run", 8, planned=9).folder)
    assert drift.early_warning(run)["round"].values.tolist() == [0, 1, 2]
    broken = warning_numbers(np.full((5, 5), np.nan), np.ones(2))
    assert Watch(9)(2, broken).startswith("early warning client in round 2") and Watch(9)(3, broken) is None
    assert drift.early_warning(run, planned=24).sizes["round"] == 8
    assert drift.early_warning(run, detectors="curve").detector.values.tolist() == ["rise", "stall"]
    with pytest.raises(ValueError, match="detectors is 'loss'; early_warning takes one of all, drift, curve"):
        drift.early_warning(run, detectors="loss")


@pytest.mark.parametrize("planned", [2, 300, 301, 1500])
def test_long_runs_are_looked_at_in_means_over_blocks(planned):
    watch, values = Watch(planned), noise(6, seed=3).tolist()
    block = -(-planned // 300)
    numbers = dict.fromkeys(("cosine", "rank", "gap", "negative", "loss"), np.nan)
    for index, value in enumerate(values[: watch.last]):
        found = watch.add(index, {**numbers, "step": value})["rate"]
        expected = np.mean(values[index + 1 - block : index + 1]) if index + 1 >= block else np.nan
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_hostile_rounds_have_no_number_or_an_infinite_one():
    nobody = warning_numbers(np.zeros((3, 3)), np.zeros(0))
    assert all(np.isnan(value) for value in nobody.values())
    still = warning_numbers(np.zeros((5, 5)), np.array([1, 2]))
    assert all(np.isnan(value) for value in still.values())
    broken = warning_numbers(np.full((5, 5), np.nan), np.array([1, 2]))
    assert broken["gap"] == broken["step"] == np.inf
    assert warning_numbers(np.eye(5), np.ones(2), excluded=1)["gap"] == np.inf
    watch = Watch(30)
    for index in range(5):
        loss = np.inf if index == 4 else 1.0
        found = watch.add(index, warning_numbers(np.eye(6), np.ones(3), loss=loss))
    assert found["rise"] == np.inf and found["coherence"] == found["rank"] == 0


def test_gaps_in_the_numbers_of_rounds_are_no_rounds(tmp_path):
    sparse = record_rounds(tmp_path / "sparse", 0, indices=[0, 2, 7], planned=24)
    ds = drift.early_warning(drift.open(sparse.folder))
    assert ds["round"].values.tolist() == [0, 2, 7]
    assert ds.statistic.sel(detector="coherence").notnull().values.tolist() == [False, False, True]


def test_negative_running_variances_are_counted():
    entries = [("bn.running_mean", (2,)), ("bn.running_var", (2, 2)), ("running_var", (1,))]
    assert broken_share(np.array([-1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 3.0]), entries) == 1 / 5
    assert np.isnan(broken_share(np.array([-1.0, -1.0]), entries[:1])) and np.isnan(broken_share(np.zeros(0), []))


def test_a_running_variance_below_zero_is_an_alarm_on_disk_and_live(tmp_path):
    start = {"w": np.ones(3, np.float32), "bn.running_var": np.ones(2, np.float32)}
    end = {"w": np.full(3, 1.1, np.float32), "bn.running_var": np.array([1.0, -0.5], np.float32)}
    recorder = Recorder(tmp_path / "run", rounds=9, stop="early warning")
    recorder.round(start=start, clients={0: (end, 1), 1: (start, 1)}, end=end)
    assert recorder.stopped.startswith("early warning variances in round 0: ") and "0.5, above 0" in recorder.stopped
    assert drift.early_warning(drift.open(tmp_path / "run")).first_alarm.sel(detector="variances") == 0


def normalised_rounds(folder, *, planted=None, rate=1.0, scale=0.1):
    """Rounds of clients with batch normalisation; from round `planted` on the server steps `rate` times as far, running
    statistics included, and inputs have the standard deviation `scale`."""
    draw = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    recorder = Recorder(folder, rounds=30, stop="early warning", buffers=("1.running_mean", "1.running_var"))
    start = {name: value.clone() for name, value in model.state_dict().items() if value.is_floating_point()}
    for index in range(10):
        ends, faulty = [], planted is not None and index >= planted
        for _ in range(3):
            model.load_state_dict(start, strict=False)
            optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
            for _ in range(4):
                inputs = (scale if faulty else 0.1) * torch.randn(8, 3, generator=draw)
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(inputs), (inputs[:, 0] > 0).long()).backward()
                optimiser.step()
            ends.append({name: model.state_dict()[name].clone() for name in start})
        step = rate if faulty else 1.0
        end = {name: old + step * (sum(one[name] for one in ends) / 3 - old) for name, old in start.items()}
        recorder.round(start=start, clients={k: (one, 8) for k, one in enumerate(ends)}, end=end)
        if recorder.stopped:
            break
        start = end
    return recorder


def test_a_server_that_extrapolates_running_variances_below_zero_is_stopped_and_a_mean_is_not(tmp_path):
    healthy = normalised_rounds(tmp_path / "healthy")
    assert not healthy.stopped and healthy.next == 10
    assert drift.early_warning(drift.open(healthy.folder)).first_alarm.isnull().all()
    planted = normalised_rounds(tmp_path / "planted", planted=2, rate=4.0)
    assert planted.stopped.startswith("early warning variances in round 2: "), planted.stopped
    alarms = drift.early_warning(drift.open(planted.folder)).first_alarm
    assert alarms.sel(detector="variances") == 2 and alarms.drop_sel(detector="variances").isnull().all()


def test_huge_finite_running_variances_are_an_alarm(tmp_path):
    planted = normalised_rounds(tmp_path / "planted", planted=2, scale=1e15)
    assert planted.stopped.startswith("early warning variances in round 2: "), planted.stopped
    assert np.isfinite(planted.model()["1.running_var"]).all()


def test_running_variances_that_explode_are_refused_and_the_rounds_before_stay(tmp_path):
    with pytest.raises(ValueError, match="round 2: a global model is not finite; the round is not recorded"):
        normalised_rounds(tmp_path / "run", planted=2, scale=1e25)
    assert drift.open(tmp_path / "run").rounds() == [0, 1]


def test_the_limits_follow_from_the_stored_numbers():
    content = json.loads(STORED.read_text(encoding="utf-8"))
    assert _warning_limits.limits_of(content) == early_warning.calibration()
    assert early_warning.calibration()["level"] == 0.05
    assert all(
        set(limits) == set(DETECTORS[family]) for family, limits in early_warning.calibration()["limits"].items()
    )


def synthetic(settings, runs, draw):
    """Healthy runs whose largest statistics differ between settings, with long tails, exchangeable over settings."""
    names = [name for name in DETECTORS["all"] if name != "variances"]
    for setting in range(settings):
        levels = draw.standard_t(3, len(names))
        for _ in range(runs):
            values = levels + draw.exponential(1.0, len(names))
            yield {"setting": str(setting), "gram": True, "peaks": dict(zip(names, values.tolist(), strict=True))}


@pytest.mark.parametrize("family", DETECTORS)
def test_a_family_gives_an_alarm_in_at_most_five_percent_of_the_runs_of_new_settings(family):
    rates = []
    for draw in range(12):
        random = np.random.default_rng(draw)
        limits = _warning_limits.fitted(list(synthetic(60, 3, random)), family)
        new = [row["peaks"] for row in synthetic(400, 1, random)]
        rates.append(np.mean([_warning_limits.exceeds(row, limits) for row in new]))
    error = np.std(rates) / len(rates) ** 0.5
    assert 0.005 < np.mean(rates) < 0.05 + 3 * error


def test_a_recorder_says_why_to_stop_and_run_json_keeps_it(tmp_path):
    recorder = record_rounds(tmp_path / "run", 20, fault=scaled, stop="early warning")
    limit = early_warning.calibration()["limits"]["drift"]["client"]
    assert recorder.next == 4 and recorder.stopped.startswith("early warning client in round 3: ")
    assert recorder.stopped.endswith(f"above {limit:.3g}")
    run = drift.open(recorder.folder)
    assert run.about["stopped"] == recorder.stopped and verify(run.folder) == []
    again = Recorder(recorder.folder, rounds=24, stop="early warning", clients="none", globals="none")
    assert again.stopped == recorder.stopped, "it stays stopped, as a simulation does"
    record_rounds(recorder.folder, 0, indices=[4], stop="early warning")
    assert drift.open(recorder.folder).about["stopped"] == recorder.stopped
    assert not record_rounds(recorder.folder, 0, indices=[5]).stopped
    assert "stopped" not in drift.open(recorder.folder).about, "without a rule the training goes on"


def test_a_recorder_that_goes_on_knows_the_rounds_before(tmp_path):
    def turning(index, updates):
        """Clients that agree at first, and then move against each other."""
        along = np.ones((5, 8)) if index < 6 else np.outer([3, -1, 3, -1, -3], np.ones(8))
        return 0.1 * along + 0.01 * updates

    whole = record_rounds(tmp_path / "whole", 20, planned=60, fault=turning, stop="early warning")
    record_rounds(tmp_path / "two", 5, planned=60, fault=turning)
    rest = record_rounds(tmp_path / "two", 0, indices=range(5, 20), planned=60, fault=turning, stop="early warning")
    assert whole.stopped and rest.stopped == whole.stopped


def test_own_rules_see_the_numbers_of_a_round(tmp_path):
    seen = []

    def rule(index, numbers):
        seen.append((index, numbers["loss"], numbers["cosine"]))
        return "low enough" if numbers["loss"] < 0.3 else None

    recorder = record_rounds(tmp_path / "run", 20, stop=rule)
    assert recorder.stopped == "low enough" and [index for index, *_ in seen] == [0, 1, 2, 3]


def test_what_cannot_stop_a_training_is_refused(tmp_path):
    with pytest.raises(ValueError, match="stop is 'soon'; give 'early warning' or a function"):
        Recorder(tmp_path / "a", stop="soon")
    with pytest.raises(ValueError, match="stop is 3; give 'early warning' or a function"):
        Recorder(tmp_path / "a", stop=3)
    with pytest.raises(ValueError, match="give their number, rounds=N"):
        Recorder(tmp_path / "b", stop="early warning")
    with pytest.raises(ValueError, match="stop is 'soon'"):
        drift.simulate("digits-shards2", runs=tmp_path, stop="soon")
    assert not list(tmp_path.iterdir())


def test_a_rule_that_returns_no_text_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"stop returned True after round 0; let it return a text or None"):
        record_rounds(tmp_path / "run", 3, stop=lambda index, numbers: True)


@pytest.mark.parametrize("planned", [0, -1, 2.5, True, "x"])
def test_planned_rounds_are_a_number_of_rounds(planned, tmp_path):
    record_rounds(tmp_path / "run", 3)
    with pytest.raises(ValueError, match=r"planned is .*; (give the number|early_warning takes a whole number)"):
        drift.early_warning(drift.open(tmp_path / "run"), planned=planned)
    with pytest.raises(ValueError, match=r"rounds is .*; give the number of rounds of the whole training, 1 or more"):
        Recorder(tmp_path / "other", rounds=planned)
    assert not (tmp_path / "other").exists()


def test_a_number_of_rounds_of_numpy_is_one(tmp_path):
    run = drift.open(record_rounds(tmp_path / "run", 3, planned=np.int64(9)).folder)
    assert run.experiment.rounds == 9
    assert drift.early_warning(run, planned=np.int64(6)).sizes["round"] == 2


TINY = ("task.model=linear", "rounds=30", "clients.number=4", "clients.per_round=3", "local.epochs=1", "seed=1")


def test_a_simulation_stops_says_so_and_goes_on(tmp_path):
    number = count()
    with pytest.warns(UserWarning, match="is stopped: enough"):
        run = drift.simulate("digits-shards2", *TINY, runs=tmp_path, stop=lambda *_: "enough" if next(number) else None)
    done = run.committed
    assert done == 2 and run.about["stopped"] == "enough" and verify(run.folder) == []
    run = drift.simulate("digits-shards2", *TINY, runs=tmp_path, until=6, stop="early warning")
    assert run.committed == 6 and "stopped" not in drift.open(run.folder).about
    other = drift.simulate("digits-shards2", *TINY, runs=tmp_path / "other", until=6)
    assert run.head == other.head if hasattr(run, "head") else (run.round(5).gram == other.round(5).gram).all()


def test_a_simulation_that_went_on_to_its_end_is_not_called_stopped(tmp_path):
    words = (*TINY, "rounds=4")
    stopped = partial(drift.simulate, "digits-shards2", *words, runs=tmp_path, stop=lambda index, _: "no" * (index > 0))
    with pytest.warns(UserWarning, match="is stopped: no"):
        assert stopped().about["stopped"] == "no"
    whole = drift.simulate("digits-shards2", *words, runs=tmp_path, stop="early warning")
    assert whole.committed == 4 and "stopped" not in whole.about and "stopped" not in drift.open(whole.folder).about
    rule = lambda index, _: "no" * (index == 3)  # noqa: E731
    assert "stopped" not in drift.simulate("digits-shards2", *words, runs=tmp_path / "last", stop=rule).about


def test_a_simulation_that_was_interrupted_after_it_went_on_is_not_called_stopped(tmp_path):
    def interrupt(record):
        raise InterruptedError

    with pytest.warns(UserWarning, match="is stopped: no"):
        drift.simulate("digits-shards2", *TINY, runs=tmp_path, stop=lambda *_: "no")
    with pytest.raises(InterruptedError):
        drift.simulate("digits-shards2", *TINY, runs=tmp_path, progress=interrupt, until=3)
    run = drift.open(next(tmp_path.iterdir()))
    assert run.committed > 1 and "stopped" not in run.about


def test_a_simulation_whose_rate_is_too_high_is_stopped(tmp_path):
    with pytest.warns(UserWarning, match="early warning rate in round 0: .* above"):
        run = drift.simulate("digits-shards2", *TINY, "local.lr=500", runs=tmp_path, stop="early warning")
    assert run.committed == 1
    with pytest.warns(UserWarning, match="early warning rate in round 0: .* above"):
        again = drift.simulate("digits-shards2", *TINY, "local.lr=500", runs=tmp_path, stop="early warning")
    assert again.committed == 1 and again.about["stopped"] == run.about["stopped"], "it stays stopped"
    assert drift.simulate("digits-shards2", *TINY, "local.lr=500", runs=tmp_path, until=2).committed == 2


def test_a_whole_run_is_not_called_stopped(tmp_path):
    whole = (*TINY, "local.lr=500", "rounds=2")
    run = drift.simulate("digits-shards2", *whole, runs=tmp_path)
    again = drift.simulate("digits-shards2", *whole, runs=tmp_path, stop=lambda *_: "enough")
    assert again.committed == run.committed == 2 and "stopped" not in again.about
