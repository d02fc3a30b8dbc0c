"""A page evaluates the models that it carries, and its numbers are Python's."""

import copy
import gzip
from base64 import b64decode

import numpy as np
import packed_pages
import pytest
import tiny
import torch
from browsing import MARKS
from torch import nn

from drift.config.load import read, validated
from drift.simulation.simulate import simulate
from figures.explore.work.points import Query, numbers, stage_plane
from figures.page import carried_models
from figures.page.carried_models import layers_of, refused
from figures.page.report import report
from figures.page.start import Start


def in_browser(test):
    """A test that opens a page in headless Chromium."""
    for mark in MARKS:
        test = mark(test)
    return test


VIEW = "document.getElementById('stage').view"
ASKED = f"spots => Promise.all(spots.map(([run, round, spot]) => {VIEW}.networks.ask('point', {{ run, round, spot }})))"


def trained(folder, model, *overrides):
    content = {**tiny.DIGITS, "task": {"dataset": "digits", "train_samples": 200, **model}}
    return simulate(read(validated(content), "local.epochs=1", "rounds=2", *overrides), runs=folder)


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """A multilayer perceptron and a CNN with all layers, and the page of both."""
    folder = tmp_path_factory.mktemp("carried")
    mlp, cnn = {"model": "mlp", "model_options": {"hidden": [12]}}, {"model": "tiny:plain_cnn"}
    runs = [trained(folder, mlp), trained(folder, cnn, "method=fedprox")]
    return runs, report(runs, folder / "page.html", points=4)


@pytest.fixture(scope="module")
def scene(carried):
    return packed_pages.content(carried[1].read_text(), "scene")


