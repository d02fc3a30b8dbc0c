"""Figures over rounds of a run on disk and of its file: the same numbers, and what the file lacks is named."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import xarray as xr

from drift.analyses.rounds.early_warning import early_warning
from drift.analyses.rounds.norms_and_weights import aggregation_weights, locality
from drift.claims.campaign import records, series
from figures import gallery
from figures.gallery import AnyOf
from figures.looks import look
from figures.selection.open_runs import open_run
from figures.selection.recorded_numbers import with_metric


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A run of FedLAW and its file."""
    folder = tmp_path_factory.mktemp("runs")
    run = tiny.trained(folder, "method=fedlaw", "method.variant=gws", "rounds=9")
    stored = {records.stored_key(run, aggregation_weights, {}): run.cached(aggregation_weights)[["gamma"]]}
    return run, open_run(records.write(folder / "files", run, stored))


def both(name, pair, **options):
    """Data of a figure of the run and of its file."""
    return [gallery.load(name).data([run], **options).squeeze() for run in pair]


@pytest.mark.parametrize(
    ("name", "same", "lacking"),
    [
        ("coherence-rounds", ("mean_cosine", "accuracy"), ("coherence", "coherence_smooth")),
        ("norms-rounds", ("end_norm",), ("update_norm_mean", "mean_update_norm")),
        ("locality-rounds", ("locality", "error"), ()),
        ("weights-learned", ("gamma",), ("weights", "weight_ratio")),
    ],
)
def test_a_figure_of_a_file_has_the_numbers_of_the_run_and_lacks_the_rest(name, same, lacking, pair):
    with look.drawing(look.current().look) as drawing:
        ours, theirs = both(name, pair)
        for variable in same:
            assert ours[variable].notnull().all()
            np.testing.assert_allclose(theirs[variable], ours[variable], rtol=1e-5, atol=1e-7, err_msg=variable)
        for variable in lacking:
            assert theirs[variable].isnull().all() and ours[variable].notnull().any()
            assert ours[variable].attrs["long_name"] in drawing.noted()
    figure = gallery.load(name).draw(gallery.load(name).data([pair[1]]))
    drawn = [ax for ax in figure.axes if ax.lines]
    assert len(drawn) == len(figure.axes), "no panel is empty"


def test_terms_of_the_shrinking_follow_from_norms_and_gamma(pair):
    ours, theirs = both("regularisation-rounds", pair)
    assert bool((abs(ours.gamma - 1) > 1e-3).all())
    for name in ("optimisation", "regularisation", "ratio", "gamma"):
        np.testing.assert_allclose(theirs[name][1:], ours[name][1:], rtol=1e-3, err_msg=name)
        assert ours[name].attrs == theirs[name].attrs
    assert np.isnan(theirs.optimisation[0]) and np.isfinite(ours.optimisation[0])
    figure = gallery.load("regularisation-rounds").draw(gallery.load("regularisation-rounds").data([pair[1]]))
    assert "round 0 left out" in "".join(text.get_text() for text in figure.findobj(lambda it: hasattr(it, "get_text")))


def test_files_without_the_terms_are_left_out_of_a_folder_and_refused_alone(pair, tmp_path):
    other = open_run(records.write(tmp_path, tiny.trained(tmp_path / "runs", "rounds=9"), {}))
    figure = gallery.load("regularisation-rounds")
    assert figure.data(AnyOf([other, pair[1]])).attrs["runs"] == pair[1].name
    with pytest.raises(ValueError, match="their files hold no regularisation_ratio"):
        figure.data([other, pair[1]])
    with pytest.raises(LookupError, match=r"holds no regularisation_ratio \(ratio r of the optimisation term"):
        figure.data([other])
    assert gallery.load("weights-learned").data(AnyOf([other, pair[1]])).attrs["runs"] == pair[1].name


def test_the_early_warning_of_a_file_is_that_of_the_loss(pair):
    ours, theirs = (run.cached(early_warning) for run in pair)
    for detector in theirs.detector.values:
        at = {"detector": detector}
        if detector in ("rise", "stall"):
            np.testing.assert_allclose(theirs.statistic.sel(at), ours.statistic.sel(at), rtol=1e-4, atol=1e-6)
        else:
            assert theirs.statistic.sel(at).isnull().all()
    xr.testing.assert_equal(theirs.limit, ours.limit)
    curve = pair[1].cached(early_warning, detectors="curve")
    np.testing.assert_allclose(curve.statistic, pair[0].cached(early_warning, detectors="curve").statistic, rtol=1e-4)


@pytest.mark.parametrize("name", ["heterogeneity-rounds", "layers-drift", "cost-table"])
def test_what_a_file_cannot_show_is_refused_in_one_line_with_its_contents(name, pair):
    words = {"heterogeneity-rounds": "label similarity", "layers-drift": "drift variances", "cost-table": "cost of one"}
    with pytest.raises(LookupError, match=rf"holds no \w+ \({words[name]}.*\); give the folder of run") as refused:
        gallery.load(name).data([pair[1]])
    assert "\n" not in str(refused.value)


def test_a_metric_beside_means_of_rounds_keeps_its_rounds_and_is_said_to_be_of_single_ones(pair, tmp_path, monkeypatch):
    monkeypatch.setattr(series, "BLOCKS", 3)
    run = open_run(records.write(tmp_path, pair[0], {}))
    with look.drawing(look.current().look) as drawing:
        ds = gallery.load("locality-rounds").data([run]).squeeze()
        assert "test error: of single rounds" in drawing.noted()
    assert ds.attrs["identity_rounds"] == "9 rounds, means over 3 successive ones"
    np.testing.assert_allclose(ds.error, pair[0].metrics()["error"], rtol=1e-5)
    means = pair[0].cached(locality)["locality"].values.reshape(3, 3).mean(1)
    np.testing.assert_allclose(ds.locality.dropna("round"), means, rtol=1e-5)
    assert ds.locality.dropna("round")["round"].values.tolist() == [0, 3, 6]
    assert with_metric(xr.Dataset(coords={"round": [0]}), run, "error").sizes["round"] == 9
