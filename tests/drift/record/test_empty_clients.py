"""A client without samples in every cohort: it changes no number of the others, in any analysis."""

from __future__ import annotations

import kinds
import numpy as np
import pytest
import recordings
import torch
from torch import nn

import drift
import landscape
from drift.record.recorder import Recorder
from drift.runs import registry

SIZES = {0: 9, 2: 14, 3: 7}
EMPTY = 1


def run_of(folder, empty, sizes=SIZES, rounds=3):
    """Rounds of three clients with samples, and perhaps one without, whose model is far away."""
    recorder, start = Recorder(folder), recordings.net().state_dict()
    parts = dict(zip(sizes, torch.arange(30).split([*sizes.values(), 30 - sum(sizes.values())]), strict=False))
    for index in range(rounds):
        clients = {k: (recordings.moved(recordings.net(), 10 * index + k, by=0.4), size) for k, size in sizes.items()}
        if empty:
            clients[EMPTY] = recordings.moved(recordings.net(), 10 * index + 7, by=3.0), 0
        end = recordings.moved(recordings.net(), 100 + index, by=0.4)
        recorder.round(start=start, clients=clients, end=end, metrics={"loss": 1.0, "accuracy": 0.5})
        start = end
    inputs = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    samples = (inputs, (inputs[:, 0] > 0).long())
    task = landscape.make_task(recordings.net(), nn.CrossEntropyLoss(), {"train": samples, "test": samples})
    return drift.open(folder, task=task, parts=[parts.get(client, []) for client in range(4)])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty")
    return run_of(folder / "without", False), run_of(folder / "with", True)


KNOWN = registry.registered()
ASKING = ("aligned_barrier", "training_cost", "counterfactual", "interventions", "update_change", "personal_accuracy")
ASKING += ("noise_or_drift", "domain_accuracy", "ranking_rounds", "server_epochs", "pool_barriers", "product_gap")
"""What trains again, or asks for another run, data or method."""


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ASKING])
def test_a_client_without_samples_changes_no_number(runs, name):
    options = {"points": 3, "subsets": 2, "reach": 1, "folds": 2, "client": 0}
    options |= {"directions": 2 if name == "ball_sharpness" else [1]}
    options |= {"rounds": 3 if name == "label_scatter" else [2]}
    options |= {"clients": list(SIZES)} if name == "best_weights" else {}
    options |= {"rounds": [0, 1, 2]} if name in ("global_plane", "global_minimum") else {}
    options |= {"rounds": [0, 1, 2], "clients": name == "trajectory_points"} if "trajectory" in name else {}
    options |= {"rounds": [1, 2]} if name == "global_line" else {}
    options |= {"models": ["client 0", "client 2", "end"]} if name == "models_plane" else {}
    without, found = (getattr(drift, name)(run, **kinds.quick(KNOWN[name], **options)) for run in runs)
    common = {dim: without[dim].values for dim in without.dims if dim in without.coords}
    common = {dim: list(SIZES) if dim in ("client", "client_other", "holder") else common[dim] for dim in common}
    for variable, expected in without.data_vars.items():
        here = {dim: values for dim, values in common.items() if dim in found[variable].dims}
        actual, expected = found[variable].sel(here), expected.sel(here)
        if actual.dtype.kind in "fiub":
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7, err_msg=str(variable))


@pytest.fixture(scope="module", params=[{2: 9}, {0: 0, 2: 0}], ids=["one client", "nobody has samples"])
def small(tmp_path_factory, request):
    return run_of(tmp_path_factory.mktemp("small") / "run", False, sizes=request.param, rounds=2)


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ASKING])
def test_a_small_cohort_has_numbers_or_says_why_not(small, name):
    options = {"directions": 1 if name == "ball_sharpness" else [1], "subsets": 2, "reach": 1, "folds": 2}
    try:
        found = getattr(drift, name)(small, **kinds.quick(KNOWN[name], points=3, **options))
    except (LookupError, ValueError) as reason:
        recordings.require_stated(reason)
        return
    for variable, values in found.data_vars.items():
        assert values.dtype.kind not in "f" or not np.isinf(values).any(), variable
