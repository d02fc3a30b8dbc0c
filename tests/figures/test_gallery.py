from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from torch import nn

import drift
from drift.experiment import Experiment
from figures import cli, gallery, style
from figures.gallery import _stack, planes_clients
from landscape import plugins, results

QUICK = {
    "planes-clients": {"points": 5},
    "planes-settings": {"points": 4, "most": 2},
    "planes-overlay": {"points": 5},
    "planes-adaptive": {"points": 17, "tolerance": 0.5},
    "trajectory-plane": {"points": 5},
    "barriers-clients": {"points": 5},
    "curve-modes": {"points": 5, "steps": 5},
    "lines-globals": {"points": 7, "lines": 2},
    "lines-fma-ima": {"points": 7, "window": 3},
    "bias-rounds": {"rounds": 2, "samples_per_client": 5},
    "error-averaged": {"rounds": 2, "subsets": 2, "cka_rounds": 2},
    "planes-projected": {"points": 5},
    "planes-classes": {"points": 5},
    "planes-random": {"points": 5},
    "planes-statistics": {"points": 3},
    "simplex-weights": {"step": 0.2},
    "simplex-optima": {"step": 0.25, "rounds": 3, "extend": 0.25},
    "simplex-settings": {"step": 0.25, "rounds": 3, "extend": 0.25},
    "gws-setting": {"over": "clients.concentration"},
    "lines-aligned": {"points": 5},
    "barriers-pool": {"points": 3, "count": 4},
    "basin-rounds": {"rounds": 2, "points": 7},
    "trace-rounds": {"rounds": 2, "products": 6},
    "layers-rounds": {"rounds": 2},
    "eigen-slice": {"points": 5},
    "gap-scaling": {"rounds": 2, "samples": 5},
    "ntk-clients": {"rounds": 2, "points": 4},
    "decomposition-rounds": {"rounds": 1, "replicates": 2, "samples_per_client": 4},
    "eigen-rounds": {"rounds": 2, "k": 2},
    "sharpness-models": {"batches": 2},
}

ELSEWHERE = ("ranking-table",)
"""Drawn in a file of their own: from users and films, in test_gallery_fedeve."""


