"""How the stage uses its window: marks of a difference, room of a path, one scroll bar, parts that are announced."""

import copy
import itertools
import re

import numpy as np
import packed_pages
import pytest
from browsing import MARKS

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
PICTURE = f"{VIEW}.pictures"
SCROLLED = """() => [document.documentElement, ...document.querySelectorAll('#stage, #stage *')].filter(one =>
    one.checkVisibility({ contentVisibilityAuto: true }) && one.scrollHeight > one.clientHeight + 1
    && (one === document.documentElement || /auto|scroll/.test(getComputedStyle(one).overflowY)))
    .map(one => one.className || one.tagName)"""
"""Parts of the page that have a scroll bar."""


def test_a_difference_has_the_marks_of_both_runs_in_their_colours(opened, content):
    page = opened("#round=2&runs=fedavg,fedlaw&look=fedavg&view=difference")
    marks = page.evaluate(f"""[...{PICTURE}[1].marks.element.children].map(one => [one.dataset.mark,
        getComputedStyle(one.querySelector(':scope > :is(circle, rect, path)')).fill,
        one.getAttribute('aria-label')])""")
    for run in content["runs"]:
        colour = f"rgb({', '.join(str(int(run['colour'][at : at + 2], 16)) for at in (1, 3, 5))})"
        own = {name.partition(" of ")[0]: words for name, fill, words in marks if fill == colour}
        inside = {
            mark["name"]
            for mark in run["shown"]["2"]["marks"]
            if page.evaluate(f"{PICTURE}[1].shown.surface.inside({mark['u']}, {mark['v']})")
        }
        assert {"start", "end"} < set(own) and len(own) >= 4 and set(own) <= inside
        assert inside - set(own) <= {"aggregate"}, "one mark where the aggregate is the end"
        assert all(words.startswith(f"{run['label']}, seed 5, ") for words in own.values())
    assert len({name for name, *_ in marks}) == len(marks)
    arrows = page.evaluate(f"""[...{PICTURE}[1].marks.arrows.children].map(one => getComputedStyle(one).stroke)""")
    assert len(set(arrows)) == 3, "two colours, and the light around them"
    labels = page.evaluate(f"[...{PICTURE}[1].marks.element.querySelectorAll('text')].map(one => one.textContent)")
    assert len(labels) == len(set(labels)) or max(map(labels.count, labels)) == 2
    client = page.locator(".picture").nth(1).locator(".mark.client").first
    client.focus()
    page.keyboard.press("Enter")
    assert client.get_attribute("data-mark").startswith(f"client {page.evaluate(f'{VIEW}.state.client')} of ")


COVERED = """() => { const place = one => one.getBoundingClientRect();
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top + 3 < b.bottom && b.top < a.bottom - 3;
    return [...document.querySelectorAll('.picture .marks')].flatMap(marks => [...marks.querySelectorAll('text')]
        .flatMap(text => [...marks.querySelectorAll('text, .mark > :is(rect, path, circle)')]
        .filter(one => one.parentNode !== text.parentNode && meet(place(text), place(one)))
        .map(one => [text.textContent, one.textContent || one.parentNode.dataset.mark]))); }"""
"""Labels that lie over another label or mark of a picture."""


@pytest.mark.parametrize("width", [390, 1400])
def test_no_label_of_a_difference_lies_over_a_mark_or_label(opened, width):
    page = opened("#view=difference&runs=fedavg,fedlaw", viewport={"width": width, "height": 900})
    for look in ("fedavg", "fedlaw"):
        for place in range(3):
            page.evaluate(f"fields => {VIEW}.set(fields)", {"look": look, "round": place})
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert page.evaluate(COVERED) == [], (look, place)


def test_marks_of_two_runs_of_one_colour_are_told_apart(opened, content, text, tmp_path):
    same, path = copy.deepcopy(content), tmp_path / "page.html"
    same["runs"][1]["colour"] = same["runs"][0]["colour"]
    path.write_text(packed_pages.changed(text, "scene", same))
    page = opened("#round=2&runs=fedavg,fedlaw&look=fedavg&view=difference", path)
    fills = page.evaluate(f"""[...{PICTURE}[1].marks.element.children].map(one => [
        one.dataset.mark.endsWith('of fedavg'), one.querySelector(':scope > :is(circle, rect, path)').style.fill])""")
    assert {fill for own, fill in fills if own}.isdisjoint({fill for own, fill in fills if not own})
    assert "Rings are those of FedAvg, seed 5." in page.text_content("#stage .about")


