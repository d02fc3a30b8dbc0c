"""Drags with the mouse: the numbers that stand on the page are those of the point, computed plainly in float64."""

import copy
import re
import time
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import tiny
import torch
from browsing import MARKS
from exploring import PLOTS, exploring, watched

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
pytestmark = [*MARKS, pytest.mark.timeout(180)]

ROUND = 1
PLACE = (
    "([label, trace, x, y]) => {"
    + PLOTS
    + """
    const plot = within(document).find(plot => plot.checkVisibility() && plot._fullData
        && plot.getAttribute('aria-label').includes(label) && plot._fullData.some(own => own.name === trace));
    if (!plot) return null;
    const own = plot._fullData.find(part => part.name === trace), { xaxis, yaxis } = plot._fullLayout;
    plot.scrollIntoView({ block: 'center' });
    const box = plot.getBoundingClientRect();
    return [box.x + xaxis._offset + xaxis.d2p(x ?? own.x[0]), box.y + yaxis._offset + yaxis.d2p(y ?? own.y[0])];
}"""
)
"""Where on the screen a place of a figure is, by default the first point of a trace."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("dragged"))


@pytest.fixture(scope="module")
def shown(run):
    with exploring(run.folder) as address, watched(address) as page:
        yield page


def drag(shown, label, *, across, up):
    """Drag the ring of a figure to a place of it, in steps."""
    shown.wait(f"argument => ({PLACE})(argument)", [label, "point", None, None])
    start = shown.page.evaluate(PLACE, [label, "point", None, None])
    end = shown.page.evaluate(PLACE, [label, "point", across, up])
    mouse = shown.page.mouse
    mouse.move(*start)
    mouse.down()
    mouse.move(*((one + other) / 2 for one, other in zip(start, end, strict=True)), steps=3)
    mouse.move(*end, steps=3)
    mouse.up()


def numbers(shown, name):
    shown.wait(f"() => location.search.includes('{name}=')")
    return [float(part) for part in parse_qs(urlsplit(shown.page.url).query)[name][0].split(",")]


def plainly(run, coefficients):
    """Loss and error of a sum of the cohort's models, in float64 by PyTorch alone."""
    record, test = run.round(ROUND), run.task.split("test")
    theta = torch.tensor(coefficients, dtype=torch.float64) @ record.clients[record.ids.argsort()].double()
    module = copy.deepcopy(run.task.model).double()
    torch.nn.utils.vector_to_parameters(theta, module.parameters())
    with torch.no_grad():
        outputs = module(test.inputs.double())
    wrong = outputs.argmax(1) != test.targets
    return float(torch.nn.functional.cross_entropy(outputs, test.targets)), float(wrong.double().mean())


def assert_written(shown, run, heading, coefficients):
    """The loss and the error under a heading become those of the point; the address has six digits of it."""
    loss, error = plainly(run, coefficients)
    line, ends = shown.page.locator(f"p:has-text('{heading}') + p"), time.monotonic() + 30
    while True:
        text = line.inner_text()
        if (
            float(re.search(r"loss ([\d.]+)", text)[1]) == pytest.approx(loss, rel=2e-4)
            and f"error {error:.2%}" in text
        ):
            return
        assert time.monotonic() < ends, (text, loss, error)
        shown.page.wait_for_timeout(50)


def test_the_ring_of_the_plane_is_dragged_and_its_numbers_are_those_of_the_point(shown, run):
    ids = sorted(run.round(ROUND).ids.tolist())
    page = shown.go(f"view=plane&round={ROUND}&corners={','.join(f'client {k}' for k in ids)}&point=0.2,0.3,0.5")
    page.get_by_text("Selected point").wait_for()
    before = numbers(shown, "point")
    (plot,) = shown.plots("loss on the plane")
    marks = next(trace for trace in plot["traces"] if len(trace["x"]) == 4)
    corners = np.array([marks["x"][:3], marks["y"][:3]])
    wanted = np.array([-0.2, 0.4, 0.8])
    across, up = corners @ wanted
    drag(shown, "loss on the plane", across=float(across), up=float(up))
    shown.wait(f"() => !location.search.includes('point={before[0]:g}')")
    point = numbers(shown, "point")
    np.testing.assert_allclose(point, wanted, atol=0.05)
    assert_written(shown, run, "Selected point", point)


def test_the_ring_of_the_triangle_is_dragged_and_its_numbers_are_those_of_the_weights(shown, run):
    shown.go(f"view=weights&round={ROUND}")
    wanted = np.array([0.2, 0.1, 0.7])
    height = 3**0.5 / 2
    drag(shown, "Loss over the weights", across=wanted[1] + wanted[2] / 2, up=wanted[2] * height)
    weights = numbers(shown, "weights")
    assert sum(weights) == pytest.approx(1, abs=1e-5)
    three = sorted(range(3), key=lambda row: -shares(run)[row])
    np.testing.assert_allclose([weights[row] for row in three], wanted, atol=0.03)
    assert_written(shown, run, "The aggregate", weights)
    assert shown.errors == []


def shares(run):
    record = run.round(ROUND)
    return record.weights[record.ids.argsort()].tolist()


def test_a_map_in_bfloat16_says_how_far_its_losses_are_off(shown):
    page = shown.go(f"view=plane&round={ROUND}&plane.precision=fast&plane.points=11")
    said = page.get_by_text(re.compile("shown: 11 x 11 points .*; at 5 points that were computed exactly as well"))
    said.wait_for()
    assert "the loss is off by 0 of it at most" in said.inner_text(), "layers of this model are too small for bfloat16"
