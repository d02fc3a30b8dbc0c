"""Round, Samples and Path in a browser: brushing and clicks select everywhere, samples are those of the cell, files."""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import tiny
from browsing import MARKS
from exploring import PLOTS, exploring, watched

import drift
import figures

pytest.importorskip("panel", reason="no panel here; pip install 'fedscape[explore]'")
pytestmark = [*MARKS, pytest.mark.timeout(400)]

ROUND = 1
SMALL = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=80", "task.test_samples=40")
FIND = (
    "label => {"
    + PLOTS
    + """
    return within(document).find(plot => plot.checkVisibility() && plot.getAttribute('aria-label').includes(label));
}"""
)
DRAWN = f"""([label, name, count]) =>
    ({FIND})(label)?._fullData?.some(trace => trace.name === name && trace.x?.length >= count)"""
PLACE = f"""([label, x, y]) => {{
    const plot = ({FIND})(label);
    plot.scrollIntoView({{block: 'center'}});
    const {{left, top}} = plot.getBoundingClientRect(), {{xaxis, yaxis}} = plot._fullLayout;
    return [left + xaxis._offset + xaxis.d2p(x), top + yaxis._offset + yaxis.d2p(y)];
}}"""
"""Pixels of a place in a plot."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("explored"), *SMALL)


@pytest.fixture(scope="module")
def shown(run):
    with exploring(run.folder) as address, watched(address) as page:
        yield page


def query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def click(page, label, x, y):
    page.mouse.click(*page.evaluate(PLACE, [label, x, y]))


def test_brushing_the_cohort_selects_its_clients_everywhere(shown, run):
    ds = drift.cohort_table(run, round=ROUND)
    ids = ds.client.values.tolist()
    page = shown.go(f"view=round&round={ROUND}&second=samples")
    shown.wait(DRAWN, ["clients of the round", "clients", len(ids)])
    (cloud,) = shown.plots("clients of the round")
    np.testing.assert_allclose(cloud["traces"][0]["x"], ds.cosine_mean, rtol=1e-5)
    np.testing.assert_allclose(cloud["traces"][0]["y"], ds.update_norm, rtol=1e-5)
    right = int(ds.cosine_mean.values.argmax())
    x, y = (float(ds[name][right]) for name in ("cosine_mean", "update_norm"))
    across, up = page.evaluate(PLACE, ["clients of the round", x, y])
    page.mouse.move(across - 18, up - 18)
    page.mouse.down()
    page.mouse.move(across + 18, up + 18, steps=5)
    page.mouse.up()
    shown.wait("client => location.search.includes(`clients=${client}&`)", ids[right])
    assert query(page)["client"] == str(ids[right])
    page.get_by_text(f"client {ids[right]}: clear").wait_for()
    shown.wait(DRAWN, ["loss on each client", "the client's model", len(ids)])
    losses = drift.client_losses(run, round=ROUND)
    (plot,) = shown.plots("loss on each client")
    np.testing.assert_allclose(plot["traces"][1]["y"], losses.own_loss, rtol=1e-5)
    shown.wait(DRAWN, ["error of each class", f"client {ids[right]}", 1])
    assert shown.errors == [] and shown.foreign == []


def test_a_click_on_the_matrix_selects_a_pair(shown, run):
    ids = sorted(run.round(ROUND).ids.tolist())
    page = shown.go(f"view=round&round={ROUND}")
    shown.wait(DRAWN, ["cosines between", "cosines", len(ids)])
    click(page, "cosines between", 1, 0)
    shown.wait("pair => location.search.includes(`clients=${pair}`)", f"{ids[0]},{ids[1]}")


def test_a_click_on_a_cell_shows_its_samples(shown, run):
    page = shown.go(f"view=samples&round={ROUND}")
    shown.wait(DRAWN, ["confusion matrix", "confusion", 10])
    ds = drift.confusion(run, round=ROUND)["count"].sel(model="end").values.copy()
    np.fill_diagonal(ds, 0)
    truth, predicted = np.unravel_index(int(ds.argmax()), ds.shape)
    click(page, "confusion matrix", int(predicted), int(truth))
    shown.wait("cell => location.search.includes(cell)", f"truth={truth}&predicted={predicted}")
    count = int(ds[truth, predicted])
    whole = len(run.dataset.samples["test"])
    page.get_by_text(f"{count} of {whole} test samples, class {truth}, predicted as {predicted}").wait_for()
    pictures = page.get_by_role("img", name=re.compile(rf"^sample \d+, class {truth}; round's end: {predicted}"))
    pictures.first.wait_for()
    assert pictures.count() == count
    table = drift.sample_predictions(run, round=ROUND)
    cell = (table.target.values == truth) & (table.predicted.values[0] == predicted)
    names = [picture.get_attribute("alt") for picture in pictures.all()]
    assert sorted(int(name.split(",")[0].split()[1]) for name in names) == np.flatnonzero(cell).tolist()
    page.go_back()
    shown.wait("() => !location.search.includes('truth=')")


def test_samples_of_a_point_of_the_plane(shown, run):
    page = shown.go(f"view=samples&round={ROUND}&model=point&corners=start,end,aggregate&point=0.5,0.25,0.25")
    shown.wait(DRAWN, ["confusion matrix", "confusion", 10])
    page.get_by_role("button", name="as figure").click()
    page.get_by_text("model='0.5 * start + 0.25 * end + 0.25 * aggregate'").first.wait_for()
    page = shown.go(f"view=samples&round={ROUND}&model=point")
    page.locator(".line p", has_text="no point is selected; click on the map of Plane").wait_for()


def test_the_path_is_played_and_its_map_arrives(shown, run):
    page = shown.go("view=path&round=0")
    shown.wait(DRAWN, ["path of the global model", "loss", 21])
    (plot,) = shown.plots("path of the global model")
    expected = drift.trajectory_plane(run, rounds=[0, 1, 2], clients=True)
    by_name = {trace["name"]: trace for trace in plot["traces"]}
    np.testing.assert_allclose(by_name["loss"]["x"], expected.alpha, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(by_name["whole path"]["x"], expected.mark_alpha, rtol=1e-4, atol=1e-6)
    assert len(by_name["global model"]["x"]) == 1
    assert len(by_name["clients"]["x"]) == len(run.round(0).ids)
    page.get_by_role("button", name="play", exact=True).click()
    shown.wait("() => location.search.includes('round=2')")
    shown.wait(DRAWN, ["path of the global model", "global model", 3])


def test_a_view_as_figure_has_its_lines_and_the_files_that_they_make(shown, run, tmp_path):
    page = shown.go(f"view=round&round={ROUND}")
    shown.wait(DRAWN, ["clients of the round", "clients", 1])
    page.get_by_role("button", name="as figure").click()
    command = page.locator("pre[aria-label='command line']")
    command.wait_for()
    assert command.inner_text() == f"fedscape figures draw clients-round {run.folder.resolve()} --set round={ROUND}"
    lines = page.locator("pre[aria-label='Python']").inner_text()
    assert f"figures.draw('clients-round', runs, 'out/figures', round={ROUND})" in lines
    page.get_by_role("button", name="draw it").click()
    page.get_by_role("img", name=f"Clients of round {ROUND} of {run.name}").wait_for(timeout=180_000)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").or_(page.get_by_role("button", name="CSV")).click()
    figures.draw("clients-round", [run], tmp_path, round=ROUND)
    assert waiting.value.path().read_bytes() == (tmp_path / "clients-round.csv").read_bytes()
    assert shown.errors == [] and shown.foreign == []
