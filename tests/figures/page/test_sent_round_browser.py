"""A page that is sent has the weights and samples of Python in its first round, and says what it has not."""

import base64
import copy
import io

import numpy as np
import packed_pages
import pytest
import tiny
from browsing import MARKS
from PIL import Image

from drift.analyses.landscapes.named_models import sum_name
from drift.analyses.samples.contents import images
from drift.analyses.selected_samples import selected_samples
from drift.config.load import read, validated
from drift.simulation.simulate import simulate
from figures.explore.answers.samples import SamplesQuery, shown
from figures.explore.answers.weights import Mixture, from_values, of_mixture
from figures.explore.work.points import Query
from figures.page.report import report

pytestmark = MARKS
VIEW = "document.getElementById('stage').view"
ASK = f"([kind, args]) => {VIEW}.networks.ask(kind, args)"
ROUND, SAMPLES = 3, 60


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """Five clients a round of a small network, of whose method the end is not the aggregate, and the page."""
    folder = tmp_path_factory.mktemp("sent")
    run = simulate(read(validated(tiny.DIGITS), "clients.per_round=5", "method=fedeve"), runs=folder)
    return run, report([run], folder / "page.html", points=9, samples=SAMPLES)


@pytest.fixture
def opened(browser):
    pages, errors = [], []

    def go(path, hash_="", **window):
        page = browser.new_page(**{"viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce"} | window)
        page.on("pageerror", lambda problem: errors.append(str(problem)))
        page.goto(path.as_uri() + hash_)
        page.evaluate("unpacking")
        pages.append(page)
        return page

    yield go
    assert errors == []
    for page in pages:
        page.close()


def without(sent, path, gone):
    """The page without the models of some names in its rounds."""
    text = sent[1].read_text()
    scene = copy.deepcopy(packed_pages.content(text, "scene"))
    for frame in scene["runs"][0]["shown"].values():
        frame["carried"] = {name: vector for name, vector in frame["carried"].items() if not gone(name)}
        if not frame["carried"]:
            del frame["carried"]
    path.write_text(packed_pages.changed(text, "scene", scene))
    return path


def test_any_weights_have_the_numbers_and_the_place_of_python(sent, opened):
    run, path = sent
    page, ids = opened(path, "#view=map"), sorted(run.round(ROUND).ids.tolist())
    draws = np.random.default_rng(2)
    for gamma in (1.0, 0.9, 1.1):
        weights = dict(zip(ids, draws.uniform(0, 1, len(ids)).tolist(), strict=True))
        value = page.evaluate(ASK, ["weights", {"run": run.label, "round": ROUND, "weights": weights, "gamma": gamma}])
        row = tuple(from_values(ROUND, ids, weights, gamma).row)
        wanted = of_mixture(run, Mixture(Query(ROUND, "cohort", "test", SAMPLES), row, proxy=False))
        for name in ("loss", "error", "class_error"):
            assert value[name] == pytest.approx(wanted[name], abs=1e-4), name
        assert value["samples"] == wanted["samples"] == SAMPLES
        assert [value["mark"][name] for name in ("u", "v", "away")] == pytest.approx(
            [wanted["mark"][name] for name in ("u", "v", "away")], abs=1e-4
        )


def test_the_best_weights_and_those_of_the_round_stand_side_by_side(sent, opened):
    run, path = sent
    page = opened(path, "#view=map")
    assert "The best weights of sum 1 found have a loss of" in page.text_content("#stage .best-weights")
    page.click("#stage .best-weights button")
    page.wait_for_selector("#stage .presets [aria-pressed=true]:has-text('Best weights')")
    page.wait_for_selector("#stage .what-if:has-text('the round\\'s own weights (')")
    state, said = page.evaluate(f"{VIEW}.state.mix"), page.text_content("#stage .what-if")
    record, values = run.round(ROUND), []
    ids = sorted(record.ids.tolist())
    own = dict(zip(record.ids.tolist(), record.weights.tolist(), strict=True))
    for weights in (state["weights"], own):
        row = tuple(from_values(ROUND, ids, {int(client): weight for client, weight in weights.items()}, 1.0).row)
        values.append(of_mixture(run, Mixture(Query(ROUND, "cohort", "test", SAMPLES), row, proxy=False))["loss"])
    assert values[0] < values[1]
    assert f"Loss {values[0]:.4g}"[:9] in said and f"({values[1]:.4g}"[:6] in said
    assert page.locator("#stage .mark.mix").count() == 1 and "weights=" not in page.evaluate("location.hash")
    slider = page.locator("#stage .weights input[type=range]").first
    slider.fill("0.9")
    slider.dispatch_event("change")
    page.wait_for_function("said => document.querySelector('#stage .what-if').textContent !== said", arg=said)
    page.wait_for_selector("#stage .weights:has-text('Evaluated exactly by this page')")


