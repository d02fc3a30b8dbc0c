from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from gallery_runs import QUICK, suited
from matplotlib.contour import QuadContourSet

from figures import cli, gallery
from figures.gallery import _runs, _stack, planes_clients, simplex_optima
from figures.selection import substance
from landscape import plugins
from landscape.results import netcdf_files

ELSEWHERE = ("ranking-table",)
"""Drawn in a file of their own: from users and films, in test_gallery_fedeve."""


@pytest.fixture
def runs(kinds):
    return gallery.AnyOf(kinds)


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
    assert len(first.split()) > 3 and first.endswith("."), first
    of_a_paper = re.search(r"\b(IMA|FedLAW|LSS|FedEve) paper\b", first)  # an original figure cites none
    assert not of_a_paper or re.search(r"\(.*(paper|Fig|equation).*\)\.$", first), first
    assert isinstance(figure.NEEDS, str)
    assert "run" in figure.NEEDS
    assert figure.data.__doc__
    assert figure.draw.__doc__


def test_a_map_that_is_high_and_narrow_has_room_for_its_title():
    stored = Path(gallery.__file__).parents[1] / "pictures" / "stored" / "planes-cifar10.nc"
    figure = gallery.load("planes-clients").draw(netcdf_files.load(stored))
    figure.draw_without_rendering()
    assert _maps(figure)[3].axes.get_window_extent().width / figure.dpi > 0.7


@pytest.mark.parametrize("name", gallery.names())
def test_every_figure_without_runs_tells_how_to_train_one(name):
    with pytest.raises(LookupError, match=r"fedscape (train|sweep)"):
        gallery.load(name).data([])


