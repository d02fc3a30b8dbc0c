"""Several runs of one experiment: paired, not trained twice, and tabulated."""

import numpy as np
import pytest
import tiny
import torch

import drift
from drift.claims import measures
from drift.record.recorder import Recorder
from drift.simulation import compare as module
from drift.simulation.compare import compare, last_words, mean_of_last, summary


def test_methods_and_seeds_are_crossed_in_order_and_paired(tmp_path):
    runs = compare(
        tiny.written(tmp_path), methods=["fedavg", "ima"], seeds=[3, 4], runs=tmp_path, overrides=["rounds=5"]
    )
    assert [(run.label, run.experiment.seed) for run in runs] == [("fedavg", 3), ("fedavg", 4), ("ima", 3), ("ima", 4)]
    assert torch.equal(runs[0].round(0).start, runs[2].round(0).start)
    assert torch.equal(runs[0].round(0).clients, runs[2].round(0).clients)
    assert not torch.equal(runs[0].round(0).start, runs[1].round(0).start)


def test_variants_of_the_file_apply(tmp_path):
    (run,) = compare(tiny.written(tmp_path), methods=["lss"], seeds=[3], runs=tmp_path, overrides=["rounds=1"])
    assert run.experiment.local.optimizer == "adam"


def test_what_is_on_disk_is_not_trained_again(tmp_path, monkeypatch):
    arguments = {"methods": ["fedavg"], "seeds": [3, 4], "runs": tmp_path}
    compare(tiny.experiment(), **arguments)
    monkeypatch.setattr(module, "simulate", lambda *_, **__: pytest.fail("trained again"))
    reports = []
    compare(tiny.experiment(), **arguments, progress=lambda *what: reports.append(what))
    assert sorted(reports) == sorted((run.name, 3, 3) for run in compare(tiny.experiment(), **arguments))


def test_every_round_is_reported(tmp_path):
    reports = []
    (run,) = compare(
        tiny.experiment(), methods=["fedavg"], seeds=[3], runs=tmp_path, progress=lambda *what: reports.append(what)
    )
    assert reports == [(run.name, 1, 3), (run.name, 2, 3), (run.name, 3, 3)]


def test_two_processes_give_the_same_bits_as_one(tmp_path):
    reports = []
    arguments = {"methods": ["fedavg"], "seeds": [3, 4]}
    serial = compare(tiny.experiment(), **arguments, runs=tmp_path / "a")
    parallel = compare(
        tiny.experiment(), **arguments, runs=tmp_path / "b", workers=2, progress=lambda *what: reports.append(what)
    )
    for one, two in zip(serial, parallel, strict=True):
        assert torch.equal(one.round(-1).end, two.round(-1).end)
    assert {(run.name, 3, 3) for run in parallel} <= set(reports)


def test_a_run_that_diverges_is_reported_and_the_others_go_on(tmp_path):
    wanted = [tiny.experiment("local.lr=1e39"), tiny.experiment()]
    with pytest.warns(UserWarning, match="stopped early: round"):
        broken, whole = module.train_all(wanted, runs=tmp_path)
    assert broken.committed == 0
    assert whole.committed == 3
    assert np.isnan(summary([broken])[0]["accuracy"])


