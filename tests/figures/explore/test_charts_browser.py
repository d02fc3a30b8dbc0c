"""Drift and curvature on the stage: charts, alarms and the map of models have the library's numbers, also in a file."""

import json

import numpy as np
import pytest
import tiny
from browsing import MARKS
from exploring import idle

import drift
from figures import gallery
from figures.page.report import report

pytestmark = [*MARKS, pytest.mark.timeout(300)]
VIEW = "document.getElementById('stage').view"
DRAWN = f"""(figure) => {VIEW}.why.charts.parts.get(figure).body.innerText"""
VALUES = f"""(figure) => {VIEW}.why.charts.of(figure, [{VIEW}.looked]).value?.values ?? null"""
MAP = f"""() => {VIEW}.pictures[0].shown.frame?.marks.map(one => [one.name, one.u, one.v, one.basin, one.loss])"""
FIGURES = "drift-curvature,noise-rounds,update-causes,product-gap,early-warning"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that learns nothing, so that an alarm is raised, and one of another method."""
    folder = tmp_path_factory.mktemp("charts")
    slow = tiny.trained(folder, "rounds=12", "local.lr=0.00001")
    return [slow, tiny.trained(folder, "rounds=12", "method=ima")]


def opened(browser, address):
    page, errors = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce"), []
    page.on("pageerror", lambda problem: errors.append(str(problem)))
    page.set_default_timeout(120_000)
    page.goto(address)
    return page, errors


def read(page, figure):
    values = page.evaluate(VALUES, figure)
    return values and {name: np.array(one, float) for name, one in values.items() if name in ("share", "cost", "limit")}


def test_charts_and_map_have_the_numbers_of_the_library(browser, address, runs, tmp_path):
    run, other = runs
    stored = gallery.load("drift-curvature").data([run], rounds=5)
    fields = f"#round=3&runs={run.name},{other.name}&look={run.name}&charts={FIGURES}"
    page, errors = opened(browser, address + fields)
    idle(page)
    assert read(page, "drift-curvature")["share"] == pytest.approx(stored.share.transpose("kind", "round").values)
    percent = 100 * float(stored.share.sel(kind="client").sel(round=3))
    assert f"client drift {percent:.2g} %" in page.evaluate(DRAWN, "drift-curvature"), (
        "it was stored, and is shown at once"
    )
    assert "low-rank adapters" in page.evaluate(DRAWN, "product-gap")

    first = run.cached(drift.early_warning).first_alarm.dropna("detector")
    assert first.size, "the run raises an alarm"
    flags = page.locator(".event[aria-label*='early warning']")
    assert sorted(flags.nth(i).get_attribute("aria-label").split(":")[0] for i in range(flags.count())) == sorted(
        f"{page.evaluate(f'{VIEW}.looked.label')}, round {int(index)}" for index in first.values
    )

    rounds = [int(index) for index in stored["round"].values]
    assert f"Analysed: rounds {', '.join(map(str, rounds[:-1]))} and {rounds[-1]}." in page.evaluate(
        DRAWN, "drift-curvature"
    )
    assert "below zero or huge (takes batch normalisation in a recorded run)" in page.evaluate(DRAWN, "early-warning")

    assert page.evaluate(VALUES, "noise-rounds") is None, "it takes trainings, which nobody asked for"
    assert "a minute per run" in page.locator("[data-figure=noise-rounds] .compute").text_content()
    page.click("[data-figure=noise-rounds] .compute")
    idle(page)
    noise = gallery.load("noise-rounds").data([run]).share.isel(fraction=-1).transpose("part", "round")
    assert read(page, "noise-rounds")["share"] == pytest.approx(noise.values)
    page.click("[data-figure=noise-rounds] .chart svg[role=slider]", position={"x": 52, "y": 40})
    idle(page)
    assert page.evaluate(f"{VIEW}.state.round") == int(noise["round"][0])
    page.press("[data-figure=noise-rounds] .chart svg[role=slider]", "ArrowRight")
    assert page.evaluate(f"{VIEW}.state.round") == int(noise["round"][1])

    page.evaluate(f"{VIEW}.set({{ view: 'models' }})")
    idle(page)
    assert page.evaluate(MAP) is None
    page.click(".picture .compute")
    idle(page)
    ds = gallery.load("model-map").data(runs, most=2)
    columns = ("mark_alpha", "mark_beta", "mark_basin", "mark_loss")
    wanted = {str(mark): [float(ds[name].sel(mark=mark)) for name in columns] for mark in ds.mark.values}
    assert {name: numbers for name, *numbers in page.evaluate(MAP)} == {
        name: pytest.approx(numbers) for name, numbers in wanted.items()
    }
    mark = next(name for name in wanted if name.startswith(f"{other.name}: client"))
    who, index = (int(word) for word in mark.partition(": ")[2].split() if word.isdigit())
    page.locator(f".mark.model[data-mark='{mark}']").press("Enter")
    idle(page)
    state = json.loads(page.evaluate(f"JSON.stringify({VIEW}.state)"))
    assert [state[name] for name in ("look", "client", "round", "view")] == [other.name, who, index, "models"]
    address_now = page.evaluate("location.hash")
    assert errors == []
    page.close()

    path = report(runs, tmp_path / "p.html", figures=None, points=9, address=address_now)
    page, errors = opened(browser, path.as_uri())
    page.evaluate("unpacking")
    page.evaluate(f"{VIEW}.set({{ look: '{run.name}', round: 4 }})")
    assert {name: numbers for name, *numbers in page.evaluate(MAP)} == {
        name: pytest.approx(numbers) for name, numbers in wanted.items()
    }
    assert f"client drift {percent:.2g} %" in page.evaluate(DRAWN, "drift-curvature")
    assert "This file has none. Nobody computed it: compute it in fedscape explore" in page.evaluate(
        DRAWN, "update-causes"
    )
    assert page.locator(".event[aria-label*='early warning']").count() == first.size
    reading = page.text_content("#stage .reading")
    assert f"aggregate of round 11 of {page.evaluate(f'{VIEW}.looked.label')}: " in reading and " pruned" not in reading
    assert "both on the half of the test samples that no choice has seen" in reading
    about = page.text_content("#stage .about")
    assert about.startswith("Models of rounds 9 to 11.") and "bold" not in about
    page.evaluate(f"round => {VIEW}.runs.forEach(run => delete run.shown[round])", index)
    before = page.evaluate("location.hash")
    page.locator(f".mark.model[data-mark='{mark}']").press("Enter")
    assert page.text_content("#stage .complaint").endswith(f"This file has no landscape of round {index}.")
    assert page.evaluate("location.hash") == before
    assert page.locator(".compute").count() == 0 and errors == []
    page.close()
