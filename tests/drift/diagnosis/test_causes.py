"""When a gain is a cause, and what is said of a suspected client."""

from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import xarray as xr
from scipy import stats

from drift.analyses.counterfactual.followed_changes import LONGER, followed, spans_of
from drift.analyses.counterfactual.replayed_rounds import play_again
from drift.analyses.over_seeds import Estimate
from drift.analyses.rounds.run_state import RunState
from drift.diagnosis.causes import FOLLOWED, beyond, promising, ranked, suspected, suspects
from drift.simulation.simulate import simulate

CALM = RunState("plateau", Estimate(0.0, -0.1, 0.1, 8), 10, 10, 2.3)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "rounds=4")


def long_of(gains, loss, first=(0,), last=(24,)):
    """What `followed` gives, for gains by change over (round, draw) and the losses of the unchanged rounds."""
    names, loss = list(gains), np.asarray(loss, dtype=float)
    variables = {
        "gain": (("change", "round", "draw"), np.array([gains[name] for name in names]).reshape(-1, *loss.shape)),
        "loss": (("round", "draw"), loss),
        "placebo": ("round", np.ptp(loss, axis=1)),
        "first": ("round", list(first)),
        "text": ("change", np.array(names, dtype=str)),
    }
    return xr.Dataset(variables, {"change": np.array(names, dtype=str), "round": list(last)})


def windows_of(gains, loss=(1.0, 1.0)):
    """What `interventions` gives."""
    names = np.array(list(gains), dtype=str)
    variables = {
        "gain": (("change", "round"), np.array(list(gains.values()), dtype=float)),
        "loss": ("round", list(loss)),
        "placebo": (("round", "draw"), [[0.01], [-0.02]]),
        "text": ("change", names),
    }
    return xr.Dataset(variables, {"change": names, "round": [4, 9], "draw": [1]})


def clients_of(**columns):
    base = {"excess_z": [0.0, 9.0], "ratio": [1.0, 4.0], "length": [1.0, 1.2], "length_z": [0.0, 1.0]}
    table = {name: ("client", values) for name, values in {**base, **columns}.items()}
    return xr.Dataset(table, {"client": [0, 1]})


RATE = "local.lr-smaller"


@pytest.mark.parametrize(
    ("gain", "loss", "clear"),
    [
        ([0.1, 0.1, 0.1], [1.0, 1.01, 0.99], True),
        ([0.1, 0.1, -0.01], [1.0, 1.01, 0.99], False),  # one seed loses
        ([0.05, 0.05, 0.05], [1.0, 1.05, 0.95], False),  # two seeds differ by more
        ([0.01, 0.01, 0.01], [1.0, 1.0, 1.0], False),  # below 2 % of the loss
        ([-0.1, -0.1, -0.1], [1.0, 1.0, 1.0], False),
    ],
)
def test_a_cause_gains_with_every_seed_beyond_the_placebo_and_two_percent(run, gain, loss, clear):
    (cause,) = ranked(run, windows_of({RATE: [0.1, 0.1]}), long_of({RATE: [gain]}, [loss]), clients_of())
    assert cause.clear is clear and cause.name == "rate" and cause.followed == "rounds 0 to 24"


def test_the_rule_lets_one_in_twenty_changes_pass_that_do_nothing():
    before, after = np.random.default_rng(0).standard_normal((2, 20000, 3))
    gains, placebos = before - after, np.ptp(before, axis=1)
    passed = [beyond(row, placebo) for row, placebo in zip(gains, placebos, strict=True)]
    assert np.mean(passed) == pytest.approx(0.05, abs=0.005)
    assert not beyond(np.array([1.0, np.nan, np.nan]), 0.0) and not beyond(np.array([1.0, np.inf]), 0.0)


def test_the_interval_of_a_gain_is_students(run):
    gains = [0.1, 0.2, 0.4]
    (cause,) = ranked(run, windows_of({RATE: [0.1, 0.1]}), long_of({RATE: [gains]}, [[1.0, 1.01, 0.99]]), clients_of())
    ends = stats.t.interval(0.95, 2, loc=np.mean(gains), scale=stats.sem(gains))
    assert (cause.gain.low, cause.gain.high) == pytest.approx(ends) and cause.clear and cause.gain.low < 0


def test_what_loses_in_the_first_rounds_is_no_cause(run):
    loss = [[1.0, 1.01, 0.99], [1.0, 1.01, 0.99]]
    for early, clear in ((-0.2, False), (-0.01, True), (0.1, True)):
        gains = {RATE: [[early] * 3, [0.1] * 3]}
        long = long_of(gains, loss, first=(0, 40), last=(29, 69))
        assert ranked(run, windows_of({RATE: [0, 0]}), long, clients_of())[0].clear is clear


