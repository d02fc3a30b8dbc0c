"""Runs, Drift and Diagnosis in a browser: curves, table, live growth of our runs and recorded ones, jobs and links."""

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import tiny
from browsing import MARKS
from exploring import exploring, watched

import drift
from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.rounds.variance import drift_variances, layer_drift
from drift.record.recorder import Recorder
from drift.runs import cache
from drift.simulation.simulate import simulate

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
pytestmark = [*MARKS, pytest.mark.timeout(240)]

MARKUP = "<img src=x onerror=\"document.title='taken over'\">"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """FedAvg with seeds 5 and 6 and FedProx with seed 5, on the same data."""
    runs = tmp_path_factory.mktemp("runs")
    for overrides in ([], ["seed=6"], ["method=fedprox"]):
        tiny.trained(runs, "rounds=4", *overrides)
    return runs


@pytest.fixture(scope="module")
def shown(folder):
    with exploring(folder) as address, watched(address) as page:
        yield page


def query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def until(shown, condition, what):
    """Wait until a condition holds, with the page at work."""
    for _ in range(1200):
        if condition():
            return
        shown.page.wait_for_timeout(50)
    raise AssertionError(f"never: {what}; errors: {shown.errors}")


def curves(shown, label="over rounds of", least=1):
    """Traces with several points of the plot whose label contains a text, once it has some."""

    def now():
        (plot,) = shown.plots(label) or [{"traces": []}]
        return [trace for trace in plot["traces"] if len(trace["x"]) and trace["name"] != "ends"]

    until(shown, lambda: len(now()) >= least, f"{least} curves in {label!r}")
    return now()


def place(shown, label, x, y=0.5):
    """The place on the screen of a plot's part, in shares of its axes."""
    plot = shown.page.get_by_label(label).first
    plot.scroll_into_view_if_needed()
    box = plot.evaluate(
        "plot => { const { left, top } = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;"
        "return [left + xaxis._offset, top + yaxis._offset, xaxis._length, yaxis._length]; }"
    )
    return box[0] + x * box[2], box[1] + y * box[3]


def test_the_triangle_is_drawn_anew_for_another_round(shown, folder):
    """plotly keeps what a carpet's map was drawn from, unless it is taken away."""

    def values():
        return shown.page.get_by_label("Loss over the weights").first.evaluate(
            "(plot) => (plot._fullData ?? []).filter((trace) => trace.type === 'contourcarpet')"
            ".flatMap((trace) => [trace.z, trace._z].map((rows) => [...rows].flatMap((row) => [...row])))"
        )

    shown.go(f"view=weights&runs={next(folder.glob('fedavg-*-s5-*')).name}&round=2")
    until(shown, lambda: len(values()) == 2, "a triangle")
    before = values()[0]
    shown.page.keyboard.press("ArrowRight")
    until(shown, lambda: len(values()) == 2 and values()[0] != before, "the triangle of the next round")
    asked, used = values()
    assert used == asked


def test_curves_are_those_of_the_selected_runs(shown, folder):
    shown.open()
    traces = curves(shown, least=4)
    for run in map(drift.open, sorted(path.parent for path in folder.glob("*/run.json"))):
        values = run.metrics().accuracy.values
        assert any(np.allclose(trace["y"], values, atol=1e-6) for trace in traces), run.name
    assert {trace["name"] for trace in traces} == {"FedAvg", "FedProx"}
    assert shown.page.locator(".run-table .tabulator-row").count() == 3


def test_a_click_sets_the_round_and_a_brush_the_rounds(shown):
    page = shown.go()
    curves(shown, least=4)
    page.mouse.click(*place(shown, "over rounds of", 0.66))
    until(shown, lambda: query(page).get("round") == "2", "round 2 in the address")
    page.mouse.move(*place(shown, "over rounds of", 0.2, 0.3))
    page.mouse.down()
    page.mouse.move(*place(shown, "over rounds of", 0.8, 0.6), steps=4)
    page.mouse.up()
    until(shown, lambda: query(page).get("rounds") == "1,2", "rounds 1 and 2 in the address")
    page.get_by_text("over rounds 1 to 2").wait_for()
    page.get_by_role("button", name="all rounds").click()
    until(shown, lambda: "rounds" not in query(page), "no rounds in the address")
    assert shown.errors == []


