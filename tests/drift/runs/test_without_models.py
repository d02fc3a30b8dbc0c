"""Series over all rounds read numbers and Gram matrices, no models, with the bits of whole records."""

import shutil

import pytest
import tiny
import torch
import xarray as xr

import drift
from drift.runs.metrics import recorded_metrics
from drift.store import files, round_headers

SERIES = [
    recorded_metrics,
    drift.coherence,
    drift.drift_variances,
    drift.regularisation_ratio,
    drift.aggregation_weights,
    drift.locality,
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose Gram matrices are large enough for vector instructions."""
    clients = ("clients.number=40", "clients.per_round=23", "clients.partition=iid")
    return tiny.trained(tmp_path_factory.mktemp("runs"), *clients, "rounds=5")


@pytest.mark.parametrize("analysis", SERIES)
def test_series_have_the_bits_of_whole_records(run, analysis, monkeypatch):
    found = analysis(run)
    read = []
    monkeypatch.setattr(
        type(run), "without_models", lambda self, indices: (read.append(i) or self.round(i) for i in indices)
    )
    xr.testing.assert_identical(found, analysis(run))
    assert read == run.rounds()


@pytest.mark.parametrize("analysis", SERIES)
def test_series_read_no_models_and_list_the_rounds_once(run, analysis, monkeypatch):
    analysis(run)  # compares the headers of the rounds, once in a process
    listed, real = [], round_headers.round_numbers
    monkeypatch.setattr(files, "read_round", lambda *_: pytest.fail("a whole round was read"))
    monkeypatch.setattr(round_headers, "round_numbers", lambda folder: listed.append(folder) or real(folder))
    analysis(run)
    assert len(listed) <= 2


def test_a_round_is_found_without_listing_all(run, monkeypatch):
    run.round(0)
    monkeypatch.setattr(round_headers, "round_numbers", lambda folder: pytest.fail("all rounds were listed"))
    assert run.round(3).index == 3
    monkeypatch.undo()
    with pytest.raises(LookupError, match="has no round 5; it has 0 to 4"):
        run.round(5)


@pytest.mark.parametrize("spoil", ["missing", "cut", "of another round", "of another run"])
def test_damaged_rounds_are_refused(tmp_path, spoil):
    run = tiny.trained(tmp_path / "runs")
    path = files.round_path(run.folder, 1)
    if spoil == "missing":
        path.unlink()
    elif spoil == "cut":
        path.write_bytes(path.read_bytes()[:900])
    elif spoil == "of another round":
        shutil.copy(files.round_path(run.folder, 2), path)
    else:
        shutil.copy(files.round_path(tiny.trained(tmp_path / "other", "seed=6").folder, 1), path)
    with pytest.raises(files.Damaged, match=r"000001\.safetensors"):
        list(run.without_models([0, 1, 2]))


def test_records_have_what_is_small(run):
    whole, small = run.round(2), next(run.without_models([2]))
    for name in ("ids", "sizes", "weights", "gram"):
        assert torch.equal(getattr(whole, name), getattr(small, name))
    assert small.metrics == whole.metrics
    assert small.clients is small.start is small.end is None