def test_a_gain_in_windows_alone_is_never_clear(run):
    found = ranked(run, windows_of({RATE: [0.9, 0.9]}), long_of({}, [[1.0, 1.0]]), clients_of())
    assert [cause.clear for cause in found] == [False] and not found[0].followed


@pytest.mark.parametrize(("gain", "clear"), [((0.0036, 0.017, -0.0048), False), ((0.004, 0.005, 0.006), True)])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_a_suspected_client_needs_a_gain_beyond_zero_and_the_placebo(run, gain, clear, spread):
    long = long_of({"without-1": [gain]}, [[1.0, 1.0 + spread, 1.0]])
    (cause,) = ranked(run, windows_of({"without-1": [0.1, 0.1]}), long, clients_of())
    assert cause.name == "client-1" and cause.clear is (clear and spread == 0.0)


def test_wrong_inputs_are_told_from_wrong_labels_by_the_length_of_the_update():
    labels, inputs = clients_of(), clients_of(length=[1.0, 21.0], length_z=[0.0, 30.0])
    assert suspects(labels) == suspects(inputs) == [1]
    assert suspected(labels.sel(client=1)) == "labels" and suspected(inputs.sel(client=1)) == "inputs"
    assert suspects(clients_of(ratio=[1.0, 1.5])) == []


def test_every_cause_ends_in_a_command(run):
    gains = {RATE: [[0.1] * 3], "method.server_lr-larger": [[0.2] * 3], LONGER: [[0.3] * 3], "without-1": [[0.3] * 3]}
    found = ranked(run, windows_of({RATE: [0.1, 0.1]}), long_of(gains, [[1.0, 1.0, 1.0]]), clients_of())
    commands = {cause.name: cause.command for cause in found}
    assert commands["rate"] == f"fedscape train {run.folder} --set local.lr=0.0125"
    assert commands["method.server_lr-small"] == f"fedscape train {run.folder} --set method.server_lr=4"
    assert commands["rounds"] == f"fedscape train {run.folder} --set rounds=19"
    assert commands["client-1"].startswith("fedscape analyse client_deviations ")
    assert found[-1].name == "rounds"  # it costs more than the others


def test_what_is_followed_gains_in_windows(run):
    many = {f"local.{name}-larger": [0.1 + place, 0.1] for place, name in enumerate("abcdef")}
    names = promising(windows_of({**many, RATE: [-0.5, 0.1], "even": [0.1, 0.1], "without-1": [-1, -1]}), CALM)
    assert len(names) == FOLLOWED + 2 and names[0] == "local.f-larger" and names[-2:] == ["without-1", "even"]
    falling = RunState("still learning", CALM.fall, 10, 10, 2.3)
    assert promising(windows_of({RATE: [-0.5, 0.1]}), falling) == [LONGER]
    assert promising(windows_of({"even": [0.01, 0.01]}), CALM) == []


def test_advice_that_is_followed_from_round_0_is_the_training_of_the_command(run, tmp_path):
    advised = simulate(str(run.folder), "local.lr=0.0125", runs=tmp_path)
    models = play_again(run, RATE, 0, 4)
    assert all(np.array_equal(models[index], advised.round(index).end) for index in range(4))


def test_a_short_run_is_followed_as_a_whole_and_a_long_one_at_both_ends(run, monkeypatch):
    assert spans_of(run) == [(0, 4)]
    state = SimpleNamespace(name="plateau", broken=False, turn=60)
    many = SimpleNamespace(
        experiment=SimpleNamespace(rounds=100), rounds=lambda: list(range(100)), kept=lambda what: list(range(100))
    )
    monkeypatch.setattr("drift.analyses.counterfactual.followed_changes.run_state", lambda run: state)
    assert spans_of(many) == [(0, 30), (70, 30)]
    state.broken = True
    assert spans_of(many) == [(0, 30), (61, 30)]


def test_gains_are_paired_by_seed_and_longer_goes_on_from_the_end(run):
    ds = followed(run, names=[RATE, LONGER], draws=2)
    assert ds.gain.dims == ("change", "round", "draw") and ds.sizes["draw"] == 2
    assert float(ds.placebo[0]) == pytest.approx(abs(float(ds.loss[0, 0] - ds.loss[0, 1])))
    again = play_again(run, "unchanged", 4, 15)
    last = np.mean([_loss(run, again[index]) for index in (16, 17, 18)])
    assert float(ds.gain.sel(change=LONGER)[0, 0]) == pytest.approx(float(ds.loss[0, 0]) - last, abs=1e-6)
    with pytest.raises(ValueError, match="draws is 1"):
        followed(run, names=[], draws=1)


def _loss(run, theta):
    values = run.task.outputs(theta, "test").log_softmax(1)
    targets = run.task.samples["test"].targets
    return float(-values[np.arange(len(targets)), targets].mean())