def test_differences_are_drawn_on_the_same_cohorts(shown, folder):
    page = shown.go("number=loss")
    curves(shown, least=4)
    page.get_by_label("difference to").select_option(label="FedAvg")
    until(shown, lambda: len(curves(shown)) == 1, "one curve")
    first, second = (drift.open(next(folder.glob(f"{name}-*-s5-*"))).metrics().loss for name in ("fedprox", "fedavg"))
    assert curves(shown)[0]["y"] == pytest.approx((first - second).values.tolist(), abs=1e-6)
    assert query(page)["reference"] == "fedavg" and shown.errors == []


def test_ticks_select_runs_and_a_row_is_looked_at(shown):
    page = shown.go()
    curves(shown, least=4)
    before = query(page)["runs"].split(",")
    page.locator(".run-table .tabulator-row input[type=checkbox]").nth(2).click()
    until(shown, lambda: query(page)["runs"].split(",") == before[:2], "two runs in the address")
    page.locator(".run-table .tabulator-row").nth(1).locator(".tabulator-cell").nth(2).click()
    until(shown, lambda: query(page)["runs"].split(",") == before[1::-1], "the second run first")
    page.get_by_label("group by").select_option(label="method")
    page.get_by_text("method: FedProx").wait_for()
    assert shown.errors == []


@pytest.mark.slow
def test_runs_appear_and_grow_while_they_are_trained(shown, folder):
    page = shown.open()
    curves(shown, least=4)
    settings = tiny.experiment("rounds=6", "local.lr=0.02")
    simulate(settings, runs=folder, until=2)
    page.locator(".run-table").get_by_text(settings.slug).wait_for()
    shown.go(f"runs={settings.slug}")
    until(shown, lambda: len(curves(shown)[0]["x"]) == 2, "two rounds")
    drawn = shown.plots("over rounds of")[0]["redraws"]
    simulate(settings, runs=folder)
    until(shown, lambda: len(curves(shown)[0]["x"]) == 6, "six rounds, without a reload")
    assert shown.plots("over rounds of")[0]["redraws"] - drawn <= 4, "each round is drawn once at most"
    row = page.locator(".run-table .tabulator-row", has_text=settings.slug)
    until(shown, lambda: row.locator("[tabulator-field=done]").inner_text() == "6", "six rounds in the table")
    assert shown.errors == []


def test_order_and_filters_stay_when_runs_appear(shown, folder):
    page = shown.open()
    curves(shown, least=4)
    table = page.locator(".run-table")
    table.locator("[tabulator-field=loss] .tabulator-col-sorter").click()
    least = table.locator("[tabulator-field=seed] .tabulator-header-filter input")
    least.press_sequentially("6")
    until(shown, lambda: table.locator(".tabulator-row").count() < 3, "fewer rows")
    for number, overrides in ((11, []), (12, ["local.lr=0.03"])):  # the second one brings a column
        run = tiny.trained(folder, "rounds=4", f"seed={number}", *overrides)
        table.get_by_text(run.name).wait_for()
        assert least.input_value() == "6"
        losses = [float(text) for text in table.locator(".tabulator-row [tabulator-field=loss]").all_inner_texts()]
        assert losses == sorted(losses) and len(losses) == number - 9
    assert shown.errors == []


def test_a_recorded_run_is_explored_while_it_grows_and_its_texts_stay_texts(shown, folder):
    page = shown.open()
    recorder = Recorder(folder / "stranger", method=MARKUP, data=MARKUP, seed=5)
    model = {"weight": np.zeros(3)}

    def play(rounds):
        for index in range(recorder.next, rounds):
            clients = {client: ({"weight": np.full(3, index + client / 4)}, 5) for client in range(3)}
            recorder.round(
                start=model if not index else None, clients=clients, end=clients[1][0], metrics={"accuracy": index / 9}
            )

    play(2)
    page.locator(".run-table").get_by_text("stranger").wait_for()
    shown.go("runs=stranger")
    until(shown, lambda: len(curves(shown)[0]["x"]) == 2, "two rounds")
    play(5)
    until(shown, lambda: len(curves(shown)[0]["x"]) == 5, "five rounds, without a reload")
    page.locator(".run-table").get_by_text(MARKUP).first.wait_for()
    page.get_by_role("button", name="Drift", exact=True).click()
    assert len(curves(shown, "client-drift variance")[0]["x"]) == 5
    assert "taken over" not in page.title() and shown.errors == []


