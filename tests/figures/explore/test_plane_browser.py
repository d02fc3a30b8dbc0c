"""Plane and Weights in a browser: what they draw is what the analyses give, and a move is what `evaluate` gives."""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import tiny
import torch
from browsing import MARKS
from exploring import PLOTS, exploring, watched

import drift
from landscape.sweep.evaluate import evaluate

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
pytestmark = [*MARKS, pytest.mark.timeout(180)]

ROUND = 1
DRAWN = (
    "([label, count]) => {"
    + PLOTS
    + """
    return within(document).some(plot => plot.getAttribute('aria-label').includes(label) && plot._fullData &&
        plot._fullData[0].x && plot._fullData[0].x.length >= count);
}"""
)

RELIEF = (
    "label => {"
    + PLOTS
    + """
    return within(document).some(plot => plot.getAttribute('aria-label').includes(label) &&
        plot._fullData?.[0].type === 'surface' && plot._fullData[0].x.length >= 21);
}"""
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("explored"))


@pytest.fixture(scope="module")
def shown(run):
    with exploring(run.folder) as address, watched(address) as page:
        yield page


def query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def cohort(run):
    record = run.round(ROUND)
    order = record.ids.argsort()
    return record.ids[order].tolist(), record.clients[order]


def loss_of(run, models, coefficients):
    rows = torch.tensor([coefficients], dtype=torch.float64)
    return float(evaluate(run.task, models, rows)["loss"][0])


def loss_in(page, heading):
    """The loss that stands under a heading."""
    text = page.locator(f"p:has-text('{heading}') + p").inner_text()
    return float(re.search(r"loss ([\d.]+)", text)[1])


def numbers(text):
    return [float(part) for part in text.split(",")]


def test_the_plane_is_that_of_the_analysis_and_a_click_evaluates_a_point(shown, run):
    ids, clients = cohort(run)
    page = shown.go(f"view=plane&round={ROUND}")
    shown.wait(DRAWN, ["loss on the plane", 21])
    names = [f"client {client}" for client in ids[:3]]
    expected = drift.models_plane(run, round=ROUND, models=names)
    (plot,) = shown.plots("loss on the plane")
    assert plot["label"].endswith(", ".join(names))
    np.testing.assert_allclose(plot["traces"][0]["x"], expected.alpha, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(plot["traces"][1]["x"], expected.mark_alpha, rtol=1e-5, atol=1e-5)
    page.get_by_role("img", name="loss on the plane").click(position={"x": 500, "y": 230})
    page.get_by_text("Selected point").wait_for()
    page.locator("p", has_text=re.compile("^loss .* samples of test")).wait_for()
    point = numbers(query(page)["point"])
    assert sum(point) == pytest.approx(1, abs=1e-4)
    assert loss_in(page, "Selected point") == pytest.approx(loss_of(run, clients[:3], point), rel=1e-3)
    shown.wait(DRAWN, ["Loss of the point", len(ids)])
    assert len(shown.plots("Confusion")) == 1
    page.go_back()
    shown.wait("() => !location.search.includes('point=')")


def test_a_link_reopens_line_class_and_relief(shown, run):
    page = shown.open(f"view=plane&round={ROUND}&corners=start,end&quantity=error&point=0.25,0.75")
    shown.wait(DRAWN, ["error on the line through start, end", 41])
    page.get_by_text("0.25 start + 0.75 end").wait_for()
    expected = drift.models_line(run, round=ROUND, models=["start", "end"])
    (plot,) = shown.plots("on the line")
    np.testing.assert_allclose(plot["traces"][0]["y"], expected.error, rtol=1e-5, atol=1e-6)
    shown.go(f"view=plane&round={ROUND}&quantity=class+1&plane.depth=3d")
    shown.wait(RELIEF, "error of class 1")
    page = shown.go(f"view=plane&round={ROUND}&corners=start,end,round+0")
    page.get_by_text("start and round 0 are the same model").wait_for()


def test_a_slider_gives_what_evaluate_gives(shown, run):
    ids, clients = cohort(run)
    page = shown.go(f"view=weights&round={ROUND}")
    page.get_by_text("The aggregate").wait_for()
    slider = page.get_by_role("slider", name=f"client {ids[0]}")
    slider.fill("0.75")
    shown.wait("() => location.search.includes('weights=')")
    weights = numbers(query(page)["weights"])
    assert weights[0] == pytest.approx(0.75) and sum(weights) == pytest.approx(1, abs=1e-4)
    expected = loss_of(run, clients, weights)
    page.get_by_text(f"loss {expected:.4g}").first.wait_for()
    page.get_by_role("slider", name="gamma").fill("0.9")
    shown.wait("() => location.search.includes('gamma=0.9')")
    page.get_by_text(f"loss {loss_of(run, clients, [0.9 * value for value in weights]):.4g}").first.wait_for()
    page.get_by_role("button", name=f"leave client {ids[0]} out").click()
    shown.wait("() => /weights=0,/.test(location.search)")
    tried = page.get_by_role("listbox", name="tried so far")
    tried.locator("option").nth(2).wait_for(state="attached")
    page.go_back()
    shown.wait("() => /weights=0\\.75/.test(location.search)")


def test_the_ring_and_the_usual_weights(shown, run):
    ids, clients = cohort(run)
    page = shown.go(f"view=weights&round={ROUND}")
    shown.wait(DRAWN, ["Loss over the weights", 1])
    triangle = page.get_by_role("img", name="Loss over the weights")
    triangle.focus()
    page.keyboard.press("Shift+ArrowUp")
    shown.wait("() => location.search.includes('weights=')")
    weights = numbers(query(page)["weights"])
    own = drift.round_weights(run, round=ROUND).weight.sel(mark="these").values
    assert sum(weights) == pytest.approx(1, abs=1e-4) and not np.allclose(weights, own, atol=1e-3)
    page.get_by_role("button", name="uniform").click()
    page.get_by_text(f"loss {loss_of(run, clients, [1 / len(ids)] * len(ids)):.4g}").first.wait_for()
    page.get_by_role("button", name="best on the proxy set").click()
    shown.wait("() => location.search.includes('gamma=')")
    fields = query(page)
    row = [float(fields["gamma"]) * weight for weight in numbers(fields["weights"])]
    proxy = {
        name: float(evaluate(run.task, clients, torch.tensor([value], dtype=torch.float64), split="proxy")["loss"][0])
        for name, value in {"best": row, "uniform": [1 / len(ids)] * len(ids)}.items()
    }
    assert proxy["best"] < proxy["uniform"]
    assert shown.errors == [] and shown.foreign == []
