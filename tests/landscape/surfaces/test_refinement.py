"""Which points of a plane are asked for: lattices, random points after a close one, and never more than the budget."""

from __future__ import annotations

import numpy as np
import pytest

from landscape.surfaces.refinement import RANDOM, Refinement, lattices

SHAPE = (41, 33)


def asked(shares, **options):
    """Numbers of points that are asked for while the trials have these errors, and the refinement."""
    refinement = Refinement(SHAPE, 0.01, **options)
    numbers = [int(refinement.requested.sum())]
    for share in shares:
        if not refinement.advance(share):
            break
        numbers.append(int(refinement.requested.sum()))
    return numbers, refinement


def test_lattices_follow_until_two_trials_are_close():
    numbers, refinement = asked([np.nan, 0.5, 0.01, 0.009, 0.5])
    assert numbers == [25, 41, 81, 81 + RANDOM] and refinement.converged
    lattice, random = refinement.trials
    masks = list(lattices(SHAPE))
    assert (lattice.before == masks[1]).all() and (lattice.fresh == (masks[2] & ~masks[1])).all()
    assert (random.before == masks[2]).all() and not (random.fresh & masks[2]).any()
    assert (refinement.requested == (masks[2] | random.fresh)).all()


def test_random_points_that_are_off_lead_to_the_next_lattice():
    numbers, refinement = asked([np.nan, 0.001, 0.5])
    masks = list(lattices(SHAPE))
    assert numbers[:3] == [25, 41, 41 + RANDOM] and not refinement.converged
    (trial,) = refinement.trials
    assert (masks[2] & ~refinement.requested).sum() == 0
    assert (trial.before & trial.fresh).sum() == 0 and ((trial.before | trial.fresh) == refinement.requested).all()


def test_an_error_that_is_no_number_is_not_close():
    assert asked([np.nan] * 3)[0] == [25, 41, 81, 145]


@pytest.mark.parametrize(("budget", "expected"), [(25, [25]), (72, [25, 41]), (80, [25, 41, 41 + RANDOM])])
def test_the_budget_is_kept(budget, expected):
    numbers, refinement = asked([np.nan, 0.001, 0.5], budget=budget)
    assert numbers == expected and not refinement.converged


def test_it_ends_with_all_points():
    numbers, refinement = asked([1.0] * 20)
    assert numbers[-1] == 41 * 33 and refinement.converged
    assert Refinement((5, 5), 0.01).converged
