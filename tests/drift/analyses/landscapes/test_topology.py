import numpy as np
import pytest
import tiny
import torch
import xarray as xr

import drift
from drift.analyses.landscapes.topology import _climb
from drift.record.recorder import Recorder


def test_the_largest_climb_is_unknown_where_nothing_connects_two_models():
    values = np.arange(9.0).reshape(3, 3)
    values[2, 1] = values[1, 2] = np.nan  # around the last cell
    axes = {"alpha": np.arange(3.0), "beta": np.arange(3.0)}
    marks = {"mark_alpha": ("mark", [0.0, 1, 2]), "mark_beta": ("mark", [0.0, 1, 2])}
    ds = xr.Dataset({"loss": (("alpha", "beta"), values), **marks}, axes | {"mark": ["a", "b", "c"]})
    assert np.isnan(_climb(ds, 1))
    assert _climb(ds.assign(mark_alpha=("mark", [0.0, 1, 1]), mark_beta=("mark", [0.0, 1, 0])), 1) == 0


def test_a_run_without_three_clients_is_refused_by_the_client_that_is_missing_and_other_rounds_are_taken(tmp_path):
    source = tiny.trained(tmp_path, "rounds=2", "keep.clients=all")

    def run(name, *rounds):
        recorder = Recorder(tmp_path / name)
        for models in rounds:
            clients = {client: (source.layout.named(model), 5) for client, model in enumerate(models)}
            states = {word: source.layout.named(source.round(0).start) for word in ("start", "end")}
            recorder.round(**states, clients=clients, unequal={5: {"stopped": True}})
        return drift.open(recorder.folder, task=source.task)

    a, b, c = source.round(0).clients
    refused = r"round 1 of run lost has clients \[0, 2\], .* needed \(no finite model: \[1\], stopped: \[5\]\)"
    lost, equal = run("lost", [a, b], [a, b * torch.nan, c]), run("equal", [a, a.clone(), c])
    for analysis in (drift.topology_rounds, drift.round_plane):
        with pytest.raises(ValueError, match=refused):
            analysis(lost, points=5)
        with pytest.raises(ValueError, match=r"w1 and w2 are equal \(client 0, client 1\)"):
            analysis(equal, points=5)
    taken = drift.topology_rounds(run("some", [a, b, c], [a, b * torch.nan, c], [a, b, c]), points=5)
    assert taken["round"].values.tolist() == [0, 2]