def test_a_run_that_vanishes_has_one_line_and_keeps_its_curve(shown, folder):
    settings = tiny.experiment("rounds=3", "seed=9")
    run = simulate(settings, runs=folder)
    page = shown.go(f"runs={settings.slug}")
    until(shown, lambda: [len(curve["x"]) for curve in curves(shown)][:1] == [3], "three rounds")
    run.folder.rename(folder.parent / "away")
    page.get_by_text("is gone").first.wait_for()
    assert len(curves(shown)[0]["x"]) == 3 and shown.errors == []


def test_drifts_are_those_of_the_analyses_and_a_client_is_selected(shown, folder):
    run = drift.open(next(folder.glob("fedavg-*-s5-*")))
    page = shown.go(f"view=drift&runs={run.name}")
    expected = drift_variances(run).client_variance.values
    wanted = pytest.approx(expected.tolist(), rel=1e-5)
    until(shown, lambda: curves(shown, "client-drift variance")[0]["y"] == wanted, "drift of the selected run")
    page.get_by_text("coherence has no clear change point").wait_for()
    (points,) = [trace for trace in curves(shown, "distance of each client") if len(trace["x"]) > 4]

    def clicked():
        across, up = page.get_by_label("distance of each client").first.evaluate(
            "(plot, [x, y]) => { const { left, top } = plot.getBoundingClientRect();"
            "const { xaxis, yaxis } = plot._fullLayout;"
            "return [left + xaxis._offset + xaxis.d2p(x), top + yaxis._offset + yaxis.d2p(y)]; }",
            [points["x"][4], points["y"][4]],
        )
        page.mouse.click(across, up)
        page.wait_for_timeout(200)
        return "client" in query(page)

    until(shown, clicked, "a client in the address")  # again where the page was laid out anew meanwhile
    assert int(query(page)["client"]) in run.round(int(query(page)["round"])).ids.tolist()


def test_an_analysis_is_computed_on_demand_and_stored(shown, folder):
    run = drift.open(next(folder.glob("fedavg-*-s5-*")))
    page = shown.go(f"view=drift&runs={run.name}&round=1")
    page.get_by_text("It takes 0 trainings").wait_for()
    page.get_by_role("button", name="Compute decomposition").click()
    traces = curves(shown, "bias, variance and covariance")
    stored = cache.stored(run, decomposition, {"rounds": [1]})
    assert traces[0]["y"] == pytest.approx([stored.fma_loss.item()], rel=1e-5)
    page.reload()
    assert curves(shown, "bias, variance and covariance")[0]["y"] == traces[0]["y"]
    page.get_by_role("button", name="as figure").click()
    lines = page.locator(".as-figures").get_by_label("command line")
    page.get_by_text("parts of the step", exact=True).wait_for()
    assert sum("'rounds=[1]'" in line for line in lines.all_inner_texts()) == 3


def test_drift_by_layer_shows_the_selected_layers(shown, folder):
    run = drift.open(next(folder.glob("fedavg-*-s5-*")))
    page = shown.go(f"view=drift&runs={run.name}&round=1")
    page.get_by_role("button", name="Compute drift by layer").click()
    traces = curves(shown, "drift by layer")
    ds = cache.stored(run, layer_drift, {"rounds": [1]})
    assert traces[0]["y"] == pytest.approx(ds.client_variance.values[0].tolist(), rel=1e-5)
    name = str(ds.layer.values[1])
    shown.go(f"view=drift&runs={run.name}&round=1&layers={name}")
    until(shown, lambda: curves(shown, "drift by layer")[0]["x"] == [name], "one layer")
    assert shown.errors == []


def test_findings_lead_to_the_views_that_show_them_and_a_diagnosis_can_be_cancelled(shown, folder):
    run = drift.open(next(folder.glob("fedavg-*-s5-*")))
    page = shown.go(f"view=diagnosis&runs={run.name}")
    page.get_by_role("button", name="Test causes by training").click()
    page.locator(".view-diagnosis").get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled").wait_for()
    page.get_by_role("button", name="Read the record").click()
    page.get_by_text("where training stands").wait_for()
    assert page.locator(".answer").count() == 8
    page.get_by_role("button", name="Show in Drift").first.click()
    until(shown, lambda: query(page)["view"] == "drift", "Drift in the address")
    page.go_back()
    page.get_by_text("where training stands").wait_for()
    page.get_by_role("button", name="as figure").click()
    page.locator(".as-figures").get_by_text("figures draw coherence-rounds").wait_for()
    assert shown.foreign == [] and shown.errors == []