def test_mistakes_are_found_before_anything_is_trained(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'ima'"):
        compare(tiny.experiment(), methods=["fedavg", "imaa"], seeds=[3], runs=tmp_path / "runs")
    with pytest.raises(ValueError, match="workers is 0"):
        compare(tiny.experiment(), methods=["fedavg"], seeds=[3], runs=tmp_path / "runs", workers=0)
    with pytest.raises(ValueError, match="nothing to train"):
        compare(tiny.experiment(), methods=["fedavg"], seeds=[], runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_summary_is_the_mean_over_seeds_of_the_last_ten_rounds(tmp_path):
    runs = compare(tiny.experiment("rounds=12"), methods=["fedavg"], seeds=[3, 4], runs=tmp_path)
    by_hand = [np.mean([run.round(index).metrics["accuracy"] for index in range(2, 12)]) for run in runs]
    assert [mean_of_last(run) for run in runs] == pytest.approx(by_hand)
    (row,) = summary(runs)
    assert row["accuracy"] == pytest.approx(np.mean(by_hand))
    assert row["accuracy_std"] == pytest.approx(abs(by_hand[0] - by_hand[1]) / np.sqrt(2))
    assert (row["seeds"], row["done"], row["rounds"]) == ([3, 4], 12, 12)
    words = {last: last_words(runs, last) for last in (1, 12, 13)}
    assert words == {1: "last round", 12: "mean of the last 12 rounds", 13: "mean of all 12 rounds"}
    with pytest.raises(ValueError, match="last is 0"):
        mean_of_last(runs[0], last=0)


def test_runs_of_other_settings_have_their_own_row(tmp_path):
    runs = [tiny.trained(tmp_path), tiny.trained(tmp_path, "local.lr=0.1")]
    assert [row["seeds"] for row in summary(runs)] == [[5], [5]]
    assert np.isnan(summary(runs)[0]["accuracy_std"])


def refusals(found):
    return [str(one.message) for one in found if "is not trained" in str(one.message)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_method_that_refuses_the_setting_is_named_and_the_others_train(tmp_path, workers):
    """IMA's window is longer than the run: refused when it is read. FedBN finds no batch norm: when training begins."""
    with pytest.warns(UserWarning, match="is not trained") as found:
        runs = compare(
            tiny.experiment(),
            methods=["fedavg", "ima", "fedbn", "fedprox"],
            seeds=[3, 4],
            runs=tmp_path,
            overrides=["rounds=1"],
            workers=workers,
        )
    assert [(run.label, run.experiment.seed) for run in runs] == [
        (method, seed) for method in ("fedavg", "fedprox") for seed in (3, 4)
    ]
    assert all(run.committed == 1 for run in runs)
    assert sorted(text.partition(" is not")[0] for text in refusals(found)) == [
        f"method={method}, seed={seed}" for method in ("fedbn", "ima") for seed in (3, 4)
    ]
    assert sorted(path.name.partition("-")[0] for path in tmp_path.iterdir()) == ["fedavg"] * 2 + ["fedprox"] * 2


@pytest.mark.parametrize(("method", "reason"), [("ima", "window is 5"), ("fedbn", "normalisation layers")])
def test_where_all_refuse_the_first_reason_is_the_error(method, reason, tmp_path):
    with pytest.raises((ValueError, LookupError), match=reason):
        compare(tiny.experiment(), methods=[method], seeds=[3, 4], runs=tmp_path / "runs", overrides=["rounds=1"])
    assert not list((tmp_path / "runs").glob("*"))


def test_what_is_on_disk_counts_where_the_rest_refuses(tmp_path):
    done = tiny.trained(tmp_path)
    with pytest.warns(UserWarning, match="method=fedbn, seed=5 is not trained"):
        assert [
            run.name for run in module.train_all([done.experiment, tiny.experiment("method=fedbn")], runs=tmp_path)
        ] == [done.name]


def test_the_last_rounds_are_those_by_number_however_many_were_recorded(tmp_path):
    runs = []
    for name, numbers in (("dense", range(31)), ("sparse", range(0, 31, 10))):
        recorder = Recorder(tmp_path / name)
        for number in numbers:
            metrics = {"accuracy": number / 100} if number % 10 == 0 else {}
            recorder.round(start={"w": np.zeros(2)}, clients={}, end={"w": np.zeros(2)}, metrics=metrics, index=number)
        runs.append(drift.open(tmp_path / name))
    for last, mean in ((10, 0.3), (11, 0.25), (40, 0.15)):
        assert [mean_of_last(run, last=last) for run in runs] == pytest.approx([mean] * 2)
    assert last_words(runs, 31) == last_words(runs[1:], 31) == "mean of the 4 evaluated among the last 31 rounds"
    assert last_words(runs, 32) == "mean of all 31 rounds"


def test_a_run_that_is_evaluated_now_and_then_has_the_mean_of_its_last_ten_evaluated_rounds(tmp_path):
    """As claims.measures.accuracy has it, so that tables and verdicts state one number."""
    recorder = Recorder(tmp_path / "run")
    values = np.random.default_rng(0).random(14)
    for number in range(67):
        metrics = {"accuracy": float(values[number // 5])} if number % 5 == 0 else {}
        recorder.round(start={"w": np.zeros(2)}, clients={}, end={"w": np.zeros(2)}, metrics=metrics, index=number)
    run = drift.open(tmp_path / "run")
    assert mean_of_last(run) == pytest.approx(values[4:].mean()) == pytest.approx(measures.accuracy(run) / 100)
    assert last_words([run], 10) == "mean of the last 10 evaluated rounds"
    assert mean_of_last(run, last=1) == values[13] and last_words([run], 1) == "last evaluated round"
