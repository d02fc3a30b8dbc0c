from __future__ import annotations

import importlib.util
import itertools
import shutil

import numpy as np
import pytest
import tiny
import xarray as xr
from matplotlib.figure import Figure
from PIL import Image

import figures
from figures.axes.interpolated import interpolated
from figures.axes.placed_text import ticks
from figures.axes.relief import relief
from figures.films import encoders
from figures.films.lit_surface import _Sheet, scale_bar

FFMPEG = shutil.which("ffmpeg") or importlib.util.find_spec("imageio_ffmpeg")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("films"), "rounds=4")


def test_a_film_has_a_frame_per_step_of_each_round(run, tmp_path):
    seen = []
    path = figures.film(
        run, tmp_path / "deep" / "f.gif", rounds=3, points=4, frames=2, dpi=40, progress=lambda *step: seen.append(step)
    )
    with Image.open(path) as picture:
        assert picture.n_frames == 6
        frames = []
        for number in range(6):
            picture.seek(number)
            frames.append(np.asarray(picture.convert("L"), dtype=float))
    assert all(np.abs(before - after).max() > 50 for before, after in itertools.pairwise(frames[:5]))
    assert seen == [(done, 6) for done in range(1, 7)]
    assert [file.name for file in path.parent.iterdir()] == ["f.gif"]


@pytest.mark.skipif(not FFMPEG, reason="no ffmpeg: pip install 'fedscape[film]'")
@pytest.mark.parametrize(("suffix", "magic"), [(".mp4", b"ftyp"), (".webm", b"webm")])
def test_a_path_is_filmed_by_ffmpeg(run, tmp_path, suffix, magic):
    path = figures.film(run, tmp_path / f"p{suffix}", rounds=3, points=4, frames=1, dpi=40)
    assert magic in path.read_bytes()[:64]


def test_what_cannot_be_filmed_is_refused_in_one_line(run, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"\.gif, \.mp4, \.webm"):
        figures.film(run, tmp_path / "f.avi")
    with pytest.raises(ValueError, match="frames is 0; give 1 or more"):
        figures.film(run, tmp_path / "f.gif", frames=0)
    monkeypatch.setattr(encoders, "_ffmpeg", lambda: None)
    with pytest.raises(LookupError, match=r"needs ffmpeg.*fedscape\[film\]"):
        figures.film(run, tmp_path / "f.mp4")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_film(run, fedscape):
    few = ("--rounds", 3, "--points", 3, "--frames", 1)
    code, out, err = fedscape("film", run.folder, "-o", "f.gif", *few)
    assert (code, out) == (0, "f.gif\n"), err
    code, _, err = fedscape("film", run.folder, "-o", "f.avi")
    assert code == 2
    assert "the suffix says the format" in err


def test_the_drawn_surface_has_the_values_of_the_grid_and_no_minimum_of_its_own():
    a, b = np.linspace(-1, 2, 7), np.linspace(0, 1, 5)
    rough = np.random.default_rng(0).normal(size=(7, 5))
    x, y = np.linspace(-1, 2, 61), np.linspace(0, 1, 41)
    fine = interpolated(a, b, rough, x, y)
    np.testing.assert_allclose(fine[::10, ::10], rough, atol=1e-12)
    assert fine.min() >= rough.min() - 1e-12 and fine.max() <= rough.max() + 1e-12
    rough[2, 3] = np.inf
    fine = interpolated(a, b, rough, x, y)
    assert np.isnan(fine[11:29, 21:39]).all()  # the four cells around it
    assert np.isfinite(fine[:10]).all() and np.isfinite(fine[31:]).all()


def plane(loss):
    alpha, beta = (np.linspace(-1, 1, size) for size in loss.shape)
    return xr.Dataset({"loss": (("alpha", "beta"), loss)}, {"alpha": alpha, "beta": beta})


