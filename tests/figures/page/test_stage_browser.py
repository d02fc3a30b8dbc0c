"""The pictures and sentences of the stage in a real browser show the numbers of its scene."""

import base64
import copy
import re

import numpy as np
import packed_pages
import pytest
from browsing import MARKS

from figures.axes.interpolated import interpolated

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
PICTURE = f"{VIEW}.pictures"


def losses(content, place, index, u, v):
    """Loss at a point of a plane of the scene, by the project's other interpolation."""
    plane = content["runs"][place]["shown"][str(index)]["plane"]
    values = np.frombuffer(base64.b64decode(plane["metrics"]["loss"]), "<f4").reshape(plane["points"]).astype(float)
    a, b = (np.linspace(*extent, points) for extent, points in zip(plane["extent"], plane["points"], strict=True))
    return 10 ** interpolated(a, b, np.log10(values), np.array([u]), np.array([v]))[0, 0]


def test_a_click_is_read_in_every_picture_and_says_that_it_is_interpolated(opened, content, text, tmp_path):
    bare, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in bare["runs"]:
        run.pop("network")
        run["interpolated"] = "its model has 5 wheels"
    path.write_text(packed_pages.changed(text, "scene", bare))
    page = opened("#round=1&runs=fedavg,fedlaw&view=map", path)
    box = page.locator(".picture .ground").first.bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"])
    u, v = page.evaluate(f"{VIEW}.state.point")
    half = page.evaluate(f"{PICTURE}[0].shown.half")
    assert (u, v) == pytest.approx((-0.4 * half, -0.2 * half), abs=0.02 * half)
    for place, name in enumerate(("fedavg", "fedlaw")):
        read = float(page.text_content(f"#stage .point td[data-run={name}]").removeprefix("≈ "))
        assert read == pytest.approx(losses(content, place, 1, u, v), rel=1e-3), name
    assert "interpolated between 4 x 4 evaluated models: its model has 5 wheels" in page.text_content("#stage .point")
    assert "at=" in page.evaluate("location.hash")


def test_seeds_are_one_line_with_a_band_and_one_entry_with_its_range(opened, content):
    page = opened("#round=1&runs=fedavg&view=map")
    assert page.locator("#stage .curves .spread").count() == 4  # two methods, two numbers
    assert page.locator("#stage .card").count() == 2
    low, high = (100 * end(content["runs"][0]["accuracies"]) for end in (min, max))
    card = page.locator("#stage .card").first.text_content()
    assert f"{(low + high) / 2:.1f} % ({low:.1f} to {high:.1f}) · mean of seeds 5, 6" in card
    before = page.evaluate("[...document.querySelectorAll('#stage .curves .spread')].map(one => one.outerHTML)")
    page.evaluate(f"{VIEW}.set({{ span: [0, 1] }})")
    after = page.evaluate("[...document.querySelectorAll('#stage .curves .spread')].map(one => one.outerHTML)")
    assert len(after) == 4 and not set(before) & set(after)  # a span zooms all of them


def test_a_band_that_lies_above_and_below_the_ticked_runs_is_not_drawn(opened):
    page = opened("#round=2&runs=fedavg&view=map")
    spread = "[...document.querySelectorAll('#stage .curves .spread')].map(one => one.getAttribute('d')[0])"
    assert page.evaluate(spread) == ["M"] * 4
    page.evaluate(f"""() => {{ const run = {VIEW}.runs[1], above = (values) => values.map(value => value + 50);
        run.curves.accuracy = above(run.curves.accuracy);
        run.ends.accuracy = run.ends.accuracy.map(above);
        {VIEW}.version += 1;
        {VIEW}.render(); }}""")
    assert page.evaluate(spread) == ["M"] * 3


def test_compared_losses_have_equally_many_decimals(opened):
    page = opened("#round=2&runs=fedavg,fedlaw&view=map")
    text = page.locator("#stage .sentences li").first.text_content()
    first, second = re.findall(r" (\d+\.\d+)(?=, against| of )", text)
    assert len(first.partition(".")[2]) == len(second.partition(".")[2])


