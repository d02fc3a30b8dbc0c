"""The file that "This page as one file" makes opens as the page was when it was saved."""

import packed_pages
import pytest
from browsing import MARKS
from exploring import idle

pytestmark = [*MARKS, pytest.mark.timeout(600)]
VIEW = "document.getElementById('stage').view"
SET = f"""() => {{ const view = {VIEW}, {{ frame, round }} = view.land.frame(view.looked), {{ cohort }} = frame;
    const weights = Object.fromEntries(cohort.map(({{ id }}, i) => [id, i ? 0.2 / (cohort.length - 1) : 0.8]));
    view.set({{ mix: {{ run: view.state.look, round, gamma: 0.9, weights }} }}); }}"""
"""Sets weights of the clients."""
SEEN = f"""() => {{ const {{ state, shown, pictures }} = {VIEW}; return {{
    state: [state.round, state.view, state.metric, state.split, state.smooth, state.point, state.client, state.turn],
    runs: shown.map(run => [run.label, run.seeds]), looked: {VIEW}.looked.label,
    values: pictures.map(one => [...one.shown.fine].filter((_, place) => place % 97 === 0)),
    bands: shown.map(run => run.curves.accuracy), quantity: {VIEW}.quantity,
    weights: [...document.querySelectorAll('.weights output, .what-if')].map(one => one.textContent),
    titles: pictures.map(one => one.title.textContent) }} }}"""


@pytest.fixture(scope="module")
def saved(browser, address, runs, tmp_path_factory):
    """What was seen of a page with the landscapes of the second seed of its first run, and the file that was saved."""
    page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(200_000)
    fields = "round=1&view=difference&metric=error&split=train&points=9&samples=200&smooth=3&at=0.02,-0.01&client=1"
    page.goto(f"{address}#{fields}&seeds={runs[1].name}")
    idle(page)
    page.evaluate(SET)
    idle(page)
    seen = page.evaluate(SEEN)
    page.click("#stage .save summary")
    with page.expect_download() as started:
        page.click("#stage .save button:has-text('This page')")
    path = tmp_path_factory.mktemp("saved") / "page.html"
    started.value.save_as(path)
    page.close()
    return seen, path


def opened(browser, path, hash_=""):
    page, errors = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce"), []
    page.on("pageerror", lambda problem: errors.append(str(problem)))
    page.goto(path.as_uri() + hash_)
    page.evaluate("unpacking")
    assert errors == []
    return page


def test_the_file_opens_as_the_page_was_saved(browser, saved, runs):
    before, path = saved
    page = opened(browser, path)
    after = page.evaluate(SEEN)
    assert before["state"][:4] == [1, "difference", "error", "train"]
    assert [seeds for _, seeds in after["runs"]] == [["6", "5"], ["5", "6"]], "all seeds; that of the landscapes first"
    assert "the round's own weights" in after["weights"][-1] and after["weights"][0] == "0.80"
    for part in ("state", "looked", "quantity", "titles", "weights"):
        assert after[part] == before[part], part
    assert [words.replace(" minus ", ", ").split(", ")[1::2] for words in after["titles"]] == [
        ["seed 6"],
        ["seed 5", "seed 6"],
    ]
    assert page.locator("#stage .card.on").first.text_content().count("Landscapes of seed 6") == 1
    assert "FedAvg, seed 6" in page.locator("#stage .sentences li").first.text_content()
    for place in (".look", ".picture-title b"):  # labels may be short where few runs are
        assert page.get_attribute(f"#stage {place}", "title").split("\n")[1:] == [runs[1].name, runs[0].name]
    assert [label for label, _ in after["runs"]] == [label for label, _ in before["runs"]]
    for now, then in zip(after["values"], before["values"], strict=True):
        assert now == pytest.approx(then, abs=1e-6, nan_ok=True)
    assert page.locator("#stage .weights input:enabled").count() == 4, "the page evaluates other weights itself"
    page.evaluate(f"{VIEW}.set({{ view: 'map', client: {VIEW}.land.frame({VIEW}.looked).frame.cohort[0].id }})")
    assert page.locator("#stage .mark.mix").count() == 1
    assert "; training loss " in page.locator("#stage .mark.client").first.get_attribute("aria-label")
    told = page.text_content("#stage .picked-client")
    assert "on the training samples" in told and page.get_attribute("#stage .classes", "title") in told
    page.evaluate(f"{VIEW}.set({{ view: 'path' }})")
    assert page.text_content("#stage .key-name").startswith("Test loss"), "a path lies on that of the test samples"
    page.go_back()
    page.go_back()
    assert page.locator("#stage .curves .spread").count() == 4, "seeds are one line with its band"
    mean = sum(run.metrics().accuracy.values for run in runs[:2]) / 2
    assert after["bands"][0] == pytest.approx(mean.tolist(), rel=1e-6)
    page.wait_for_selector("#stage .point:has-text('evaluated exactly')")
    assert page.evaluate("location.hash") == ""
    page.close()


