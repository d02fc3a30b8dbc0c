"""Where a run stands, told from its losses alone."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

from drift.analyses.rounds import run_state as states
from drift.analyses.rounds.run_state import run_state

CONSTANT = float(np.log(10))
NOISE = 0.01 * np.random.default_rng(0).standard_normal(30)
ROUNDS = np.arange(30)

SERIES = {
    "still learning": [
        CONSTANT - 0.004 * ROUNDS + 0.1 * NOISE,  # a straight line that never got far: not broken, not level
        2.0 - 0.05 * ROUNDS + NOISE,
        2.2 * np.exp(-ROUNDS / 20) + 0.1 * NOISE,
        500 * np.exp(-ROUNDS / 20) + NOISE,  # far above a constant answer, and falling
    ],
    "plateau": [0.4 + NOISE, 0.4 + 2 * np.exp(-ROUNDS) + NOISE, 0.4 + 0.0005 * ROUNDS + NOISE],
    "not learned": [CONSTANT + NOISE, CONSTANT + 0.3 + NOISE],
    "lost what it had": [0.5 + np.where(ROUNDS > 20, 1.2, 0) + NOISE, 0.5 + 0.08 * np.maximum(0, ROUNDS - 15) + NOISE],
    "diverged": [
        np.where(ROUNDS > 20, 1.5e23, 0.5),
        np.where(ROUNDS > 25, np.inf, 0.5),
        CONSTANT + ROUNDS,
        400 + 1e4 * NOISE,
    ],
    "not known": [np.array([2.0, 1.0, 0.5]), np.array([40.0, 3.0, 2.0])],
}


def run_with(losses, folder, errors=None, **about):
    metrics = xr.Dataset({"loss": ("round", losses)}, {"round": np.arange(len(losses))})
    metrics = metrics if errors is None else metrics.assign(error=("round", errors))
    targets = SimpleNamespace(targets=torch.arange(100) % 10)
    return SimpleNamespace(
        about=about,
        folder=folder,
        committed=len(losses),
        metrics=lambda: metrics,
        rounds=lambda: list(range(len(losses))),
        task=SimpleNamespace(samples={"test": targets}, labels=lambda split: targets.targets),
    )


@pytest.mark.parametrize(("name", "losses"), [(name, losses) for name in SERIES for losses in SERIES[name]])
def test_a_state_follows_from_the_losses(name, losses, tmp_path):
    state = run_state(run_with(losses, tmp_path))
    assert state.name == name and state.name in states.STATES
    assert state.broken == (name in ("diverged", "lost what it had"))


def test_a_loss_that_is_not_a_number_has_diverged(tmp_path):
    losses = np.where(ROUNDS > 27, np.nan, 0.5 + NOISE)
    assert run_state(run_with(losses, tmp_path, np.full(30, 0.9))).name == "diverged"
    assert run_state(run_with(losses, tmp_path, np.full(30, 0.9), imported=True)).name == "plateau"


def test_the_expected_gain_per_round_is_the_slope(tmp_path):
    state = run_state(run_with(2.0 - 0.03 * ROUNDS + 0.1 * NOISE, tmp_path))
    assert state.unfinished and state.fall.value == pytest.approx(0.03, abs=1e-3)
    assert state.fall.low < 0.03 < state.fall.high or state.fall.value == pytest.approx(0.03, rel=0.03)


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        (np.concatenate([np.linspace(2, 0.3, 12), np.full(10, 1.8)]), 11),
        ([0.2, 2, 1.9, 1.8, 1.7, 1.6, 1.5, 1.5], 0),
        ([229, 244, 460, 376, 371, 395], 0),
        ([np.nan, np.inf, 460, 376, np.nan, 395], 3),
        ([np.nan, np.inf, np.nan], -1),
        ([np.nan, np.nan, np.nan, np.nan, np.nan], -1),
        ([3.0, 2.0], 1),
        ([], -1),
    ],
)
def test_the_best_round_is_where_the_loss_was_lowest(losses, best, tmp_path):
    run = run_with(np.array(losses, dtype=float), tmp_path, np.full(len(losses), 0.9))
    state = run_state(run)
    assert state.best == best
    lost = states.lost_from(run, states.recorded_losses(run), state.chance)
    assert lost == (best if state.name == "diverged" else None)


def test_windows_of_a_broken_run_begin_where_three_losses_were_low(tmp_path):
    losses = np.array([0.1, 2, 0.9, 0.8, 0.7, 0.75, 2, 2, 2, 2])
    state = run_state(run_with(losses, tmp_path))
    assert (state.name, state.best, state.turn) == ("lost what it had", 0, 5)