def test_two_runs_are_compared_with_the_error_of_their_difference(opened, content, text, tmp_path):
    frames = [run["shown"]["2"] for run in content["runs"]]
    ends = [next(mark["loss"] for mark in frame["marks"] if mark["kind"] == "end") for frame in frames]
    one, two = (np.frombuffer(base64.b64decode(frame["parts"]["end"]), "<f4") for frame in frames)
    error = (one - two).std(ddof=1) / np.sqrt(len(one))
    line = "#stage .sentences li >> nth=0"
    said = opened("#round=2&runs=fedavg,fedlaw&view=map").text_content(line)
    difference, stated = (
        float(part.replace("\N{MINUS SIGN}", "-")) for part in re.match(r"(\S+) ± (\S+) nats", said).groups()
    )
    assert (difference, stated) == pytest.approx((-abs(ends[0] - ends[1]), error), rel=0.06)
    for noise, words in ((1e-6, ", seed 5 lies lowest after round 2"), (9.0, "No clear difference after round 2: ")):
        changed = copy.deepcopy(content)
        parts = [run["shown"]["2"]["parts"] for run in changed["runs"]]
        for part, sign in zip(parts, (1, -1), strict=True):
            values = sign * noise * np.resize([1, -1], len(one)).astype("<f4")
            part["end"] = base64.b64encode(values.tobytes()).decode()
        path = tmp_path / f"{noise}.html"
        path.write_text(packed_pages.changed(text, "scene", changed))
        assert words in opened("#round=2&runs=fedavg,fedlaw&view=map", path).text_content(line)
    parts[0]["of"], same = "other samples", parts[0]["of"]
    path.write_text(packed_pages.changed(text, "scene", changed))
    page = opened("#round=2&runs=fedavg,fedlaw&view=difference", path)
    refusal = "FedAvg, seed 5 are evaluated on different samples: they cannot be compared."
    assert " and " in page.text_content(line) and page.text_content(line).endswith("cannot be compared.")
    assert page.text_content("#stage .picture[data-run=fedlaw] .absent") == f"FedLAW, seed 5 and {refusal}"
    parts[0]["of"] = same
    for run in changed["runs"]:
        next(mark for mark in run["shown"]["2"]["marks"] if mark["kind"] == "end")["loss"] = 1.25
    path.write_text(packed_pages.changed(text, "scene", changed))
    said = opened("#round=2&runs=fedavg,fedlaw&view=map", path).text_content(line)
    assert said.startswith("FedAvg, seed 5 and FedLAW, seed 5 are equal after round 2: 1.25 nats.")


def test_the_number_of_no_clear_difference_is_that_of_the_runs_it_names(opened, content, text, tmp_path):
    three, path = copy.deepcopy(content), tmp_path / "page.html"
    three["runs"].append({**copy.deepcopy(content["runs"][0]), "key": "third", "label": "IMA"})
    size = len(np.frombuffer(base64.b64decode(three["runs"][0]["shown"]["2"]["parts"]["end"]), "<f4"))
    for run, loss, noise in zip(three["runs"], (1, 1.1, 1.2), (0.001, -0.001, 9), strict=True):
        frame = run["shown"]["2"]
        values = loss + noise * np.resize([1, -1], size).astype("<f4")
        frame["parts"]["end"] = base64.b64encode(values.tobytes()).decode()
        next(mark for mark in frame["marks"] if mark["kind"] == "end")["loss"] = loss
    path.write_text(packed_pages.changed(text, "scene", three))
    said = opened("#round=2&runs=fedavg,fedlaw,third&view=map", path).text_content("#stage .sentences li >> nth=0")
    assert said.startswith("\N{MINUS SIGN}0.2 ± ") and "1.0 of FedAvg, seed 5; 1.2 of IMA" in said


@pytest.mark.parametrize(
    ("ticked", "first"),
    [("fedavg,fedlaw", ["lies lowest|No clear difference", "lient", "kind"]), ("fedavg", ["lient", "kind", "verag"])],
)
def test_three_sentences_say_why_and_the_others_are_in_a_drawer(opened, ticked, first):
    page = opened(f"#round=2&runs={ticked}&view=map")
    sentences = page.locator("#stage .sentences li")
    told = [one for one in sentences.all() if one.is_visible()]
    assert [bool(re.search(words, one.text_content())) for words, one in zip(first, told, strict=True)] == [True] * 3
    for one in told:
        assert re.search(r"\d", one.locator(".number").text_content())
        assert one.locator(".term").last.get_attribute("aria-label").count(": "), "what its term means"
    page.click("#stage .why summary:has-text('More reasons')")
    page.evaluate(f"{VIEW}.render()")
    assert [one.is_visible() for one in sentences.all()] == [True] * (5 if "," in ticked else 4)


def test_a_term_in_a_sentence_has_its_meaning(opened, content):
    page, terms = opened("#round=2&runs=fedavg&view=map"), content["terms"]
    word = page.locator("#stage .sentences .term.inside")
    assert word.get_attribute("aria-label") == f"mean cosine: {terms['Mean cosine']}"
    assert page.locator("#stage .sentences .meaning:visible").count() == 0
    word.hover()
    assert page.locator("#stage .sentences .meaning:visible").text_content() == terms["Mean cosine"]
    below = page.get_attribute("#stage select[aria-label='Second curve of the time line']", "title")
    assert below == f"Client drift: {terms['Client drift']}"


