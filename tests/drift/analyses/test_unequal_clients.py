"""A run with a late, a stopped, a partial and a compressed client: every analysis measures the updates that the server
received, and says so, or refuses in one line."""

from __future__ import annotations

import re

import kinds
import numpy as np
import pytest
import recordings
import tiny
import torch
import xarray as xr

import drift
from drift.record.recorder import Recorder
from drift.runs import registry
from drift.runs.run import Run

KNOWN = registry.registered()

WORDS = "late, partial, sent, steps, stopped: updates are as received"

TRAINED = [name for name, entry in KNOWN.items() if entry.cost == "training"]
"""Analyses that train clients again, which a recorded run refuses."""

ABSENT = ("domain_accuracy", "pool_barriers", "product_gap", "ranking_rounds", "server_epochs")
"""Analyses of what the run lacks: domains, ranks, adapters, methods."""

REFUSED = {
    "noise_or_drift": "train with updates compressed by top-k; noise_or_drift needs SGD",
    "pool_barriers": "pools of models",
}
"""What the run lacks, or what an analysis says of compressed clients."""


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Run:
    """A plain run, whose models the recorded runs have."""
    return tiny.trained(tmp_path_factory.mktemp("source"), "rounds=4", "keep.clients=all", "keep.globals=all")


def state(run: Run, theta: torch.Tensor) -> dict[str, torch.Tensor]:
    return run.layout.named(theta)


def reopened(source: Run, folder) -> Run:
    return drift.open(folder, task=source.task, parts=source.parts)


