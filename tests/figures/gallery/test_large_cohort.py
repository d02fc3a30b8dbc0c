"""The clients of a round as a figure, for a cohort too large to name each."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import drift
from drift.config.load import validated
from figures.axes import class_labels
from figures.gallery import clients_round

MANY, CLIENTS = 20, 40
"""Clients up to which each has a place of its own, here, and those of the run."""


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(clients_round, "MANY", MANY)


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    task = {"dataset": "digits", "model": "linear"}
    clients = {"number": CLIENTS, "per_round": CLIENTS, "partition": "iid"}
    settings = {"rounds": 1, "task": task, "clients": clients, "local": {"steps": 1, "batch": 4}}
    run = drift.open(drift.simulate(validated(settings), runs=tmp_path_factory.mktemp("runs")).folder)
    return clients_round.data([run], clients=[7])


def test_clients_stand_by_their_most_common_class(ds):
    figure = clients_round.draw(ds)
    points, pairs, losses, labels = figure.axes[:4]
    ordered, groups = clients_round._ordered(ds)
    common = ordered.class_share.transpose("client", "class").values.argmax(axis=1)
    assert sorted(ordered.client.values) == sorted(ds.client.values) and (np.diff(common) >= 0).all()
    for axis in (pairs.xaxis, pairs.yaxis, losses.xaxis, labels.xaxis):
        assert [text.get_text() for text in axis.get_ticklabels()] == list(groups)
    for row, column in ((0, 1), (5, 33), (CLIENTS - 1, 3)):
        first, second = ordered.client.values[row], ordered.client.values[column]
        cosine = ds.cosine.sel(client=first, client_other=second)
        np.testing.assert_allclose(pairs.images[0].get_array()[row, column], cosine)
    unmarked, selected = points.collections
    assert len(unmarked.get_offsets()) == CLIENTS - 1 and unmarked.get_alpha() == 0.4
    np.testing.assert_allclose(selected.get_offsets()[0][1], ds.update_norm.sel(client=7))


def test_a_small_cohort_keeps_its_order(ds):
    few = ds.isel(client=slice(0, MANY), client_other=slice(0, MANY))
    ordered, groups = clients_round._ordered(few)
    assert ordered is few and not groups


def _mixture(count):
    shares = np.random.default_rng(0).dirichlet(np.ones(3), count)
    ds = xr.Dataset({"cohort_share": (("round", "class"), shares)}, {"round": np.arange(count), "class": list("abc")})
    return class_labels.class_bars(ds, ax=Figure().add_subplot()), shares.cumsum(axis=1)


def test_many_bars_are_a_map_whose_shares_are_told_by_lightness():
    ax, tops = _mixture(12)
    assert len(ax.containers) == 3 and not ax.collections
    for bars, expected in zip(ax.containers, tops.T, strict=True):
        np.testing.assert_allclose([bar.get_y() + bar.get_height() for bar in bars], expected)
    ax, tops = _mixture(13)
    (cells,) = ax.collections
    assert not ax.containers
    np.testing.assert_allclose(cells.get_array().cumsum(axis=0), tops.T)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    lightness = cells.get_cmap()(np.linspace(0, 1, 6))[:, :3] @ [0.3, 0.6, 0.1]
    assert (np.diff(lightness) > 0).all()
