"""One value says how models are evaluated: by name or whole it gives the same numbers, and nothing in it is ignored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import landscape
from landscape.measures.ensemble import subset_errors
from landscape.model.samples import Samples
from landscape.model.task import Task


def task(norm: bool = False) -> Task:
    torch.manual_seed(0)
    middle = nn.BatchNorm1d(4) if norm else nn.ReLU()
    samples = {name: Samples(torch.randn(count, 3), torch.arange(count) % 2) for name, count in COUNTS.items()}
    return Task(nn.Sequential(nn.Linear(3, 4), middle, nn.Linear(4, 2)), samples)


COUNTS = {"train": 31, "test": 12}
TASK = task()
MODELS = torch.randn(3, TASK.layout.size, generator=torch.Generator().manual_seed(1))
WHOLE = {"split": "train", "workers": 2, "block": 5}
SHARES = torch.ones(3)

CALLS = {
    "surface": lambda **how: landscape.surface(TASK, landscape.line(*MODELS[:2], points=5), **how),
    "barrier": lambda **how: landscape.barrier(TASK, *MODELS[:2], points=5, **how),
    "aligned_barrier": lambda **how: landscape.aligned_barrier(TASK, *MODELS[:2], points=5, **how),
    "pairwise_barriers": lambda **how: landscape.pairwise_barriers(TASK, MODELS, points=5, **how),
    "simplex_losses": lambda **how: landscape.simplex_losses(TASK, MODELS, count=3, **how),
    "along": lambda **how: landscape.along(TASK, landscape.Curve("bezier", MODELS), points=5, **how),
    "ball_sharpness": lambda **how: landscape.ball_sharpness(TASK, MODELS[0], steps=2, directions=2, **how),
    "interpolated_surface": lambda **how: landscape.interpolated_surface(TASK, PLANE, **how),
    "sampled_surface": lambda **how: landscape.sampled_surface(TASK, PLANE, samples=25, **how),
    "subset_errors": lambda **how: subset_errors(TASK, MODELS, SHARES, **how),
}
PLANE = landscape.plane(*MODELS, points=5)


@pytest.mark.parametrize("name", CALLS)
def test_an_evaluation_gives_the_numbers_of_its_fields_by_name(name):
    by_name, whole = CALLS[name](**WHOLE), CALLS[name](evaluation=landscape.Evaluation(**WHOLE))
    assert by_name.identical(whole)
    fewer = landscape.Evaluation(**{**WHOLE, "split": "test"})
    assert CALLS[name](evaluation=fewer, split="train").identical(whole), "a name differs from the value"
    assert name == "sampled_surface" or not CALLS[name](split="test").equals(whole), "the split counts"


REFUSED = [
    *((name, "groups", torch.arange(31) % 2) for name in CALLS if name not in ("surface", "interpolated_surface")),
    *((name, "precision", "fast") for name in CALLS if name not in ("surface", "barrier", "aligned_barrier")),
    *((name, "metrics", ("error",)) for name in ("barrier", "pairwise_barriers", "ball_sharpness", "sampled_surface")),
    ("ball_sharpness", "statistics", "recomputed"),
]


@pytest.mark.parametrize(("name", "field", "value"), REFUSED, ids=[f"{name}-{field}" for name, field, _ in REFUSED])
def test_what_means_nothing_to_a_function_is_refused(name, field, value):
    with pytest.raises(ValueError, match=rf"{'barrier' if 'aligned' in name else name} takes no {field}; leave it out"):
        CALLS[name](**{"split": "train", field: value})


@pytest.mark.parametrize("name", CALLS)
def test_a_misspelt_option_is_refused_with_the_right_one(name):
    with pytest.raises(ValueError, match=r"'splits'. Did you mean 'split'\?"):
        CALLS[name](splits="train")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"workers": 0}, "workers is 0; a sweep needs a whole number"),
        ({"workers": 1.5}, "workers is 1.5; a sweep needs a whole number"),
        ({"workers": "2"}, "workers is '2'; a sweep needs a whole number"),
        ({"workers": None}, "workers is None; a sweep needs a whole number"),
        ({"workers": True}, "workers is True; a sweep needs a whole number"),
        ({"block": True}, "takes a block above 0"),
        ({"precision": "half"}, "precision is 'half'; accepted: exact, fast"),
        ({"memory": 0}, "takes a memory above 0"),
        ({"block": 2.5}, "takes a block above 0"),
    ],
)
def test_a_field_of_another_kind_is_refused(fields, told):
    with pytest.raises(ValueError, match=told):
        landscape.Evaluation(**fields)
    with pytest.raises(ValueError, match=told):
        landscape.evaluate(TASK, MODELS, torch.eye(3), **fields)


def test_workers_of_numpy_are_taken():
    values = landscape.evaluate(TASK, MODELS, torch.eye(3), workers=np.int64(2))
    assert torch.equal(values["loss"], landscape.evaluate(TASK, MODELS, torch.eye(3))["loss"])


def test_numbers_of_another_kind_are_refused_beside_options():
    with pytest.raises(ValueError, match=r"points is 2\.5; barrier takes a whole number"):
        landscape.barrier(TASK, *MODELS[:2], points=2.5, split="train")


def test_vectors_are_taken_where_an_evaluation_says_which_statistics_they_get():
    normed = task(norm=True)
    models = torch.randn(2, normed.layout.size)
    evaluation = landscape.Evaluation(statistics="recomputed")
    ds = landscape.barrier(normed, *models, points=3, evaluation=evaluation)
    assert ds.identical(landscape.barrier(normed, *models, points=3, statistics="recomputed"))
    with pytest.raises(ValueError, match="without the floating buffers"):
        landscape.barrier(normed, *models, points=3, evaluation=evaluation.but(statistics=None))


def test_an_evaluation_shows_what_differs():
    assert repr(landscape.Evaluation()) == "Evaluation()"
    assert repr(landscape.Evaluation(split="train", workers=2)) == "Evaluation(split='train', workers=2)"