@pytest.mark.parametrize(
    "name",
    [
        "weights-learned",
        "regularisation-rounds",
        "regularisation-histogram",
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
    ds = _stack.stack_runs(runs[:3], lambda run: run.metrics()[["loss"]])
    assert ds.loss.dims == ("algorithm", "seed", "round")
    assert ds.algorithm.values.tolist() == ["fedavg", "fedlaw"]
    assert ds.seed.values.tolist() == [3, 4]
    np.testing.assert_array_equal(ds.loss.sel(algorithm="fedavg", seed=4), runs[1].metrics().loss)
    assert bool(ds.loss.sel(algorithm="fedlaw", seed=4).isnull().all())
    assert ds.loss.attrs["units"] == "nats"


def test_runs_that_differ_in_one_option_are_lines_of_their_own(runs):
    ds = _stack.stack_runs([runs[0], runs[6]], lambda run: run.metrics())
    assert ds.sizes["algorithm"] == 2
    assert all(str(name).startswith("fedavg, ") for name in ds.algorithm.values)


def test_runs_of_unequal_length_are_refused(runs):
    with pytest.raises(ValueError, match="equal length"):
        _stack.stack_runs(runs[:2], lambda run: run.metrics().isel(round=slice(0, 2 + run.experiment.seed % 2)))


def test_comparable_runs_share_a_setting(runs):
    assert list(_runs.select_comparable(gallery.AnyOf([runs[6], *runs[:6]]))) == runs[:6]
    with pytest.raises(ValueError, match=r"differ in clients\.partition\.name"):
        _runs.select_comparable([runs[6], *runs[:6]])


def test_grids_beside_each_other_keep_their_coordinates(runs):
    parts = [
        xr.Dataset(
            {"loss": (("alpha", "beta"), np.arange(15.0).reshape(3, 5) + shift)},
            coords={"alpha": [shift, shift + 1.0, shift + 2.0], "beta": range(5)},
            attrs={"label": f"panel {shift}", "isometric": 1},
        )
        for shift in (0, 7)
    ]
    joined = _stack.join_panels((part.attrs["label"], part) for part in parts)
    for index, part in enumerate(parts):
        again = _stack.panels(joined)[index]
        np.testing.assert_array_equal(again.loss, part.loss)
        np.testing.assert_array_equal(again.alpha, part.alpha)
        assert again.attrs["label"] == part.attrs["label"]
        assert again.attrs["isometric"] == 1


def test_planes_through_clients_lie_flat_and_share_levels(runs, not_laid_out):
    ds = planes_clients.data(runs, points=5)
    for index in range(ds.sizes["panel"] - 1):
        plane = _stack.panels(ds)[index]
        assert float(plane.mark_alpha[1]) >= float(np.hypot(plane.mark_alpha[2], plane.mark_beta[2])) - 1e-6
    assert ds.sizes["panel"] == 4
    maps = _maps(planes_clients.draw(ds))
    assert len({tuple(part.levels) for part in maps[:3]}) == 1
    assert len({tuple(part.levels) for part in maps[4:7]}) == 1


@pytest.mark.parametrize("name", ["planes-clients", "planes-settings"])
def test_planes_through_globals_have_levels_and_a_bar_of_their_own_and_say_so(name, runs, not_laid_out):
    figure = gallery.load(name)
    drawn = figure.draw(figure.data(runs, **QUICK[name]))
    maps = _maps(drawn)
    assert len(maps) % 4 == 0
    for row in range(0, len(maps), 4):
        last = maps[row + 3]
        assert tuple(last.levels) != tuple(maps[row].levels)
        inside = [level for level in last.levels if last.zmin <= level <= last.zmax]
        assert len(inside) >= 10, "the map shows one colour or two"
    bars = [ax for ax in drawn.axes if ax.get_label() == "<colorbar>"]
    rows = len(maps) // 4
    assert len(bars) == rows + (1 if name == "planes-settings" else rows), "settings share the scale of clients"
    titles = [ax.get_title() for ax in drawn.axes if "globals" in ax.get_title()]
    assert titles
    assert all("own scale" in " ".join(title.split()) for title in titles)


def _maps(figure):
    axs = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    return [part for ax in axs for part in ax.collections if isinstance(part, QuadContourSet) and part.filled]


def test_an_adaptive_plane_says_how_many_points_are_evaluated_and_how_far_off_the_others_are(numbers, not_laid_out):
    figure, ds = gallery.load("planes-adaptive"), numbers("planes-adaptive").copy(deep=True)
    for interpolated, error, told in (
        (0, np.nan, "every point evaluated (289)"),
        (9, 0.125, "280 of 289 points evaluated; others off by 0.12 nats (root mean square)"),
        (9, np.inf, "280 of 289 points evaluated; others off by an unknown amount"),
    ):
        ds.interpolated.values[:] = False
        ds.interpolated.values[0, :interpolated] = True
        ds.loss_interpolation_error.values[...] = error
        (key,) = figure.draw(ds).legends
        assert [" ".join(text.get_text().split()) for text in key.get_texts()] == [told]


def test_a_path_of_few_rounds_is_refused_unless_asked_for(runs):
    with pytest.raises(LookupError, match=r"rounds only, and a path takes 8.*fedscape train"):
        simplex_optima.data(runs, step=0.25)
    three = suited("simplex-optima", runs)
    assert simplex_optima.data(three, step=0.25, extend=0.25, rounds=3).sizes["round"] == 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_figure_is_drawn_from_the_command_line(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("warnings.showwarning", None)
    equal = [str(run.folder) for run in runs if not run.unequal]
    words = ["figures", "gallery", *equal, "--tiny", "-o", str(tmp_path), "--json"]
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 0
    rows = {row["figure"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows.keys() == set(gallery.names())
    left = {name for name, row in rows.items() if row.get("left_out")}
    # gws-setting is by default over local.epochs, of which these runs have one value; one round has the three clients
    # whose weights are equal; most of them are linear models, which have no hidden units to align
    # update-causes is about unequal clients, whose runs differ from the others in settings that tables want named; a
    # table of noise of all these runs does not fit a page
    alone = {"update-causes", "robustness-table"}
    assert left == {*ELSEWHERE, *alone, "lines-aligned", "gws-setting", "simplex-optima", "weights-round"}
    assert rows["lines-aligned"]["left_out"].startswith("nothing to show of these runs")
    assert "does not fit a page" in rows["robustness-table"]["left_out"]
    for name in rows.keys() - left:
        row = rows[name]
        assert all(Path(file).exists() for file in row["files"]), name
        numbers = netcdf_files.load(tmp_path / f"{name}.nc").data_vars.values()
        assert any(np.isfinite(values).any() for values in numbers if values.dtype.kind == "f"), name


@pytest.mark.parametrize("name", ["decomposition-rounds", "lines-aligned"])
def test_figures_of_hidden_layers_or_several_rounds_show_something_of_tiny_runs(name, numbers, not_laid_out):
    figure, ds = gallery.load(name), numbers(name)
    substance.remarks(figure.draw(ds), ds, needs=figure.NEEDS)
