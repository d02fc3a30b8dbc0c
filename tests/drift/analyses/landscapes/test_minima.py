"""Fitted minima of real planes against minima found by optimisation, and against finer grids."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kinds import one_of_each

from drift.analyses.landscapes.minima import global_minimum, locate_minimum, round_minimum
from drift.analyses.landscapes.planes import average_line, round_plane
from drift.analyses.landscapes.sweeps import client_sweep
from drift.claims import claims
from drift.config.load import read
from drift.simulation.simulate import simulate
from figures.page.summary import summary
from landscape.surfaces.basin import mark_coordinates
from landscape.surfaces.minimum import fitted_minimum
from landscape.surfaces.surface import surface
from tests import tiny

ROUNDS = (3, 7)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    experiment = read("digits-shards2", "rounds=8", "task.test_samples=200", "keep.clients=all", "keep.globals=all")
    return simulate(experiment, runs=tmp_path_factory.mktemp("digits"))


def optimum(run, sweep, start):
    """Coordinates where the test loss is lowest on a plane, by L-BFGS in float64."""
    basis = sweep.basis.double()
    flat = run.task.flat(basis[0])
    flat.module.eval()
    place = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    axes, origin = torch.tensor(sweep.axes), torch.tensor(sweep.origin)
    how = {"max_iter": 100, "tolerance_grad": 1e-10, "tolerance_change": 1e-13, "line_search_fn": "strong_wolfe"}
    search = torch.optim.LBFGS([place], **how)

    def closure():
        search.zero_grad()
        value = flat.functional_loss((origin + place @ axes) @ basis, run.task.split("test"))
        value.backward()
        return value

    search.step(closure)
    assert float(place.grad.norm()) < 1e-6
    return place.detach().numpy()


@pytest.mark.parametrize("index", one_of_each(ROUNDS, ROUNDS[1:]))
def test_the_fitted_minimum_is_that_of_an_optimisation_inside_the_plane(run, index):
    best = None
    for points in (21, 25, 15):
        plane = run.cached(round_plane, round=index, points=points)
        found = fitted_minimum(plane)
        assert found.state == "inside"
        at, errors = np.array(list(found.at.values())), np.array(list(found.errors.values()))
        if best is None:
            _, _, sweep = client_sweep(run, index, None, points=points, margin=0.3)
            best = optimum(run, sweep, at)
        assert np.linalg.norm(at - best) <= 2 * np.linalg.norm(errors)
        assert abs(
            found.offset(mark_coordinates(plane))[0] - np.linalg.norm(best - list(mark_coordinates(plane).values()))
        ) <= (2 * found.offset(mark_coordinates(plane))[1])


@pytest.mark.parametrize("index", one_of_each(ROUNDS, ROUNDS[1:]))
def test_21_and_25_points_agree_within_their_errors(run, index):
    """The lowest cells of these planes differ by up to a step of the grid; issue 14, point 4."""
    one, two = (fitted_minimum(run.cached(round_plane, round=index, points=points)) for points in (21, 25))
    place = mark_coordinates(run.cached(round_plane, round=index, points=21))
    (first, first_error), (second, second_error) = one.offset(place), two.offset(place)
    assert abs(first - second) <= 2 * np.hypot(first_error, second_error)
    step = np.hypot(*(float(np.ptp(one.fit.cells[:, axis])) / 2 for axis in (0, 1)))
    assert np.linalg.norm(np.subtract(list(one.at.values()), list(two.at.values()))) < step / 4


@pytest.mark.slow
def test_the_error_of_the_samples_is_what_other_samples_give(run):
    """Standard deviation of the minimum over bootstraps of the test samples; about 30 % by chance of 40 of them."""
    index, split = 7, run.task.split("test")
    _, _, sweep = client_sweep(run, index, None, points=15, margin=0.3)
    plane = round_plane(run, round=index, points=15)
    whole, fit = locate_minimum(run, plane, sweep, split="test"), fitted_minimum(plane)
    random, places = np.random.default_rng(0), []
    for _ in range(40):
        drawn = split[torch.from_numpy(random.integers(len(split), size=len(split)))]
        places.append(list(fitted_minimum(surface(run.task, sweep, split=drawn, metrics=("loss",))).at.values()))
    sampled = np.sqrt(np.array(list(whole.errors.values())) ** 2 - np.array(list(fit.errors.values())) ** 2)
    np.testing.assert_allclose(sampled, np.nanstd(places, axis=0), rtol=0.5)


def test_planes_of_clients_and_globals_tell_their_minimum_or_why_there_is_none(run):
    for found in (run.cached(round_minimum, points=11), run.cached(global_minimum, points=11)):
        inside = str(found.minimum_state.values) == "inside"
        assert inside == (str(found.minimum_reason.values) == "")
        numbers = [found.minimum_alpha, found.minimum_beta, found.minimum_offset, found.minimum_offset_error]
        assert all(np.isfinite(number) == inside for number in numbers)
        assert found.attrs["folds"] == 20
    with pytest.raises(ValueError, match="folds is 1"):
        round_minimum(run, points=11, folds=1)


@pytest.mark.slow
def test_the_summary_states_the_error_of_the_centre_offset(run):
    row = summary([run]).isel(algorithm=0)
    found = run.cached(round_minimum)
    if str(found.minimum_state.values) == "inside":
        assert float(row.centre_offset) == float(found.minimum_offset)
        assert float(row.centre_offset_error) == float(found.minimum_offset_error) > 0
    assert float(row.centre_offset_seeds) == float(str(found.minimum_state.values) == "inside")


def test_a_run_without_planes_has_no_offset_and_no_count(tmp_path):
    row = summary([tiny.trained(tmp_path, "keep.clients=none")]).isel(algorithm=0)
    assert np.isnan(row.centre_offset) and np.isnan(row.centre_offset_error) and np.isnan(row.centre_offset_seeds)


def test_the_claim_of_the_nearer_minimum_reads_the_fitted_one(run):
    (claim,) = [one for one in claims() if one.name == "ima-nearer-minimum"]
    least = fitted_minimum(run.cached(average_line))
    (effect,) = claim.measure([run]).values()
    if least.state == "inside":
        assert effect == pytest.approx(least.at["t"] - 0.5)
    else:
        assert effect in (-1, 1), "beyond an end of the line"
