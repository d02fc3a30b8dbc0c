"""A gesture is one entry of the browser; where the page begins; whose the labels of a difference are."""

import copy
import re

import packed_pages
import pytest
from browsing import MARKS

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
STATE = f"[location.hash.match(/round=(\\d+)/)[1], String({VIEW}.state.round), {VIEW}.state.view]"


def entries(page):
    return page.evaluate("history.length")


def press(page, *keys):
    """Keys without a pause, however slow this machine is."""
    page.evaluate(
        """keys => keys.forEach(key => document.querySelector('#stage .curves').dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })))""",
        list(keys),
    )


def at(page, number, view="map"):
    """The address, the state and the line of the page are those of a round."""
    page.wait_for_function(f"String({VIEW}.state.round) === '{number}'")
    assert page.evaluate(STATE) == [str(number), str(number), view]
    assert page.text_content("#stage .round-at") == f"Round {number}"


def test_keys_that_follow_one_another_are_one_entry(opened):
    page = opened("#round=0&runs=fedavg&view=map")
    before = entries(page)
    press(page, "ArrowRight", "ArrowRight")
    at(page, 2)
    assert entries(page) == before + 1
    page.check("#stage .segments input[value=path]", force=True)
    press(page, "ArrowLeft")
    assert entries(page) == before + 3, "a change between two keys ends the burst"
    for number, view in ((2, "path"), (2, "map"), (0, "map")):
        page.go_back()
        at(page, number, view)
    press(page, "ArrowRight")
    at(page, 1)
    page.evaluate(f"{VIEW}.player.pressed = -1e9")  # as after a pause
    press(page, "ArrowRight")
    page.go_back()
    at(page, 1)


def test_a_drag_of_the_ruler_is_one_entry_wherever_it_begins(opened):
    page = opened("#round=0&runs=fedavg&view=map")
    before, box = entries(page), page.locator("#stage .curves").bounding_box()
    left, ruler = box["x"] + page.evaluate(f"{VIEW}.line.x(0)"), box["y"] + box["height"] - 20
    page.mouse.move(left, ruler)  # at the handle, where the press alone changes nothing
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 18, ruler, steps=8)
    page.mouse.up()
    at(page, 2)
    assert entries(page) == before + 1
    page.go_back()
    at(page, 0)


def test_a_play_is_one_entry(opened):
    page = opened("#round=0&runs=fedavg&view=map")
    before = entries(page)
    page.click("#stage .play")
    page.wait_for_function("document.querySelector('#stage .play').getAttribute('aria-pressed') === 'false'")
    at(page, 2)
    assert entries(page) == before + 1
    page.click("#stage .play")  # from the last round on it begins at the first one
    page.wait_for_function("document.querySelector('#stage .play').getAttribute('aria-pressed') === 'false'")
    assert entries(page) == before + 2
    page.go_back()
    at(page, 2)
    page.go_back()
    at(page, 0)


def test_the_page_begins_with_the_first_run_that_did_not_diverge(opened, content, text, tmp_path):
    lost, path = copy.deepcopy(content), tmp_path / "page.html"
    lost["runs"][0]["state"], lost["start"] = "diverged", ""
    path.write_text(packed_pages.changed(text, "scene", lost))
    page = opened("", path)
    assert page.evaluate(f"[{VIEW}.state.look, String({VIEW}.state.runs)]") == ["fedlaw", "fedlaw"]
    assert page.text_content("#stage .complaint") == "FedAvg diverged: the page begins with FedLAW."
    lost["runs"][1]["state"] = "diverged"
    path.write_text(packed_pages.changed(text, "scene", lost))
    page = opened("", path)
    assert page.evaluate(f"{VIEW}.state.look") == "fedavg"
    assert page.locator("#stage .complaint").is_hidden(), "where all diverged there is no other"


def test_labels_of_a_difference_name_their_run(opened, content):
    page = opened("#round=2&runs=fedavg,fedlaw&look=fedavg&view=difference")
    labels = page.evaluate("""[...document.querySelectorAll('#stage .picture:nth-child(2) .mark text')].map(one =>
        [one.parentElement.dataset.mark, one.textContent, getComputedStyle(one).stroke])""")
    colours = {run["key"]: run["colour"] for run in content["runs"]}
    named = [(mark, words) for mark, words, _ in labels if not re.match(r"client", mark)]
    assert len({mark.partition(" of ")[2] for mark, *_ in labels}) == 2
    for mark, _, halo in labels:
        colour = colours[mark.partition(" of ")[2]]
        assert halo == f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"
    assert any(words.endswith({"fedavg": "FedAvg, seed 5", "fedlaw": "FedLAW, seed 5"}[mark.partition(" of ")[2]])
               for mark, words in named)  # fmt: skip
    dashes = page.evaluate("""[...document.querySelectorAll('#stage .picture:nth-child(2) .way.client')].map(one =>
        one.getAttribute('stroke-dasharray'))""")
    run = next(run for run in content["runs"] if run["key"] == "fedlaw")
    assert (not run["dash"]) or any(dashes)


@pytest.mark.parametrize("width", [390, 700, 1000, 1001, 1120, 1250, 1251, 1920])
def test_only_the_page_has_a_scroll_bar_at_any_width(opened, content, text, tmp_path, width):
    many, path = copy.deepcopy(content), tmp_path / "page.html"
    for number in range(16):
        many["runs"].append({**copy.deepcopy(content["runs"][0]), "key": f"more-{number}", "label": f"Run {number}"})
    path.write_text(packed_pages.changed(text, "scene", many))
    page = opened("#round=2&runs=fedavg&view=map", path, viewport={"width": width, "height": 900})
    bars = page.evaluate("""[...document.querySelectorAll('#stage, #stage > *, #stage .still > *, #stage .hall')]
        .filter(one => one.scrollHeight > one.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(one).overflowY))
        .map(one => one.className)""")
    assert bars == []
    if width > 1000:
        page.locator("#stage .card").last.scroll_into_view_if_needed()
        box = page.locator("#stage .card").last.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 901, "the last run is reached"
        line = page.locator("#stage .timeline").bounding_box()
        assert box["x"] + box["width"] <= line["x"], "beside the time line"