@pytest.mark.parametrize("ticked", ["fedavg", "fedavg,fedlaw"])
@pytest.mark.parametrize("size", [(1400, 900), (390, 844)], ids=lambda size: f"{size[0]}")
def test_a_path_fills_its_room_and_its_few_labels_lie_apart(opened, content, text, tmp_path, ticked, size):
    flat, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in flat["runs"]:
        frame = run["path"]
        frame["plane"]["extent"] = [[-3, 3], [-0.8, 0.8]]
        angles, far = np.linspace(0, 5, 40), 0.85 ** np.arange(40)
        frame["marks"] = [
            {**frame["marks"][0], "name": f"round {place}", "round": place, "u": u, "v": v}
            for place, (u, v) in enumerate(zip(2 * far * np.cos(angles), 0.5 * far * np.sin(angles), strict=True))
        ]
    path.write_text(packed_pages.changed(text, "scene", flat))
    page = opened(f"#round=2&runs={ticked}&view=path", path, viewport=dict(zip(("width", "height"), size, strict=True)))
    used, stretch, wide = (
        page.evaluate(f"""[{PICTURE}.map(({{ box }}) => box.width * box.height).reduce((a, b) => a + b)
        / ({VIEW}.hall.element.clientWidth * {VIEW}.hall.element.clientHeight), {PICTURE}[0].stretch,
        {PICTURE}[0].box.width]""")
    )
    assert used > 0.4 and 1 <= stretch <= 2 and wide > 0.7 * min(size[0], 816)
    said = page.text_content("#stage .picture:first-child .axes")  # not below the pictures, where a line takes room
    assert (f"drawn {stretch:.2g} times as long" in said) == (stretch > 1.05)
    labels = page.evaluate("""[...document.querySelectorAll('#stage .picture:first-child .mark text')].map(one =>
        [one.textContent, one.getBoundingClientRect().toJSON()])""")
    assert {"0", "round 2"} & {words for words, _ in labels} == {"round 2"} or len(labels) > 1
    assert 2 <= len(labels) <= 9
    for (_, a), (_, b) in itertools.combinations(labels, 2):
        apart = a["right"] < b["left"] or b["right"] < a["left"] or a["bottom"] <= b["top"] or b["bottom"] <= a["top"]
        assert apart, (a, b)


NAME = "FedAvg, model mlp, {} rounds, kept globals all"
CUT = """[...document.querySelectorAll('#stage .card')].filter(card => {
    const { right } = card.getBoundingClientRect(), { scrollHeight, clientHeight } = card.querySelector('.name');
    return scrollHeight > clientHeight + 1 || [...card.querySelectorAll('.card-head *')].some(one =>
        one.getBoundingClientRect().right > right); }).map(card => card.textContent)"""


def test_only_the_page_scrolls_and_pictures_stay_in_sight(opened, content, text, tmp_path):
    eight, path = copy.deepcopy(content), tmp_path / "page.html"
    for number in range(16):
        run = copy.deepcopy(content["runs"][0])
        eight["runs"].append({**run, "key": f"more-{number}", "label": NAME.format(number), "state": "diverged"})
    path.write_text(packed_pages.changed(text, "scene", eight))
    page = opened("#round=2&runs=fedavg,fedlaw&view=map", path)
    for view in ("map", "difference", "path", "relief"):
        page.evaluate(f"{VIEW}.set({{ view: {view!r} }})")
        assert page.evaluate(SCROLLED) == ["HTML"], view
    assert page.locator("#stage .card").count() == 18
    assert page.evaluate(CUT) == [], "what differs is at the end of a name"
    page.evaluate(f"{VIEW}.set({{ view: 'map' }})")
    for down in (0, 300):
        page.evaluate("down => scrollTo(0, down)", down)
        for part in (".picture >> nth=0", ".timeline"):
            box = page.locator(f"#stage {part}").bounding_box()
            assert box["y"] >= -1 and box["y"] + box["height"] <= 901, part
    end = page.evaluate("document.getElementById('stage').getBoundingClientRect().bottom + scrollY - innerHeight")
    page.evaluate("end => scrollTo(0, end)", end)
    box = page.locator("#stage .card").last.bounding_box()
    assert box["y"] > 0 and box["y"] + box["height"] <= 901, "the last run is reached"


def test_the_parts_of_the_column_are_named_at_its_top_and_a_click_leads_to_one(opened):
    page = opened("#round=2&runs=fedavg&view=map")
    names = page.locator("#stage .jump button")
    assert names.all_text_contents() == [
        *("Reasons", "Weights", "Clients", "Drift and curvature", "Samples", "Whole run")
    ]
    for one in names.all():
        one.click()
        box = one.bounding_box()
        assert 0 <= box["y"] < 80, "it stays"
        title = page.evaluate("""(({ textContent, offsetHeight }, { top }) => [textContent, top + offsetHeight])(
            document.activeElement, document.activeElement.getBoundingClientRect())""")
        assert title[1] < 900, title
        assert title[0].startswith(
            one.text_content().replace("Reasons", "Why").partition(" ")[0].replace("Whole", "The")
        )
    stops = page.evaluate(
        "[...document.querySelectorAll('#stage .jump button')].filter(one => one.tabIndex >= 0).length"
    )
    assert stops == 1


def test_the_time_line_of_a_phone_is_low_and_shows_its_curves_on_request(opened):
    page = opened("#round=2&runs=fedavg,fedlaw&view=map", viewport={"width": 390, "height": 844})
    low = page.locator("#stage .timeline").bounding_box()
    assert low["height"] <= 90 and page.locator("#stage .curves .has").count() == 3
    first = page.locator("#stage .picture").first.locator(".reading").bounding_box()
    assert first["y"] + first["height"] < low["y"], "the whole first picture is above it"
    page.click("#stage .picks summary")
    page.wait_for_selector("#stage .curves .band >> nth=0", state="attached")
    assert re.search("accuracy", page.text_content("#stage .curves"))
