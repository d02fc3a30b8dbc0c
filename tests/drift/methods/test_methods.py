"""What every method promises; a new file in drift/methods is tested unasked."""

import pytest
import tiny
import torch
from kinds import FEW, one_of_each

from drift import aggregation_weights, coherence, decomposition, drift_variances, locality, update_norms
from drift.config import method as methods
from drift.config.load import read, validated
from drift.config.method import Method
from drift.simulation import background_writer
from drift.simulation.simulate import simulate

TINY = {
    "rounds": 3,
    "seed": 2,
    "task": {"dataset": "digits", "model": "linear", "train_samples": 120, "test_samples": 60},
    "clients": {"number": 5, "per_round": 3, "partition": "dirichlet", "concentration": 0.5, "variant": "plain"},
    "local": {"lr": 0.05, "epochs": 1, "batch": 16},
    "proxy": {"per_class": 2},
}
SHORT = {
    "ima": ["method.window=2", "method.start=0.5"],
    "fedlaw": ["method.server_epochs=3"],
    "feddf": ["method.server_epochs=3"],
    "fedbe": ["method.server_epochs=3"],
    "fedfomo": ["clients.valid_ratio=0.2"],
    "swad": ["clients.valid_ratio=0.2", "method.cycles=3", "method.patience_end=2"],
    "soups": ["clients.valid_ratio=0.2", "method.candidates=2"],
    "diwa": ["clients.valid_ratio=0.2", "method.candidates=2", "method.lrs=[0.01, 0.1]"],
    "fedlora": ["task.model=adapted:build"],
    "scaffold": ["local.momentum=0.0"],
    "fedbn": ["task.model=tiny:normalised", "clients.concentration=5.0", "clients.valid_ratio=0.2"],
}
NAMES = methods.names()


def experiment(name, *more):
    return read(validated(TINY), f"method.name={name}", *SHORT.get(name, []), *more)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_named_after_its_file_and_says_its_source(name):
    found = methods.load(name)
    assert issubclass(found, Method)
    assert found.name() == name
    assert "Source:" in found.__doc__
    assert validated(experiment(name).resolved()) == experiment(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_a_method_changes_the_identity_of_a_run(name):
    first = experiment(name)
    for option, field in methods.load(name).model_fields.items():
        assert option.islower(), option
        if isinstance(field.default, bool):
            assert read(first, f"method.{option}={str(not field.default).lower()}").hash != first.hash


@pytest.mark.parametrize("name", NAMES)
def test_a_method_trains_goes_on_and_has_each_client_alone_with_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(background_writer, "SHARE", 0.0)  # a round is on disk before the next one trains
    two = experiment(name, "rounds=2")
    whole = simulate(two, runs=tmp_path / "whole")

    def stop(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(two, runs=tmp_path / "parts", progress=stop)
    parts = simulate(two, runs=tmp_path / "parts")
    tiny.assert_same_bits(parts, whole)
    record = parts.round(1)
    assert bool(torch.isfinite(record.end).all())
    update = parts.method.local(parts.client(1, int(record.ids[2])))
    assert torch.equal(update.theta, record.clients[2])


@pytest.mark.parametrize("name", one_of_each(NAMES, FEW))
def test_every_analysis_reads_every_method(name, tmp_path):
    run = simulate(experiment(name), runs=tmp_path)
    for analysis in (coherence, drift_variances, locality, update_norms, aggregation_weights, decomposition):
        assert analysis(run).sizes["round"] == 3, analysis.__name__


@pytest.mark.parametrize("name", one_of_each((name for name in NAMES if name != "ima"), FEW))
def test_ima_wraps_every_method(name, tmp_path):
    base = f'method.base={{name="{name}"}}'
    needs = [change for change in SHORT.get(name, []) if not change.startswith("method.")]
    run = simulate(experiment("ima", "rounds=4", base, *needs), runs=tmp_path)
    assert run.method.base.name() == name
    assert "aggregate" in run.round(3).extras
    alone = simulate(read(experiment(name), "rounds=4", "proxy.per_class=2"), runs=tmp_path)
    if not SHORT.get(name):
        assert torch.equal(run.round(0).end, alone.round(0).end)


def test_one_client_gives_its_own_model_under_fedavg(tmp_path):
    run = simulate(experiment("fedavg", "clients.number=1", "clients.per_round=1"), runs=tmp_path)
    for index in run.rounds():
        assert torch.equal(run.round(index).end, run.round(index).clients[0])


def test_identities_with_fedavg(tmp_path):
    """IMA with window 1 and no late schedule, FedLAW without server epochs, FedEve never predicting with gain 1."""
    plain = simulate(experiment("fedavg"), runs=tmp_path)
    window = simulate(experiment("ima", "method.window=1", "method.late=na"), runs=tmp_path)
    law = simulate(experiment("fedlaw", "method.server_epochs=0"), runs=tmp_path)
    for index in plain.rounds():
        assert torch.equal(window.round(index).end, plain.round(index).end)
        torch.testing.assert_close(law.round(index).end, plain.round(index).end)
