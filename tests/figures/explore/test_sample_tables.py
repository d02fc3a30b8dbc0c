"""Which question a selection asks, which samples of its answer are shown, and their cards."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tiny
from PIL import Image

from drift.analyses.landscapes.named_models import named_models
from drift.analyses.samples.contents import images, rows
from drift.analyses.samples.predictions import sample_predictions
from figures.explore.record.sample_cards import Card, cards
from figures.explore.record.sample_tables import Filter, Question, answer, asked_question, pictures
from figures.explore.shell.selection import Selection
from landscape.model.samples import Samples

SMALL = ("task.dataset=digits", "task.dataset_options={}", "task.train_samples=80", "task.test_samples=40")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), *SMALL)


@pytest.fixture(scope="module")
def client(run):
    return sorted(run.round(1).ids.tolist())[1]


@pytest.fixture(scope="module")
def result(run, client):
    return answer(run, Question(1, "end", client, groups=4))


def asked(run, **fields):
    selection = Selection()
    selection.change(**fields)
    return asked_question(run, 1, selection)


def test_the_first_client_of_the_cohort_is_compared_unless_another_one_is_selected(run, client):
    ids = sorted(run.round(1).ids.tolist())
    absent = next(number for number in range(4) if number not in ids)
    assert asked(run) == Question(1, "end", ids[0], "test")
    assert asked(run, clients=[absent, client]).client == client
    assert asked(run, client=client, split="client") == Question(1, "end", client, f"client {client}")


def test_a_point_and_weights_are_sums_of_models(run):
    ids = sorted(run.round(1).ids.tolist())
    point = asked(run, model="point", corners=["start", "end", "aggregate"], point=[0.5, 0.25, 0.25]).model
    assert point == "0.5 * start + 0.25 * end + 0.25 * aggregate"
    weights = asked(run, model="weights", weights=[2.0, 1.0, 1.0], gamma=0.8).model
    assert weights == " + ".join(f"{value} * client {k}" for value, k in zip((0.4, 0.2, 0.2), ids, strict=True))
    own = asked(run, model="weights").model
    named = named_models(run, 1, [own, "end"])
    np.testing.assert_allclose(named.models[0], named.models[1], atol=1e-6)


def test_a_point_that_is_not_selected_is_asked_for(run):
    with pytest.raises(LookupError, match="click on the map of Plane"):
        asked(run, model="point")
    with pytest.raises(LookupError, match="2 weights for 3 clients"):
        asked(run, model="weights", weights=[0.5, 0.5])


def test_filters_select_by_class_prediction_group_and_mode(run, client, result):
    ds = sample_predictions(run, round=1, models=["end", f"client {client}"])
    target, (first, second) = ds.target.values, ds.predicted.values
    expected = {
        Filter(): first != target,
        Filter(mode="all"): target >= 0,
        Filter(mode="differs"): first != second,
        Filter(truth=3): (first != target) & (target == 3),
        Filter(truth=3, predicted=3): (target == 3) & (first == 3),
        Filter(predicted=int(first[0])): first == first[0],
    }
    for kind, mask in expected.items():
        places = kind.numbers(result)
        assert sorted(places) == np.flatnonzero(mask).tolist(), kind
        losses = result.predictions.loss.values[0][places]
        assert (np.diff(losses) <= 0).all()
    groups = result.groups
    for group in range(groups.sizes["group"]):
        places = Filter(group=group).numbers(result)
        assert len(places) == int(groups.group_size[group])
        assert (np.diff(groups.group_distance.values[places]) >= 0).all()
        assert (first[places] != second[places]).all()


def test_a_filter_says_what_it_selects(client, result):
    assert Filter().words(result, "global model", client) == ["wrong ones, largest loss first"]
    words = Filter(truth=3, predicted=5).words(result, "global model", client)
    assert words == ["class 3", "predicted as 5 by the global model"]
    (group,) = Filter(group=0).words(result, "global model", client)
    assert group.startswith(f"group 1, on which it and client {client} disagree")


def test_pictures_are_the_samples(run):
    files = pictures(run, (1, "test", [4, 0]))
    inputs = run.task.samples["test"].inputs
    for file, place in zip(files, (4, 0), strict=True):
        pixels = np.asarray(Image.open(io.BytesIO(file)))
        np.testing.assert_array_equal(pixels, np.round(255 * inputs[place, 0].numpy()))


def test_images_of_three_channels_have_them_last_and_wide_values_span_the_range(run):
    import torch

    wide = torch.linspace(-3, 5, 2 * 3 * 4 * 5).view(2, 3, 4, 5)
    pixels = images(run, Samples(wide, torch.zeros(2, dtype=torch.int64)))
    assert pixels.shape == (2, 4, 5, 3)
    assert (pixels.min(), pixels.max()) == (0, 255)
    flat = Samples(torch.arange(12.0).view(2, 6), torch.zeros(2, dtype=torch.int64))
    assert images(run, flat) is None
    assert rows(flat, 3).tolist() == [[0, 1, 2], [6, 7, 8]]


def test_cards_escape_their_texts_and_describe_the_picture():
    card = Card(7, "<b>cat</b>", (("global model", '"dog"'),), 1.25)
    page = cards([card, card], [b"png", np.array([0.5, 2])])
    assert "<b>" not in page
    assert page.count('role="listitem"') == 2
    assert 'alt="sample 7, class &lt;b&gt;cat&lt;/b&gt;; global model: &quot;dog&quot;; loss 1.25"' in page
    assert "<code>0.5 2</code>" in page
