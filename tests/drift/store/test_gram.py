"""Gram matrices of rounds."""

import torch

from drift.store.round_record import CLIENTS, PREVIOUS, START, STEP, gram


def test_entries_are_inner_products_in_float64_across_blocks():
    source = torch.Generator().manual_seed(0)
    start, previous, step = torch.randn(3, 23, generator=source)
    deltas = torch.randn(2, 23, generator=source)
    found = gram(start, previous, step, deltas, block=7)
    rows = torch.stack([start, previous, step, *deltas]).double()
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, rows @ rows.T, rtol=1e-14, atol=1e-14)
    assert found[START, PREVIOUS] == found[PREVIOUS, START]
    torch.testing.assert_close(found[STEP, CLIENTS + 1], step.double() @ deltas[1].double())


def test_a_cohort_of_nobody_has_three_rows():
    nothing = torch.zeros(5)
    assert gram(nothing, nothing, nothing, torch.zeros(0, 5)).shape == (3, 3)


def test_a_large_cohort_is_summed_up_to_the_diagonal():
    deltas = torch.randn(300, 40, generator=torch.Generator().manual_seed(1))
    start, previous, step = torch.randn(3, 40, generator=torch.Generator().manual_seed(2))
    computed = gram(start, previous, step, deltas, block=7)
    rows = torch.cat([torch.stack([start, previous, step]), deltas]).double()
    assert torch.equal(computed, computed.T)
    torch.testing.assert_close(computed, rows @ rows.T, rtol=1e-12, atol=1e-12)
