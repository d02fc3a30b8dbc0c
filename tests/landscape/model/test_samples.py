"""Samples of any nested shape."""

from __future__ import annotations

import pytest
import torch

from landscape.model.samples import Samples, call_module, leaves, map_leaves

PAIR = (torch.arange(7.0)[:, None], torch.arange(14.0).view(7, 2))
FORMS = {"tensor": PAIR[0], "tuple": PAIR, "dict": {"first": PAIR[0], "second": PAIR[1]}}


@pytest.mark.parametrize("form", FORMS)
def test_blocks_put_together_are_the_samples(form):
    samples = Samples(FORMS[form], torch.arange(7))
    parts = list(samples.blocks(3))
    assert [len(part) for part in parts] == [3, 3, 1]
    assert torch.equal(torch.cat([part.targets for part in parts]), samples.targets)
    for index, leaf in enumerate(leaves(samples.inputs)):
        assert torch.equal(torch.cat([leaves(part.inputs)[index] for part in parts]), leaf)


@pytest.mark.parametrize("form", FORMS)
def test_indexing_and_mapping_keep_the_structure(form):
    samples = Samples(FORMS[form], torch.arange(7))
    chosen = samples[torch.tensor([6, 0])]
    assert type(chosen.inputs) is type(samples.inputs)
    assert leaves(chosen.inputs)[0].flatten().tolist() == [6, 0]
    assert leaves(map_leaves(lambda leaf: leaf + 1, samples.inputs))[0][0] == 1


def test_unequal_lengths_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"\[6, 7\]"):
        Samples(PAIR, torch.arange(6))


def test_to_changes_only_floating_inputs():
    moved = Samples({"ids": torch.arange(7), "values": PAIR[1]}, torch.arange(7)).to(dtype=torch.float64)
    assert moved.inputs["ids"].dtype == torch.int64
    assert moved.inputs["values"].dtype == torch.float64
    assert moved.targets.dtype == torch.int64


def test_inputs_are_spread_as_the_model_takes_them():
    assert torch.equal(call_module(lambda first, second: first + second, PAIR), PAIR[0] + PAIR[1])
    assert torch.equal(call_module(lambda *, first, second: first - second, FORMS["dict"]), PAIR[0] - PAIR[1])
    assert torch.equal(call_module(lambda first: first, PAIR[0]), PAIR[0])