def test_sides_towards_the_light_are_brighter():
    ridge = np.broadcast_to(2 - np.abs(np.linspace(-1, 1, 41))[:, None], (41, 41))
    light = relief(plane(ridge), fine=40).light
    assert light[10, 20] > 1.1 * light[30, 20]  # equal heights; the light is at the low ends of both axes
    light = relief(plane(ridge.T), fine=40).light
    assert light[20, 10] > 1.1 * light[20, 30]


def test_what_lies_behind_a_ridge_is_hidden():
    ridge = np.broadcast_to(1 + np.exp(-((np.linspace(-1, 1, 41) / 0.1) ** 2))[None] * 20, (31, 41))
    scene = relief(plane(ridge), fine=80)
    points = scene.on_surface(np.array([[0.0, 0.3], [0.0, -0.3], [0.0, 0.0]]))
    assert scene.hidden(points).tolist() == [True, False, False]  # the camera stands at the low end of the second axis


def test_models_are_on_the_map_below_and_a_bar_has_the_scale_of_the_surface():
    side = np.linspace(-1, 1, 5)
    loss = 1 + side[:, None] ** 2 + side**2
    values = {"loss": (("alpha", "beta"), loss, {"units": "nats"}), "mark_loss": ("mark", [1.2, 1.1])}
    values |= {"mark_alpha": ("mark", [0.5, 0.1]), "mark_beta": ("mark", [-0.5, 0.2])}
    ds = xr.Dataset(values, {"alpha": side, "beta": side, "mark": ["client 3", "mean"]})
    figure, scene = Figure(), relief(ds)
    ax = figures.lit_surface(ds, ax=figure.add_subplot(projection="3d"))
    dots = [np.ravel(line.get_data_3d()) for line in ax.lines if line.get_marker() == "o"]
    below = [dot for dot in dots if dot[2] == scene.floor]
    np.testing.assert_allclose(below, [[0.5, -0.5, scene.floor], [0.1, 0.2, scene.floor]])
    scale_bar(figure, ds.loss, scene.values(scene.levels), "dark", (0.9, 0.2, 0.02, 0.5))
    assert figure.axes[1].get_ylim() == pytest.approx((loss.min(), loss.max()))
    assert figure.axes[1].get_ylabel() == "loss [nats]"


@pytest.mark.parametrize(
    ("ends", "other", "expected"),
    [((-0.7, 3.9), np.inf, [0, 2]), ((-0.7, 3.9), 2.9, [0, 1, 2, 3]), ((0, 40), 1.0, [0, 10, 20, 30, 40])],
)
def test_axes_of_one_unit_have_one_step_unless_one_is_far_longer(ends, other, expected):
    np.testing.assert_allclose(ticks(*ends, other), expected)


def test_a_surface_needs_two_dimensions_and_deep_axes():
    grid = np.linspace(0, 1, 4)
    ds = xr.Dataset({"loss": (("alpha", "beta"), 1 + np.add.outer(grid, grid))}, {"alpha": grid, "beta": grid})
    figure = Figure()
    ax = figures.lit_surface(ds, ax=figure.add_subplot(projection="3d"))
    surface = max((one for one in ax.collections if isinstance(one, _Sheet)), key=lambda one: one.zorder)
    assert surface.colours.shape == (201, 201, 4) and (surface.colours[..., 3] == 1).all()
    np.testing.assert_allclose(surface.points[0, -1], [0, 1, np.log10(2)])
    cut = figures.lit_surface(ds, ax=figure.add_subplot(projection="3d"), levels=np.geomspace(1, 2.5, 5))
    colours = max((one for one in cut.collections if isinstance(one, _Sheet)), key=lambda one: one.zorder).colours
    assert 0 < (colours[..., 3] == 0).mean() < 0.2  # the corner above the levels is left out
    with pytest.raises(ValueError, match="a surface needs two"):
        figures.lit_surface(ds.isel(beta=0), ax=ax)
    with pytest.raises(ValueError, match="ground is 'grey'; accepted: light, dark"):
        figures.lit_surface(ds, ax=ax, ground="grey")
    with pytest.raises(ValueError, match="three dimensions"):
        figures.lit_surface(ds, ax=figure.add_subplot())