@pytest.mark.parametrize("against", [None, 0])
def test_samples_are_those_of_python_with_their_pictures(sent, opened, against):
    run, path = sent
    page, ids = opened(path, "#view=map"), sorted(run.round(ROUND).ids.tolist())
    other = None if against is None else ids[against]
    numbers = packed_pages.content(path.read_text(), "scene")["samples"]
    (kept,) = [one["numbers"] for one in numbers.values()]
    spot = page.evaluate(f"{VIEW}.land.frame({VIEW}.looked).frame.plane.extent.map(ends => 0.3 * ends[1])")
    weights = {"weights": {str(client): 1 + client for client in ids}, "gamma": 0.9}
    for model in ("end", "start", "aggregate", f"client {ids[-1]}", {"spot": spot}, weights):
        about = {"truth": None, "predicted": None, "mode": "differs" if other is not None else "all", "limit": 500}
        asked = {"run": run.label, "round": ROUND, "model": model, "against": other, "split": "test", **about}
        value = page.evaluate(ASK, ["samples", asked])
        name, place = _named(run, ids, model)
        wanted = shown(run, SamplesQuery(ROUND, name, place, other, "test", *about.values()))
        cards = {card["number"]: card for card in wanted["cards"] if card["number"] in kept}
        assert {card["number"] for card in value["cards"]} == cards.keys() and value["total"] == len(cards)
        losses = [card["loss"] for card in value["cards"]]
        assert losses == sorted(losses, reverse=True)
        for card in value["cards"]:
            same = cards[card["number"]]
            assert card["loss"] == pytest.approx(same["loss"], abs=1e-4)
            assert [card[part] for part in ("truth", "predicted", "against")] == [
                same[part] for part in ("truth", "predicted", "against")
            ]
        assert sum(map(sum, value["confusion"])) == SAMPLES and value["classes"] == wanted["classes"]
    pixels = images(run, selected_samples(run, ROUND, "test", SAMPLES))
    for card in value["cards"][:5]:
        picture = Image.open(io.BytesIO(base64.b64decode(card["picture"].partition(",")[2])))
        assert np.array(picture.convert("L")).tolist() == pixels[kept.index(card["number"])].tolist()


def _named(run, ids, model):
    if isinstance(model, str):
        return model, None
    if "spot" in model:
        return "", model["spot"]
    mixture = from_values(
        ROUND, ids, {int(client): weight for client, weight in model["weights"].items()}, model["gamma"]
    )
    return sum_name([f"client {client}" for client in ids], mixture.row), None


def test_the_card_of_samples_shows_a_clicked_cell(sent, opened):
    page = opened(sent[1], "#view=map&at=0.01,0.02&model=point&show=all")
    page.wait_for_selector("#stage .samples .cards img")
    assert f"of the {SAMPLES} that this file carries" in page.text_content("#stage .samples")
    cell = page.locator("#stage .confusion td:not(.right) button:not(:empty)").first
    words = cell.get_attribute("aria-label")
    cell.click()
    page.wait_for_selector("#stage .samples :text('predicted as')")
    assert page.locator("#stage .cards li").count() == int(words.split()[0])


def test_without_its_clients_a_file_weighs_the_three_of_the_plane_and_says_so(sent, opened, tmp_path):
    run, _ = sent
    three = without(sent, tmp_path / "three.html", lambda name: name not in ("middle", "u", "v"))
    page = opened(three, "#view=map")
    slid = f"""() => {{ const card = {VIEW}.why.weights; card.moved(card.cohort[0].id, 0.6); card.released(); }}"""
    page.evaluate(slid)
    page.wait_for_function(f"() => {VIEW}.state.mix && [...{VIEW}.asks.entries.values()].every(one => !one.pending)")
    weights = {int(client): weight for client, weight in page.evaluate(f"{VIEW}.state.mix.weights").items()}
    ids = sorted(run.round(ROUND).ids.tolist())
    assert sorted(weights) == ids and sum(weight > 0 for weight in weights.values()) == 3
    row = tuple(from_values(ROUND, ids, weights, 1.0).row)
    loss = of_mixture(run, Mixture(Query(ROUND, "cohort", "test", SAMPLES), row, proxy=False))["loss"]
    assert page.evaluate(f"{VIEW}.why.weights.asked.value.loss") == pytest.approx(loss, abs=1e-4)
    said = page.text_content("#stage .weights")
    assert "Evaluated exactly by this page" in said and "Other clients weigh 0" in said and "fedscape explore" in said
    models = page.locator("#stage select[aria-label='of model'] option").all_text_contents()
    assert "start" not in models and len([name for name in models if name.startswith("client")]) == 3
    none = without(sent, tmp_path / "none.html", lambda name: True)
    page = opened(none, "#view=map")
    page.evaluate(slid)
    page.wait_for_selector("#stage .what-if:has-text('≈')")
    assert page.evaluate(f"{VIEW}.why.weights.asked.value.loss") == pytest.approx(loss, rel=0.05)
    assert "Interpolated on the map" in page.text_content("#stage .weights")
    samples = page.text_content("#stage .samples")
    assert "No samples of this round" in samples and "fedscape explore shows it live" in samples
    page.click("#stage .best-weights button")
    best = page.evaluate(f"{VIEW}.land.frame({VIEW}.looked).frame.weights.best")
    page.wait_for_function(f"loss => {VIEW}.why.weights.asked.value?.loss === loss", arg=best["loss"])
    assert best["loss"] < best["own"] and f"the round's own weights {best['own']:.4g}" in page.text_content(
        "#stage .what-if"
    )


@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_says_which_rounds_have_a_map(sent, opened, tmp_path, width):
    text = sent[1].read_text()
    scene = packed_pages.content(text, "scene")
    del scene["runs"][0]["shown"]["1"]
    path = tmp_path / "page.html"
    path.write_text(packed_pages.changed(text, "scene", scene))
    for file, words, dots in ((path, "rounds 0, 2 and 3", 3), (sent[1], "all rounds", 4)):
        page = opened(file, "#view=map", viewport={"width": width, "height": 844})
        assert f"This file has maps of {words} of FedEve (dots on the time line)" in page.text_content("#stage .about")
        assert page.locator("#stage .curves .has").count() == dots
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    scene["runs"][0]["shown"] = {}
    path.write_text(packed_pages.changed(text, "scene", scene))
    page = opened(path, "#view=map", viewport={"width": width, "height": 844})
    assert page.text_content("#stage .about").strip() == "This file has no landscape of FedEve."