def normalised(shape, classes):
    """A model with batch statistics."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 5), nn.BatchNorm1d(5), nn.Linear(5, classes))


def _train(
    folder: Path,
    method: dict,
    seed: int,
    partition: dict | None = None,
    model: str = "linear",
    clients: dict | None = None,
    **options,
) -> drift.Run:
    experiment = Experiment(
        rounds=4,
        seed=seed,
        task={"dataset": "blobs", "model": model},
        clients={
            "number": 5,
            "per_round": 3,
            "partition": partition or {"name": "shards", "shards": 2},
            **(clients or {}),
        },
        method=method,
        local={"lr": 0.05, "epochs": 1, "batch": 20},
        proxy={"per_class": 2},
        **options,
    )
    return drift.simulate(experiment, runs=folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, quick = tmp_path_factory.mktemp("runs"), {"name": "fedlaw", "server_epochs": 2}
    methods = [{"name": "fedavg"}, quick, {**quick, "variant": "gws"}]
    found = [_train(folder, method, seed) for method in methods for seed in (3, 4)]
    dirichlet = [{"name": "dirichlet", "concentration": value, "minimum": 1} for value in (0.3, 3.0)]
    drifts = [{"name": "drift", "setting": setting, "concentration": 0.3} for setting in ("iid", "period", "both")]
    found += [_train(folder, methods[0], 3, partition) for partition in dirichlet + drifts]
    found += [_train(folder, methods[2], 3, partition) for partition in dirichlet]
    iid, three = {"name": "iid"}, {"name": "hybrid_dirichlet", "first": 1}
    found += [_train(folder, {"name": "shrink", "gamma": gamma}, seed, iid) for gamma, seed in ((0.9, 3), (1.0, 4))]
    found += [_train(folder, {**quick, "variant": "attentive"}, 3, iid, clients={"corrupted": 0.4})]
    found += [_train(folder, methods[0], 3, {**three, "even": even}, clients={"number": 3}) for even in (10.0, 0.5)]
    pools = [_train(folder, {"name": "lss", "candidates": count}, seed, iid) for count, seed in ((2, 3), (1, 4))]
    return [*found, *pools, _train(folder, methods[0], 3, model=f"{__name__}:normalised")]


def test_names_are_dashed_files():
    files = {path.stem for path in Path(gallery.__file__).parent.glob("[a-z]*.py")}
    assert {name.replace("-", "_") for name in gallery.names()} == files


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(ValueError, match="Did you mean 'planes-clients'"):
        gallery.load("plane-clients")


@pytest.mark.parametrize("name", gallery.names())
def test_every_file_says_what_it_shows_and_needs(name):
    figure = gallery.load(name)
    first = plugins.describe("figures.gallery", name)
    assert re.search(r"\(.*(paper|Fig|equation).*\)\.$", first), first
    assert isinstance(figure.NEEDS, str)
    assert "run" in figure.NEEDS
    assert figure.data.__doc__
    assert figure.draw.__doc__


@pytest.mark.parametrize("name", [name for name in gallery.names() if name not in ELSEWHERE])
def test_every_figure_draws_from_tiny_runs(name, runs, tmp_path):
    figure = gallery.load(name)
    ds = figure.data(runs, **QUICK.get(name, {}))
    numbers = [values for values in ds.data_vars.values() if values.dtype.kind == "f"]
    assert numbers
    assert all(np.isfinite(values.values).any() for values in numbers if values.name != "critical_point")
    assert ds.attrs["runs"]
    results.save(ds, tmp_path / "data.zarr")
    drawn = figure.draw(results.load(tmp_path / "data.zarr"))
    assert isinstance(drawn, Figure)
    assert drawn.get_figwidth() in (style.NARROW, style.WIDE)
    drawn.draw_without_rendering()
    shown = [ax for ax in drawn.axes if ax.has_data()]
    assert shown
    named = [ax for ax in shown if ax.axison and ax.get_label() != "<colorbar>"]
    assert all(ax.get_xlabel() or ax.get_title() or name == "planes-clients" for ax in named)


@pytest.mark.parametrize("name", gallery.names())
def test_every_figure_without_runs_tells_how_to_train_one(name):
    with pytest.raises(LookupError, match=r"fedscape (train|sweep)"):
        gallery.load(name).data([])


@pytest.mark.parametrize(
    "name",
    [
        "weights-learned",
        "balance-rounds",
        "balance-histogram",
        "server-epochs",
        "weight-factors",
        "gain-alpha",
        "settings-rounds",
        "barriers-pool",
        "planes-statistics",
    ],
)
def test_figures_of_a_method_model_or_partition_refuse_runs_of_others(name, runs):
    with pytest.raises(LookupError, match=r"fedscape (train|sweep)"):
        gallery.load(name).data(runs[:2])


def test_no_gallery_file_saves_or_shows():
    for path in Path(gallery.__file__).parent.glob("*.py"):
        called = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not called & {"savefig", "show", "save"}, path.name


def test_runs_stack_along_method_and_seed_with_gaps_as_nan(runs):
    ds = _stack.stacked(runs[:3], lambda run: run.metrics()[["loss"]])
    assert ds.loss.dims == ("algorithm", "seed", "round")
    assert ds.algorithm.values.tolist() == ["fedavg", "fedlaw"]
    assert ds.seed.values.tolist() == [3, 4]
    np.testing.assert_array_equal(ds.loss.sel(algorithm="fedavg", seed=4), runs[1].metrics().loss)
    assert bool(ds.loss.sel(algorithm="fedlaw", seed=4).isnull().all())
    assert ds.loss.attrs["units"] == "nats"


def test_two_runs_in_one_place_are_refused(runs):
    with pytest.raises(ValueError, match=r"both fedavg with seed 3"):
        _stack.stacked([runs[0], runs[6]], lambda run: run.metrics())


def test_runs_of_unequal_length_are_refused(runs):
    with pytest.raises(ValueError, match="equal length"):
        _stack.stacked(runs[:2], lambda run: run.metrics().isel(round=slice(0, 2 + run.experiment.seed % 2)))


def test_comparable_runs_share_a_setting(runs):
    assert _stack.comparable([runs[6], *runs[:6]]) == runs[:6]


def test_grids_beside_each_other_keep_their_coordinates(runs):
    parts = [
        xr.Dataset(
            {"loss": (("alpha", "beta"), np.arange(15.0).reshape(3, 5) + shift)},
            coords={"alpha": [shift, shift + 1.0, shift + 2.0], "beta": range(5)},
            attrs={"label": f"panel {shift}", "isometric": 1},
        )
        for shift in (0, 7)
    ]
    joined = _stack.beside(parts)
    for index, part in enumerate(parts):
        again = _stack.part(joined, index)
        np.testing.assert_array_equal(again.loss, part.loss)
        np.testing.assert_array_equal(again.alpha, part.alpha)
        assert again.attrs["label"] == part.attrs["label"]
        assert again.attrs["isometric"] == 1


def test_planes_through_clients_lie_flat_and_share_levels(runs):
    ds = planes_clients.data(runs, points=5)
    for index in range(ds.sizes["panel"] - 1):
        plane = _stack.part(ds, index)
        assert float(plane.mark_alpha[1]) >= float(np.hypot(plane.mark_alpha[2], plane.mark_beta[2])) - 1e-6
    assert ds.sizes["panel"] == 4
    drawn = planes_clients.draw(ds)
    maps = [ax.collections[0] for ax in drawn.axes if ax.get_label() != "<colorbar>" and ax.collections]
    assert len({tuple(part.levels) for part in maps[:4]}) == 1
    assert len({tuple(part.levels) for part in maps[4:8]}) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_figure_is_drawn_from_the_command_line(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("warnings.showwarning", None)
    words = ["figures", "gallery", *(str(run.folder) for run in runs), "--tiny", "-o", str(tmp_path), "--json"]
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 0
    rows = {row["figure"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows.keys() == set(gallery.names())
    left = {name for name, row in rows.items() if row.get("left_out")}
    assert left == {*ELSEWHERE, "gws-setting"}  # by default over local.epochs, of which these runs have one value
    for name in rows.keys() - left:
        row = rows[name]
        assert all(Path(file).exists() for file in row["files"]), name
        numbers = results.load(tmp_path / f"{name}.zarr").data_vars.values()
        assert any(np.isfinite(values).any() for values in numbers if values.dtype.kind == "f"), name