def unpacked(vector):
    """Numbers of a vector that a page carries, read in another way than the page does."""
    planes, size = gzip.decompress(b64decode(vector["zipped"])), vector["bytes"]
    number = len(planes) // size
    whole = [int.from_bytes(planes[place::number], "little") for place in range(number)]
    return vector["step"] * np.array([-(one + 1) // 2 if one % 2 else one // 2 for one in whole])


def opened(browser, path, hash_=""):
    page = browser.new_page(viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    page.goto(path.as_uri() + hash_)
    page.evaluate("unpacking")
    return page


def spots(run, entry, number):
    """Places of both rounds, from the middle to the corners of their planes."""
    draws = np.random.default_rng(3).uniform(-1, 1, (number, 2))
    for place, draw in enumerate(draws):
        index = place % 2
        reach = [ends[1] for ends in entry["shown"][str(index)]["plane"]["extent"]]
        yield entry["key"], index, (draw * reach).tolist()


@in_browser
@pytest.mark.parametrize("place", [0, 1], ids=["mlp", "cnn"])
def test_twenty_points_have_the_loss_and_accuracy_of_python(browser, carried, scene, place):
    runs, path = carried
    run = runs[place]
    entry = next(one for one in scene["runs"] if one["key"] == run.label)
    asked = list(spots(run, entry, 20))
    page = opened(browser, path)
    values = page.evaluate(ASKED, asked)
    page.close()
    losses = set()
    for (_, index, spot), value in zip(asked, values, strict=True):
        wanted = numbers(run, Query(index, "plane", "test", 1000), stage_plane(run, index).row(spot).tolist())
        assert value["loss"] == pytest.approx(wanted["loss"], abs=1e-4)
        assert value["error"] == pytest.approx(wanted["error"], abs=1e-4)
        assert value["class_error"] == pytest.approx(wanted["class_error"], abs=1e-4)
        assert value["samples"] == wanted["samples"]
        losses.add(round(value["loss"], 4))
    assert len(losses) > 15


@in_browser
def test_a_clicked_point_says_that_it_is_exact_or_why_not(browser, carried, scene, tmp_path):
    page = opened(browser, carried[1], "#round=1&view=map&at=0.01,0.02")
    page.wait_for_selector("#stage .point:has-text('evaluated exactly on')")
    assert "by this page" in page.text_content("#stage .point")
    box = page.locator("#stage .picture .ground").first.bounding_box()
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"])
    page.wait_for_selector("#stage .point:has-text('evaluated exactly on')")
    page.close()
    less = copy.deepcopy(scene)
    for run in less["runs"]:
        del run["shown"]["1"]["carried"]
    path = tmp_path / "less.html"
    path.write_text(packed_pages.changed(carried[1].read_text(), "scene", less))
    page = opened(browser, path, "#round=1&view=map&at=0.01,0.02")
    said = page.text_content("#stage .point")
    assert (
        "interpolated between 4 x 4 evaluated models: this file carries the models of round 0" in said and "≈" in said
    )
    page.close()


@in_browser
def test_a_page_shows_the_path_on_a_phone(browser, carried):
    page = opened(browser, carried[1], "#round=1&view=map")
    page.check("#stage .segments input[value=path]", force=True)
    assert page.locator("#stage .mark.round").count() >= 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#stage .mark.round[data-mark='round 0']").first.dispatch_event("click")
    assert page.evaluate(f"{VIEW}.state.round") == 0
    page.close()


@in_browser
def test_a_browser_that_cannot_unpack_and_a_damaged_file_say_so(browser, carried, tmp_path):
    context = browser.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(carried[1].as_uri())
    assert "This browser is too old" in page.text_content("#stage [role=alert]")
    assert page.locator("table").count() > 2
    context.close()
    text = carried[1].read_text()
    cut = tmp_path / "cut.html"
    cut.write_text(text.replace(packed_pages.packed(text, "scene"), packed_pages.packed(text, "scene")[:400]))
    page = browser.new_page()
    page.goto(cut.as_uri())
    page.wait_for_selector("#stage [role=alert]:has-text('Is the file whole?')")
    page.close()


def test_the_planes_are_those_of_the_stage(carried, scene):
    run = carried[0][0]
    entry = next(one for one in scene["runs"] if one["key"] == run.label)
    models, plane = entry["shown"]["1"]["carried"], stage_plane(run, 1)
    basis = plane.sweep.basis.double().numpy()
    middle, u = (unpacked(models[name]) for name in ("middle", "u"))
    rounding = {name: 0.5 * models[name]["step"] + 1e-7 for name in ("middle", "u")}
    assert middle == pytest.approx(plane.row([0, 0]) @ basis, abs=rounding["middle"])
    assert u == pytest.approx((plane.row([1, 0]) - plane.row([0, 0])) @ basis, abs=rounding["u"])
    assert rounding["middle"] < 1e-3 * np.abs(middle).max()


def test_few_bytes_carry_the_last_rounds_of_all_runs(carried, monkeypatch):
    runs, _ = carried
    planes = [carried_models.carried(run, 1, run.task.split("test")) for run in runs]
    size = sum(len(vector["zipped"]) for plane in planes for vector in plane.values())
    monkeypatch.setattr(carried_models, "BYTES", size)
    monkeypatch.setattr(carried_models, "MORE", size)
    shown = [{"key": run.label, "shown": {str(index): {"plane": 1} for index in (0, 1)}} for run in runs]
    value = carried_models.with_models({"runs": shown}, {run.label: [run] for run in runs}, Start.read("", 4, 1000))
    for run in value["runs"]:
        assert "carried" in run["shown"][1] and "carried" not in run["shown"][0]
    assert len(value["samples"]) == 1


class Twice(nn.Sequential):
    """A chain by its layers, which computes something else."""

    def forward(self, inputs):
        return 2 * super().forward(inputs)


class Scaled(nn.Module):
    """A layer, and a parameter beside it."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.layer = nn.Linear(2, 2)

    def forward(self, inputs):
        return self.scale * self.layer(inputs)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Conv2d(1, 2, 3, padding="same")), (1, 4, 4)),
        (nn.Sequential(nn.Conv2d(2, 2, 3, groups=2)), (2, 4, 4)),
        (nn.Sequential(nn.MaxPool2d(2, ceil_mode=True)), (1, 5, 5)),
        (nn.Sequential(nn.BatchNorm2d(3)), (3, 4, 4)),
        (nn.Sequential(nn.Linear(2, 2), nn.Tanh()), (2,)),
        (Twice(nn.Linear(2, 2)), (2,)),
        (Scaled(), (2,)),
        (nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), (2,)),
    ],
)
def test_what_is_no_chain_of_plain_layers_is_not_evaluated_by_the_page(model, shape):
    assert layers_of(model, torch.rand(3, *shape)) is None


def test_layers_are_found_at_any_depth_and_layers_that_follow_in_another_order_are_not():
    chain = nn.Sequential(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))
    assert [layer["kind"] for layer in layers_of(chain, torch.rand(3, 2, 2))] == ["flatten", "linear", "relu", "linear"]

    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(3, 2), nn.Linear(4, 3)

        def forward(self, inputs):
            return self.last(self.first(inputs))

    assert layers_of(Backwards(), torch.rand(3, 4)) is None


def test_a_page_says_why_a_model_is_not_carried(runs):
    task = runs[0].task
    samples = task.split("test")
    assert refused(task, samples) == ""
    wide = type(task)(nn.Linear(2, 150_001), {"test": samples})
    assert refused(wide, samples) == "its model has 450,003 parameters"
    other = type(task)(task.model, {"test": samples}, loss=lambda outputs, targets: outputs.sum(1))
    assert "loss" in refused(other, samples)
    many = type(samples)(torch.zeros(1001, 2), torch.zeros(1001, dtype=torch.int64))
    assert "more than 1,000 samples" in refused(task, many)
