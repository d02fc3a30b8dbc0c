"""Every figure refuses what is absent, draws the runs that are named or refuses, and states what it shows."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import recordings
from gallery_runs import QUICK, suited
from kinds import one_of_each

from drift.plugins import tables
from drift.record.recorder import Recorder
from drift.runs.run import Run
from figures import gallery
from figures.commands._draw_files import draw_one
from figures.gallery import _runs, accuracy_after, rounds_target
from figures.looks import look
from figures.pictures.draw_files import require_options
from landscape.results import netcdf_files

ELSEWHERE = ("ranking-table",)
"""Figures that take films."""

CHOOSING = (
    *("accuracies-models", "accuracy-setting", "gain-alpha", "gws-setting", "settings-rounds", "sharpness-models"),
    *("shrink-rounds", "weights-corrupted", "planes-settings", "accuracy-panels", "simplex-settings"),
    *("accuracy-rounds", "planes-clients", "coherence-groups", "accuracy-table"),
)
"""Figures that choose among the runs by their settings, and some that take what is alike."""


@pytest.fixture
def runs(kinds):
    return kinds


def _options(name):
    return inspect.signature(gallery.load(name).data).parameters


def _texts(figure):
    return "\n".join(text.get_text() for text in figure.texts)


def _run(runs, label, seed=3, partition="shards"):
    wanted = (label, seed, partition)
    return next(run for run in runs if (run.label, run.experiment.seed, _partition(run)) == wanted)


def _partition(run):
    return tables.name(run.experiment.clients.partition)


@pytest.mark.parametrize("name", gallery.names())
def test_an_absent_method_is_refused_and_those_that_there_are_are_named(name, runs, tmp_path):
    asked = {"methods": ["fedsgd"]} if "methods" in _options(name) else {"method": "fedsgd"}
    takes = set(asked) <= set(_options(name))
    for some in (runs[:2], gallery.AnyOf(runs)):
        with pytest.raises((LookupError, ValueError), match="fedavg" if takes else "no option") as told:
            draw_one(name, some, tmp_path, **asked)
        assert not isinstance(told.value, KeyError | IndexError)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in gallery.names() if name != "planes-random"])  # seed of directions
def test_an_absent_seed_is_refused_and_those_that_there_are_are_named(name, runs, tmp_path):
    with pytest.raises((LookupError, ValueError), match=r"seeds 3, 4" if "seed" in _options(name) else "no option"):
        draw_one(name, gallery.AnyOf(runs), tmp_path, seed=99)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["bias-rounds", "counterfactual-rounds", "decomposition-rounds", "layers-drift"])
def test_named_rounds_are_shown(name, runs):
    ds = gallery.load(name).data(suited(name, runs)[:1], rounds=[1])
    assert ds["round"].values.tolist() == [1]


@pytest.mark.parametrize("value", [99, -99])
@pytest.mark.parametrize(
    ("name", "option"),
    [
        (name, option)
        for name in gallery.names()
        if name not in ELSEWHERE
        for option in ("round", "rounds", "after")
        if (option in _options(name) and not isinstance(_options(name)[option].default, int)) or option == "round"
        if option in _options(name)
    ],
)
def test_an_absent_round_is_refused_with_those_that_there_are(name, option, value, runs, tmp_path):
    asked = {**QUICK.get(name, {}), option: value if option == "round" else [value]}
    if option == "after" and value > 0:  # a table has a dash where runs are shorter
        return
    with pytest.raises((LookupError, ValueError)) as told:
        draw_one(name, suited(name, runs), tmp_path, **asked)
    assert not isinstance(told.value, KeyError | IndexError)
    assert str(value) in str(told.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", one_of_each([name for name in gallery.names() if name not in ELSEWHERE], CHOOSING))
def test_runs_that_are_named_are_all_drawn_or_refused(name, runs, tmp_path):
    """One setting and two methods, two seeds, two partitions; everything; and one run that fits no other."""
    first, second = _run(runs, "fedavg"), _run(runs, "fedlaw")
    lists = {
        "methods": [first, second],
        "seeds": [first, _run(runs, "fedavg", 4)],
        "partitions": [first, _run(runs, "fedavg", 3, "dirichlet")],
        "law": [second, _run(runs, "fedlaw", 4), _run(runs, "lss", 3, "iid")],
        "all": runs,
    }
    for kind, some in lists.items():
        try:
            ds = gallery.load(name).data(some, **QUICK.get(name, {}))
        except (LookupError, ValueError):
            continue
        assert sorted(ds.attrs["runs"].split(", ")) == sorted({run.name for run in some}), kind
        assert ds.attrs["left_out"] == "", kind


def test_of_a_folder_one_group_is_drawn_and_each_other_one_is_told(fedscape, runs):
    code, _, err = fedscape("figures", "draw", "accuracy-rounds", runs[0].folder.parent)
    ds = netcdf_files.load("out/figures/accuracy-rounds.nc")
    lines = [line for line in err.splitlines() if "left out" in line]
    assert code == 0
    assert lines == [f"accuracy-rounds: {line}" for line in ds.attrs["left_out"].splitlines()]
    assert any("clients.partition" in line for line in lines)
    assert len(ds.attrs["runs"].split(", ")) == 6


def test_named_runs_of_two_settings_are_refused_by_the_setting(fedscape, runs):
    some = [_run(runs, "fedavg"), _run(runs, "fedavg", 3, "dirichlet")]
    code, out, err = fedscape("figures", "draw", "accuracy-rounds", *(run.folder for run in some))
    assert (code, out) == (2, "")
    assert "differ in clients.partition.name (shards: " in err
    assert not Path("out/figures").exists() or not list(Path("out/figures").iterdir())


def test_a_run_named_beside_a_folder_is_drawn(fedscape, runs):
    odd = _run(runs, "fedavg", 3, "dirichlet")
    code, _, err = fedscape("figures", "draw", "accuracy-rounds", runs[0].folder.parent, odd.folder)
    assert code == 0, err
    assert odd.name in netcdf_files.load("out/figures/accuracy-rounds.nc").attrs["runs"]


def test_an_option_chooses_among_runs_that_are_named(fedscape, runs):
    some = [_run(runs, "fedavg"), _run(runs, "fedlaw"), _run(runs, "fedlaw", 4)]
    words = ["figures", "draw", "lines-globals", *(run.folder for run in some)]
    code, _, err = fedscape(*words)
    assert code == 2 and "options method and seed" in err
    code, _, err = fedscape(*words, "--set", "method=fedlaw")
    assert code == 2 and some[2].name in err
    code, _, err = fedscape(*words, "--set", "method=fedlaw", "seed=4", "points=5")
    assert code == 0, err
    assert netcdf_files.load("out/figures/lines-globals.nc").attrs["runs"] == some[2].name


def test_recorded_rounds_with_too_few_clients_are_not_chosen(tmp_path):
    """A cohort of another program differs in size from round to round, as where clients fail."""
    recorder, start = Recorder(tmp_path / "run", recordings.net()), recordings.net().state_dict()
    for number in (3, 2, 4, 2):
        clients = {client: (recordings.moved(recordings.net(), client), 5) for client in range(number)}
        recorder.round(start=start, clients=clients, end=start)
    run = Run(tmp_path / "run")
    with look.drawing(look.Look()) as drawn:
        assert _runs.rounds_with_clients(run, least=2) == [0, 1, 2, 3] and not drawn.notes
        assert _runs.rounds_with_clients(run, least=3) == [0, 2]
    assert drawn.notes == ["fewer than 3 clients are kept of round 1, 3 of run"]


def test_rounds_without_a_finite_client_are_named_below_a_figure(tmp_path):
    recorder, start = Recorder(tmp_path / "run", recordings.net()), recordings.net().state_dict()
    for number in range(3):
        models = [recordings.moved(recordings.net(), client) for client in range(2)]
        broken = [{name: value * np.nan for name, value in model.items()} for model in models]
        clients = {client: (model, 5) for client, model in enumerate(broken if number == 1 else models)}
        recorder.round(start=start, clients=clients, end=start)
    with look.drawing(look.Look()) as drawn:
        ds = gallery.load("update-causes").data([Run(tmp_path / "run")])
    assert ds["round"].values.tolist() == [0, 2] and ds.attrs["excluded"] == "round 1 of run: client 0, 1"
    assert drawn.notes == ["no clients are kept of round 1 of run"]


def test_a_figure_names_the_literals_that_a_list_takes():
    words = (
        r"^kinds is 'client'; figure drift-curvature takes a list of client, step, random, .*, as in '\[\"client\"\]'"
    )
    with pytest.raises(ValueError, match=words):
        require_options("drift-curvature", {"kinds": "client"})


def test_a_figure_of_no_rounds_is_refused():
    with pytest.raises(ValueError, match=r"^0 rounds were asked for; give 1 or more\.$"):
        _runs.rounds_among([0, 1, 2], 0)


@pytest.mark.parametrize("first", [0, 1, 40])
def test_rounds_are_counted_from_the_first_one_of_a_run(tmp_path, first):
    start = recordings.net().state_dict()
    recorder = Recorder(tmp_path / "run", recordings.net(), method="FedAvg", seed=0, data="d", partition="p")
    for place, accuracy in enumerate((0.3, 0.5, 0.81, 0.82)):
        recorder.round(
            start=start, clients={0: (start, 3)}, end=start, metrics={"accuracy": accuracy}, index=first + place
        )
    run = Run(tmp_path / "run")
    assert rounds_target.data([run], target=0.8).measured.item() == 3
    assert rounds_target.data([run], target=0.3).measured.item() == 1
    assert np.isinf(rounds_target.data([run], target=0.9).measured.item())
    after = accuracy_after.data([run], after=(1, 3, 4, 5)).measured.squeeze()
    np.testing.assert_array_equal(after, [0.3, 0.81, 0.82, np.nan])
