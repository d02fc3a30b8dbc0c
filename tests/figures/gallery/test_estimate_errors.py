"""Pictures of estimated traces and densities have bars and bands of their standard errors, and these cover."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.container import ErrorbarContainer

from figures.gallery import _runs, _selected, _stack, hessian_density, trace_rounds
from figures.looks import look
from figures.texts.alt_text import alt_text
from figures.texts.caption import caption
from landscape.curvature.trace import _hutchpp

NAMES = ("trace", "gauss_newton_trace")


class Recorded:
    """A run whose analyses are known."""

    without_data = False
    experiment = SimpleNamespace(seed=0)

    def __init__(self, result):
        self.result = result

    def kept(self, what):
        return [0, 5]

    def cached(self, analysis, **options):
        return self.result


def traces(monkeypatch, module, result):
    monkeypatch.setattr(_runs, "select_comparable", list)
    monkeypatch.setattr(_selected, "narrow", lambda runs, some, why: some)
    both = {name: Recorded(result * scale) for name, scale in (("fedavg", 1.0), ("ima", 2.0))}

    def stacked(runs, compute):
        return xr.concat([compute(run).expand_dims("seed") for run in runs], "algorithm").assign_coords(
            algorithm=list(both), seed=[0]
        )

    monkeypatch.setattr(_stack, "stack_runs", stacked)
    return module.data(list(both.values()))


def known_traces(errors=(4.5, 1.1)):
    over = {"round": [0, 5]}
    columns = {"trace": [32.6, 35.6], "standard_error": errors, "gauss_newton_trace": [30.0, 34.0]}
    columns |= {"gauss_newton_standard_error": [3.0, 0.0], "frobenius": [9.0, 8.0], "frobenius_error": [1.0, 0.5]}
    return xr.Dataset({name: ("round", list(values)) for name, values in columns.items()}, over)


def segments(ax):
    """Ends of all bars of a panel by their place."""
    bars = [bar for part in ax.containers if isinstance(part, ErrorbarContainer) for bar in part.lines[2]]
    return sorted((*ends[:, 0][:1], *ends[:, 1]) for bar in bars for ends in bar.get_segments())


def test_every_trace_has_a_bar_of_one_standard_error(monkeypatch):
    ds = traces(monkeypatch, trace_rounds, known_traces())
    with look.drawing(look.Look()):
        figure = trace_rounds.draw(ds)
        said = caption("Traces.", ds, figure)
    axs = figure.axes[:3]
    for ax, variable in zip(axs, (*NAMES, "share"), strict=True):
        middle, error = ds[variable].values.ravel(), ds[f"{variable}_error"].values.ravel()
        rounds = np.tile(ds.trace_round.values, 2)
        expected = sorted((x, y - e, y + e) for x, y, e in zip(rounds, middle, error, strict=True) if e > 0)
        np.testing.assert_allclose(segments(ax), expected)
    assert len(segments(axs[1])) == 2  # an exact trace has no bar
    assert "bars: one standard error of each estimate" in said.lower() and "sum of the relative errors" in said
    assert "bars over" not in alt_text("Traces", figure)


def test_the_ratio_has_the_sum_of_both_relative_errors(monkeypatch):
    ds = traces(monkeypatch, trace_rounds, known_traces())
    np.testing.assert_allclose(ds.share_error[0, 0, 0], 30 / 32.6 * (4.5 / 32.6 + 3 / 30))


def test_differences_have_no_bars_and_say_so(monkeypatch):
    ds = traces(monkeypatch, trace_rounds, known_traces())
    with look.drawing(look.read(paired_to="fedavg")) as part:
        figure = trace_rounds.draw(ds)
        assert "without the errors of the estimates" in part.notes
    assert not segments(figure.axes[0])


def test_densities_have_a_band_of_one_standard_error(monkeypatch):
    grid = np.linspace(-1, 3, 20)
    height = np.exp(-(grid**2))
    over = ("round", "mark")
    known = {"density": (over, [height, height]), "density_error": (over, [0.1 * height, 0.3 * height])}
    known |= {"eigenvalue": (over, [grid, 3 * grid])}
    ds = traces(monkeypatch, hessian_density, xr.Dataset(known, {"round": [0, 5], "mark": range(20)}))
    with look.drawing(look.Look()):
        figure = hessian_density.draw(ds)
        said = caption("Densities.", ds, figure)
    assert "grey bands: one standard error of the density" in said.lower()
    bands = [
        part for part in figure.axes[1].collections if isinstance(part, PolyCollection) and part.get_alpha() == 0.25
    ]
    own = [np.array(ax.get_xlim()) for ax in figure.axes[:2]]
    np.testing.assert_allclose(own[1], 3 * own[0])  # a round has its own range of eigenvalues
    ends = bands[0].get_paths()[0].get_extents()
    np.testing.assert_allclose([ends.ymin, ends.ymax], [0.7 * height.min(), 1.3 * height.max()])


@pytest.mark.parametrize("other", ["near", "opposite", "apart"])
def test_stated_errors_of_traces_and_of_their_ratio_cover(other):
    source = np.random.default_rng(3)
    first, second = ((table @ table.T) for table in source.standard_normal((2, 40, 40)))
    second = {"near": first + 0.3 * second, "opposite": 200 * np.eye(40) - first, "apart": second}[other]
    truth, inside, inside_share = [np.trace(first), np.trace(second)], [], []
    for seed in range(400):
        values, errors = [], []
        for matrix in (first, second):
            tensor = torch.from_numpy(matrix)
            value, error, _, _ = _hutchpp(lambda row, own=tensor: own @ row, torch.zeros(40).double(), 10, seed)
            values.append(value)
            errors.append(error)
        inside += [abs(value - true) <= error for value, true, error in zip(values, truth, errors, strict=True)]
        share = values[1] / values[0]
        error = abs(share) * (errors[0] / abs(values[0]) + errors[1] / abs(values[1]))
        inside_share.append(abs(share - truth[1] / truth[0]) <= error)
    assert np.mean(inside) == pytest.approx(0.657, abs=0.05)  # one standard error of ten samples, Student's
    assert np.mean(inside_share) > 0.6
