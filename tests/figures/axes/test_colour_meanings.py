"""What a colour or a mark means is the same in every picture."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import xarray as xr
from matplotlib.colors import to_rgb
from plotly.colors import unlabel_rgb

from drift.analyses.landscapes.minima import round_minimum
from figures.axes import surfaces
from figures.gallery import _stack, barriers_clients, clients_round
from figures.looks import palette, style
from landscape.surfaces.minimum import fitted_minimum, label_minimum

pytestmark = pytest.mark.seconds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "keep.clients=all")


def _is_red(colour):
    red, _, blue = unlabel_rgb(colour) if str(colour).startswith("rgb") else to_rgb(colour)
    return red > 1.5 * blue


def test_a_cosine_of_one_is_red_and_one_of_minus_one_blue_in_every_picture(run):
    ends = []
    drawn = clients_round.draw(clients_round.data([run]))
    for mesh in [artist for ax in drawn.axes for artist in (*ax.collections, *ax.images)]:
        if mesh.get_array() is not None and mesh.get_clim() == (-1, 1):
            ends.append([tuple(mesh.cmap(end)[:3]) for end in (0.0, 1.0)])
    assert ends
    for low, high in ends:
        assert _is_red(high) and not _is_red(low)
    assert style.SIGNED == palette.SIGNED


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_low_loss_is_dark_in_maps_and_in_matrices_of_barriers(sign):
    """Midpoints of one sign: the cell of the lower loss is the darker one, as on every map of a loss."""
    names = ["client 0", "client 1", "client 2"]
    midpoint = sign * np.array([[0, 0.1, 0.4], [0.1, 0, 0.8], [0.4, 0.8, 0]])
    dims = ("mark", "mark_other")
    values = {
        "barrier": (dims, np.zeros((3, 3))),
        "midpoint": (dims, midpoint, {"long_name": "change", "units": "nats"}),
    }
    ds = xr.Dataset(values, {"mark": names, "mark_other": names})
    figure = barriers_clients.draw(_stack.join_panels([("round 1", ds)]))
    (image,) = (image for ax in figure.axes for image in ax.images)
    luma = image.to_rgba(image.get_array())[..., :3] @ [0.299, 0.587, 0.114]
    order = np.argsort(midpoint, axis=None, kind="stable")
    assert (np.diff(luma.ravel()[order]) >= -1e-9).all() and np.ptp(luma) > 0.5
    assert image.get_cmap().name == style.sequential()


def _two_bowls():
    """A plane whose loss and error have their minima at different places."""
    side = np.linspace(-1, 1, 21)
    x, y = np.meshgrid(side, side, indexing="ij")
    loss = 1 + (x - 0.3) ** 2 + (y - 0.2) ** 2
    error = 0.2 + 0.1 * ((x + 0.4) ** 2 + (y + 0.1) ** 2)
    ds = xr.Dataset(coords={"alpha": side, "beta": side})
    ds["loss"] = (("alpha", "beta"), loss, {"long_name": "loss", "units": "nats"})
    return ds.assign(error=(("alpha", "beta"), error, {"long_name": "error", "units": "fraction"}))


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(("variable", "place"), [("loss", (0.3, 0.2)), ("error", (-0.4, -0.1))])
def test_the_ring_is_at_the_minimum_of_what_the_map_shows(variable, place, stored):
    ds = _two_bowls()
    if stored:
        ds = ds.assign(label_minimum(fitted_minimum(ds), ds).data_vars)
    _, axs = style.panels(1, 1)
    ax = surfaces.contour(ds, ax=axs[0, 0], variable=variable)
    ((ring, *_),) = (container.lines for container in ax.containers)
    np.testing.assert_allclose(np.ravel(ring.get_xydata()), place, atol=1e-6)


def test_a_stored_minimum_says_of_what_it_is_and_is_drawn(run):
    ds = round_minimum(run, points=9)
    assert ds.minimum_state.attrs["metric"] == "loss"
