"""A run of which some rounds were recorded: every analysis over rounds has the numbers of the whole run, or NaN."""

from __future__ import annotations

import kinds
import numpy as np
import pytest
import recordings
import torch
from torch import nn

import drift
import landscape
from drift.analyses.rounds.critical_point import critical_point
from drift.record.recorder import Recorder
from drift.runs import registry

RECORDED = (0, 1, 2, 100, 101, 200)
ROUNDS = (*range(5), *range(96, 104), *range(197, 203))
"""Rounds of the whole run, in stretches that are longer than any window, with the recorded ones inside."""

SIZES = (9, 14, 7)


def run_of(folder, rounds):
    """The given rounds of one training; a round's models follow from its number alone."""
    recorder, parts = Recorder(folder), torch.arange(30).split(SIZES)
    for index in rounds:
        model = lambda seed, index=index: recordings.moved(recordings.net(), 100 * index + seed, by=0.4)  # noqa: E731
        clients = {client: (model(client), size) for client, size in enumerate(SIZES)}
        recorder.round(
            start=recordings.moved(recordings.net(), 100 * index - 1, by=0.4),
            clients=clients,
            end=recordings.moved(recordings.net(), 100 * index + 99, by=0.4),
            metrics={"loss": 1 / (1 + index), "accuracy": 1 - 1 / (2 + index)},
            index=index,
        )
    inputs = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    samples = (inputs, (inputs[:, 0] > 0).long())
    task = landscape.make_task(recordings.net(), nn.CrossEntropyLoss(), {"train": samples, "test": samples})
    return drift.open(folder, task=task, parts=parts)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sparse")
    return run_of(folder / "recorded", RECORDED), run_of(folder / "whole", ROUNDS)


KNOWN = registry.registered()
TRAINED = ("counterfactual", "noise_or_drift", "interventions", "update_change", "domain_accuracy", "ranking_rounds")
TRAINED += ("product_gap",)
"""What trains again or asks for other data or models, which this run can not."""

SPAN = {
    ("coherence", "coherence_smooth"): 3,
    ("coherence", "group_cosine_smooth"): 3,
    ("drift_variances", "change_variance"): 2,
    ("drift_variances", "change_share"): 2,
    ("drift_variances", "client_share"): 2,
    ("layer_drift", "change_variance"): 2,
    ("update_norms", "previous_norm"): 2,
    ("what_if", "ima-3"): 3,
}
"""Successive rounds that a number needs, one unless stated here; `FILTERED` need all rounds since the first."""

FILTERED = {"gain", "sigma", "statistic", "alarm"}


def columns(ds):
    """Values over round by name of the variable, or of the variant where there are some."""
    for name, values in ds.data_vars.items():
        for variant in values.variant.values if "variant" in values.dims else ():
            yield str(variant), values.sel(variant=variant)
        if "round" in values.dims and "variant" not in values.dims:
            yield name, values


@pytest.mark.parametrize("name", [name for name, one in KNOWN.items() if "round" in one.dims and name not in TRAINED])
def test_a_number_is_that_of_the_whole_run_or_none(runs, name):
    few = list(RECORDED) if KNOWN[name].cost == "record" or name == "what_if" else [2, 101]
    options = {"points": 3, "subsets": 2, "windows": [3], "reach": 1, "folds": 2, "groups": {"a": [0, 2]}}
    options = kinds.quick(KNOWN[name], **options, rounds=3 if name == "label_scatter" else few, samples=12)
    sparse, whole = (getattr(drift, name)(run, **options) for run in runs)
    for (variable, actual), (_, expected) in zip(columns(sparse), columns(whole), strict=True):
        for index in actual["round"].values.tolist():
            value, needed = actual.sel(round=index).values, SPAN.get((name, variable), 1)
            if variable in FILTERED:
                needed = index + 1
            if all(before in RECORDED or before < 0 for before in range(index - needed + 1, index + 1)):
                np.testing.assert_allclose(value, expected.sel(round=index), rtol=1e-6, atol=1e-9, err_msg=variable)
            elif variable not in FILTERED:
                assert np.isnan(value).all(), (variable, index, value)


@pytest.mark.parametrize("analyse", [drift.drift_variances, drift.layer_drift])
def test_the_filter_starts_anew_after_a_gap(runs, analyse):
    ds, _ = (analyse(run) for run in runs)
    gain, q, r = (ds[name].sel(round=101).values for name in ("gain", "change_variance", "client_variance"))
    np.testing.assert_allclose(gain, q / (q + r), rtol=1e-12)
    assert np.isnan(ds.gain.sel(round=[100, 200])).all()


def test_the_change_may_be_in_a_gap():
    rounds, values = [*range(8), *range(100, 108)], [0.5] * 8 + [-0.5] * 8
    point = critical_point(rounds, values, window=1, level=0.01)
    assert (point.round, point.low, point.high) == (100, 8, 100)