def test_its_samples_are_those_of_the_page_and_no_address_says_otherwise(browser, saved, runs):
    page = opened(browser, saved[1], "#round=1&split=test&view=map")
    assert page.evaluate(f"{VIEW}.state.split") == "train"
    assert "split is test, not" in page.text_content("#stage .complaint")
    value = page.evaluate(f"{VIEW}.networks.ask('point', {{ run: {VIEW}.runs[0].key, round: 1, spot: [0.1, 0.05] }})")
    assert value["samples"] == len(runs[1].task.split("train"))
    page.close()


def test_a_file_says_of_which_weights_it_has_no_numbers(browser, saved, tmp_path, runs):
    text, path = saved[1].read_text(), tmp_path / "page.html"
    scene = packed_pages.content(text, "scene")
    look = next(run for run in scene["runs"] if "1" in run["shown"])
    ids = [one["id"] for one in look["shown"]["1"]["cohort"]]
    mix = ",".join([look["names"][0]["name"], "1", "1", *(f"{client}:{1 / len(ids):.4f}" for client in ids)])
    start = f"#round=1&look={look['key']}&mix={mix}"
    for entry in scene["runs"]:
        for frame in entry["shown"].values():
            del frame["carried"], frame["weights"]
    path.write_text(packed_pages.changed(text, "scene", {**scene, "start": start}))
    page = opened(browser, path)
    assert page.locator("#stage .complaint").is_hidden()
    assert "has no numbers of these weights" in page.text_content("#stage .why")
    assert page.locator("#stage .weights").is_hidden() and page.locator("#stage .mark.mix").count() == 0
    page.locator("#stage .curves").press("End")
    assert "these weights" not in page.text_content("#stage .why")
    page.close()


def test_a_start_that_the_file_has_not_is_said(browser, saved, tmp_path):
    text, path = saved[1].read_text(), tmp_path / "page.html"
    scene = {**packed_pages.content(text, "scene"), "start": "#round=7"}
    path.write_text(packed_pages.changed(text, "scene", scene))
    page = opened(browser, path)
    assert "there is no landscape of round 7; round 2 is shown" in page.text_content("#stage .complaint")
    page.close()


@pytest.mark.parametrize("view", ["map", "relief", "path"])
def test_every_view_is_opened_by_the_start_of_a_file(browser, saved, tmp_path, view):
    text = saved[1].read_text()
    scene = packed_pages.content(text, "scene")
    scene["start"] = scene["start"].replace("view=difference", f"view={view}")
    path = tmp_path / "page.html"
    path.write_text(packed_pages.changed(text, "scene", scene))
    page = opened(browser, path)
    assert page.evaluate(f"[{VIEW}.state.view, {VIEW}.state.round]") == [view, 1]
    assert page.locator("#stage .complaint").is_hidden()
    page.locator("#stage .curves").press("End")
    assert page.evaluate(f"{VIEW}.state.round") == 2
    page.go_back()
    page.wait_for_function(f"() => {VIEW}.state.round === 1", timeout=5000)
    assert page.evaluate(f"{VIEW}.state.view") == view, "without an address a file is as at first"
    page.close()
