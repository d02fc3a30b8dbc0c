"""MovieLens-1M: leave one out, histories, negatives, and what is said of other files."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from landscape.datasets import _movielens, open_dataset
from landscape.model.binary_losses import binary_cross_entropy, binary_error
from landscape.model.task import Task
from landscape.models import build_model
from tests import movielens

HISTORY = 5


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def opened(folder, **options):
    return open_dataset("movielens1m", data=folder, any_size=True, **{"history": HISTORY, **options})


def rows(samples, user):
    """Rows of a user with their targets."""
    chosen = samples.inputs[:, 0] == user
    return samples.inputs[chosen], samples.targets[chosen]


def test_the_last_film_is_the_test_film_and_histories_hold_the_films_before(folder):
    films = movielens.write(folder / "movielens1m")
    dataset = opened(folder, negatives=3)
    assert dataset.shape == (6 + HISTORY,)
    assert dataset.classes == ("not rated", "rated")
    assert dataset.loss == "binary"
    assert dataset.groups["user"].names == ("1", "2", "3", "5")  # user 4 rated one film
    for user, own in films.items():
        inputs, targets = rows(dataset.train, user)
        assert len(inputs) == 4 * (len(own) - 1)
        assert inputs[targets == 1, 5].tolist() == own[:-1]
        for place, block in enumerate(inputs.split(4)):
            before = ([0] * HISTORY + own[:place])[-HISTORY:]
            assert (block[:, 6:] == torch.tensor(before)).all()
            assert not set(block[1:, 5].tolist()) & set(own)
        inputs, targets = rows(dataset.test, user)
        if len(own) == 1:
            assert not len(inputs)
            continue
        assert inputs[targets == 1, 5].tolist() == own[-1:]
        assert (inputs[:, 6:] == torch.tensor(([0] * HISTORY + own[:-1])[-HISTORY:])).all()
        negatives = inputs[targets == 0, 5].tolist()
        assert len(set(negatives)) == len(negatives)
        assert set(negatives) == set(range(1, 24)) - set(own)  # 99 draws find every one of the few


def test_users_are_described_by_numbers_from_one(folder):
    movielens.write(folder / "movielens1m")
    inputs = opened(folder).train.inputs
    found = {int(row[0]): row[1:5].tolist() for row in inputs}
    assert found == {1: [1, 1, 11, 2], 2: [2, 7, 17, 4], 3: [2, 3, 16, 3], 5: [2, 3, 21, 3]}


def test_options_limit_positives_and_seeds_change_negatives_only(folder):
    films = movielens.write(folder / "ml-1m")
    dataset, again, other = opened(folder), opened(folder), opened(folder, seed=1)
    assert dataset.fingerprint == again.fingerprint != other.fingerprint
    positive = dataset.train.targets == 1
    assert torch.equal(dataset.train.inputs[positive], other.train.inputs[positive])
    recent = opened(folder, recent=2, negatives=0)
    assert (recent.train.targets == 1).all()
    inputs, _ = rows(recent.train, 2)
    assert inputs[:, 5].tolist() == films[2][-3:-1]
    assert inputs[0, 6:].tolist() == films[2][-3 - HISTORY : -3]
    assert torch.equal(recent.test.inputs.unique(dim=0), dataset.test.inputs.unique(dim=0))
    for option in ("history", "test_negatives", "recent"):
        with pytest.raises(ValueError, match=f"{option} is 0; movielens1m takes a whole number"):
            opened(folder, **{option: 0})
    with pytest.raises(ValueError, match="negatives is -1"):
        opened(folder, negatives=-1)


def test_equal_times_are_ordered_by_film(folder):
    movielens.write(folder / "movielens1m")
    (folder / "movielens1m" / "ratings.dat").write_text("1::9::5::20\n1::4::5::10\n1::7::5::20\n1::2::5::20\n")
    inputs, targets = rows(opened(folder).train, 1)
    assert inputs[targets == 1, 5].tolist() == [4, 2, 7]


def test_what_is_missing_is_said_with_where_to_get_it(folder, monkeypatch):
    monkeypatch.delenv("FEDSCAPE_DATA", raising=False)
    with pytest.raises(LookupError, match=r"needs a data folder and none is given\. .*grouplens\.org"):
        open_dataset("movielens1m")
    with pytest.raises(LookupError, match=rf"no ratings\.dat of movielens1m in {folder}/movielens1m\. .*ml-1m\.zip"):
        open_dataset("movielens1m", data=folder)
    movielens.write(folder / "movielens1m")
    (folder / "movielens1m" / "users.dat").unlink()
    with pytest.raises(LookupError, match=r"no users\.dat"):
        open_dataset("movielens1m", data=folder)


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("ratings.dat", "1::2::x::4\n", "has values other than whole numbers"),
        ("ratings.dat", "1::2::3\n", "has 3 numbers, not a table of 4 columns"),
        ("ratings.dat", "1::2::3::4\n9::2::3::4\n", "has user 9, which is not in users.dat"),
        ("ratings.dat", "1::99::3::4\n", "has film 99, which is not in movies.dat"),
        ("ratings.dat", "1::2::3::4\n", "no user in .* has rated two films"),
        ("users.dat", "1::F::1::10\n", "has the line '1::F::1::10'; five fields"),
        ("users.dat", "1::X::1::10::1\n", "has user 1 with X, 1, 10; expected are F or M"),
    ],
)
def test_other_content_is_refused(folder, file, content, complaint):
    movielens.write(folder / "movielens1m")
    (folder / "movielens1m" / file).write_text(content)
    with pytest.raises(ValueError, match=complaint):
        opened(folder)


def test_an_excerpt_must_be_asked_for(folder):
    movielens.write(folder / "movielens1m")
    with pytest.raises(ValueError, match=r"has 32 ratings, MovieLens-1M has 1000209; .*any_size=true"):
        open_dataset("movielens1m", data=folder)
    with pytest.raises(ValueError, match="movielens1m holds real numbers"):
        opened(folder) and open_dataset("movielens1m", data=folder, any_size=True, scale="unit")


def test_a_user_who_rated_everything_has_no_negatives(folder):
    movielens.write(folder / "movielens1m")
    every = "".join(f"1::{film}::3::{film}\n" for film in range(1, 24))
    (folder / "movielens1m" / "ratings.dat").write_text(every)
    with pytest.raises(ValueError, match=r"user 1 has rated all films"):
        opened(folder)


def test_fields_are_those_of_din():
    from landscape.models import din

    assert _movielens.FIELDS == din.FIELDS


def test_din_learns_which_films_were_rated(folder):
    movielens.write(folder / "movielens1m")
    dataset = opened(folder)
    model = build_model("din", dataset.shape, 2, seed=0, sizes=movielens.SIZES)
    task = Task(model, {"train": dataset.train}, loss=binary_cross_entropy, metrics={"error": binary_error})
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = binary_cross_entropy(model(dataset.train.inputs), dataset.train.targets).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    outputs = task.outputs(task.theta, "train")
    assert float(binary_cross_entropy(outputs, dataset.train.targets).mean()) == pytest.approx(losses[0], rel=1e-5)


def test_binary_loss_and_error_by_hand():
    logits, targets = torch.tensor([[2.0], [-1.0], [0.0], [-3.0]]).double(), torch.tensor([1, 1, 0, 0])
    expected = [np.log1p(np.exp(-2)), np.log1p(np.exp(1)), np.log(2), np.log1p(np.exp(-3))]
    assert binary_cross_entropy(logits, targets).tolist() == pytest.approx(expected)
    assert binary_error(logits, targets).tolist() == [0, 1, 0, 0]
