"""Recorded rounds played again: what server and clients remember is as it was, or the replay says that it is not."""

import pytest
import torch
from kinds import one_of_each
from tiny import trained

from drift.analyses.counterfactual.changes import changed, changes
from drift.analyses.counterfactual.interventions import interventions
from drift.analyses.counterfactual.replayed_rounds import BEYOND, bounded_losses, play_again, remembers, server_before
from drift.analyses.rounds.run_state import chance
from drift.config import method as methods

ROUNDS = 4

NAMES = sorted(set(methods.names()) - {"fedbn"})  # which wants a model with normalisation


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def options(name):
    local = ["local.optimizer=adam"] if name == "lss" else []
    start = ["method.start=2", "method.window=2"] if name == "ima" else []
    validation = ["clients.valid_ratio=0.2"] if name in ("fedfomo", "swad", "soups", "diwa") else []
    plain = ["local.momentum=0"] if name in ("scaffold", "feddyn") else []
    server = ["method.server_epochs=2"] if name in ("fedlaw", "feddf", "fedbe") else []
    model = ["task.model=mlp", "task.model_options.hidden=[8]"]
    model = ["task.model=adapted:build"] if name == "fedlora" else model
    return [f"method={name}", f"rounds={ROUNDS}", *model, *local, *plain, *start, *validation, *server]


@pytest.mark.parametrize("name", one_of_each(NAMES))
def test_unchanged_rounds_repeat_the_record_or_say_that_memory_began_anew(name, runs):
    run = trained(runs, *options(name))
    assert server_before(run, 0)[1] and server_before(run, ROUNDS)[1]
    for first in range(ROUNDS):
        models = play_again(run, "unchanged", first, ROUNDS - first)
        same = all(torch.allclose(models[index], run.round(index).end, atol=1e-5) for index in models)
        assert same or not server_before(run, first)[1], (first, name)
    if name in ("fedadam", "fedyogi", "fedadagrad", "fedavgm", "fedeve", "ima", "scaffold", "moon"):
        assert all(server_before(run, first)[1] for first in range(ROUNDS))


@pytest.mark.parametrize("name", ["fedadam", "fedavgm"])
def test_moments_that_cannot_be_had_are_said_to_begin_anew(name, runs):
    run = trained(runs, *options(name), "keep.clients=none")
    assert remembers(run) and not server_before(run, 2)[1] and server_before(run, 0)[1]
    assert interventions(run, length=1).attrs["memory"] == "anew"


@pytest.mark.parametrize("name", one_of_each(NAMES))
def test_every_change_of_every_method_can_be_played_and_changes_its_setting_only(name, runs):
    run = trained(runs, *options(name))
    before = run.experiment.resolved()
    for change in changes(run, without=[1]):
        spec, _ = changed(run, change.name)
        if name == "fedavg" or change.name.startswith("method."):
            play_again(run, change.name, 1, 1)
        flat = {key: _at(spec.resolved(), key) for key in change.settings if key != "method"}
        assert all(value == pytest.approx(change.settings[key]) for key, value in flat.items())
        if change.settings and "method" not in change.settings:
            restored = spec.resolved()
            for key in change.settings:
                *parents, last = key.split(".")
                _at(restored, ".".join(parents))[last] = _at(before, key)
            assert restored == before


def _at(content, key):
    for part in filter(None, key.split(".")):
        content = content[part]
    return content


def test_another_draw_changes_the_cohorts_only_and_a_diverged_model_has_a_bounded_loss(runs):
    run = trained(runs, *options("fedavg"))
    assert not torch.equal(play_again(run, "unchanged", 0, 1, 1)[0], play_again(run, "unchanged", 0, 1)[0])
    assert torch.equal(play_again(run, "unchanged", 0, 1, 1)[0], play_again(run, "unchanged", 0, 1, 1)[0])
    far = {0: torch.linspace(-1e12, 1e12, run.task.layout.size)}
    most = BEYOND * chance(run)
    sound = {0: run.round(0).end}
    losses = bounded_losses(run, [far, {}, sound], [[0]] * 3, "test")
    assert losses.tolist() == pytest.approx([most, most, float(run.round(0).metrics["loss"])])