@pytest.fixture(scope="module")
def hostile(source, tmp_path_factory) -> Run:
    """The last two rounds have a late client, one that stopped, a partial one and one that sent another model."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    recorder = Recorder(folder)
    for index in source.rounds():
        record = source.round(index)
        models = {k: state(source, model) for k, model in zip(record.ids.tolist(), record.clients, strict=True)}
        sizes = dict(zip(record.ids.tolist(), record.sizes.tolist(), strict=True))
        clients = {k: (model, sizes[k]) for k, model in models.items()}
        unequal = {}
        if index > 1:
            late, partial, compressed = record.ids.tolist()
            (lost,) = set(range(4)) - {late, partial, compressed}
            clients[partial] = ({"head.bias": models[partial]["head.bias"]}, sizes[partial])
            rounded = {name: (value * 8).round() / 8 for name, value in models[compressed].items()}
            unequal = {
                late: {"start_round": index - 2, "steps": 3},
                compressed: {"sent": rounded, "steps": 9},
                lost: {"stopped": True},
            }
        recorder.round(
            start=state(source, record.start),
            clients=clients,
            end=state(source, record.end),
            metrics=record.metrics,
            unequal=unequal,
        )
    return reopened(source, folder)


@pytest.fixture(scope="module")
def twin(source, hostile, tmp_path_factory) -> Run:
    """Clients that are on time and send whole models as they are: the start plus the updates of the hostile run."""
    folder = tmp_path_factory.mktemp("twin") / hostile.folder.name
    recorder = Recorder(folder)
    for index in source.rounds():
        record, received = source.round(index), hostile.round(index)
        clients = {
            k: (state(source, model), size)
            for k, model, size in zip(received.ids.tolist(), received.clients, received.sizes.tolist(), strict=True)
        }
        recorder.round(
            start=state(source, record.start),
            clients=clients,
            end=state(source, record.end),
            metrics=record.metrics,
        )
    return reopened(source, folder)


def answer(run: Run, name: str) -> xr.Dataset | str:
    """The result of an analysis, or the line with which it refuses."""
    options = kinds.quick(KNOWN[name], points=5, steps=2, subsets=2, replicates=2)
    try:
        return getattr(drift, name)(run, **options)
    except (LookupError, ValueError) as reason:
        recordings.require_stated(reason)
        refusal = str(reason)
    assert "\n" not in refusal
    return refusal


@pytest.mark.parametrize("name", ["update_causes", "decomposition"])
def test_a_recorded_run_is_analysed_by_one_process_or_more(name, hostile):
    with pytest.raises(ValueError, match=r"^workers is 0; give 1 or more, "):
        getattr(drift, name)(hostile, workers=0)


def test_the_hostile_run_is_hostile(hostile, source):
    record = hostile.round(3)
    late, partial, compressed = range(3)
    models, begun = source.round(3).clients, source.round(1).start
    torch.testing.assert_close(record.deltas[late], models[late] - begun, rtol=0, atol=1e-6)
    assert float((record.deltas[late] - (models[late] - record.start)).norm()) > 0.01
    weight = hostile.layout.slices()["head.weight"]
    assert not record.deltas[partial][weight].any()
    assert not torch.equal(record.clients[compressed], models[compressed])
    assert len(record.extras["stopped"]) == 1


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "update_causes"])
def test_an_analysis_takes_updates_as_received_and_says_so_or_refuses(name, hostile, twin):
    found, expected = answer(hostile, name), answer(twin, name)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        assert KNOWN[name].cost == "training" or name in ABSENT, found
        return
    assert found.attrs.pop("unequal").startswith(WORDS)
    assert "unequal" not in expected.attrs
    assert found.data_vars.keys() == expected.data_vars.keys()
    for variable, values in expected.data_vars.items():
        if "seconds" in str(variable):
            continue
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found[variable].values, values.values, rtol=1e-6, atol=1e-9, err_msg=variable)
        else:
            np.testing.assert_array_equal(found[variable].values, values.values, err_msg=variable)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Run:
    settings = ("clients.late=2", "clients.work=[0.3,1.0]", "clients.stops=0.3", "clients.valid_ratio=0.2")
    settings = (*settings, "local.compress=top-k", "local.topk=0.5")
    return tiny.trained(
        tmp_path_factory.mktemp("simulated"), "rounds=4", "keep.clients=all", "keep.globals=all", *settings
    )


@pytest.mark.parametrize("name", TRAINED)
def test_an_analysis_that_trains_again_takes_the_same_clients_and_says_so_or_refuses(name, simulated):
    found = answer(simulated, name)
    if isinstance(found, str):
        assert REFUSED[name] in found
        return
    assert name not in REFUSED
    assert found.attrs["unequal"].startswith("late, sent, steps, stopped: updates are as received")
    assert any(values.notnull().any() for values in found.data_vars.values() if values.dtype.kind == "f")


def test_trainings_done_again_give_the_updates_that_the_server_received(simulated):
    parts = drift.counterfactual(simulated, rounds=[2, 3])
    assert float(parts.norm.sel(part="server").max()) < 1e-5  # the step is the mean of the received updates
    assert float(parts.norm.sel(part="sampling").min()) > 1e-3


@pytest.fixture(scope="module")
def four(tmp_path_factory) -> Run:
    """Three rounds of all four clients, of a model with a hidden layer."""
    settings = ("rounds=3", "clients.per_round=4", "task.model=mlp", "task.model_options.hidden=[3]")
    return tiny.trained(tmp_path_factory.mktemp("four"), *settings, "keep.clients=all", "keep.globals=all")


def spoilt(source: Run, folder, factor: float) -> Run:
    """The source, recorded, with its first client times a factor."""
    recorder = Recorder(folder)
    for index in source.rounds():
        record = source.round(index)
        first, *rest = (state(source, model) for model in record.clients)
        models = [{name: values * factor for name, values in first.items()}, *rest]
        clients = dict(zip(record.ids.tolist(), zip(models, record.sizes.tolist(), strict=True), strict=True))
        start, end = state(source, record.start), state(source, record.end)
        recorder.round(start=start, clients=clients, end=end, metrics=record.metrics)
    return reopened(source, folder)


@pytest.fixture(scope="module")
def excluding(four, tmp_path_factory) -> Run:
    return spoilt(four, tmp_path_factory.mktemp("excluding") / "run", torch.nan)


@pytest.mark.parametrize("name", KNOWN)
def test_an_analysis_names_the_clients_that_were_excluded_or_refuses(name, excluding, four):
    found = answer(excluding, name)
    if isinstance(found, str):
        assert name in {*TRAINED, *ABSENT, "noise_or_drift"}, found
    else:
        assert re.match(r"round \d of run: client 0", found.attrs["excluded"])


NEEDS_FINITE = ("averaging_gap", "client_span", "disagreement", "drift_curvature")


@pytest.mark.parametrize("name", NEEDS_FINITE)
def test_a_client_whose_loss_is_not_finite_is_named(name, four, tmp_path):
    found = answer(spoilt(four, tmp_path / "run", 1e25), name)
    assert isinstance(found, str), found
    assert " Without a finite loss: client 0 of round " in found


def test_clients_without_a_finite_model_are_named_by_round_and_are_in_no_mean(source, tmp_path):
    def recorded(name, broken):
        recorder = Recorder(tmp_path / name)
        for index in (0, 1):
            record = source.round(index)
            models = dict(zip(record.ids.tolist(), record.clients, strict=True))
            first, second, *_ = models
            clients = {k: (state(source, model), 5) for k, model in models.items()}
            clients[first] = ({"head.bias": clients[first][0]["head.bias"]} if index else clients[first][0], 5)
            if index and not broken:
                del clients[second]
            elif index:
                clients[second] = (state(source, models[second] * torch.nan), 5)
            recorder.round(start=state(source, record.start), clients=clients, end=state(source, record.end))
        return drift.update_causes(drift.open(tmp_path / name))

    broken, without = recorded("broken", True), recorded("without", False)
    assert broken.attrs["excluded"].startswith("round 1 of broken: client ")
    assert "excluded" not in without.attrs
    xr.testing.assert_equal(broken, without)
    assert broken.norm.sel(round=1, cause="partial") > 0
    diverged = tiny.trained(
        tmp_path, "rounds=1", "task.model=mlp", "local.lr=300", "local.epochs=2", "keep.clients=all"
    )
    excluded = ", ".join(map(str, diverged.round(0).extras["excluded"].tolist()))
    assert (
        excluded and drift.update_causes(diverged).attrs["excluded"] == f"round 0 of {diverged.name}: client {excluded}"
    )


def test_a_round_in_which_no_client_has_samples_is_nan(source, tmp_path):
    recorder = Recorder(tmp_path / "run")
    for index in (0, 1):
        record = source.round(index)
        models = [(state(source, model), 5 * index) for model in record.clients]
        clients = dict(zip(record.ids.tolist(), models, strict=True))
        recorder.round(start=state(source, record.start), clients=clients, end=state(source, record.end))
    run = drift.open(tmp_path / "run", task=source.task)
    for found in (drift.update_causes(run)["mean"], drift.averaging_gap(run, k=2, samples=20).gap):
        assert np.isfinite(found).values.tolist() == [False, True]


def without_client_models(four: Run, folder, lost) -> Run:
    """A run, recorded, where all models of the rounds `lost` are NaN."""
    recorder = Recorder(folder)
    for index in four.rounds():
        record = four.round(index)
        models = record.clients * (torch.nan if index in lost else 1.0)
        models = zip([state(four, model) for model in models], record.sizes.tolist(), strict=True)
        clients = dict(zip(record.ids.tolist(), models, strict=True))
        recorder.round(start=state(four, record.start), clients=clients, end=state(four, record.end))
    return reopened(four, folder)


@pytest.fixture(scope="module")
def gone(four, tmp_path_factory) -> Run:
    return without_client_models(four, tmp_path_factory.mktemp("gone") / "run", (1,))


TAKEN = ("averaging_gap", "client_span", "decomposition", "drift_curvature", "error_averaged", "model_map")
TAKEN += ("similarity_rounds", "update_causes")


@pytest.mark.parametrize("name", TAKEN)
def test_a_round_in_which_all_clients_diverged_is_named(name, gone):
    found = answer(gone, name)
    assert not isinstance(found, str), found
    assert found.attrs["excluded"] == "round 1 of run: client 0, 1, 2, 3"


def test_a_round_in_which_all_clients_diverged_is_refused_with_the_reason(gone, four, tmp_path):
    reason = r"all clients of round 1 diverged \(returned values that are not finite\)"
    for function in (drift.drift_curvature, drift.update_causes, drift.model_map):
        with pytest.raises(LookupError, match=reason):
            function(gone, rounds=[1])
    assert "excluded" not in drift.client_span(gone, rounds=[0]).attrs
    with pytest.raises(LookupError, match=reason.replace("1", "0-2")):
        drift.averaging_gap(without_client_models(four, tmp_path / "run", four.rounds()))