def test_the_difference_is_the_one_minus_the_other(opened, content):
    page = opened("#round=2&runs=fedavg,fedlaw&look=fedavg&view=difference")
    assert page.locator(".picture-title").nth(1).text_content() == "FedLAW, seed 5 minus FedAvg, seed 5"
    (low, high), (bottom, top) = page.evaluate(f"[{PICTURE}[1].shown.surface.u, {PICTURE}[1].shown.surface.v]")
    points = [(low + a * (high - low), bottom + b * (top - bottom)) for a in (0.1, 0.5, 0.83) for b in (0.27, 0.6)]
    read = page.evaluate(f"points => points.map(([u, v]) => {PICTURE}[1].shown.surface.value(u, v))", points)
    wanted = [losses(content, 1, 2, *point) - losses(content, 0, 2, *point) for point in points]
    assert read == pytest.approx(wanted, abs=1e-5)
    scale = page.evaluate(f"{PICTURE}[1].shown.scale")
    assert scale["low"] == -scale["high"] and scale["difference"]
    assert page.locator(".reading").nth(1).text_content() == "Blue: FedLAW lies lower; red: FedAvg does"
    red, _, blue = page.evaluate(f"[...{VIEW}.tables.difference.slice(0, 3)]")
    assert blue > red, "below zero"


def test_a_difference_of_equal_runs_is_neutral_between_limits_about_zero(opened, content, text, tmp_path):
    equal, path = copy.deepcopy(content), tmp_path / "page.html"
    equal["runs"][1]["shown"]["2"] = equal["runs"][0]["shown"]["2"]
    path.write_text(packed_pages.changed(text, "scene", equal))
    page = opened("#round=2&runs=fedavg,fedlaw&look=fedavg&view=difference", path)
    assert page.locator(".reading").nth(1).text_content() == "The two are equal here"
    low, high = page.evaluate(f"[{PICTURE}[1].shown.scale.low, {PICTURE}[1].shown.scale.high]")
    assert low == -high < 0
    assert page.locator("#stage .key >> nth=1 >> .ticks span").all_text_contents() == ["0"]


def test_the_colours_of_a_nearly_flat_landscape_have_different_numbers(opened, content, text, tmp_path):
    flat, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in flat["runs"]:
        plane = run["shown"]["2"]["plane"]
        values = 2.3 + 1e-4 * np.linspace(0, 1, np.prod(plane["points"]))
        plane["metrics"]["loss"] = base64.b64encode(values.astype("<f4").tobytes()).decode()
    path.write_text(packed_pages.changed(text, "scene", flat))
    ticks = opened("#round=2&runs=fedavg&view=map", path).locator("#stage .key .ticks span").all_text_contents()
    assert len(ticks) == len(set(ticks)) == 5, ticks


def test_the_map_of_a_path_fills_its_axes_and_a_click_meets_its_models(opened, content, text, tmp_path):
    flat, path = copy.deepcopy(content), tmp_path / "page.html"
    for run in flat["runs"]:
        (_, (low, high)), marks = run["path"]["plane"]["extent"], run["path"]["marks"]
        run["path"]["plane"]["extent"][1] = [0.5 * low, 0.5 * high]
        marks[:] = [{**mark, "v": 0.5 * mark["v"]} for mark in marks]
    path.write_text(packed_pages.changed(text, "scene", flat))
    page = opened("#round=2&runs=fedavg,fedlaw&view=path", path)
    for place, run in enumerate(flat["runs"][:2]):
        across, up = (high - low for low, high in run["path"]["plane"]["extent"])
        box = page.evaluate(f"{PICTURE}[{place}].box")
        stretch = page.evaluate(f"{PICTURE}[{place}].stretch")
        assert box["height"] / box["width"] == pytest.approx(stretch * up / across, rel=1e-6)
        opaque = page.evaluate(f"""(({{ box, canvas, side }}) => {{
            const ratio = canvas.width / side, pen = canvas.getContext("2d");
            return [3, box.width - 3].flatMap(x => [3, box.height - 3].map(y =>
                pen.getImageData(ratio * (box.x + x), ratio * (box.y + y), 1, 1).data[3]));
        }})({PICTURE}[{place}])""")
        assert opaque == [255] * 4, "the map reaches the four corners of its axes"
    mark = run["path"]["marks"][1]
    x, y = page.evaluate(f"{PICTURE}[1].seen({mark['u']}, {mark['v']})")
    drawn = page.locator(".picture .over").nth(1).bounding_box()
    page.mouse.click(drawn["x"] + x, drawn["y"] + y)
    page.wait_for_function(f"{VIEW}.state.round === {mark['round']}")


def test_what_dots_and_arrows_are_stands_below_the_pictures(opened):
    page = opened("#round=2&runs=fedavg&view=map")
    for view, words in (("map", "Dots: clients"), ("relief", "Dots: clients"), ("path", "the global model after each")):
        page.evaluate(f"{VIEW}.set({{ view: {view!r} }})")
        assert words in page.locator("#stage .about").text_content()


def test_all_pictures_have_one_scale_and_one_extent(opened):
    page = opened("#round=0&runs=fedavg,fedlaw")
    first, second = page.evaluate(f"{PICTURE}.map(({{ shown }}) => [shown.half, shown.scale.low, shown.scale.high])")
    assert first == second
    lowest = page.evaluate(f"Math.min(...{PICTURE}.map(({{ shown }}) => shown.surface.low))")
    assert first[1] == pytest.approx(lowest)
