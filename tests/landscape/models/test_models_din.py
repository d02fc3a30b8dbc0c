"""The Deep Interest Network: its attention by hand, padding, packed and named inputs, sweeps and second derivatives."""

from __future__ import annotations

import pytest
import torch

from landscape.curvature.hessian import top_eigenvalues
from landscape.datasets import _movielens
from landscape.model.binary_losses import binary_cross_entropy, binary_error
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model
from landscape.models.din import FIELDS, SIZES, packed
from landscape.sweep.evaluate import evaluate

SMALL = {"user": 9, "gender": 3, "age": 4, "occupation": 5, "zip": 6, "item": 12}


def drawn(n, history, sizes=SMALL):
    fields = [torch.randint(1, sizes[name], (n,)) for name in FIELDS]
    seen = torch.randint(1, sizes["item"], (n, history))
    seen[0, : history - 2] = 0  # a short history, padded on the left
    return packed(*fields, seen)


def network(history=5, **options):
    return build_model("din", (6 + history,), 2, seed=0, sizes=SMALL, **options).double()


@pytest.mark.parametrize("mask_padding", [True, False])
def test_the_logit_is_that_of_a_loop_over_the_history(mask_padding):
    model, inputs = network(mask_padding=mask_padding), drawn(3, 5)
    body = model.body
    for row, found in zip(inputs, model(inputs), strict=True):
        vectors = [body.embeddings[name].weight[row[column]] for column, name in enumerate(FIELDS)]
        candidate = vectors[-1]
        films = [film for film in row[6:] if film != 0 or not mask_padding]
        seen = [body.embeddings["item"].weight[film] for film in films]
        scores = [body.attention(torch.cat([candidate, one, candidate - one, candidate * one])) for one in seen]
        weights = torch.cat(scores).softmax(0)
        interest = sum(weight * one for weight, one in zip(weights, seen, strict=True))
        torch.testing.assert_close(found, model.head(body.mlp(torch.cat([*vectors, interest]))))


def test_padding_has_no_weight_unless_it_is_not_masked():
    inputs = drawn(3, 5)
    longer = torch.cat([inputs[:, :6], torch.zeros(3, 4, dtype=torch.int64), inputs[:, 6:]], 1)
    torch.testing.assert_close(network(9)(longer), network(5)(inputs))
    unmasked = network(9, mask_padding=False)(longer), network(5, mask_padding=False)(inputs)
    assert (unmasked[0] - unmasked[1]).abs().max() > 1e-4


def test_a_history_without_a_film_has_no_interest_and_finite_gradients():
    model, inputs = network(), drawn(2, 5)
    inputs[1, 6:] = 0
    history = inputs[:, 6:]
    items = model.body.embeddings["item"]
    weights = model.body.weights(items(inputs[:, 5]), items(history), history)
    torch.testing.assert_close(weights.sum(1), torch.tensor([1.0, 0.0], dtype=torch.float64))
    model(inputs).sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters())


def test_fields_by_name_or_in_order_equal_packed_inputs():
    model, inputs = network(), drawn(4, 5)
    named = {name: inputs[:, column] for column, name in enumerate(FIELDS)} | {"history": inputs[:, 6:]}
    assert torch.equal(model(**named), model(inputs))
    assert torch.equal(model(*named.values()), model(inputs))
    assert torch.equal(model.head(model.body(inputs)), model(inputs))
    assert torch.equal(model(inputs.int()), model(inputs))


@pytest.mark.parametrize("named", [False, True])
def test_it_sweeps_to_its_own_losses_and_has_a_hessian(named):
    inputs, targets = drawn(7, 5), torch.tensor([0, 1, 1, 0, 0, 1, 0])
    fields = {name: inputs[:, column] for column, name in enumerate(FIELDS)} | {"history": inputs[:, 6:]}
    held = Samples(fields if named else inputs, targets)
    task = Task(network(), {"test": held}, loss=binary_cross_entropy, metrics={"error": binary_error})
    rows = torch.stack([task.theta, task.theta + 0.1, 0.5 * task.theta])
    found = evaluate(task, rows, torch.eye(3, dtype=torch.float64), metrics=("loss",))["loss"]
    expected = torch.stack([binary_cross_entropy(task.outputs(row, "test"), targets).mean() for row in rows])
    torch.testing.assert_close(found, expected)
    assert float(top_eigenvalues(task, task.theta, k=1, split="test").eigenvalue[0]) > 0


def test_wrong_inputs_are_refused_in_one_line():
    with pytest.raises(ValueError, match=r"inputs have shape \(3, 32, 32\); din takes whole numbers"):
        build_model("din", (3, 32, 32), 2, seed=0)
    with pytest.raises(ValueError, match="classes is 10; din has one logit"):
        build_model("din", (56,), 10, seed=0)
    with pytest.raises(ValueError, match=r"sizes\['film'\] is 7"):
        build_model("din", (56,), 2, seed=0, sizes={"film": 7})
    with pytest.raises(ValueError, match=r"inputs have shape \(2, 7\).*\(n, 11\)"):
        network()(torch.zeros(2, 7, dtype=torch.int64))
    with pytest.raises(ValueError, match="inputs are user, item; din takes user, gender"):
        network()(user=torch.zeros(2), item=torch.zeros(2))


def test_sizes_of_movielens_are_the_default():
    model = build_model("din", (56,), 2, seed=0)
    assert FIELDS == _movielens.FIELDS
    assert {name: layer.num_embeddings for name, layer in model.body.embeddings.items()} == dict(SIZES)
    assert sum(p.numel() for p in model.body.embeddings.parameters()) == 201_650
    assert sum(p.numel() for p in model.body.attention.parameters()) == 931
    assert sum(p.numel() for p in [*model.body.mlp.parameters(), *model.head.parameters()]) == 2_817
