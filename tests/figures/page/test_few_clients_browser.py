"""Rounds with one or two clients: reasons, weights, clients and samples without a map; damaged rounds; names."""

import shutil

import packed_pages
import pytest
import tiny
from browsing import MARKS

from drift.analyses.evaluate_on import evaluate_models
from figures.page.report import report
from figures.page.stage_round import stage_round

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Runs with one client a round and with two."""
    folder = tmp_path_factory.mktemp("few")
    return [tiny.trained(folder, f"clients.per_round={number}") for number in (1, 2)]


def test_what_is_defined_of_one_and_two_clients_is_shown(few):
    one, two = (stage_round(run, 1, 3, None) for run in few)
    for run, value in zip(few, (one, two), strict=True):
        loss = evaluate_models(run, run.round(1).kept("end")[None], run.task.split("test"))["loss"].item()
        (end,) = (mark for mark in value["marks"] if mark["kind"] == "end")
        assert end["loss"] == pytest.approx(loss, rel=1e-5) and end["u"] is None and value["samples"] == ""
        assert value["plane"] is None
    assert one["why"][0]["text"].startswith("One client was in this round") and len(one["why"]) == 2
    assert one["cohort"][0]["cost"] is None and one["why"][0]["number"].endswith(" nats")
    first, second = two["cohort"]
    losses = {mark["name"]: mark["loss"] for mark in two["marks"]}
    for client, other in ((first, second), (second, first)):  # without one the other one is the aggregate
        cost = losses["aggregate"] - losses[f"client {other['id']}"]
        assert client["cost"] == pytest.approx(cost, abs=1e-6)
    assert "its 2 client models" in two["why"][2]["text"]


def test_a_page_shows_them_in_every_view(browser, few, runs, tmp_path):
    path = report([*few, runs[0]], tmp_path / "page.html", points=3, samples=20)
    page, errors = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce"), []
    page.on("pageerror", lambda problem: errors.append(str(problem)))
    page.goto(path.as_uri())
    page.evaluate("unpacking")
    assert page.evaluate(f"{VIEW}.runs.map(run => run.maps)").index(True) > 0
    assert page.locator("#stage .plate:visible").count() == 1 == page.locator("#stage .picture").count(), "it begins so"
    assert "Click a landscape" in page.text_content("#stage .point")
    keys = page.evaluate(f"{VIEW}.runs.filter(run => run.note).map(run => run.key)")
    for key, number in zip(
        keys, page.evaluate(f"{VIEW}.runs.filter(run => run.note).map(run => run.label)"), strict=True
    ):
        page.evaluate(f"key => {VIEW}.set({{ runs: [key], look: key, round: 1, point: [0.1, 0.2] }})", key)
        assert "with three clients" in page.text_content("#stage .absent")
        assert page.locator("#stage .point").count() == 0, "there is nothing to click"
        assert page.locator("#stage .clients tbody tr").count() == int(number[-1])
        assert page.locator("#stage .why .sentences li").count() >= 2
        assert "models of rounds with three clients" in page.text_content("#stage .samples")
    for view in ("relief", "difference", "path", "models", "map"):
        page.evaluate(f"view => {VIEW}.set({{ view, runs: {VIEW}.runs.map(run => run.key) }})", view)
    page.locator("#stage .curves").press("Home")
    for name, words in (
        (few[0].name, "there is no round 99 to show"),
        (runs[0].name, "there is no landscape of round 99"),
    ):
        page.evaluate("hash => { location.hash = hash; }", f"#round=99&runs={name}")
        page.wait_for_selector(f"#stage .complaint:has-text('{words}; round 2 is shown')")
    assert errors == []
    page.close()


def test_a_damaged_round_is_named_by_the_command_and_on_the_page(runs, tmp_path, fedscape, browser):
    folders = [tmp_path / "runs" / name for name in ("one", "two")]
    for folder in folders:
        shutil.copytree(runs[0].folder, folder)
    path, page = folders[0] / "rounds" / "000001.safetensors", browser.new_page()
    whole = path.read_bytes()
    path.write_bytes(whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:])  # of a model, which the record does not need
    code, _, err = fedscape("publish", *folders, "--round", 1, "--out", tmp_path / "page.html")
    assert code == 2 and "landscape of one, round 1 could not be drawn: " in err and "was altered" in err
    page.goto((tmp_path / "page.html").as_uri())
    page.evaluate("unpacking")
    assert page.evaluate("document.getElementById('stage').view.state.round") == 1
    assert "was altered" in page.text_content("#stage .absent") and page.locator("#stage .plate:visible").count() == 1
    page.close()


HOSTILE = ("x" * 200, "a<script>document.title = 1</script>\"'", "\U0001f98a " * 60, "\u05e2\u05d1\u05e8\u05d9\u05ea")


def test_long_names_are_cut_in_the_middle_and_whole_in_the_title(opened, content, text, tmp_path):
    path, scene = tmp_path / "page.html", {**content}
    scene["runs"] = [{**scene["runs"][0], "key": name, "label": name, "full": name} for name in HOSTILE]
    path.write_text(packed_pages.changed(text, "scene", scene))
    page = opened("", path)
    labels = page.evaluate(f"{VIEW}.runs.map(run => run.label)")
    long, script, foxes, hebrew = labels
    assert long == "x" * 30 + "\u2026" + "x" * 29 and script == HOSTILE[1] and hebrew == f"\u2068{HOSTILE[3]}\u2069"
    assert set(foxes) == {*HOSTILE[2], "\u2026"}, "no half of a sign"
    assert page.title() != "1"
    names = page.locator("#stage .card .look")
    assert [title.split("\n")[0] for title in names.evaluate_all("all => all.map(one => one.title)")] == [*HOSTILE]
    assert max(page.locator("#stage .card .name").evaluate_all("all => all.map(one => one.clientHeight)")) < 95
    page.evaluate(f"{VIEW}.set({{ runs: {VIEW}.runs.map(run => run.key), view: 'difference' }})")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


def test_no_difference_of_runs_on_other_data_can_be_chosen(opened, content, text, tmp_path):
    path, scene = tmp_path / "page.html", {**content}
    other = scene["runs"][1]
    shown = {index: {**frame, "parts": {**frame["parts"], "of": "others"}} for index, frame in other["shown"].items()}
    scene["runs"] = [scene["runs"][0], {**other, "shown": shown}]
    path.write_text(packed_pages.changed(text, "scene", scene))
    for place, why in ((None, ""), (path, "are evaluated on different samples: they cannot be compared.")):
        page = opened("#view=map&runs=fedavg,fedlaw", *filter(None, [place]))
        choice = page.locator("#stage .segments input[value=difference]")
        assert choice.is_disabled() == bool(why)
        assert (choice.get_attribute("title") or "").endswith(why) and bool(choice.get_attribute("title")) == bool(why)
    assert "of different samples: not comparable" in page.text_content("#stage .key-name")
    assert "of different data" not in page.text_content("#stage .curves"), "of one dataset"
    page.evaluate(f"{VIEW}.runs[1].data = 'others'; {VIEW}.version += 1; {VIEW}.set({{ view: 'path' }})")
    assert "of different samples: not comparable" in page.text_content("#stage .key-name")
    assert "test accuracy, of different data" in page.text_content("#stage .curves")
    page.evaluate(f"{VIEW}.set({{ view: 'map', runs: [{VIEW}.runs[0].key] }})")
    assert "of different samples" not in page.text_content("#stage .key-name")
    assert page.get_attribute("#stage .segments input[value=difference]", "title") == "tick a second run to compare"


def test_fields_in_the_query_of_a_file_count_and_those_of_others_stay(browser, whole_report):
    page = browser.new_page(reduced_motion="reduce")
    page.goto(f"{whole_report.as_uri()}?round=1&view=relief&utm=7&metric=class+1#view=path")
    page.evaluate("unpacking")
    state = page.evaluate(f"[{VIEW}.state.round, {VIEW}.state.view, {VIEW}.state.metric]")
    assert state == [1, "path", "class 1"] and page.evaluate("location.search") == "?utm=7"
    assert page.evaluate("location.hash") == "#round=1&metric=class%201&view=path"
    assert page.locator("#stage .complaint").is_hidden()
    page.goto(f"{whole_report.as_uri()}?round=9")
    page.evaluate("unpacking")
    assert "there is no landscape of round 9; round 2 is shown" in page.text_content("#stage .complaint")
    page.close()
