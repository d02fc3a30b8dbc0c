"""Every analysis of a run whose models have running statistics states which of them its models had."""

import copy
import warnings

import numpy as np
import pytest
import torch
from recordings import moved, net
from torch import nn
from torch.nn.functional import cross_entropy

import drift
import landscape
from drift.runs.registry import registered

NO_MODELS = dict.fromkeys(("update_change", "update_causes"), "compares updates, and evaluates no model")
"""Analyses that state nothing, and why; those that read the record alone have cost "record"."""

LACKS = {
    "counterfactual": "local settings",
    "domain_accuracy": "domains",
    "product_gap": "adapters",
    "ranking_rounds": "candidates",
    "personal_accuracy": "held out samples",
    "interventions": "a method",
    "noise_or_drift": "a method",
    "pool_barriers": "pools",
    "training_cost": "local settings",
    "aligned_barrier": "layers without normalisation",
}
"""Analyses that the recorded run of this test has nothing for."""

TEST = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
TRAIN = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))


def labels(inputs):
    return (inputs[:, 0] > 0).long()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four rounds of four clients of a small network with batch normalisation; the end is their mean, buffers too."""
    folder, start = tmp_path_factory.mktemp("norms") / "run", moved(net(), 0)
    recorder = drift.Recorder(folder, net())
    for index in range(4):
        clients = {client: (moved(net(), 10 * index + client, by=2.0), 16) for client in range(4)}
        states = [state for state, _ in clients.values()]
        end = {name: torch.stack([state[name] for state in states]).double().mean(0) for name in states[0]}
        end = {name: value.to(start[name].dtype) for name, value in end.items()}
        recorder.round(start=start, clients=clients, end=end, metrics={"loss": 1.0})
        start = end
    samples = {"train": (TRAIN, labels(TRAIN)), "test": (TEST, labels(TEST))}
    task = landscape.make_task(net(), nn.CrossEntropyLoss(), samples)
    return drift.open(folder, task=(task, torch.arange(64).chunk(4)))


OPTIONS = {"points": 3, "products": 30, "steps": 10, "k": 2, "subsets": 2, "windows": (1, 2), "step": 0.5, "probes": 1}
POINTS = {"basin_rounds": 7, "round_minimum": 5, "global_minimum": 5, "density_rounds": 101, "hessian_density": 101}
SEVERAL = ("global_line", "global_plane", "global_minimum", "trajectory_plane", "average_line")
"""Analyses that take several rounds."""


def small(name):
    """Options with which an analysis takes a moment."""
    options = {
        **OPTIONS,
        "points": POINTS.get(name, 3),
        "strides": (1,),
        **({} if name in SEVERAL else {"rounds": [-1]}),
    }
    return {key: value for key, value in options.items() if key in registered()[name].options}


QUICK = (
    "what_if",
    "eigen_rounds",
    "trace_rounds",
    "gap_scaling",
    "ntk_variance",
    "similarity_rounds",
)
QUICK += ("global_minimum", "best_weights", "client_losses", "confusion", "disagreement", "three_accuracies")
"""Those whose results have no surface that states it."""

NAMES = [name for name, entry in registered().items() if entry.cost != "record" and name not in {*NO_MODELS, *LACKS}]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in NAMES])
def test_a_result_states_its_statistics(run, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = getattr(drift, name)(run, **small(name))
    words = set(ds.attrs.get("statistics", "").split(", "))
    assert words and words <= {"own", "recomputed", "averaged", "task"}, f"{name} states {ds.attrs.get('statistics')!r}"


def test_analyses_left_out_have_nothing_to_state(run):
    for name, lacks in LACKS.items():
        with pytest.raises((LookupError, ValueError)):
            pytest.fail(f"the run has {lacks}: {getattr(drift, name)(run)}")
    assert "statistics" not in drift.update_change(run, rounds=[-1]).attrs


def test_aggregates_and_the_end_have_one_statistic(run):
    """The end is FedAvg's mean: the same loss as the aggregate "by size", with statistics of all training samples."""
    module = copy.deepcopy(net()).double()
    for own, value in zip(module.parameters(), run.task.layout.named(run.round(-1).end.theta).values(), strict=True):
        own.data.copy_(value)
    hidden = module[0](TRAIN.double()).detach()
    with torch.no_grad():
        module[1].running_mean.copy_(hidden.mean(0))
        module[1].running_var.copy_(hidden.var(0))
    expected = float(cross_entropy(module.eval()(TEST.double()), labels(TEST)).detach())
    ds = drift.round_weights(run)
    np.testing.assert_allclose(ds.loss.sel(mark=["by size", "uniform", "end"]), expected, rtol=1e-5)
    assert ds.attrs["statistics"] == "recomputed"
    assert ds.attrs["calibration"] == 64
    assert drift.what_if(run, **small("what_if")).attrs["statistics"] == "recomputed"


def test_statements_of_parts_are_joined(run):
    assert drift.gap_scaling(run, rounds=[-1]).attrs["statistics"] == "averaged"
    assert drift.client_losses(run).attrs["statistics"] == "own"
    assert drift.decomposition(run, rounds=[-1]).attrs["statistics"] == "own, recomputed"
    for models, words in ((["end"], "own"), (["aggregate"], "recomputed"), (["end", "aggregate"], "own, recomputed")):
        attrs = drift.sample_predictions(run, models=models).attrs
        assert attrs["statistics"] == words
        assert attrs.get("calibration") == (64 if "recomputed" in words else None)
    basins = drift.basin_rounds(run, rounds=[-1], points=5).attrs
    assert (basins["statistics"], basins["mark_statistics"]) == ("recomputed", "own")


def test_a_stored_result_states_what_it_was_computed_with(run):
    plain = drift.topology_rounds(run, rounds=[-1], points=5).attrs  # the plane is stored by the first call
    assert drift.topology_rounds(run, rounds=[-1], points=5).attrs == plain
    assert plain["statistics"] == "recomputed"
